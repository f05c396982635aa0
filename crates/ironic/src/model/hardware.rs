//! BIOS settings, firmware components, virtual media and event subscriptions of a node.

use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::Value;

lenient! {
    /// One BIOS setting. Fields other than `name` and `value` are returned with `detail` only, and not by every driver.
    pub struct BiosSetting {
        required {
            /// Its name.
            pub name: String,
        }
        /// Its value; a string in every known driver.
        pub value: Value,
        /// `Enumeration`, `String`, `Integer`, `Boolean` or `Password`.
        pub attribute_type: Option<String>,
        /// The values of an enumeration.
        pub allowable_values: Vec<Value>,
        /// The smallest integer.
        pub lower_bound: Option<i64>,
        /// The largest integer.
        pub upper_bound: Option<i64>,
        /// The shortest text.
        pub min_length: Option<i64>,
        /// The longest text.
        pub max_length: Option<i64>,
        /// Whether it is read-only.
        pub read_only: Option<bool>,
        /// Whether the value belongs to one machine.
        pub unique: Option<bool>,
    }
}

lenient! {
    /// One component with firmware.
    #[derive(Eq)]
    pub struct FirmwareComponent {
        required {
            /// `bios`, `bmc`, `nic:…`.
            pub component: String,
        }
        /// The version when Ironic saw it first.
        pub initial_version: Option<String>,
        /// The version now, as far as Ironic has read it.
        pub current_version: Option<String>,
        /// The version of the last update that changed it.
        pub last_version_flashed: Option<String>,
        /// When its record last changed.
        pub updated_at: Option<DateTime<Utc>>,
    }

    /// An attached image.
    #[derive(Eq)]
    pub struct VirtualMedia {
        /// Whether an image is inserted; absent when the BMC does not say.
        pub inserted: Option<bool>,
        /// The URL of the image.
        pub image: Option<String>,
        /// What the drive may hold: `CD`, `DVD`, `Floppy` or `USBStick`.
        pub media_types: Vec<String>,
    }
}

impl VirtualMedia {
    /// Whether the drive holds an image; `None` when it reports neither that nor an image.
    #[must_use]
    pub fn holds_image(&self) -> Option<bool> {
        self.inserted
            .or_else(|| self.image.as_deref().map(|image| !image.is_empty()))
    }

    /// Whether it is a drive for discs. One that does not say what it may hold is taken for one.
    #[must_use]
    pub fn is_for_discs(&self) -> bool {
        let mut types = self.media_types.iter();
        self.media_types.is_empty() || types.any(|name| name == "CD" || name == "DVD")
    }
}

/// The event subscriptions of a BMC: a Redfish collection, which Ironic passes on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Subscriptions {
    #[serde(rename = "Members")]
    members: Vec<Member>,
    #[serde(default, rename = "Members@odata.count")]
    count: Option<usize>,
    #[serde(default, rename = "Members@odata.nextLink")]
    next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
struct Member {
    #[serde(rename = "@odata.id")]
    path: String,
}

impl Subscriptions {
    /// The identifiers of the subscriptions, in the order of the BMC.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .filter_map(|member| member.path.trim_end_matches('/').rsplit('/').next())
    }

    /// Whether these are all subscriptions of the BMC.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.next.is_none() && self.count.is_none_or(|count| count <= self.members.len())
    }

    /// Whether the collection contains a subscription of this identifier; `None` when it is incomplete and the part
    /// does not contain it.
    #[must_use]
    pub fn contain(&self, id: &str) -> Option<bool> {
        match self.ids().any(|member| member == id) {
            true => Some(true),
            false => self.is_complete().then_some(false),
        }
    }
}

/// An event subscription as its BMC reports it. No BMC reports the HTTP headers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Subscription {
    /// The URL that events are sent to.
    #[serde(default, rename = "Destination")]
    pub destination: Option<String>,
    /// The text that comes with each event.
    #[serde(default, rename = "Context")]
    pub context: Option<String>,
}

/// An event subscription to create. It is not printed: the headers may contain a login.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSubscription {
    /// The URL that events are sent to.
    pub destination: String,
    /// The text that comes with each event; empty for none.
    pub context: String,
    /// HTTP headers of each event: name and value.
    pub headers: Vec<(String, String)>,
}

impl NewSubscription {
    /// The body of the request. What is empty is left out: Ironic has the same defaults as the BMC.
    pub(crate) fn body(&self) -> Value {
        let mut body = serde_json::Map::new();
        body.insert("Destination".to_owned(), self.destination.as_str().into());
        if !self.context.is_empty() {
            body.insert("Context".to_owned(), self.context.as_str().into());
        }
        if !self.headers.is_empty() {
            let headers = self.headers.iter();
            let headers = headers.map(|(name, value)| Value::from_iter([(name.as_str(), value.as_str())]));
            body.insert("HttpHeaders".to_owned(), headers.collect());
        }
        Value::Object(body)
    }
}

