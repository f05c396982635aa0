//! The invariants of images in the virtual drive: a drive is changed only while the machine is off, for an image that the user asks
//! for; a machine starts with that image or the status says why not; and no image is left of a deleted host.

use std::time::Duration;

use http::Method;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::DataImage;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::grammar::{HOST, Step, Story};
use super::history::{History, is_deleting, is_detach_requested, state};
use super::judge::{Order, SLACK};
use super::run::StoryRun;
use crate::env::name;

/// How long an edit may be unknown to the order that switches the machine on: a round of the feed, and a slow reconcile.
const START_SLACK: Duration = Duration::from_secs(30);
/// More than an object waits without a host.
const PATIENCE: Duration = Duration::from_hours(2);

/// What the drive of the machine does from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveFault {
    None,
    Missing,
    /// It does not load so many images.
    Refuses(u32),
    NeverEjects,
}

/// The drive of the machine when an order is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct DriveNow {
    pub(super) disc: Option<String>,
    pub(super) is_whole: bool,
}

fn url(object: &Value) -> &str {
    object["spec"]["url"].as_str().unwrap_or_default()
}

fn is_protected(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.into_iter().any(|name| name == "dataimage.metal3.io")
}

fn runs_an_image(host: &Value) -> bool {
    ["provisioned", "externally provisioned"].contains(&state(host))
}

/// The violated invariant of an order about the drive, or of one that switches the machine on.
pub(super) fn violated_discs(order: &Order<'_>, host: &History, objects: &History, drive: &DriveNow) -> Option<String> {
    let is_on = order.node["power_state"] == "power on";
    match (order.method(), order.part()) {
        (&Method::POST, "vmedia") => {
            let wanted = order.body["image_url"].as_str().unwrap_or_default();
            if !objects.ever(SLACK, |object| url(object) == wanted && !is_deleting(object)) {
                return Some(format!("insert: the user does not ask for {wanted}"));
            }
            if !is_protected(objects.newest()) {
                return Some("insert: the object may vanish before the image is ejected".to_owned());
            }
            let broken = is_on || !host.ever(SLACK, runs_an_image);
            broken.then(|| "insert: the machine runs, or has no image of a user".to_owned())
        }
        (&Method::DELETE, "vmedia") => {
            let is_broken = is_on && !host.ever(SLACK, is_deleting);
            is_broken.then(|| "eject: the machine runs".to_owned())
        }
        _ if order.power() == Some("power on") && runs_an_image(host.newest()) && drive.is_whole => {
            let wanted = url(objects.newest());
            let is_known = |object: &Value| url(object) == wanted && is_protected(object) && !is_deleting(object);
            let is_live = order.node["deploy_interface"] == "ramdisk";
            let is_explained = objects.newest()["status"]["error"]["message"].is_string();
            let is_missing = drive.disc.as_deref() != Some(wanted);
            let is_broken = !is_live && is_missing && !is_explained && objects.always(START_SLACK, is_known);
            is_broken.then(|| format!("power on: the drive holds {:?} instead of {wanted}", drive.disc))
        }
        _ => None,
    }
}

impl StoryRun {
    pub(super) fn drive(&self, fault: DriveFault) {
        self.env.machine(HOST, |machine| {
            machine.has_drive = fault != DriveFault::Missing;
            machine.ejects = fault != DriveFault::NeverEjects;
            machine.discs_refused = match fault {
                DriveFault::Refuses(times) => times,
                _ => 0,
            };
        });
    }

    /// The user asks for an image, or for none.
    pub(super) async fn ask_disc(&self, wanted: &Value) {
        let api = self.env.api::<DataImage>();
        let found = api.get_opt(&name(HOST)).await.unwrap();
        match (found, wanted) {
            (_, Value::Null) => drop(api.delete(&name(HOST), &DeleteParams::default()).await),
            (None, wanted) => {
                let object = json!({ "metadata": { "name": name(HOST) }, "spec": { "url": wanted } });
                let object = serde_json::from_value(object).unwrap();
                drop(api.create(&PostParams::default(), &object).await);
            }
            (Some(_), wanted) => {
                let patch = Patch::Merge(json!({ "spec": { "url": wanted } }));
                drop(api.patch(&name(HOST), &PatchParams::default(), &patch).await);
            }
        }
    }

    /// After the deletion of the host its image is out of the drive, and its object goes.
    pub(super) fn require_no_disc(&self, story: &Story) -> Result<(), String> {
        let asks = story.steps.iter().any(|step| matches!(step, Step::Disc(_)));
        if !asks {
            return Ok(());
        }
        let is_cut_off =
            self.history.lock().ever(Duration::MAX, is_detach_requested) || story.steps.contains(&Step::LoseDatabase);
        // A drive that ejects nothing keeps no host from its deletion, and the status of the object says so. What the story does
        // not delete is deleted after the repair of the drive.
        let mut drives = story.steps.iter().filter_map(|step| match step {
            Step::Drive(fault) => Some(*fault),
            _ => None,
        });
        let is_deleted = story.steps.contains(&Step::Delete);
        let is_stuck = is_deleted && matches!(drives.next_back(), Some(DriveFault::Missing | DriveFault::NeverEjects));
        let is_reported = |object: &Value| object["status"]["error"]["message"].is_string();
        let is_named = is_stuck && self.discs.lock().ever(Duration::MAX, is_reported);
        let disc = self.env.machine(HOST, |machine| machine.disc.clone());
        if let Some(disc) = disc.filter(|_| !is_cut_off && !is_named) {
            return Err(format!("the image {disc} outlives its host"));
        }
        Ok(())
    }

    /// The garbage collector deletes it with its owner, and nothing keeps it.
    pub(super) async fn require_no_object(&self) -> Result<(), String> {
        let api = self.env.api::<DataImage>();
        let Some(object) = api.get_opt(&name(HOST)).await.unwrap() else {
            return Ok(());
        };
        if object.metadata.owner_references.is_none() && object.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        self.env.cluster.collect_garbage();
        let mut waited = Duration::ZERO;
        while let Some(left) = api.get_opt(&name(HOST)).await.unwrap() {
            if waited > PATIENCE {
                return Err(format!("the DataImage of a deleted host stays: {:?}", left.status));
            }
            sleep(Duration::from_mins(1)).await;
            waited += Duration::from_mins(1);
        }
        Ok(())
    }
}
