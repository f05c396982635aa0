//! The host of a machine at each level of simulation.

use anyhow::Context as _;
use metal3_ironic_life::Level;
use metal3_ironic_life::order::Image;
use metal3_ironic_life::processes::Lab;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::document::with;

/// The prefix of the names of hosts.
pub(crate) const HOST: &str = "host-";

/// Whether the machine is inspected.
pub(crate) const fn inspects(level: Level) -> bool {
    !matches!(level, Level::Redfish)
}

/// The login of a host's BMC.
pub(crate) fn login(lab: Option<&Lab>) -> Value {
    match lab {
        Some(lab) => json!({ "username": lab.endpoint.username, "password": lab.endpoint.password }),
        None => json!({ "username": "admin", "password": "unused" }),
    }
}

/// A host that is online and has no image.
pub(crate) fn host(level: Level, lab: Option<&Lab>, number: Number) -> anyhow::Result<Value> {
    let bmc = json!({ "address": format!("fake://{number}"), "credentialsName": credentials(number) });
    let bmc = match lab {
        None => bmc,
        Some(lab) => {
            let place = lab.endpoint.machines.iter().find(|place| place.number == number);
            let place = place.context("no such machine")?;
            let root = place.redfish_address.replacen("https://", "redfish-virtualmedia://", 1);
            let address = format!("{}{}", root.trim_end_matches('/'), place.redfish_system_id);
            // The certificate is self-signed.
            with(
                bmc,
                json!({ "address": address, "disableCertificateVerification": true }),
            )
        }
    };
    let (metadata, spec) = (
        json!({ "name": name(number) }),
        json!({ "online": true, "bootMACAddress": number.mac(0), "bmc": bmc }),
    );
    if inspects(level) {
        return Ok(json!({ "metadata": metadata, "spec": spec }));
    }
    // Inspection and cleaning require a ramdisk.
    let uninspected = json!({ "annotations": { "inspect.metal3.io": "disabled" } });
    let uncleaned = json!({ "automatedCleaningMode": "disabled" });
    Ok(json!({ "metadata": with(metadata, uninspected), "spec": with(spec, uncleaned) }))
}

/// The change of the host that orders an image with its config-drive.
pub(crate) fn order(level: Level, image: &Image, number: Number) -> Value {
    let source = &image.raw;
    if level == Level::Redfish {
        return json!({ "spec": { "image": { "url": source.url, "format": "live-iso" } } });
    }
    let part = |kind: &str| json!({ "name": format!("{kind}-{number}") });
    json!({ "spec": {
        "image": {
            "url": source.url, "format": source.format, "checksum": source.sha256, "checksumType": "sha256",
        },
        "userData": part("user"), "metaData": part("meta"), "networkData": part("network"),
    } })
}

pub(crate) fn name(number: Number) -> String {
    format!("{HOST}{number}")
}

pub(crate) fn credentials(number: Number) -> String {
    format!("bmc-{number}")
}
