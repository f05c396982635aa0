//! What each setting of a machine accepts, and the FirmwareSchema that records it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::{
    AttributeType, BareMetalHost, FirmwareSchema, FirmwareSchemaSpec, SettingSchema, is_password,
};
use metal3_ironic::model::hardware::BiosSetting;
use ring::digest;

use super::text_of;

/// What a setting accepts. A type that is not known is none: any value is passed to the machine.
pub(super) fn of_setting(setting: &BiosSetting) -> SettingSchema {
    SettingSchema {
        attribute_type: setting.attribute_type.as_deref().and_then(attribute_type),
        allowable_values: setting.allowable_values.iter().filter_map(text_of).collect(),
        lower_bound: setting.lower_bound,
        upper_bound: setting.upper_bound,
        min_length: setting.min_length,
        max_length: setting.max_length,
        read_only: setting.read_only,
        unique: setting.unique,
    }
}

fn attribute_type(text: &str) -> Option<AttributeType> {
    match text {
        "Enumeration" => Some(AttributeType::Enumeration),
        "String" => Some(AttributeType::String),
        "Integer" => Some(AttributeType::Integer),
        "Boolean" => Some(AttributeType::Boolean),
        "Password" => Some(AttributeType::Password),
        _ => None,
    }
}

/// The name: the same for all machines with the same settings, and the same as in the Go manager.
pub(super) fn name(settings: &[BiosSetting]) -> String {
    let mut items = Vec::new();
    for setting in settings {
        let numbers = [
            setting.lower_bound,
            setting.upper_bound,
            setting.min_length,
            setting.max_length,
        ];
        items.push(setting.name.clone());
        items.push(setting.attribute_type.clone().unwrap_or_default());
        items.extend(setting.allowable_values.iter().filter_map(text_of));
        items.extend(numbers.into_iter().flatten().map(|number| number.to_string()));
        items.extend(setting.read_only.map(|is_read_only| is_read_only.to_string()));
    }
    items.sort_unstable();
    let digest = digest::digest(&digest::SHA256, format!("[{}]", items.join(" ")).as_bytes());
    let first = digest.as_ref().iter().take(4);
    let first: String = first.map(|byte| format!("{byte:02x}")).collect();
    format!("schema-{first}")
}

/// The FirmwareSchema of these settings, without those that hold a secret.
///
/// It has no owner: hosts of one model share it, and a list of all of them would grow past what the API server stores.
// differs: `firmware-schema-shared`. The Go manager adds each object that uses it as an owner, and writes it again each time.
#[must_use]
pub fn firmware_schema(host: &BareMetalHost, settings: &[BiosSetting]) -> FirmwareSchema {
    let vendor = host
        .status
        .hardware
        .as_ref()
        .and_then(|hardware| hardware.system_vendor.clone())
        .unwrap_or_default();
    let shown = settings.iter().map(|setting| (setting, of_setting(setting)));
    let shown = shown.filter(|(setting, schema)| {
        !is_password(&setting.name) && schema.attribute_type != Some(AttributeType::Password)
    });
    FirmwareSchema {
        metadata: ObjectMeta {
            name: Some(name(settings)),
            namespace: host.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: FirmwareSchemaSpec {
            hardware_vendor: vendor.manufacturer,
            hardware_model: vendor.product_name,
            schema: shown.map(|(setting, schema)| (setting.name.clone(), schema)).collect(),
        },
    }
}
