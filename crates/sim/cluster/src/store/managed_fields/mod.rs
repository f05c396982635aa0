//! Field managers of an object: `metadata.managedFields`.
//!
//! Stored next to each object in a compact form, because few requests read them: objects share the strings, since most
//! have the same managers of the same fields. Only writes unpack them; `tracker` computes the effect of a write.

mod apply;
mod tracker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_schema::FieldSet;
use serde_json::{Map, Value, json};

use super::metadata::timestamp;
use super::object;

pub(super) use apply::Applied;
pub(super) use tracker::FieldTracker;

/// The operation by which a manager owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager. An applier has one identity for all versions, an updater one for each version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: Arc<str>,
    pub(super) operation: Operation,
    version: Arc<str>,
    pub(super) subresource: Arc<str>,
}

impl Manager {
    pub(super) fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        Self {
            name: name.into(),
            operation,
            version: match operation {
                Operation::Apply => "".into(),
                Operation::Update => api_version.into(),
            },
            subresource: subresource.into(),
        }
    }
}

/// The fields of one manager.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ManagedFields {
    /// The group and version of the field paths.
    pub(super) api_version: Arc<str>,
    pub(super) fields: FieldSet,
    pub(super) time: Option<DateTime<Utc>>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Managers(BTreeMap<Manager, ManagedFields>);

/// All managers of an object in the stored form.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StoredManagers(Option<Arc<[StoredEntry]>>);

#[derive(Debug, PartialEq)]
struct StoredEntry {
    manager: Manager,
    api_version: Arc<str>,
    fields: Arc<str>,
    time: Option<DateTime<Utc>>,
}

/// Strings that stored managers share.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextPool {
    known: BTreeSet<Arc<str>>,
    /// The number of strings after the last removal of unused ones.
    used: usize,
}

impl TextPool {
    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() > self.used.saturating_mul(2).saturating_add(64) {
            self.known.retain(|text| Arc::strong_count(text) > 1);
            self.used = self.known.len();
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }
}

impl Managers {
    /// The managers of a request's `managedFields`. Returns the stored managers when the list is absent or invalid, and
    /// no managers when the list is empty or has one empty entry.
    pub(super) fn requested(given: Option<&Value>, stored: &StoredManagers) -> Self {
        let Some(Value::Array(entries)) = given else {
            return stored.unpacked();
        };
        let reset = entries.is_empty() || matches!(entries.as_slice(), [Value::Object(map)] if map.is_empty());
        if reset {
            return Self::default();
        }
        let read: Option<BTreeMap<_, _>> = entries.iter().map(read).collect();
        match read {
            Some(managers) if !managers.is_empty() => Self(managers),
            _ => stored.unpacked(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn packed(&self, texts: &mut TextPool) -> StoredManagers {
        if self.0.is_empty() {
            return StoredManagers::default();
        }
        let mut entries: Vec<StoredEntry> = self
            .0
            .iter()
            .map(|(manager, managed)| StoredEntry {
                manager: Manager {
                    name: texts.intern(&manager.name),
                    operation: manager.operation,
                    version: texts.intern(&manager.version),
                    subresource: texts.intern(&manager.subresource),
                },
                api_version: texts.intern(&managed.api_version),
                fields: texts.intern(&managed.fields.to_value().to_string()),
                time: managed.time,
            })
            .collect();
        entries.sort_by(|one, other| one.order().cmp(&other.order()));
        StoredManagers(Some(entries.into()))
    }
}

/// One entry of `managedFields`.
fn read(entry: &Value) -> Option<(Manager, ManagedFields)> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return None;
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::parse(fields).ok()?,
    };
    let time = DateTime::parse_from_rfc3339(text("time")).ok();
    let managed = ManagedFields {
        api_version: api_version.into(),
        fields,
        time: time.map(|time| time.to_utc()),
    };
    Some((
        Manager::new(text("manager"), operation, api_version, text("subresource")),
        managed,
    ))
}

impl StoredEntry {
    /// The sort key: appliers first, then by age.
    fn order(&self) -> (Operation, i64, &str, &str, &str) {
        let seconds = self.time.map(|time| time.timestamp()).unwrap_or_default();
        (
            self.manager.operation,
            seconds,
            &self.manager.name,
            &self.api_version,
            &self.manager.subresource,
        )
    }

