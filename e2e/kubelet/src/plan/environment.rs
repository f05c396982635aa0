//! The environment variables of a container, and `$(NAME)` in its command line.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod, ResourceFieldSelector};

use super::fields::{Placement, field};
use super::quantity::divided;
use super::sources::{self, Missing, Sources};

/// The address of the API server for in-cluster clients.
#[derive(Debug, Clone)]
pub(crate) struct ApiServer {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The Node's allocatable resources, the limits of containers without limits.
pub(crate) const ALLOCATABLE: &[(&str, &str)] = &[
    ("cpu", "64"),
    ("memory", "64Gi"),
    ("pods", "200"),
    ("ephemeral-storage", "64Gi"),
];

/// The variables: the image's and the runtime's first, then `envFrom`, then `env`; later ones override earlier ones.
pub(crate) fn variables(
    pod: &Pod,
    container: &Container,
    placement: &Placement,
    server: &ApiServer,
    sources: &Sources,
    of_image: &[(String, String)],
) -> Result<BTreeMap<String, String>, Missing> {
    let mut all = BTreeMap::from([
        (
            "PATH".to_owned(),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        ),
        ("HOME".to_owned(), "/".to_owned()),
    ]);
    all.extend(of_image.iter().cloned());
    all.extend([
        ("HOSTNAME".to_owned(), pod.metadata.name.clone().unwrap_or_default()),
        ("KUBERNETES_SERVICE_HOST".to_owned(), server.host.clone()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), server.port.to_string()),
        ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), server.port.to_string()),
    ]);
    from_objects(container, sources, &mut all)?;
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(from)) => match referred(pod, container, placement, sources, from)? {
                Some(value) => value,
                None => continue, // optional and absent: the variable is not set
            },
            (Some(value), None) => expand(value, &all),
            (None, None) => String::new(),
        };
        all.insert(variable.name.clone(), value);
    }
    Ok(all)
}

fn from_objects(container: &Container, sources: &Sources, all: &mut BTreeMap<String, String>) -> Result<(), Missing> {
    for from in container.env_from.iter().flatten() {
        let secret = from
            .secret_ref
            .as_ref()
            .map(|r| ("Secret", &sources.secrets, &r.name, r.optional));
        let map = from
            .config_map_ref
            .as_ref()
            .map(|r| ("ConfigMap", &sources.config_maps, &r.name, r.optional));
        for (kind, found, name, optional) in secret.into_iter().chain(map) {
            let Some(data) = found.get(name) else {
                if optional == Some(true) {
                    continue;
                }
                return Err(Missing(format!("{kind} {name:?} not found")));
            };
            let prefix = from.prefix.as_deref().unwrap_or_default();
            all.extend(
                data.iter()
                    .map(|(key, value)| (format!("{prefix}{key}"), String::from_utf8_lossy(value).into_owned())),
            );
        }
    }
    Ok(())
}

fn referred(
    pod: &Pod,
    container: &Container,
    placement: &Placement,
    sources: &Sources,
    from: &EnvVarSource,
) -> Result<Option<String>, Missing> {
    if let Some(reference) = &from.field_ref {
        let value = field(pod, placement, &reference.field_path);
        return value
            .map(Some)
            .ok_or_else(|| Missing(format!("no field {:?}", reference.field_path)));
    }
    if let Some(reference) = &from.secret_key_ref {
        let optional = reference.optional == Some(true);
        return sources::key(&sources.secrets, "Secret", &reference.name, &reference.key, optional);
    }
    if let Some(reference) = &from.config_map_key_ref {
        let optional = reference.optional == Some(true);
        return sources::key(
            &sources.config_maps,
            "ConfigMap",
            &reference.name,
            &reference.key,
            optional,
        );
    }
    if let Some(reference) = &from.resource_field_ref {
        let value = resource(container, reference);
        return value
            .map(Some)
            .ok_or_else(|| Missing(format!("no resource {:?}", reference.resource)));
    }
    Err(Missing("a variable with an unsupported valueFrom".to_owned()))
}

