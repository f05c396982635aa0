//! The invariants of each request to Ironic, from the specification: what the host forbids is in force before any
//! order, and every order has a reason in the host.

use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::disks;
use super::goal::has_asked_volumes;
use super::grammar::{OTHER_INSTANCE, REGISTRY_LOGIN};
use super::history::{
    self, History, by, has_power_error, image, is_deleting, is_detach_requested, is_external, is_hard_reboot_requested,
    is_paused, is_reboot_requested, method, state,
};

const LABEL: &str = crate::ironics::LABEL;
/// An edit may be this much younger than the last read of the host before an order.
pub(super) const SLACK: Duration = Duration::from_secs(2);
/// How old a view of the node is when an order that erases nothing is decided: a round of the feed, and a slow reconcile.
const FEED_SLACK: Duration = Duration::from_secs(15);
/// An order may be this much younger than its reason: Ironic retries a locked node, and a response may be late.
const MEMORY: Duration = Duration::from_secs(60);

/// A request that changes something, with the node it is for.
pub(super) struct Order<'a> {
    method: &'a Method,
    /// The path below the node: `states/provision`.
    part: String,
    target: String,
    pub(super) body: Value,
    /// The node before the request; null if there is none.
    pub(super) node: &'a Value,
    /// The source of the image on the disk of the machine.
    pub(super) disk: Option<&'a str>,
    /// When the machine was last asked to shut down, unless it was switched on since: that attempt is over.
    pub(super) soft: Option<Instant>,
    /// Ironic has not begun with an earlier change.
    pub(super) is_early: bool,
    /// When the node was given to another instance.
    pub(super) assigned: Option<Instant>,
    /// Ironic is too old to abort a deployment.
    pub(super) is_old: bool,
}

impl<'a> Order<'a> {
    pub(super) fn of(
        request: &'a Request<Vec<u8>>,
        node: &'a Value,
        disk: Option<&'a str>,
        soft: Option<Instant>,
    ) -> Self {
        let path = request.uri().path().trim_start_matches("/v1/");
        let part = path.split('/').skip(2).collect::<Vec<_>>().join("/");
        let body = serde_json::from_slice::<Value>(request.body()).unwrap_or_default();
        let target = body
            .get("target")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        Self {
            method: request.method(),
            part,
            target,
            body,
            node,
            disk,
            soft,
            is_early: false,
            assigned: None,
            is_old: false,
        }
    }

    pub(super) fn transition(&self) -> Option<&str> {
        (self.part == "states/provision").then_some(self.target.as_str())
    }

    /// The steps of a cleaning or a service.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Value> {
        let lists = ["clean_steps", "service_steps"].map(|list| self.body[list].as_array());
        lists.into_iter().flatten().flatten()
    }

    pub(super) const fn method(&self) -> &Method {
        self.method
    }

    pub(super) fn part(&self) -> &str {
        &self.part
    }

    pub(super) fn power(&self) -> Option<&str> {
        (self.part == "states/power").then_some(self.target.as_str())
    }

    fn erases(&self) -> bool {
        let target = self.transition();
        matches!(target, Some("deleted" | "provide" | "active" | "rebuild" | "clean"))
    }

    /// The soft attempt to which later errors belong.
    pub(super) fn soft_attempt(&self) -> Option<Instant> {
        match self.power() {
            Some(target) if target.starts_with("soft ") => Some(Instant::now()),
            Some("power on") => None,
            _ => self.soft,
        }
    }

    pub(super) fn is_node_deletion(&self) -> bool {
        self.method == Method::DELETE && self.part.is_empty()
    }

    fn name(&self) -> String {
        format!("{} {} {}", self.method, self.part, self.target)
    }
}

/// The violated invariant, if any.
pub(super) fn violation(order: &Order<'_>, host: &History) -> Option<String> {
    let all = [
        of_any_order,
        of_another,
        of_repetition,
        of_erasing,
        of_cleaning,
        disks::violated,
        of_volumes,
        of_abort,
        of_deploying,
        of_deployed_content,
        of_registry_login,
        of_power_off,
        of_node_deletion,
    ];
    let broken = all.into_iter().find_map(|rule| rule(order, host))?;
    Some(format!("{}: {broken}", order.name()))
}