    fn shown(&self) -> Value {
        let mut entry = Map::new();
        let texts = [
            ("manager", &*self.manager.name),
            ("operation", self.manager.operation.name()),
            ("apiVersion", &*self.api_version),
            ("fieldsType", "FieldsV1"),
            ("subresource", &*self.manager.subresource),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(name.to_owned(), text.into());
        }
        if let Some(time) = self.time {
            entry.insert("time".to_owned(), timestamp(time).into());
        }
        entry.insert("fieldsV1".to_owned(), self.fields());
        entry.into()
    }

    fn fields(&self) -> Value {
        // It was written by `FieldSet::to_value`.
        serde_json::from_str(&self.fields).unwrap_or_else(|_| json!({}))
    }
}

impl StoredManagers {
    fn entries(&self) -> &[StoredEntry] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn unpacked(&self) -> Managers {
        let managed = |entry: &StoredEntry| ManagedFields {
            api_version: Arc::clone(&entry.api_version),
            fields: FieldSet::parse(&entry.fields()).unwrap_or_default(),
            time: entry.time,
        };
        Managers(
            self.entries()
                .iter()
                .map(|entry| (entry.manager.clone(), managed(entry)))
                .collect(),
        )
    }

    /// Writes `managedFields` into an object.
    pub(super) fn show(&self, object: &mut Value) {
        if !self.entries().is_empty() {
            let entries: Vec<Value> = self.entries().iter().map(StoredEntry::shown).collect();
            object::set(object, "managedFields", entries);
        }
    }

    /// Whether both are equal except for the times.
    pub(super) fn same_except_times(&self, other: &Self) -> bool {
        let keys = |stored: &Self| -> BTreeSet<(Manager, Arc<str>, Arc<str>)> {
            let key = |entry: &StoredEntry| {
                (
                    entry.manager.clone(),
                    Arc::clone(&entry.api_version),
                    Arc::clone(&entry.fields),
                )
            };
            stored.entries().iter().map(key).collect()
        };
        self.entries().len() == other.entries().len() && keys(self) == keys(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managers(manager: &str, field: &str) -> Managers {
        let entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {field: {}}},
        });
        Managers::requested(Some(&json!([entry])), &StoredManagers::default())
    }

    #[test]
    fn objects_with_the_same_managers_share_the_strings() {
        let mut texts = TextPool::default();
        let [one, other] = [(); 2].map(|()| managers("m", "f:a").packed(&mut texts));
        assert!(Arc::ptr_eq(&one.entries()[0].fields, &other.entries()[0].fields));
        assert_eq!(one, other);
    }

    #[test]
    fn unused_strings_are_removed() {
        let mut texts = TextPool::default();
        for number in 0..1000 {
            drop(managers("m", &format!("f:{number}")).packed(&mut texts));
        }
        assert!(texts.known.len() < 100, "{}", texts.known.len());
    }

    #[test]
    fn invalid_managed_fields_keep_the_stored_managers() {
        let mut texts = TextPool::default();
        let stored = managers("m", "f:a").packed(&mut texts);
        for given in [json!([{"manager": "x"}]), json!("x"), Value::Null] {
            assert_eq!(Managers::requested(Some(&given), &stored).packed(&mut texts), stored);
        }
        assert!(Managers::requested(Some(&json!([])), &stored).is_empty());
    }

    #[test]
    fn packing_and_showing_keep_the_given_managers() {
        let mut texts = TextPool::default();
        let mut object = json!({"metadata": {}});
        managers("m", "f:a").packed(&mut texts).show(&mut object);
        let shown = object::take(&mut object, "managedFields");
        assert_eq!(
            Managers::requested(shown.as_ref(), &StoredManagers::default()),
            managers("m", "f:a")
        );
    }
}
