//! A simulated record of a node in Ironic.

use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::model::node::Node;
use serde_json::{Value, json};

const MASK: &str = "******";

#[derive(Debug, Clone)]
pub(super) struct Record(pub(super) Value);

impl Record {
    pub(super) fn new(fields: &Value) -> Self {
        let mut record = Self(json!({
            "uuid": "b74c1d12-05c4-4f4e-9c00-5e0e3a8d9fd7", "name": null, "driver": "redfish",
            "provision_state": "manageable", "target_provision_state": null, "maintenance": false,
            "instance_uuid": null, "automated_clean": null, "disable_power_off": false,
            "driver_info": {}, "properties": {}, "extra": {}, "instance_info": {}, "network_data": {},
        }));
        super::merge(&mut record.0, fields);
        record.choose_interfaces();
        record
    }

    pub(super) fn created(new: NewNode) -> Self {
        let mut fields = Value::Object(new.more);
        fields["name"] = new.name.into();
        fields["driver"] = new.driver.into();
        fields["driver_info"] = Value::Object(new.driver_info);
        fields["properties"] = Value::Object(new.properties);
        if let Some(forbidden) = new.disable_power_off {
            fields["disable_power_off"] = forbidden.into();
        }
        Self::new(&fields)
    }

    pub(super) fn shown(&self) -> Node {
        let mut shown = self.0.clone();
        mask(&mut shown["driver_info"]);
        mask(&mut shown["instance_info"]);
        serde_json::from_value(shown).unwrap()
    }

    /// Applies a patch as Ironic does: `add` replaces, `remove` requires the value, and an interface without a value
    /// gets the default.
    pub(super) fn patched(mut self, patch: Patch) -> Self {
        let body = patch.into_body().unwrap();
        for operation in body.as_array().unwrap() {
            let path: Vec<&str> = operation["path"].as_str().unwrap().split('/').skip(1).collect();
            let (field, map) = match path.as_slice() {
                [field] => (*field, self.0.as_object_mut().unwrap()),
                [part, key] => (*key, self.0[*part].as_object_mut().unwrap()),
                _ => panic!("a path of another depth: {path:?}"),
            };
            match operation["op"].as_str().unwrap() {
                "add" => drop(map.insert(field.to_owned(), operation["value"].clone())),
                "remove" => {
                    let removed = map.remove(field).filter(|value| !value.is_null());
                    assert!(removed.is_some(), "{path:?} does not exist and cannot be removed");
                }
                other => panic!("{other}"),
            }
        }
        self.choose_interfaces();
        self
    }

    fn choose_interfaces(&mut self) {
        let driver = self.0["driver"].as_str().unwrap().to_owned();
        let own = match driver.as_str() {
            "ipmi" => "ipmitool",
            "fake-hardware" => "fake",
            "idrac" => "idrac-redfish",
            _ => "redfish",
        };
        for (kind, default) in [
            ("bios", own),
            ("boot", own),
            ("deploy", "direct"),
            ("firmware", "no-firmware"),
            ("inspect", "no-inspect"),
            ("management", own),
            ("power", own),
            ("raid", "no-raid"),
            ("vendor", own),
        ] {
            let field = &mut self.0[format!("{kind}_interface")];
            if field.is_null() {
                *field = default.into();
            }
        }
    }
}

fn mask(map: &mut Value) {
    for (key, value) in map.as_object_mut().unwrap() {
        let is_secret = ["password", "secret", "token", "configdrive"]
            .iter()
            .any(|word| key.contains(word));
        if is_secret {
            *value = MASK.into();
        } else if let Some((address, _)) = value.as_str().and_then(|text| text.split_once("?token=")) {
            *value = format!("{address}?token={MASK}").into();
        }
    }
}

/// A patch as a list of `path: value`; an empty value: removed.
pub(super) fn lines(patch: &Patch) -> Vec<String> {
    let body = patch.clone().into_body().unwrap();
    let line = |operation: &Value| {
        let path = operation["path"].as_str().unwrap();
        operation
            .get("value")
            .map_or_else(|| path.to_owned(), |value| format!("{path}: {value}"))
    };
    body.as_array().unwrap().iter().map(line).collect()
}
