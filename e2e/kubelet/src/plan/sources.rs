//! The objects that a Pod's manifest refers to.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec, ServiceAccountTokenProjection};

pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// A ServiceAccount token of a projected volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token {
    pub(crate) audience: Option<String>,
    pub(crate) seconds: i64,
}

impl Token {
    pub(crate) fn of(projection: &ServiceAccountTokenProjection) -> Self {
        // The API's default is one hour.
        Self {
            audience: projection.audience.clone(),
            seconds: projection.expiration_seconds.unwrap_or(3600),
        }
    }
}

/// The objects to fetch before a container can be planned.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) tokens: BTreeSet<Token>,
}

/// The fetched objects. An object that is not in here does not exist: a failed request is an error of the fetch.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) secrets: BTreeMap<String, Data>,
    pub(crate) config_maps: BTreeMap<String, Data>,
    pub(crate) tokens: BTreeMap<Token, Vec<u8>>,
}

/// A required object that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Missing(pub(crate) String);

/// The value of one key, for variables. `Ok(None)`: optional and absent.
pub(crate) fn key(
    found: &BTreeMap<String, Data>,
    kind: &str,
    name: &str,
    key: &str,
    optional: bool,
) -> Result<Option<String>, Missing> {
    let value = match found.get(name).map(|data| data.get(key)) {
        Some(Some(value)) => value,
        Some(None) | None if optional => return Ok(None),
        Some(None) => return Err(Missing(format!("{kind} {name:?} has no key {key:?}"))),
        None => return Err(Missing(format!("{kind} {name:?} not found"))),
    };
    Ok(Some(String::from_utf8_lossy(value).into_owned()))
}

/// The objects of the Pod's volumes and its containers' variables.
pub(crate) fn needs(pod: &Pod) -> Needs {
    let mut needs = Needs::default();
    if let Some(spec) = &pod.spec {
        volume_needs(spec, &mut needs);
        variable_needs(spec, &mut needs);
    }
    needs
}

impl Needs {
    fn add(&mut self, secret: Option<&String>, config_map: Option<&String>) {
        self.secrets.extend(secret.cloned());
        self.config_maps.extend(config_map.cloned());
    }
}

fn volume_needs(spec: &PodSpec, needs: &mut Needs) {
    for volume in spec.volumes.iter().flatten() {
        let secret = volume.secret.as_ref().and_then(|source| source.secret_name.as_ref());
        needs.add(secret, volume.config_map.as_ref().map(|source| &source.name));
        let projected = volume
            .projected
            .iter()
            .filter_map(|projected| projected.sources.as_ref());
        for source in projected.flatten() {
            let secret = source.secret.as_ref().map(|source| &source.name);
            needs.add(secret, source.config_map.as_ref().map(|source| &source.name));
            needs.tokens.extend(source.service_account_token.iter().map(Token::of));
        }
    }
}

fn variable_needs(spec: &PodSpec, needs: &mut Needs) {
    for container in &spec.containers {
        for from in container.env_from.iter().flatten() {
            let secret = from.secret_ref.as_ref().map(|source| &source.name);
            needs.add(secret, from.config_map_ref.as_ref().map(|source| &source.name));
        }
        let variables = container.env.iter().flatten();
        for from in variables.filter_map(|variable| variable.value_from.as_ref()) {
            let secret = from.secret_key_ref.as_ref().map(|source| &source.name);
            needs.add(secret, from.config_map_key_ref.as_ref().map(|source| &source.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::pod;
    use super::*;

    #[test]
    fn volumes_and_variables_determine_the_objects_to_fetch() {
        let needs = needs(&pod(json!({
            "containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}],
                "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                        {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}}]}],
            "volumes": [{"name": "v1", "secret": {"secretName": "s3"}}, {"name": "v2", "configMap": {"name": "c3"}},
                {"name": "v3", "projected": {"sources": [{"secret": {"name": "s4"}}, {"configMap": {"name": "c4"}},
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 600, "audience": "x"}}]}}],
        })));
        let names = |prefix: &str| (1..=4).map(|n| format!("{prefix}{n}")).collect::<BTreeSet<_>>();
        assert_eq!(needs.secrets, names("s"));
        assert_eq!(needs.config_maps, names("c"));
        assert_eq!(
            needs.tokens,
            BTreeSet::from([Token {
                audience: Some("x".into()),
                seconds: 600
            }])
        );
    }

    #[test]
    fn absent_key_is_an_error_unless_optional() {
        let found = BTreeMap::from([("s".to_owned(), Data::from([("k".to_owned(), b"v".to_vec())]))]);
        let table = [
            ("s", "k", false, Ok(Some("v".to_owned()))),
            ("s", "none", true, Ok(None)),
            ("t", "k", true, Ok(None)),
            (
                "s",
                "none",
                false,
                Err(Missing("Secret \"s\" has no key \"none\"".into())),
            ),
            ("t", "k", false, Err(Missing("Secret \"t\" not found".into()))),
        ];
        for (name, wanted, optional, answer) in table {
            assert_eq!(key(&found, "Secret", name, wanted, optional), answer, "{name}/{wanted}");
        }
    }
}