impl fmt::Debug for NewSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSubscription").finish_non_exhaustive()
    }
}

/// The response to the creation of an event subscription.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct CreatedSubscription {
    /// The BMC's identifier.
    #[serde(rename = "Id")]
    pub id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn setting_is_read_with_and_without_its_registry() {
        let plain: BiosSetting = serde_json::from_value(json!({ "name": "A", "value": null })).unwrap();
        assert_eq!(
            (plain.value, plain.attribute_type, plain.read_only),
            (Value::Null, None, None)
        );
        let detailed = json!({ "name": "A", "value": "5", "attribute_type": "Integer", "allowable_values": null,
            "lower_bound": 0, "upper_bound": 30, "min_length": null, "max_length": null, "read_only": false,
            "unique": null, "reset_required": true });
        let detailed: BiosSetting = serde_json::from_value(detailed).unwrap();
        assert_eq!(detailed.attribute_type.as_deref(), Some("Integer"));
        assert_eq!((detailed.lower_bound, detailed.upper_bound), (Some(0), Some(30)));
        assert!(detailed.allowable_values.is_empty() && detailed.unique.is_none());
    }

    #[test]
    fn component_is_read_with_and_without_its_versions() {
        let plain: FirmwareComponent = serde_json::from_value(json!({ "component": "bios" })).unwrap();
        assert_eq!((plain.current_version, plain.updated_at), (None, None));
        let whole = json!({ "component": "bmc", "initial_version": "1", "current_version": "2", "last_version_flashed": null,
            "updated_at": "2026-11-22T09:44:19.146972+00:00", "vendor": null });
        let whole: FirmwareComponent = serde_json::from_value(whole).unwrap();
        assert_eq!(whole.current_version.as_deref(), Some("2"));
        assert!(whole.updated_at.is_some() && whole.last_version_flashed.is_none());
    }

    #[test]
    fn drive_is_empty_only_when_the_bmc_says_so() {
        for (medium, holds) in [
            (json!({ "inserted": false, "image": "" }), Some(false)),
            (json!({ "inserted": false, "image": null }), Some(false)),
            (json!({ "inserted": null, "image": "" }), None),
            (json!({ "inserted": null, "image": null }), None),
            (json!({}), None),
            (json!({ "inserted": true, "image": null }), Some(true)),
            (
                json!({ "inserted": null, "image": "http://192.0.2.9/i.iso" }),
                Some(true),
            ),
        ] {
            let parsed: VirtualMedia = serde_json::from_value(medium.clone()).unwrap();
            assert_eq!(parsed.holds_image(), holds, "{medium}");
        }
    }

    #[test]
    fn drive_for_sticks_is_none_for_discs() {
        for (types, expected) in [
            (json!(["CD", "DVD"]), true),
            (json!(["DVD"]), true),
            (json!(["Floppy", "USBStick"]), false),
            (json!([]), true),
            (json!(null), true),
        ] {
            let parsed: VirtualMedia = serde_json::from_value(json!({ "media_types": types })).unwrap();
            assert_eq!(parsed.is_for_discs(), expected, "{types}");
        }
    }

    #[test]
    fn incomplete_collection_does_not_show_that_a_subscription_is_absent() {
        let path = "/redfish/v1/EventService/Subscriptions";
        let member = json!({ "@odata.id": format!("{path}/abc") });
        for (collection, abc, other) in [
            (json!({ "Members": [member] }), Some(true), Some(false)),
            (
                json!({ "Members": [member], "Members@odata.count": 1 }),
                Some(true),
                Some(false),
            ),
            (
                json!({ "Members": [member], "Members@odata.count": 2 }),
                Some(true),
                None,
            ),
            (
                json!({ "Members": [], "Members@odata.nextLink": format!("{path}?$skip=50") }),
                None,
                None,
            ),
            (
                json!({ "Members": [{ "@odata.id": format!("{path}/abc/") }] }),
                Some(true),
                Some(false),
            ),
        ] {
            let parsed: Subscriptions = serde_json::from_value(collection.clone()).unwrap();
            assert_eq!(
                (parsed.contain("abc"), parsed.contain("bc")),
                (abc, other),
                "{collection}"
            );
        }
        assert!(serde_json::from_value::<Subscriptions>(json!({})).is_err());
    }
}
