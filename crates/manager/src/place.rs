//! Where the process runs, and what it calls itself.

use chrono::{DateTime, Utc};

/// Where Kubernetes tells a Pod its namespace.
pub const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The process among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The namespace it runs in; nothing outside a cluster that does not say.
    pub namespace: Option<String>,
    /// What it calls itself: another name after each start, or it would take its predecessor's requests for its own.
    pub identity: String,
}

impl Place {
    /// The place by the environment, then by the file of the namespace.
    #[must_use]
    pub fn of(
        environment: impl Fn(&str) -> Option<String>,
        namespace_file: Option<String>,
        process: u32,
        started: DateTime<Utc>,
    ) -> Self {
        let said = |name: &str| environment(name).filter(|text| !text.is_empty());
        let host = said("POD_NAME")
            .or_else(|| said("HOSTNAME"))
            .unwrap_or_else(|| "capm3".to_owned());
        let namespace = said("POD_NAMESPACE").or(namespace_file);
        let moment = started.timestamp_nanos_opt().unwrap_or_else(|| started.timestamp());
        Self {
            namespace: namespace
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty()),
            identity: format!("{host}_{process}-{moment:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(environment: &[(&str, &str)], file: Option<&str>) -> Place {
        let find = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
        };
        Place::of(find, file.map(str::to_owned), 1, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn the_environment_counts_before_the_file() {
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
    fn two_starts_of_one_pod_have_two_names() {
        let at = |seconds| {
            Place::of(
                |_| None,
                None,
                1,
                DateTime::from_timestamp(seconds, 0).unwrap_or_default(),
            )
        };
        assert_ne!(at(1).identity, at(2).identity);
    }
}
