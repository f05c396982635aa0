//! Validation of firmware settings by the schema of the machine's model.
//!
//! An error never contains the value of a password; a setting with `Password` in its name counts as one.

use std::fmt;

use super::{AttributeType, FirmwareSchemaSpec, SettingSchema};
use crate::meta::IntOrString;

/// Settings with this text in their name hold a secret, regardless of the reported type.
const PASSWORD: &str = "Password";
/// An error lists at most this many values of an enumeration.
const MOST_SHOWN: usize = 8;

/// Whether a setting of this name counts as a password.
#[must_use]
pub fn is_password(name: &str) -> bool {
    name.contains(PASSWORD)
}

/// Why a value of a setting is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The machine has no such setting.
    Unknown,
    /// The machine does not allow changing it.
    ReadOnly,
    /// It holds a secret, which cannot be set here.
    Password,
    /// The value is none of those it may have.
    NotAllowed {
        /// The value.
        value: String,
        /// The values it may have.
        allowed: Vec<String>,
    },
    /// The value is of another type.
    Type {
        /// The value.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The number, or the length of the text, is out of bounds.
    Bounds {
        /// The number or the length.
        found: i64,
        /// The smallest allowed.
        least: Option<i64>,
        /// The largest allowed.
        most: Option<i64>,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(
                f,
                "it is not in the schema of the machine; remove it or correct its name"
            ),
            Self::ReadOnly => write!(f, "it is read-only; remove it"),
            Self::Password => write!(f, "passwords cannot be set here; set it on the machine, and remove it"),
            Self::NotAllowed { value, allowed } => {
                let shown = allowed.iter().take(MOST_SHOWN).cloned().collect::<Vec<_>>().join(", ");
                write!(f, "{value:?} is none of its values; use one of {shown}")?;
                match allowed.len().saturating_sub(MOST_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Type { value, expected } => write!(f, "{value:?} is not {expected}; write {expected}"),
            Self::Bounds { found, least, most } => {
                let bound = |bound: &Option<i64>| bound.map_or_else(|| "any".to_owned(), |bound| bound.to_string());
                write!(
                    f,
                    "{found} is out of bounds; stay between {} and {}",
                    bound(least),
                    bound(most)
                )
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl FirmwareSchemaSpec {
    /// Whether the setting may be given the value.
    ///
    /// # Errors
    /// The first thing that is in the way.
    pub fn check(&self, name: &str, value: &IntOrString) -> Result<(), SettingError> {
        self.schema.get(name).ok_or(SettingError::Unknown)?.check(name, value)
    }
}

impl SettingSchema {
    /// Whether the setting of this name may be given the value.
    ///
    /// # Errors
    /// The first thing that is in the way.
    pub fn check(&self, name: &str, value: &IntOrString) -> Result<(), SettingError> {
        if self.read_only == Some(true) {
            return Err(SettingError::ReadOnly);
        }
        if is_password(name) {
            return Err(SettingError::Password);
        }
        let text = value.to_string();
        match self.attribute_type {
            Some(AttributeType::Password) => Err(SettingError::Password),
            Some(AttributeType::Enumeration) if !self.allowable_values.contains(&text) => {
                Err(SettingError::NotAllowed {
                    value: text,
                    allowed: self.allowable_values.clone(),
                })
            }
            Some(AttributeType::Boolean) if text != "true" && text != "false" => Err(SettingError::Type {
                value: text,
                expected: "true or false",
            }),
            Some(AttributeType::Integer) => match text.parse() {
                Ok(number) => within(number, self.lower_bound, self.upper_bound),
                Err(_) => Err(SettingError::Type {
                    value: text,
                    expected: "an integer",
                }),
            },
            Some(AttributeType::String) => {
                let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
                within(length, self.min_length, self.max_length)
            }
            // Without a reported type, any value is passed to the machine.
            Some(AttributeType::Enumeration | AttributeType::Boolean) | None => Ok(()),
        }
    }
}

fn within(found: i64, least: Option<i64>, most: Option<i64>) -> Result<(), SettingError> {
    if least.is_some_and(|least| found < least) || most.is_some_and(|most| found > most) {
        return Err(SettingError::Bounds { found, least, most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(setting: Value, value: Value) -> Result<(), SettingError> {
        named("Setting", setting, value)
    }

    fn named(name: &str, setting: Value, value: Value) -> Result<(), SettingError> {
        let schema: FirmwareSchemaSpec = serde_json::from_value(json!({ "schema": { name: setting } })).unwrap();
        schema.check(name, &serde_json::from_value(value).unwrap())
    }

    #[test]
    fn values_that_fit_their_type_are_accepted() {
        let choice = json!({ "attribute_type": "Enumeration", "allowable_values": ["Enabled", "5"] });
        let number = json!({ "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 30 });
        let text = json!({ "attribute_type": "String", "min_length": 1, "max_length": 3 });
        for (setting, value) in [
            (choice.clone(), json!("Enabled")),
            (choice, json!(5)),
            (number.clone(), json!(0)),
            (number, json!("30")),
            (text.clone(), json!("a")),
            (text, json!(123)),
            (json!({ "attribute_type": "Boolean" }), json!("true")),
            (json!({ "attribute_type": "Boolean" }), json!("false")),
            (json!({ "attribute_type": "Integer" }), json!(-7)),
            (json!({}), json!("anything")),
            (json!({ "read_only": false }), json!("anything")),
        ] {
            assert_eq!(check(setting.clone(), value.clone()), Ok(()), "{setting} {value}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused_with_the_reason() {
        let number = json!({ "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 30 });
        let bounds = |found| SettingError::Bounds {
            found,
            least: Some(0),
            most: Some(30),
        };
        assert_eq!(check(number.clone(), json!(-1)), Err(bounds(-1)));
        assert_eq!(check(number.clone(), json!("31")), Err(bounds(31)));
        assert!(matches!(check(number, json!("many")), Err(SettingError::Type { .. })));
        let text = json!({ "attribute_type": "String", "min_length": 1, "max_length": 3 });
        assert!(matches!(
            check(text.clone(), json!("")),
            Err(SettingError::Bounds { found: 0, .. })
        ));
        assert!(
            matches!(check(text, json!("äö")), Err(SettingError::Bounds { found: 4, .. })),
            "bytes count"
        );
        let choice = json!({ "attribute_type": "Enumeration", "allowable_values": ["Enabled"] });
        assert!(matches!(
            check(choice, json!("enabled")),
            Err(SettingError::NotAllowed { .. })
        ));
        let boolean = json!({ "attribute_type": "Boolean" });
        assert!(matches!(check(boolean, json!("True")), Err(SettingError::Type { .. })));
        assert_eq!(
            check(json!({ "read_only": true }), json!("x")),
            Err(SettingError::ReadOnly)
        );
    }

    #[test]
    fn error_lists_some_of_many_values() {
        let allowed: Vec<_> = (0..11).map(|number| format!("v{number}")).collect();
        let value = "other".to_owned();
        let error = SettingError::NotAllowed { value, allowed }.to_string();
        assert!(
            error.ends_with("use one of v0, v1, v2, v3, v4, v5, v6, v7 and 3 more"),
            "{error}"
        );
    }

    #[test]
    fn setting_that_the_machine_does_not_have_is_refused() {
        let schema = FirmwareSchemaSpec::default();
        assert_eq!(schema.check("Turbo", &IntOrString::Int(1)), Err(SettingError::Unknown));
    }

    #[test]
    fn passwords_are_refused_by_type_and_by_name_and_never_shown() {
        let by_type = check(json!({ "attribute_type": "Password" }), json!("calvin")).unwrap_err();
        let by_name = named("AdminPassword", json!({ "attribute_type": "String" }), json!("calvin")).unwrap_err();
        for error in [by_type, by_name] {
            assert_eq!(error, SettingError::Password);
            assert!(!format!("{error} {error:?}").contains("calvin"));
        }
    }
}
