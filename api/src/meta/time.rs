//! Time as the API writes it: RFC 3339, whole seconds, UTC.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in whole seconds. Go's `metav1.Time` prints no fraction, so a fraction would cause endless updates between
/// two writers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(DateTime<Utc>);

impl Time {
    /// The time, truncated to whole seconds.
    #[must_use]
    pub fn new(moment: DateTime<Utc>) -> Self {
        Self(DateTime::from_timestamp(moment.timestamp(), 0).unwrap_or(moment))
    }

    /// The time as a date and time.
    #[must_use]
    pub fn get(self) -> DateTime<Utc> {
        self.0
    }
}

/// A time of the metadata of an object, in whole seconds: the library of Kubernetes has a type of its own.
#[must_use]
pub fn moment(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.0.as_second(), 0)
}

impl From<DateTime<Utc>> for Time {
    fn from(moment: DateTime<Utc>) -> Self {
        Self::new(moment)
    }
}

impl Default for Time {
    /// The epoch: the value for a required time that is absent.
    fn default() -> Self {
        Self(DateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        DateTime::parse_from_rfc3339(&text)
            .map(|moment| Self::new(moment.with_timezone(&Utc)))
            .map_err(|_| serde::de::Error::custom("expected a time such as 2026-01-31T12:00:00Z"))
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_second_are_truncated_and_offsets_become_utc() {
        let time: Time = serde_json::from_str("\"2026-01-31T13:00:00.987654+01:00\"").unwrap();
        assert_eq!(serde_json::to_string(&time).unwrap(), "\"2026-01-31T12:00:00Z\"");
    }

    #[test]
    fn an_invalid_time_is_rejected_with_an_example() {
        let error = serde_json::from_str::<Time>("\"yesterday\"").unwrap_err().to_string();
        assert!(error.contains("2026-01-31T12:00:00Z"), "{error}");
    }
}
