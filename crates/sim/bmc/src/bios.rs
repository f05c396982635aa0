//! The settings of the system firmware (BIOS): what is in force, and what is pending until the next boot. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::machine::Machine;

/// What a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of these.
    Enumeration(&'static [&'static str]),
    /// A number within these limits.
    Integer(i64, i64),
    /// A text of at most so many characters.
    Text(usize),
    /// A fact, which a machine has by its hardware.
    Fact,
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
}

const SWITCH: &[&str] = &["Enabled", "Disabled"];

/// All settings, in the order of their names.
pub const ATTRIBUTES: [Attribute; 7] = [
    of("AssetTag", Kind::Text(16)),
    of("BootMode", Kind::Fact),
    of("NumCores", Kind::Fact),
    of("PowerOnDelay", Kind::Integer(0, 240)),
    of("ProcTurboMode", Kind::Enumeration(SWITCH)),
    of("ProcVirtualization", Kind::Enumeration(SWITCH)),
    of("SriovGlobalEnable", Kind::Enumeration(SWITCH)),
];

const fn of(name: &'static str, kind: Kind) -> Attribute {
    Attribute { name, kind }
}

impl Attribute {
    fn default(&self, machine: &Machine) -> Value {
        match (self.kind, self.name) {
            (Kind::Enumeration(values), _) => values.first().copied().into(),
            (Kind::Integer(least, _), _) => least.into(),
            (Kind::Text(_), _) => "".into(),
            (Kind::Fact, "NumCores") => machine.profile.cpu.cores.to_string().into(),
            (Kind::Fact, _) if machine.boot.mode == "UEFI" => "Uefi".into(),
            (Kind::Fact, _) => "Bios".into(),
        }
    }

    fn allows(&self, value: &Value) -> bool {
        match self.kind {
            Kind::Enumeration(values) => value.as_str().is_some_and(|value| values.contains(&value)),
            Kind::Integer(least, most) => value.as_i64().is_some_and(|value| (least..=most).contains(&value)),
            Kind::Text(most) => value.as_str().is_some_and(|value| value.chars().count() <= most),
            Kind::Fact => false,
        }
    }

    /// The entry of the attribute registry.
    fn entry(&self, machine: &Machine) -> Value {
        let mut entry = match self.kind {
            Kind::Enumeration(values) => {
                let values: Vec<Value> = values.iter().map(|value| json!({ "ValueName": value })).collect();
                json!({ "Type": "Enumeration", "Value": values })
            }
            Kind::Integer(least, most) => json!({ "Type": "Integer", "LowerBound": least, "UpperBound": most }),
            Kind::Text(most) => json!({ "Type": "String", "MinLength": 0, "MaxLength": most }),
            Kind::Fact => json!({ "Type": "String" }),
        };
        let all = [
            ("AttributeName", self.name.into()),
            ("DefaultValue", self.default(machine)),
            ("ReadOnly", (self.kind == Kind::Fact).into()),
            ("ResetRequired", true.into()),
        ];
        if let Some(entry) = entry.as_object_mut() {
            entry.extend(all.map(|(name, value)| (name.to_owned(), value)));
        }
        entry
    }
}

/// What was set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    in_force: BTreeMap<&'static str, Value>,
    pending: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// Applies pending settings, as the firmware does when the machine starts.
    pub fn boot(&mut self) {
        self.in_force.append(&mut self.pending);
    }
}

/// The settings in force.
pub fn in_force(machine: &Machine) -> Value {
    let value = |attribute: &Attribute| {
        let set = machine.settings.in_force.get(attribute.name).cloned();
        (
            attribute.name.to_owned(),
            set.unwrap_or_else(|| attribute.default(machine)),
        )
    };
    Value::Object(ATTRIBUTES.iter().map(value).collect())
}

/// The settings that the next boot applies.
pub fn pending(machine: &Machine) -> Value {
    let pending = machine.settings.pending.iter();
    Value::Object(
        pending
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    )
}

/// Lets the next boot apply these settings. An error names the first that is unknown or has a wrong value, and changes nothing.
///
/// # Errors
/// The name and what it may be.
pub fn set(machine: &mut Machine, wanted: &Map<String, Value>) -> Result<(), String> {
    let mut accepted = Vec::new();
    for (name, value) in wanted {
        let known = ATTRIBUTES.iter().find(|attribute| attribute.name == name);
        let attribute = known.ok_or_else(|| format!("there is no attribute {name}"))?;
        if !attribute.allows(value) {
            return Err(format!("{name} cannot be {value}: it is {:?}", attribute.kind));
        }
        accepted.push((attribute.name, value.clone()));
    }
    machine.settings.pending.extend(accepted);
    Ok(())
}

/// Lets the next boot apply the defaults of all settings.
pub fn reset(machine: &mut Machine) {
    let settable = ATTRIBUTES.iter().filter(|attribute| attribute.kind != Kind::Fact);
    let defaults = settable.map(|attribute| (attribute.name, attribute.default(machine)));
    machine.settings.pending = defaults.collect();
}

/// The entries of the attribute registry.
pub fn registry(machine: &Machine) -> Vec<Value> {
    ATTRIBUTES.iter().map(|attribute| attribute.entry(machine)).collect()
}