fn of_any_order(order: &Order<'_>, host: &History) -> Option<&'static str> {
    // Nothing is left to change: the deletion was repeated.
    if order.is_node_deletion() && order.node.is_null() {
        return None;
    }
    if host.always(SLACK, Value::is_null) {
        return Some("the host does not exist");
    }
    if host.always(SLACK, is_paused) {
        return Some("the host is paused");
    }
    let names_no_ironic = |host: &Value| host["metadata"]["labels"][LABEL] == "site-c" && !is_deleting(host);
    if host.always(SLACK, names_no_ironic) {
        return Some("the host names an Ironic that is not configured");
    }
    let is_detached = |host: &Value| is_detach_requested(host) && host["status"]["operationalStatus"] == "detached";
    host.always(SLACK, is_detached).then_some("the host is detached")
}

fn of_another(order: &Order<'_>, _: &History) -> Option<&'static str> {
    let changes_machine = order.transition().is_some() || order.power().is_some() || order.is_node_deletion();
    let is_read_live =
        order.erases() || order.is_node_deletion() || order.power().is_some_and(|target| target != "power on");
    let changes_record = ["maintenance", "states/raid"].contains(&order.part.as_str());
    let is_others = order.node["instance_uuid"] == OTHER_INSTANCE;
    let slack = if is_read_live { SLACK } else { FEED_SLACK };
    let is_known = order.assigned.is_some_and(|at| at.elapsed() > slack);
    ((changes_machine || changes_record) && is_others && is_known).then_some("the node serves another instance")
}

fn of_repetition(order: &Order<'_>, _: &History) -> Option<&'static str> {
    let changes_machine = order.transition().is_some() || order.power().is_some() || order.is_node_deletion();
    (order.is_early && changes_machine).then_some("Ironic may still begin with an earlier change")
}

fn of_erasing(order: &Order<'_>, host: &History) -> Option<&'static str> {
    if !order.erases() {
        return None;
    }
    if host.always(SLACK, is_external) {
        return Some("the host is externally provisioned");
    }
    let runs_what_is_wanted = |host: &Value| {
        // An image that runs without a step gets none later, nor does a step run again for one.
        let (image, step) = (image(host), method(host));
        let wanted = [image.to_owned(), by("", step), by(image, step)];
        let runs = order
            .disk
            .is_some_and(|disk| !disk.is_empty() && wanted.iter().any(|one| one == disk));
        state(host) == "provisioned" && !is_deleting(host) && runs
    };
    host.always(SLACK, runs_what_is_wanted)
        .then_some("the machine runs the requested image")
}

fn of_cleaning(order: &Order<'_>, host: &History) -> Option<&'static str> {
    // Late orders reach no node of a lost database.
    if !matches!(order.transition(), Some("deleted" | "provide")) || order.node.is_null() {
        return None;
    }
    let (cleans, mode) = (&order.node["automated_clean"], "automatedCleaningMode");
    // These are not cleaned after their first deployment, whatever the mode is.
    if host.ever(SLACK, |host| host["spec"]["cleaning"]["when"] == "first") {
        return None;
    }
    if host.always(SLACK, |host| host["spec"][mode] == "disabled") && *cleans != false {
        return Some("cleaning is forbidden and the node cleans");
    }
    let is_wanted = |host: &Value| host["spec"].get(mode).is_some_and(|mode| mode == "metadata");
    (host.always(SLACK, is_wanted) && *cleans == false).then_some("cleaning is ordered and the node does not clean")
}

/// RAID volumes are changed on a machine that runs nothing, for a host that asks for others than it has.
fn of_volumes(order: &Order<'_>, host: &History) -> Option<&'static str> {
    let is_order = order.transition() == Some("clean");
    let steps = order.body["clean_steps"].as_array();
    let is_of_bios = |step: &Value| step["interface"] == "bios" || step["interface"] == "firmware";
    let is_of_bios = steps.is_some_and(|steps| steps.iter().all(is_of_bios));
    if is_order && !host.ever(SLACK, |host| state(host) == "preparing") {
        return Some("the host is not prepared");
    }
    let is_own = |host: &Value| order.node["instance_uuid"] == host["metadata"]["uid"];
    if is_order && order.node["instance_uuid"].is_string() && !host.ever(SLACK, is_own) {
        return Some("the node has an instance");
    }
    // Ironic does not report hardware volumes, and volumes that one of them replaces are removed.
    let concerns_some = |host: &Value| {
        let lists = ["softwareRAIDVolumes", "hardwareRAIDVolumes"];
        let (asked, made) = (&host["spec"]["raid"], &host["status"]["provisioning"]["raid"]);
        // An empty list of hardware volumes asks for their removal.
        asked["hardwareRAIDVolumes"].is_array()
            || lists.iter().any(|list| is_list(&asked[list]) || is_list(&made[list]))
    };
    if is_order && !is_of_bios && !host.ever(Duration::MAX, concerns_some) {
        return Some("the host never asked for volumes");
    }
    // The node of a lost database has no volumes.
    let has_volumes = !order.node["raid_config"]["logical_disks"].is_null();
    // A removal that failed is repeated: Ironic still reports what this host had once.
    let had_volumes = |host: &Value| is_list(&host["status"]["provisioning"]["raid"]["softwareRAIDVolumes"]);
    let asks_for_none = |host: &Value| {
        let raid = &host["spec"]["raid"];
        raid.is_null() || raid["softwareRAIDVolumes"].as_array().is_some_and(Vec::is_empty)
    };
    let was_made = has_volumes && host.ever(Duration::MAX, had_volumes);
    let differs = |host: &Value| !has_volumes || !has_asked_volumes(host) || (was_made && asks_for_none(host));
    let is_asked = |host: &Value| state(host) == "preparing" && differs(host);
    (is_order && !is_of_bios && !host.ever(SLACK, is_asked)).then_some("the host has the volumes that it asks for")
}

fn is_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty())
}

/// Before its version 1.110 Ironic rejects it, so an order of it waits for the end of the deployment.
fn of_abort(order: &Order<'_>, _: &History) -> Option<&'static str> {
    let is_of_deployment = order.transition() == Some("abort") && order.node["provision_state"] == "wait call-back";
    (is_of_deployment && order.is_old).then_some("this Ironic aborts no deployment")
}

fn of_deploying(order: &Order<'_>, host: &History) -> Option<&'static str> {
    if order.transition() != Some("active") {
        return None;
    }
    if host.always(SLACK, is_deleting) {
        return Some("the host is being deleted");
    }
    // A live image is booted, and nothing is written.
    let is_live = order.node["deploy_interface"] == "ramdisk";
    let info = &order.node["instance_info"];
    if is_live && info["image_source"].is_string() || !is_live && info["boot_iso"].is_string() {
        return Some("the node names a live image and one for the disk");
    }
    let source = info[if is_live { "boot_iso" } else { "image_source" }]
        .as_str()
        .unwrap_or_default();
    let step = order.body["deploy_steps"][0]["step"].as_str().unwrap_or_default();
    if (order.node["deploy_interface"] == "custom-agent") == step.is_empty() {
        return Some("the deploy interface is not that of the deployment");
    }
    let is_asked = |host: &Value| {
        // A deploy step takes precedence, and gets the live image as its own.
        let is_kind = (history::is_live(host) && method(host).is_empty()) == is_live;
        !by(source, step).is_empty() && image(host) == source && method(host) == step && is_kind
    };
    (!host.ever(SLACK, is_asked)).then_some("the host does not name this image and deploy step")
}

/// The login to a registry is sent with the image that needs it, if the host names its Secret.
fn of_registry_login(order: &Order<'_>, host: &History) -> Option<&'static str> {
    let sent = order.body.as_array().into_iter().flatten();
    let mut sent =
        sent.filter(|change| change["path"] == "/instance_info/image_pull_secret" && change["op"] != "remove");
    if sent.any(|change| change["value"] != REGISTRY_LOGIN) {
        return Some("it is not the login to the registry");
    }
    if order.transition() != Some("active") {
        return None;
    }
    let info = &order.node["instance_info"];
    let is_sent = info["image_pull_secret"].is_string();
    let is_asked = |host: &Value| host["spec"]["image"]["ociAuthSecretName"].is_string() == is_sent;
    let is_needed = info["image_source"]
        .as_str()
        .is_some_and(|source| source.starts_with("oci://"));
    (is_sent && !is_needed || !host.ever(SLACK, is_asked))
        .then_some("the login to the registry is not that of the host")
}

/// What a Secret of this name says of itself as network data and as meta data.
pub(super) fn origin(secret: &str) -> Value {
    json!({ "services": [{ "type": "dns", "address": secret }] })
}

/// The disk, the boot mode and the content of the first boot are those of one version of the host.
fn of_deployed_content(order: &Order<'_>, host: &History) -> Option<&'static str> {
    if order.transition() != Some("active") {
        return None;
    }
    let drive = &order.body["configdrive"];
    // A live image gets no config drive.
    let is_live = order.node["deploy_interface"] == "ramdisk";
    if is_live && drive.as_object().is_some_and(|drive| !drive.is_empty()) {
        return Some("a live image gets a config drive");
    }
    let has_content = |host: &Value| {
        if is_live {
            return true;
        }
        let of = |field: &str| host["spec"][field]["name"].as_str();
        let (network, meta) = (of("networkData").map(origin), of("metaData").map(origin));
        drive.get("user_data").and_then(Value::as_str) == of("userData")
            && drive.get("network_data") == network.as_ref()
            && drive["meta_data"].get("services") == meta.as_ref().and_then(|meta| meta.get("services"))
    };
    if !host.ever(SLACK, has_content) {
        return Some("the content of the first boot is of Secrets that the host does not name");
    }
    if !host.ever(SLACK, |host| {
        order.node["instance_info"]["root_device"] == root_device(host)
    }) {
        return Some("the image is written to a disk that the host does not name");
    }
    let capabilities = order.node["properties"]["capabilities"].as_str().unwrap_or_default();
    let is_asked = |host: &Value| {
        let mode = if host["spec"]["bootMode"] == "legacy" {
            "boot_mode:bios"
        } else {
            "boot_mode:uefi"
        };
        let is_secure = host["spec"]["bootMode"] == "UEFISecureBoot";
        capabilities.contains(mode) && capabilities.contains("secure_boot:true") == is_secure
    };
    (!host.ever(SLACK, is_asked)).then_some("the host does not name this boot mode")
}

/// The root device in the words of Ironic.
fn root_device(host: &Value) -> Value {
    let hints = &host["spec"]["rootDeviceHints"];
    let mut device = json!({});
    if let Some(name) = hints["deviceName"].as_str() {
        device["name"] = json!(format!("s== {name}"));
    }
    if let Some(serial) = hints["serialNumber"].as_str() {
        device["serial"] = json!(format!("s== {serial}"));
    }
    if let Some(size) = hints["minSizeGigabytes"].as_i64() {
        device["size"] = json!(format!(">= {size}"));
    }
    match device == json!({}) {
        true => json!({ "name": "s== /dev/sda" }),
        false => device,
    }
}

fn of_power_off(order: &Order<'_>, host: &History) -> Option<&'static str> {
    let target = order.power().filter(|target| *target != "power on")?;
    let forbids = |host: &Value| host["spec"]["disablePowerOff"] == true;
    if target.ends_with("power off") && host.always(SLACK, forbids) {
        return Some("the machine must not be powered off");
    }
    let is_asked = |host: &Value| host["spec"]["online"] != true || is_reboot_requested(host) || is_deleting(host);
    if !host.ever(MEMORY, is_asked) {
        return Some("the host does not request it");
    }
    // A machine that is not in use is switched off hard before its deletion.
    // An error of a soft attempt: an older error of the node says nothing about it, nor does one after an attempt that
    // succeeded.
    let has_failed = |host: &Value| order.soft.is_some() && has_power_error(host);
    let is_hard = |host: &Value| is_hard_reboot_requested(host) || is_deleting(host) || has_failed(host);
    let was_soft = order.soft.is_some_and(|soft| Some(soft) >= host.since(is_asked));
    let is_hard = !target.starts_with("soft ") && !was_soft && !host.ever(MEMORY, is_hard);
    is_hard.then_some("the power is cut without a soft attempt")
}

fn of_node_deletion(order: &Order<'_>, host: &History) -> Option<&'static str> {
    let is_asked = |host: &Value| host.is_null() || is_deleting(host) || is_detach_requested(host);
    (order.is_node_deletion() && !host.ever(MEMORY, is_asked)).then_some("the host does not request it")
}

/// The violation of a power request, and the soft attempt after it.
fn judged(target: &str, soft: Option<Instant>, host: &History) -> (Option<String>, Option<Instant>) {
    let request = Request::put("/v1/nodes/1/states/power").body(json!({ "target": target }).to_string().into_bytes());
    let (request, node) = (request.unwrap(), json!({}));
    let order = Order::of(&request, &node, None, soft);
    (violation(&order, host), order.soft_attempt())
}

/// A plan that takes an old error of the node for one of its request records it in the host.
#[tokio::test(start_paused = true)]
async fn power_is_not_cut_for_an_error_that_is_recorded_after_an_attempt_that_succeeded() {
    let version = |online: bool, error: &str| json!({ "spec": { "online": online }, "status": { "errorType": error } });
    let pause = || tokio::time::sleep(MEMORY * 2);
    let mut host = History::default();
    host.record(version(true, ""));
    pause().await;
    host.record(version(false, ""));
    let (broken, soft) = judged("soft power off", None, &host);
    assert_eq!(broken, None);
    let mut failed = History::default();
    failed.record(version(true, ""));
    failed.record(version(false, "power management error"));
    assert_eq!(judged("power off", soft, &failed).0, None, "the attempt failed");
    pause().await;
    host.record(version(true, ""));
    let (_, soft) = judged("power on", soft, &host);
    pause().await;
    host.record(version(false, "power management error"));
    let (broken, _) = judged("power off", soft, &host);
    assert!(broken.is_some_and(|broken| broken.contains("without a soft attempt")));
}

#[tokio::test(start_paused = true)]
async fn volumes_are_made_for_a_host_that_asks_for_some_on_a_node_of_its_own() {
    let software = json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    for (raid, instance, is_allowed) in [
        (json!(null), json!(null), false),
        (json!({ "softwareRAIDVolumes": [] }), json!(null), false),
        (software.clone(), json!(null), true),
        (software.clone(), json!("u"), true),
        (software, json!("v"), false),
    ] {
        let mut host = History::default();
        host.record(json!({ "metadata": { "uid": "u" }, "spec": { "raid": raid },
            "status": { "provisioning": { "state": "preparing" } } }));
        let request =
            Request::put("/v1/nodes/1/states/provision").body(json!({ "target": "clean" }).to_string().into_bytes());
        let (request, node) = (
            request.unwrap(),
            json!({ "instance_uuid": instance, "raid_config": {} }),
        );
        let broken = violation(&Order::of(&request, &node, None, None), &host);
        assert_eq!(broken.is_none(), is_allowed, "{raid} {instance}: {broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn abort_of_a_deployment_is_sent_only_to_an_ironic_that_knows_it() {
    let mut host = History::default();
    host.record(json!({ "metadata": { "uid": "u" }, "spec": {} }));
    let body = json!({ "target": "abort" }).to_string().into_bytes();
    let request = Request::put("/v1/nodes/1/states/provision").body(body).unwrap();
    for (state, is_old, is_broken) in [
        ("wait call-back", true, true),
        ("wait call-back", false, false),
        ("inspect wait", true, false),
    ] {
        let node = json!({ "provision_state": state });
        let mut order = Order::of(&request, &node, None, None);
        order.is_old = is_old;
        let broken = violation(&order, &host).is_some_and(|broken| broken.contains("aborts no deployment"));
        assert_eq!(broken, is_broken, "{state}, old: {is_old}");
    }
}
