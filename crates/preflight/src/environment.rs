//! The variables of a container, as Kubernetes sets them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use crate::settings::{Source, Variable, expanded, unknown_reference};

/// ConfigMaps by name with their entries, none when one does not exist; `None` for one that could not be read.
pub type ConfigMaps = BTreeMap<String, Option<BTreeMap<String, String>>>;

/// The ConfigMaps that variables of a container come from.
#[must_use]
pub fn config_maps(container: &Container) -> BTreeSet<String> {
    let all = container.env_from.iter().flatten();
    let all = all.filter_map(|source| Some(source.config_map_ref.as_ref()?.name.clone()));
    let each = container.env.iter().flatten().filter_map(|one| one.value_from.as_ref());
    let each = each.filter_map(|from| Some(from.config_map_key_ref.as_ref()?.name.clone()));
    all.chain(each).collect()
}

/// The variables of a container in this namespace with their sources, in their order. An entry that a ConfigMap does not have sets
/// none. Values of Secrets are not read.
#[must_use]
pub fn variables(container: &Container, namespace: &str, maps: &ConfigMaps) -> Vec<Variable> {
    let mut variables = Vec::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if let Some(map) = &source.config_map_ref {
            let source = Source::ConfigMap(map.name.clone());
            match maps.get(&map.name).and_then(Option::as_ref) {
                Some(entries) => {
                    for (name, value) in entries {
                        add(
                            &mut variables,
                            format!("{prefix}{name}"),
                            Some(value.clone()),
                            source.clone(),
                        );
                    }
                }
                None => any_of(&mut variables, prefix, source),
            }
        }
        if let Some(secret) = &source.secret_ref {
            any_of(&mut variables, prefix, Source::Secret(secret.name.clone()));
        }
    }
    for variable in container.env.iter().flatten() {
        let found = match &variable.value_from {
            None => Some(written(variable.value.as_deref(), &variables)),
            Some(from) => referenced(namespace, from, maps),
        };
        if let Some((value, source)) = found {
            add(&mut variables, variable.name.clone(), value, source);
        }
    }
    variables
}

/// A later variable replaces an earlier one.
fn add(variables: &mut Vec<Variable>, name: String, value: Option<String>, source: Source) {
    variables.retain(|one| one.name != name);
    variables.push(Variable { name, value, source });
}

/// Any variable with the prefix, of a source whose content is not read. Several may have the same prefix, or none.
fn any_of(variables: &mut Vec<Variable>, prefix: &str, source: Source) {
    variables.push(Variable {
        name: format!("{prefix}*"),
        value: None,
        source,
    });
}

/// The value that is written in the Deployment, which does not store an empty one. It is not known where it refers to one that is not.
fn written(text: Option<&str>, earlier: &[Variable]) -> (Option<String>, Source) {
    let text = text.unwrap_or_default();
    let find = |name: &str| Variable::find(earlier, name);
    match unknown_reference(text, find) {
        Some(unknown) => (None, unknown.source.clone()),
        None => (
            Some(expanded(text, |name| find(name)?.value.clone())),
            Source::Deployment,
        ),
    }
}

/// Its value, if it is known, and its source. None where the ConfigMap was read and does not have the entry.
fn referenced(namespace: &str, from: &EnvVarSource, maps: &ConfigMaps) -> Option<(Option<String>, Source)> {
    if let Some(entry) = &from.config_map_key_ref {
        let source = Source::ConfigMap(entry.name.clone());
        return match maps.get(&entry.name).and_then(Option::as_ref) {
            Some(entries) => Some((Some(entries.get(&entry.key)?.clone()), source)),
            None => Some((None, source)),
        };
    }
    if let Some(entry) = &from.secret_key_ref {
        return Some((None, Source::Secret(entry.name.clone())));
    }
    let field = from.field_ref.as_ref().map(|field| field.field_path.clone());
    if field.as_deref() == Some("metadata.namespace") {
        return Some((Some(namespace.to_owned()), Source::Pod("metadata.namespace".to_owned())));
    }
    let resource = from.resource_field_ref.as_ref().map(|field| field.resource.clone());
    Some((None, Source::Pod(field.or(resource).unwrap_or_default())))
}
