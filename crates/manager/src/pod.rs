//! Namespace and identity of the process.

use chrono::{DateTime, Utc};

/// The file in which Kubernetes mounts a Pod's namespace.
pub const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Namespace and identity of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its namespace; `None` outside a cluster, if the environment does not name one.
    pub namespace: Option<String>,
    /// Its identity, unique per start: otherwise requests of its predecessor would look like its own.
    pub identity: String,
}

impl PodIdentity {
    /// Reads the environment first, then the namespace file.
    #[must_use]
    pub fn of(
        environment: impl Fn(&str) -> Option<String>,
        namespace_file: Option<String>,
        process: u32,
        started: DateTime<Utc>,
    ) -> Self {
        let variable = |name: &str| environment(name).filter(|text| !text.is_empty());
        let host = variable("POD_NAME")
            .or_else(|| variable("HOSTNAME"))
            .unwrap_or_else(|| "capm3".to_owned());
        let namespace = variable("POD_NAMESPACE").or(namespace_file);
        let start = started.timestamp_nanos_opt().unwrap_or_else(|| started.timestamp());
        Self {
            namespace: namespace
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty()),
            identity: format!("{host}_{process}-{start:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(environment: &[(&str, &str)], file: Option<&str>) -> PodIdentity {
        let find = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
        };
        PodIdentity::of(find, file.map(str::to_owned), 1, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn the_environment_takes_precedence_over_the_file() {
        let here = place(
            &[("POD_NAMESPACE", "metal"), ("POD_NAME", "capm3-0"), ("HOSTNAME", "x")],
            Some("other\n"),
        );
        assert_eq!(
            (here.namespace.as_deref(), here.identity.as_str()),
            (Some("metal"), "capm3-0_1-0")
        );
        let here = place(&[("POD_NAMESPACE", ""), ("HOSTNAME", "x")], Some("other\n"));
        assert_eq!(
            (here.namespace.as_deref(), here.identity.as_str()),
            (Some("other"), "x_1-0")
        );
        assert_eq!(place(&[], None).namespace, None);
    }

    #[test]
    fn two_starts_of_one_pod_have_two_identities() {
        let at = |seconds| {
            PodIdentity::of(
                |_| None,
                None,
                1,
                DateTime::from_timestamp(seconds, 0).unwrap_or_default(),
            )
        };
        assert_ne!(at(1).identity, at(2).identity);
    }
}
