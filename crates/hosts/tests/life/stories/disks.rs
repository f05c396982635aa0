//! Disks that are kept: what is asked in stories, and the invariants about them.

use metal3_sim_bmc::profile::{BUILT_IN, parse};
use metal3_sim_faults::Random;
use metal3_sim_ironic::Machine;
use serde_json::{Value, json};

use super::additions::place;
use super::grammar::{IMAGES, Step, Story, image, pick};
use super::history::{History, is_live};
use super::judge::{Order, SLACK};

/// The serial numbers of the disks of the only machine: for the system, and for data.
const SYSTEM: &str = "D00001000";
const DATA: &str = "D00001001";
/// The device of the second one, and what another program wrote to it.
const DEVICE: &str = "/dev/sdb";
const CONTENT: &str = "data";

fn keeps(disks: &Value, root: &Value) -> Value {
    json!({ "cleaning": { "keepDisks": disks }, "rootDeviceHints": root })
}

/// What users ask for; null removes the member.
pub(super) fn values() -> Vec<Value> {
    vec![
        json!({ "keepDisks": [{ "serialNumber": DATA }] }),
        json!({ "when": "first" }),
        Value::Null,
    ]
}

/// Edits of what is kept, some of which admission or the plan refuses.
fn edits() -> [Value; 9] {
    let (data, system) = (json!([{ "serialNumber": DATA }]), json!({ "serialNumber": SYSTEM }));
    [
        keeps(&data, &system),
        keeps(&data, &system),
        keeps(&data, &json!({ "minSizeGigabytes": 10 })),
        keeps(&data, &json!({ "deviceName": "/dev/sda" })),
        keeps(&data, &json!({ "serialNumber": DATA })),
        keeps(&json!([{ "serialNumber": "D9" }]), &system),
        json!({ "cleaning": { "when": "first" } }),
        json!({ "cleaning": { "when": "always" } }),
        json!({ "cleaning": null }),
    ]
}

/// Edits of what is kept in each third story, some next to a removal of the image. Half of these hosts keep the disk for good.
pub(super) fn add_to(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    let all = edits();
    if random.below(2) == 0 {
        let (created, kept) = (
            story.created.as_object_mut().unwrap(),
            all[0].as_object().unwrap().clone(),
        );
        created.extend(kept);
        created.remove("raid");
        created.remove("hardwareProfile");
        if random.below(2) == 0 {
            return;
        }
    }
    for _ in 0..=random.below(3) {
        let at = place(&mut random, &story.steps);
        let mut change = pick(&mut random, &all).clone();
        match random.below(3) {
            0 => change["image"] = Value::Null,
            1 => change["image"] = image(pick::<&str>(&mut random, &IMAGES)),
            _ => {}
        }
        story.steps.insert(at, Step::Edit(json!({ "spec": change })));
    }
}

/// Whether a story is about them.
pub(super) fn concern(story: &Story) -> bool {
    let of = |spec: &Value| spec.get("cleaning").is_some();
    let is_edit = |step: &Step| matches!(step, Step::Edit(change) if of(&change["spec"]));
    of(&story.created) || story.steps.iter().any(is_edit)
}

/// Gives the machine a disk for data, with data.
pub(super) fn fill(machine: &mut Machine) {
    machine.profile = parse(BUILT_IN).unwrap().remove("storage").unwrap();
    machine.data.insert(DEVICE.to_owned(), CONTENT.to_owned());
    let serials = machine.inventory()["inventory"]["disks"].clone();
    assert_eq!([&serials[0]["serial"], &serials[1]["serial"]], [SYSTEM, DATA]);
}

/// Whether the data of a disk that was kept all the time are there.
pub(super) fn require_kept(host: &History, machine: &Machine) -> Result<(), String> {
    let lets_go = |host: &Value| !host.is_null() && !is_data_kept(host);
    let has_data = machine.data.get(DEVICE).is_some_and(|content| content == CONTENT);
    if host.newest().is_null() || has_data || host.ever(std::time::Duration::MAX, lets_go) {
        return Ok(());
    }
    Err("the disk that was kept all the time is erased".to_owned())
}

fn is_data_kept(host: &Value) -> bool {
    host["spec"]["cleaning"]["keepDisks"] == json!([{ "serialNumber": DATA }])
}

/// The disks that the host asks to keep, in the words of Ironic.
fn hints(host: &Value) -> Vec<Value> {
    let asked = host["spec"]["cleaning"]["keepDisks"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let hint = |disk: Value| json!({ "serial": format!("s== {}", disk["serialNumber"].as_str().unwrap_or_default()) });
    asked.into_iter().map(hint).collect()
}

/// Whether nothing may be erased, and the host says so.
pub(super) fn are_unprotected(host: &Value) -> bool {
    plan_of(host).is_some_and(|one| one["status"] == "False")
}

fn plan_of(host: &Value) -> Option<&Value> {
    let mut conditions = host["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == "CleaningPlan")
}

/// The violated invariant, if any: an order that erases or writes spares what is kept, and was announced.
pub(super) fn violated(order: &Order<'_>, host: &History) -> Option<&'static str> {
    let is_clean = order.node["automated_clean"] != false;
    let writes = order.node["deploy_interface"] != "ramdisk";
    let makes_volumes = |step: &Value| step["interface"] != "bios" && step["interface"] != "firmware";
    let is_destructive = match order.transition() {
        Some("deleted" | "provide") => is_clean,
        Some("active") => writes,
        Some("clean") => order.steps().any(makes_volumes),
        _ => false,
    };
    if !is_destructive || order.node.is_null() || !host.always(SLACK, |host| !hints(host).is_empty()) {
        return None;
    }
    let skipped = order.node["properties"]["skip_block_devices"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !host.ever(SLACK, |host| hints(host).iter().all(|hint| skipped.contains(hint))) {
        return Some("a disk that is kept would be erased");
    }
    if order.transition() == Some("clean") {
        return Some("volumes are made by erasing, and a disk is kept");
    }
    let says = |host: &Value| plan_of(host).is_some_and(|one| one["status"] == "True" && one["reason"] == "DisksKept");
    // Without cleaning nothing but the image is written.
    let is_said = |host: &Value| says(host) || (!is_clean && !are_unprotected(host));
    (!host.ever(SLACK, |host| is_live(host) || is_said(host))).then_some("what is erased was not said before")
}
