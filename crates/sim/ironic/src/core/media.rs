//! The virtual drive of a node.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::perform::Outcome;
use super::{Answer, Context, Core, Failure, NO_BMC, Slot, work};
use crate::refusal::Refusal;
use crate::work::Kind;

/// Types of drives.
const DEVICES: [&str; 3] = ["disk", "cdrom", "floppy"];
/// Schemes of images that the API accepts.
const SCHEMES: [&str; 5] = ["http", "https", "nfs", "cifs", "smb"];
/// Those that a conductor loads, as it does unless the request says otherwise.
const LOADED: [&str; 2] = ["http", "https"];
/// The message about a BMC without a usable drive.
const NO_DRIVE: &str = "No suitable virtual media device found";

impl Core {
    /// Needs no lock, unlike reading the boot device.
    pub(super) fn media(&mut self, ident: &str) -> Result<Answer, Failure> {
        let node = self.node(ident)?;
        if !has_drives(node.text("management_interface")) {
            return Err(Refusal::unsupported(node.driver(), "get_virtual_media").into());
        }
        let serial = node.serial;
        let (_, machine) = self
            .node_and_machine(serial)
            .ok_or_else(|| Refusal::not_found("Node", ident))?;
        let machine = machine.ok_or_else(|| Refusal::invalid(NO_BMC))?;
        let delay = machine
            .reach()
            .map_err(|error| Failure::Bmc(error.after, Refusal::failed(&error.message)))?;
        if !machine.has_drive {
            return Err(Refusal::invalid(NO_DRIVE).into());
        }
        let shown = match &mut machine.earlier_media {
            (0, _) => machine.media.clone(),
            (left, earlier) => {
                *left = left.saturating_sub(1);
                earlier.clone()
            }
        };
        let (inserted, image) = (shown.is_some(), shown);
        Ok(Answer::ok(json!([
            {"media_types": ["CD", "DVD"], "inserted": inserted, "image": image.unwrap_or_default()},
        ]))
        .delayed(work::query_time(delay)))
    }

    pub(super) fn attach_media(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(device), Some(image)) = (text("device_type"), text("image_url")) else {
            return Err(Refusal::invalid("Schema error for vmedia: device_type and image_url are required").into());
        };
        if !DEVICES.contains(&device.as_str()) {
            return Err(
                Refusal::invalid(format!("Schema error for vmedia: '{device}' is not one of {DEVICES:?}")).into(),
            );
        }
        let scheme = scheme(&image);
        if !SCHEMES.contains(&scheme) {
            return Err(Refusal::invalid(format!("Unsupported or missing URL scheme: {scheme}")).into());
        }
        self.change_media(ident, Some(image), context)
    }

    pub(super) fn detach_media(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let devices = context.request.query("device_types").unwrap_or_default().to_owned();
        let mut devices = devices.split(',').filter(|device| !device.is_empty());
        if let Some(invalid) = devices.find(|device| !DEVICES.contains(device)) {
            let valid = DEVICES.join(", ");
            return Err(Refusal::invalid(format!("Invalid device type(s) {invalid} (valid are {valid})")).into());
        }
        self.change_media(ident, None, context)
    }

    /// Accepted immediately, and done with the node locked: an error is recorded in `last_error`.
    fn change_media(&mut self, ident: &str, image: Option<String>, context: Context<'_>) -> Result<Answer, Failure> {
        self.locked(ident, context.now, |core, serial| {
            let missing = || Refusal::not_found("Node", ident);
            let node = core.nodes.get_mut(&serial).ok_or_else(missing)?;
            node.last_error = None;
            let script = work::media(node, &core.pace, image);
            core.begin(serial, Slot::Power, Kind::Media, script, context.now);
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Runs a client's change of the drive. Ironic publishes an image under a name of its own, and ejects what is in the drive
    /// before it inserts it.
    pub(super) fn client_media(&mut self, serial: u64, image: Option<&str>) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let uuid = node.uuid.clone();
        let (what, extension) = match image {
            Some(_) => ("Could not attach device cdrom to node", "attach_virtual_media"),
            None => ("Could not detach device(s) ['cdrom'] from node", "detach_virtual_media"),
        };
        let fails = |after: Duration, why: &str| Some(Outcome::Fails(after, format!("{what} {uuid}: {why}")));
        if !has_drives(node.text("management_interface")) {
            let driver = node.driver();
            let why = format!("Driver {driver} does not support {extension} (disabled or not implemented).");
            return fails(Duration::ZERO, &why);
        }
        let Some(machine) = machine else {
            return fails(Duration::ZERO, NO_BMC);
        };
        if let Err(error) = machine.reach() {
            return fails(error.after, &error.message);
        }
        machine.earlier_media = (machine.late_views, machine.media.clone());
        let Some(image) = image else {
            if !machine.ejects {
                return fails(Duration::ZERO, "the BMC does not eject the disc");
            }
            machine.eject();
            return Some(Outcome::Done);
        };
        if !machine.has_drive {
            return fails(
                Duration::ZERO,
                &format!("{NO_DRIVE} for node {uuid} to mount image {image}"),
            );
        }
        if !LOADED.contains(&scheme(image)) {
            return fails(
                Duration::ZERO,
                &format!("Cannot load the image {image}: no service for its scheme"),
            );
        }
        machine.eject();
        if machine.discs_refused > 0 {
            machine.discs_refused = machine.discs_refused.saturating_sub(1);
            return fails(
                Duration::ZERO,
                &format!("Virtual media mount failed for node {uuid} with image {image}."),
            );
        }
        machine.media = Some(format!("http://192.0.2.1:6180/redfish/cdrom-{uuid}.iso"));
        machine.disc = Some(image.to_owned());
        Some(Outcome::Done)
    }
}

fn scheme(image: &str) -> &str {
    image.split_once(':').map_or("", |(scheme, _)| scheme)
}

fn has_drives(management: Option<&str>) -> bool {
    management.is_some_and(|name| name.contains("redfish"))
}