/// `limits.cpu` and similar. The default of limits is the Node's allocatable quantity.
fn resource(container: &Container, reference: &ResourceFieldSelector) -> Option<String> {
    let (which, name) = reference.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let values = match which {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => return None,
    };
    let allocatable = ALLOCATABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, quantity)| *quantity);
    let quantity = match (values.and_then(|values| values.get(name)), which) {
        (Some(quantity), _) => &quantity.0,
        (None, "limits") => allocatable?,
        (None, _) => "0",
    };
    divided(quantity, reference.divisor.as_ref().map(|divisor| divisor.0.as_str())).map(|count| count.to_string())
}

/// Replaces `$(NAME)` by the variable and `$$` by a dollar; an unknown name is kept.
pub(crate) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{container, placement, pod};
    use super::super::sources::Data;
    use super::*;

    fn data(key: &str, value: &str) -> Data {
        Data::from([(key.to_owned(), value.as_bytes().to_vec())])
    }

    fn variables_of(value: Value) -> Result<BTreeMap<String, String>, Missing> {
        let sources = Sources {
            secrets: BTreeMap::from([("s".to_owned(), data("user", "root"))]),
            config_maps: BTreeMap::from([("c".to_owned(), data("mode", "fast"))]),
            ..Sources::default()
        };
        let server = ApiServer {
            host: "10.0.0.1".into(),
            port: 6443,
        };
        variables(
            &pod(json!({"containers": []})),
            &container(value),
            &placement(),
            &server,
            &sources,
            &[],
        )
    }

    #[test]
    fn each_kind_of_value_from_is_resolved() {
        let all = variables_of(json!({"name": "a", "resources": {"limits": {"cpu": "1500m"}},
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "none", "optional": true}}],
        "env": [
            {"name": "USER", "valueFrom": {"secretKeyRef": {"name": "s", "key": "user"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "mode"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}},
            {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "none", "optional": true}}},
            {"name": "URL", "value": "http://$(IP):$(PORT)/$$(IP)"},
        ]}))
        .unwrap();
        let expected = [
            ("P_mode", Some("fast")),
            ("USER", Some("root")),
            ("MODE", Some("fast")),
            ("IP", Some("10.0.0.7")),
            ("CPU", Some("2")),
            ("MEMORY", Some("64")),
            ("ABSENT", None),
            ("URL", Some("http://10.0.0.7:$(PORT)/$(IP)")),
            ("KUBERNETES_SERVICE_HOST", Some("10.0.0.1")),
            ("HOSTNAME", Some("web-1")),
        ];
        for (name, value) in expected {
            assert_eq!(all.get(name).map(String::as_str), value, "{name}");
        }
    }

    #[test]
    fn missing_sources_are_named_in_the_error() {
        let table = [
            (
                json!({"secretKeyRef": {"name": "none", "key": "k"}}),
                "Secret \"none\" not found",
            ),
            (
                json!({"configMapKeyRef": {"name": "c", "key": "k"}}),
                "ConfigMap \"c\" has no key \"k\"",
            ),
            (
                json!({"fieldRef": {"fieldPath": "status.phase"}}),
                "no field \"status.phase\"",
            ),
            (
                json!({"resourceFieldRef": {"resource": "limits.gpu"}}),
                "no resource \"limits.gpu\"",
            ),
        ];
        for (from, message) in table {
            let answer = variables_of(json!({"name": "a", "env": [{"name": "X", "valueFrom": from}]}));
            assert_eq!(answer, Err(Missing(message.into())));
        }
    }

    #[test]
    fn expansion_keeps_unknown_names() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expanded) in [
            ("$(A)$(A)", "11"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("a$", "a$"),
            ("$$$(A)", "$1"),
            ("$(B)", "$(B)"),
        ] {
            assert_eq!(expand(text, &variables), expanded, "{text}");
        }
    }
}
