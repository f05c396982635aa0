//! The CRDs of `metal3.io`.
//!
//! The CRDs have no conversion, category or label: the group has one version, and clusterctl moves hosts only when an
//! administrator labels their CRDs.

use schemars::JsonSchema;

use super::v1alpha1::{
    BMCEventSubscription, BareMetalHost, BareMetalSwitch, DataImage, FirmwareSchema, HardwareData, HostClaim,
    HostDeployPolicy, HostFirmwareComponents, HostFirmwareSettings, HostNetworkAttachment, HostUpdatePolicy,
    PreprovisioningImage,
};
use crate::crd::{AGE, Column, Definition, Version};
use crate::kind::Kind;

/// cert-manager injects the CA of the webhook's certificate.
const HOST_ANNOTATIONS: &[(&str, &str)] = &[(
    "cert-manager.io/inject-ca-from",
    "baremetal-operator-system/baremetal-operator-serving-cert",
)];

const HOST_COLUMNS: &[Column] = &[
    Column::string("Status", ".status.operationalStatus")
        .wide()
        .described("Whether the host works as it should"),
    Column::string("State", ".status.provisioning.state").described("Provisioning state of the host"),
    Column::string("Consumer", ".spec.consumerRef.name").described("Who uses the host"),
    Column::string("BMC", ".spec.bmc.address")
        .wide()
        .described("Where its management controller is"),
    Column::string("Online", ".spec.online").described("Whether the host should be powered on"),
    Column::string("Error", ".status.errorType").described("What went wrong last"),
    AGE,
];

const SWITCH_COLUMNS: &[Column] = &[
    Column::string("Driver", ".spec.driver").described("Ironic driver of the switch"),
    Column::string("Device Type", ".spec.deviceType").described("Make of the switch, as the driver names it"),
    Column::string("Address", ".spec.address").described("Where the switch is managed"),
    Column::string("Valid", r#".status.conditions[?(@.type=="Valid")].status"#)
        .described("Whether the settings can be used"),
];

const SUBSCRIPTION_COLUMNS: &[Column] = &[
    Column::string("Error", ".status.error").described("What went wrong last"),
    AGE,
];

const ATTACHMENT_COLUMNS: &[Column] = &[
    Column::string("Mode", ".spec.mode").described("How the switch port treats tags"),
    Column::typed("Native VLAN", ".spec.nativeVLAN", "integer").described("VLAN of untagged frames"),
    AGE,
];

const IMAGE_COLUMNS: &[Column] = &[
    Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status")
        .described("Whether the image can be booted"),
    Column::string("Reason", ".status.conditions[?(@.type=='Ready')].reason").described("Why it can or cannot"),
];

/// The definitions, by kind.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    vec![
        Definition {
            annotations: HOST_ANNOTATIONS,
            ..definition::<BareMetalHost>("baremetalhost", &["bmh", "bmhost"], HOST_COLUMNS)
        },
        definition::<BareMetalSwitch>("baremetalswitch", &["bms"], SWITCH_COLUMNS),
        definition::<BMCEventSubscription>("bmceventsubscription", &["bes", "bmcevent"], SUBSCRIPTION_COLUMNS),
        definition::<DataImage>("dataimage", &[], &[]),
        definition::<FirmwareSchema>("firmwareschema", &[], &[]),
        definition::<HardwareData>("hardwaredata", &["hd"], &[AGE]),
        definition::<HostClaim>("hostclaim", &[], &[]),
        definition::<HostDeployPolicy>("hostdeploypolicy", &[], &[]),
        definition::<HostFirmwareComponents>("hostfirmwarecomponents", &[], &[]),
        definition::<HostFirmwareSettings>("hostfirmwaresettings", &["hfs"], &[]),
        Definition {
            versions: vec![attachment_version()],
            ..definition::<HostNetworkAttachment>("hostnetworkattachment", &[], &[])
        },
        Definition {
            versions: vec![Version::stored::<HostUpdatePolicy>(&[]).without_status_subresource()],
            ..definition::<HostUpdatePolicy>("hostupdatepolicy", &[], &[])
        },
        definition::<PreprovisioningImage>("preprovisioningimage", &["ppimg"], IMAGE_COLUMNS),
    ]
}

/// The kind has an empty status subresource: clients that write it must not get a 404.
fn attachment_version() -> Version {
    Version {
        status_subresource: true,
        ..Version::stored::<HostNetworkAttachment>(ATTACHMENT_COLUMNS)
    }
}

/// A definition with the settings shared by the kinds of the group.
fn definition<K: Kind<Spec: JsonSchema, Status: JsonSchema>>(
    singular: &'static str,
    short_names: &'static [&'static str],
    columns: &'static [Column],
) -> Definition {
    Definition::new::<K>(singular, short_names, vec![Version::stored::<K>(columns)])
}
