//! How real the machine behind a host is, and what its host says.

use anyhow::Context as _;
use metal3_ironic_life::Level;
use metal3_ironic_life::order::Image;
use metal3_ironic_life::processes::Lab;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::document::with;

/// What names of hosts begin with.
pub(crate) const HOST: &str = "host-";

/// Whether an agent, or who plays one, looks at the machine.
pub(crate) const fn inspects(level: Level) -> bool {
    !matches!(level, Level::Redfish)
}

/// The login of a host's BMC.
pub(crate) fn login(lab: Option<&Lab>) -> Value {
    match lab {
        Some(lab) => json!({ "username": lab.endpoint.username, "password": lab.endpoint.password }),
        None => json!({ "username": "admin", "password": "of no use" }),
    }
}

/// A host, to be online and without an image.
pub(crate) fn host(level: Level, lab: Option<&Lab>, number: Number) -> anyhow::Result<Value> {
    let bmc = json!({ "address": format!("fake://{number}"), "credentialsName": credentials(number) });
    let bmc = match lab {
        None => bmc,
        Some(lab) => {
            let place = lab.endpoint.machines.iter().find(|place| place.number == number);
            let place = place.context("no such machine")?;
            let root = place.redfish_address.replacen("https://", "redfish-virtualmedia://", 1);
            let address = format!("{}{}", root.trim_end_matches('/'), place.redfish_system_id);
            // Its certificate is its own.
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
    // Nothing is there that could look, or clean.
    let uninspected = json!({ "annotations": { "inspect.metal3.io": "disabled" } });
    let uncleaned = json!({ "automatedCleaningMode": "disabled" });
    Ok(json!({ "metadata": with(metadata, uninspected), "spec": with(spec, uncleaned) }))
}

/// What a host is to run, and what it is told about itself.
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

/// The image of a host: neighbours get different ones.
pub(crate) fn image(images: &[Image], number: Number) -> anyhow::Result<&Image> {
    let index = usize::from(number.0) % images.len().max(1);
    images.get(index).context("no image")
}

pub(crate) fn name(number: Number) -> String {
    format!("{HOST}{number}")
}

pub(crate) fn credentials(number: Number) -> String {
    format!("bmc-{number}")
}
