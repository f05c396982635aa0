//! Who owns which field of an object: `metadata.managedFields`.
//!
//! Packed beside each stored object, since few look at them: the texts are shared between objects, which mostly have
//! the same owners of the same fields. Unpacked only for writes. What follows from a write is decided in `ledger`.

mod apply;
mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_schema::FieldSet;
use serde_json::{Map, Value, json};

use super::metadata::timestamp;
use super::object;

pub(super) use apply::Applied;
pub(super) use ledger::Ledger;

/// How an owner came to its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    Apply,
    Update,
}

impl Deed {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One owner. Who applies is the same owner in every version, who updates is another in each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) name: Arc<str>,
    pub(super) deed: Deed,
    version: Arc<str>,
    pub(super) subresource: Arc<str>,
}

impl Owner {
    pub(super) fn new(name: &str, deed: Deed, api_version: &str, subresource: &str) -> Self {
        Self {
            name: name.into(),
            deed,
            version: match deed {
                Deed::Apply => "".into(),
                Deed::Update => api_version.into(),
            },
            subresource: subresource.into(),
        }
    }
}

/// What an owner owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    /// The group and version in which the fields are named.
    pub(super) api_version: Arc<str>,
    pub(super) fields: FieldSet,
    pub(super) time: Option<DateTime<Utc>>,
}

/// All owners of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shares(BTreeMap<Owner, Share>);

/// All owners of an object as they are stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Owners(Option<Arc<[Packed]>>);

#[derive(Debug, PartialEq)]
struct Packed {
    owner: Owner,
    api_version: Arc<str>,
    fields: Arc<str>,
    time: Option<DateTime<Utc>>,
}

/// Texts that owners share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    known: BTreeSet<Arc<str>>,
    /// How many there were when those in use were last counted.
    used: usize,
}

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
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

impl Shares {
    /// The owners that a request's `managedFields` name: those of the stored object where it names none or cannot be
    /// understood, and none where it asks for that with one empty entry.
    pub(super) fn wished(given: Option<&Value>, stored: &Owners) -> Self {
        let Some(Value::Array(entries)) = given else {
            return stored.unpacked();
        };
        let reset = entries.is_empty() || matches!(entries.as_slice(), [Value::Object(map)] if map.is_empty());
        if reset {
            return Self::default();
        }
        let read: Option<BTreeMap<_, _>> = entries.iter().map(read).collect();
        match read {
            Some(shares) if !shares.is_empty() => Self(shares),
            _ => stored.unpacked(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn packed(&self, texts: &mut Texts) -> Owners {
        if self.0.is_empty() {
            return Owners::default();
        }
        let mut entries: Vec<Packed> = self
            .0
            .iter()
            .map(|(owner, share)| Packed {
                owner: Owner {
                    name: texts.share(&owner.name),
                    deed: owner.deed,
                    version: texts.share(&owner.version),
                    subresource: texts.share(&owner.subresource),
                },
                api_version: texts.share(&share.api_version),
                fields: texts.share(&share.fields.to_value().to_string()),
                time: share.time,
            })
            .collect();
        entries.sort_by(|one, other| one.order().cmp(&other.order()));
        Owners(Some(entries.into()))
    }
}

/// One entry of `managedFields`.
fn read(entry: &Value) -> Option<(Owner, Share)> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let deed = match text("operation") {
        "Apply" => Deed::Apply,
        "Update" => Deed::Update,
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
    let share = Share {
        api_version: api_version.into(),
        fields,
        time: time.map(|time| time.to_utc()),
    };
    Some((
        Owner::new(text("manager"), deed, api_version, text("subresource")),
        share,
    ))
}

impl Packed {
    /// Appliers first, then by age.
    fn order(&self) -> (Deed, i64, &str, &str, &str) {
        let seconds = self.time.map(|time| time.timestamp()).unwrap_or_default();
        (
            self.owner.deed,
            seconds,
            &self.owner.name,
            &self.api_version,
            &self.owner.subresource,
        )
    }

    fn shown(&self) -> Value {
        let mut entry = Map::new();
        let texts = [
            ("manager", &*self.owner.name),
            ("operation", self.owner.deed.name()),
            ("apiVersion", &*self.api_version),
            ("fieldsType", "FieldsV1"),
            ("subresource", &*self.owner.subresource),
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

impl Owners {
    fn entries(&self) -> &[Packed] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn unpacked(&self) -> Shares {
        let share = |entry: &Packed| Share {
            api_version: Arc::clone(&entry.api_version),
            fields: FieldSet::parse(&entry.fields()).unwrap_or_default(),
            time: entry.time,
        };
        Shares(
            self.entries()
                .iter()
                .map(|entry| (entry.owner.clone(), share(entry)))
                .collect(),
        )
    }

    /// Writes `managedFields` into an object.
    pub(super) fn show(&self, object: &mut Value) {
        if !self.entries().is_empty() {
            let entries: Vec<Value> = self.entries().iter().map(Packed::shown).collect();
            object::set(object, "managedFields", entries);
        }
    }

    /// Whether both are the same but for the times.
    pub(super) fn alike(&self, other: &Self) -> bool {
        let keys = |owners: &Self| -> BTreeSet<(Owner, Arc<str>, Arc<str>)> {
            let key = |entry: &Packed| {
                (
                    entry.owner.clone(),
                    Arc::clone(&entry.api_version),
                    Arc::clone(&entry.fields),
                )
            };
            owners.entries().iter().map(key).collect()
        };
        self.entries().len() == other.entries().len() && keys(self) == keys(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(manager: &str, field: &str) -> Shares {
        let entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {field: {}}},
        });
        Shares::wished(Some(&json!([entry])), &Owners::default())
    }

    #[test]
    fn objects_with_the_same_owners_share_the_texts() {
        let mut texts = Texts::default();
        let [one, other] = [(); 2].map(|()| shares("m", "f:a").packed(&mut texts));
        assert!(Arc::ptr_eq(&one.entries()[0].fields, &other.entries()[0].fields));
        assert_eq!(one, other);
    }

    #[test]
    fn texts_that_nobody_uses_are_forgotten() {
        let mut texts = Texts::default();
        for number in 0..1000 {
            drop(shares("m", &format!("f:{number}")).packed(&mut texts));
        }
        assert!(texts.known.len() < 100, "{}", texts.known.len());
    }

    #[test]
    fn owners_that_cannot_be_understood_leave_those_that_are_stored() {
        let mut texts = Texts::default();
        let stored = shares("m", "f:a").packed(&mut texts);
        for given in [json!([{"manager": "x"}]), json!("x"), Value::Null] {
            assert_eq!(Shares::wished(Some(&given), &stored).packed(&mut texts), stored);
        }
        assert!(Shares::wished(Some(&json!([])), &stored).is_empty());
    }

    #[test]
    fn packing_and_showing_keep_what_was_given() {
        let mut texts = Texts::default();
        let mut object = json!({"metadata": {}});
        shares("m", "f:a").packed(&mut texts).show(&mut object);
        let shown = object::take(&mut object, "managedFields");
        assert_eq!(Shares::wished(shown.as_ref(), &Owners::default()), shares("m", "f:a"));
    }
}
