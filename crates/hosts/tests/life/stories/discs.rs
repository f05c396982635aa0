//! The invariants of images in the virtual drive: a drive is changed only while the machine is off, for an image that the user asks
//! for; a machine starts with that image or the status says why not; and no image is left of a deleted host.

use std::time::Duration;

use http::{Method, Request};
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
    /// It takes and ejects each image.
    pub(super) is_whole: bool,
    /// What it holds cannot be ejected.
    pub(super) is_stuck: bool,
}

fn url(object: &Value) -> &str {
    object["spec"]["url"].as_str().unwrap_or_default()
}

fn is_protected(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.into_iter().any(|name| name == "dataimage.metal3.io")
}

/// Whether the system runs from a disc that Ironic inserted.
fn runs_from_disc(node: &Value) -> bool {
    let boot = node["boot_interface"].as_str().unwrap_or_default();
    let is_deployed = node["deploy_interface"] == "ramdisk" && node["provision_state"] == "active";
    is_deployed && boot.contains("virtual-media")
}

/// Whether the status says why the machine starts without the image, since the machine is off: an earlier start says nothing about
/// this one. Once the drive could not be read often enough the order comes with the report.
fn is_explained(host: &History, objects: &History) -> bool {
    let error = &objects.newest()["status"]["error"];
    let message = error["message"].as_str().unwrap_or_default();
    let is_reason = ["; the host starts all the same", "the virtual drive cannot be read: "]
        .iter()
        .any(|text| message.contains(text));
    let off = host.since(|host| host["status"]["poweredOn"] != true);
    let reported = objects.since(|object| object["status"]["error"] == *error);
    is_reason && off.is_some_and(|off| reported >= Some(off))
}

/// Whether the status says that the image would replace the disc that the system runs from. That holds at each start.
fn says_that_system_is_on_disc(object: &Value) -> bool {
    let message = object["status"]["error"]["message"].as_str().unwrap_or_default();
    message.contains("the system of the host runs from a disc itself")
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
            if runs_from_disc(order.node) {
                return Some("eject: the system runs from a disc, which goes too".to_owned());
            }
            let is_broken = is_on && !host.ever(SLACK, is_deleting);
            is_broken.then(|| "eject: the machine runs".to_owned())
        }
        _ if order.power() == Some("power on") && runs_an_image(host.newest()) && drive.is_whole => {
            let wanted = url(objects.newest());
            let is_known = |object: &Value| url(object) == wanted && is_protected(object) && !is_deleting(object);
            let is_missing = drive.disc.as_deref() != Some(wanted);
            let is_explained = if runs_from_disc(order.node) {
                says_that_system_is_on_disc(objects.newest())
            } else {
                is_explained(host, objects)
            };
            let is_broken = is_missing && !is_explained && objects.always(START_SLACK, is_known);
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
        // A drive that ejects nothing when the node is deleted keeps no host from that, and the status of the object says so.
        let is_reported = |object: &Value| {
            let message = object["status"]["error"]["message"].as_str();
            message.is_some_and(|message| message.contains("; the host is deleted all the same"))
        };
        let is_named = self.marks.lock().is_stuck && self.discs.lock().ever(Duration::MAX, is_reported);
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

/// The judged host is off since 100 s, and asks for the image since long before.
struct Judged {
    host: History,
    objects: History,
}

impl Judged {
    async fn off(earlier_error: Value) -> Self {
        let mut judged = Self {
            host: History::default(),
            objects: History::default(),
        };
        judged.record(earlier_error);
        judged.record_host(true);
        sleep(START_SLACK).await;
        judged.record_host(false);
        sleep(Duration::from_secs(100)).await;
        judged
    }

    fn record_host(&mut self, is_on: bool) {
        self.host
            .record(json!({ "status": { "poweredOn": is_on, "provisioning": { "state": "provisioned" } } }));
    }

    fn record(&mut self, error: Value) {
        let metadata = json!({ "finalizers": ["dataimage.metal3.io"] });
        self.objects
            .record(json!({ "metadata": metadata, "spec": { "url": "http://a/" }, "status": { "error": error } }));
    }

    fn violated(&self, request: http::request::Builder, body: &Value, node: &Value) -> Option<String> {
        let request = request.body(body.to_string().into_bytes()).unwrap();
        let drive = DriveNow {
            is_whole: true,
            ..DriveNow::default()
        };
        violated_discs(
            &Order::of(&request, node, None, None),
            &self.host,
            &self.objects,
            &drive,
        )
    }

    fn may_start(&self, deploy: &str) -> bool {
        let request = Request::put("/v1/nodes/1/states/power");
        let node = json!({ "power_state": "power off", "provision_state": "active", "deploy_interface": deploy,
            "boot_interface": "redfish-virtual-media" });
        self.violated(request, &json!({ "target": "power on" }), &node)
            .is_none()
    }
}

#[tokio::test(start_paused = true)]
async fn start_without_the_image_needs_an_error_of_that_start() {
    let error = |count: u32, message: &str| json!({ "count": count, "message": message });
    let given_up = error(3, "the image was not inserted: no; the host starts all the same");
    let retried = error(1, "the image was not inserted: no; see that the BMC can load it");
    for (earlier, now, may_start) in [
        (Value::Null, None, false),
        (Value::Null, Some(given_up.clone()), true),
        (
            Value::Null,
            Some(error(1, "the virtual drive cannot be read: no")),
            true,
        ),
        (Value::Null, Some(retried), false),
        (Value::Null, Some(error(0, "")), false),
        (given_up.clone(), None, false),
        (
            given_up,
            Some(error(6, "it is off; the host starts all the same")),
            true,
        ),
    ] {
        let mut judged = Judged::off(earlier.clone()).await;
        if let Some(now) = now.clone() {
            judged.record(now);
        }
        assert_eq!(judged.may_start("direct"), may_start, "{earlier} {now:?}");
    }
}

/// It is reported once, at the first start with the image.
#[tokio::test(start_paused = true)]
async fn start_from_a_live_image_needs_an_error_that_says_so() {
    let error = |message: &str| json!({ "count": 1, "message": message });
    let said = error(
        "the system of the host runs from a disc itself, which this image would replace; the host starts all the same",
    );
    for (earlier, may_start) in [
        (said, true),
        (Value::Null, false),
        (
            error("the image was not inserted: no; the host starts all the same"),
            false,
        ),
    ] {
        let judged = Judged::off(earlier.clone()).await;
        assert_eq!(judged.may_start("ramdisk"), may_start, "{earlier}");
        assert!(!judged.may_start("direct"), "{earlier}");
    }
}

#[tokio::test(start_paused = true)]
async fn live_image_that_runs_is_not_ejected() {
    let judged = Judged::off(Value::Null).await;
    for (deploy, boot, state, is_allowed) in [
        ("ramdisk", "redfish-virtual-media", "active", false),
        ("ramdisk", "ipxe", "active", true),
        ("ramdisk", "redfish-virtual-media", "available", true),
        ("direct", "redfish-virtual-media", "active", true),
    ] {
        let node = json!({ "power_state": "power off", "deploy_interface": deploy, "boot_interface": boot,
            "provision_state": state });
        let broken = judged.violated(Request::delete("/v1/nodes/1/vmedia"), &Value::Null, &node);
        assert_eq!(broken.is_none(), is_allowed, "{node}: {broken:?}");
    }
}
