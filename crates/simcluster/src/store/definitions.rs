//! CRDs as objects: a stored definition makes a kind, a removed one takes it and its objects away.

use serde_json::{Value, json};

use super::kind::{CRD_GROUP, CRD_PLURAL, Kind};
use super::object;
use super::refusal::Refusal;
use super::route::Call;
use super::{ObjectKey, Store};

fn is_definition(kind: &Kind) -> bool {
    kind.group == CRD_GROUP && kind.plural == CRD_PLURAL
}

impl Store {
    /// Refuses a CRD that makes no kind.
    pub(super) fn check_definition(&self, call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
        if !is_definition(&call.kind) {
            return Ok(());
        }
        let name = object::text(body, "name");
        let invalid = |field: &str, detail: String| {
            let error = metal3_schema::FieldError::invalid(field, name, detail);
            Refusal::invalid(&call.kind.kind, &call.kind.group, name, &[error])
        };
        let kind = Kind::from_definition(body).map_err(|why| invalid("spec", why))?;
        if kind.resource() != name {
            return Err(invalid(
                "metadata.name",
                "must be spec.names.plural+\".\"+spec.group".to_owned(),
            ));
        }
        for version in &kind.versions {
            let violations = version
                .schema
                .as_ref()
                .map(metal3_schema::Schema::violations)
                .unwrap_or_default();
            if !violations.is_empty() {
                return Err(Refusal::invalid(&call.kind.kind, &call.kind.group, name, &violations));
            }
        }
        Ok(())
    }

    /// Brings the kinds in line with a definition that was just written or removed.
    pub(super) fn after_write(&mut self, kind: &Kind, key: &ObjectKey) {
        if !is_definition(kind) {
            return;
        }
        let stored = self.stored(kind, key).map(|stored| Value::clone(stored));
        match stored.as_ref().map(Kind::from_definition) {
            Some(Ok(defined)) => {
                self.kinds
                    .insert((defined.group.clone(), defined.plural.clone()), defined);
                if let Some(established) = stored.and_then(establish) {
                    self.commit(kind, key, established);
                }
            }
            _ => {
                let (plural, group) = key.1.split_once('.').unwrap_or((key.1.as_str(), ""));
                let resource = (group.to_owned(), plural.to_owned());
                self.kinds.remove(&resource);
                self.objects.remove(&resource);
            }
        }
    }
}

/// The definition with the conditions that clients wait for; `None` where they are there.
fn establish(mut definition: Value) -> Option<Value> {
    if definition.pointer("/status/conditions").is_some() {
        return None;
    }
    let time = object::text(&definition, "creationTimestamp").to_owned();
    let stored: Vec<Value> = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let condition = |what: &str, reason: &str, message: &str| json!({"type": what, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time});
    let status = json!({
        "acceptedNames": definition.pointer("/spec/names").cloned().unwrap_or_default(),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
    object::as_map(&mut definition).insert("status".into(), status);
    Some(definition)
}
