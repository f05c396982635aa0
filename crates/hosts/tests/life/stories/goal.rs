//! What the host asks for at the end of a story, and whether it is reached or a condition says why not.

use serde_json::Value;

use super::disks;
use super::history::{
    annotation, by, image, is_deleting, is_detach_requested, is_external, is_paused, is_reboot_requested, method, state,
};

/// The machine and the Secrets at the end.
#[derive(Debug)]
pub(super) struct World {
    pub(super) is_on: bool,
    /// The source of the image on the disk.
    pub(super) disk: Option<String>,
    /// The levels of the software volumes that the agent reported to Ironic.
    pub(super) volumes: Vec<Value>,
    /// The addresses of the ports of the node.
    pub(super) ports: Vec<String>,
    /// The Secrets that exist.
    pub(super) secrets: Vec<String>,
    /// The host was externally provisioned at some time: then its disk is unknown.
    pub(super) was_external: bool,
}

/// The end of a story, as far as the host allows to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// The controller leaves the host alone.
    LeftAlone,
    /// The host does not exist any more.
    Gone,
    /// The host is deleted and waits for the user.
    Kept,
    Detached,
    /// In this state, with the power on or off (`None`: either), and this image on the disk.
    State(&'static str, Option<bool>, String),
    /// Only a change of the host or of a Secret helps, and an error or a condition says so.
    Explained,
}

fn delays_deletion(host: &Value) -> bool {
    let text = annotation(host, "baremetalhost.metal3.io/detached").unwrap_or_default();
    let request = serde_json::from_str::<Value>(text).unwrap_or_default();
    request["deleteAction"] == "delay" && request["force"] != true
}

/// The goal of a host.
pub(super) fn of(host: &Value, world: &World) -> Goal {
    if host.is_null() {
        return Goal::Gone;
    }
    if is_paused(host) {
        return Goal::LeftAlone;
    }
    if is_deleting(host) {
        return if delays_deletion(host) { Goal::Kept } else { Goal::Gone };
    }
    if is_detach_requested(host) {
        return Goal::Detached;
    }
    // An annotation reboots a running system only.
    let is_running = is_external(host) || state(host) == "provisioned";
    let keeps_off = host["spec"]["online"] != true || (is_running && is_kept_off(host));
    if keeps_off && host["spec"]["disablePowerOff"] == true && world.is_on {
        return Goal::Explained;
    }
    if is_external(host) {
        return Goal::State("externally provisioned", Some(!keeps_off), String::new());
    }
    let may_start = host["spec"]["online"] == true || state(host) == "provisioned";
    if !asks_for_system(host) || !may_start {
        return Goal::State("available", Some(host["spec"]["online"] == true), String::new());
    }
    let on_disk = if world.was_external {
        String::new()
    } else {
        by(recorded_image(host), recorded_method(host))
    };
    Goal::State("provisioned", Some(!keeps_off && !is_kept_off(host)), on_disk)
}

fn asks_for_system(host: &Value) -> bool {
    !image(host).is_empty() || !method(host).is_empty()
}

fn recorded_image(host: &Value) -> &str {
    let recorded = &host["status"]["provisioning"];
    recorded["image"]["url"].as_str().unwrap_or_default()
}

fn recorded_method(host: &Value) -> &str {
    let recorded = &host["status"]["provisioning"];
    recorded["customDeploy"]["method"].as_str().unwrap_or_default()
}

/// Whether what is recorded as deployed is what the host asks for. A deploy step that is added to an image that runs, and an
/// image that is added to a step that has run, are not deployed.
fn runs_what_is_asked(host: &Value, world: &World) -> bool {
    let (image, step) = (recorded_image(host), recorded_method(host));
    let is_asked_image = image == self::image(host);
    match (image.is_empty(), step.is_empty()) {
        (true, true) => is_adopted(host, world),
        (true, false) => step == method(host),
        (false, true) => is_asked_image,
        (false, false) => is_asked_image && step == method(host),
    }
}

/// Whether the system was adopted from an external deployment. What deployed it counts as its image: one that is named later
/// belongs to the method that has run already, as with the Go manager.
fn is_adopted(host: &Value, world: &World) -> bool {
    world.was_external && state(host) == "provisioned" && host["spec"].get("customDeploy").is_some()
}

/// Whether a client's annotation keeps the host off.
fn is_kept_off(host: &Value) -> bool {
    is_reboot_requested(host) && annotation(host, "reboot.metal3.io/client").is_some()
}

/// Whether the host names something that is missing or not supported. Then an explanation is enough.
pub(super) fn is_blocked(host: &Value, world: &World) -> bool {
    let spec = &host["spec"];
    let is_missing = |name: &Value| {
        name.as_str()
            .is_some_and(|name| !world.secrets.iter().any(|one| one == name))
    };
    let data = ["userData", "networkData", "metaData"];
    let lacks_data = asks_for_system(host) && data.iter().any(|member| is_missing(&spec[member]["name"]));
    is_missing(&spec["bmc"]["credentialsName"])
        || disks::are_unprotected(host)
        || is_missing(&spec["image"]["ociAuthSecretName"])
        || is_missing(&spec["preprovisioningNetworkDataName"])
        || lacks_data
        // Not every BMC makes volumes.
        || spec["raid"]["hardwareRAIDVolumes"].is_array()
        // Volumes that Ironic lost are not made again where that erases disks that are kept.
        || (spec["raid"]["softwareRAIDVolumes"].is_array() && spec["automatedCleaningMode"] == "disabled")
}

fn message(host: &Value) -> String {
    let held = host["status"]["conditions"].as_array().into_iter().flatten();
    let held = held.filter(|one| one["type"] == "Held" && one["status"] == "True");
    let held: Vec<_> = held.filter_map(|one| one["message"].as_str()).collect();
    let error = host["status"]["errorMessage"].as_str().unwrap_or_default();
    format!("{error}{}", held.join(" "))
}

/// Whether only a person knows if the removal had begun that another process may have requested, of an image that is asked for
/// again, on a node that Ironic lost.
pub(super) fn is_undecided(host: &Value) -> bool {
    state(host) == "deprovisioning"
        && asks_for_system(host)
        && message(host).contains("it is not known whether its removal has begun")
}

/// `Err`: how the host differs from its goal.
pub(super) fn check(goal: &Goal, host: &Value, world: &World) -> Result<(), String> {
    let error = message(host);
    if is_undecided(host) && matches!(goal, Goal::State(..)) {
        return Ok(());
    }
    if is_blocked(host, world) && !error.is_empty() && !matches!(goal, Goal::Gone | Goal::Kept) {
        return Ok(());
    }
    let differs = || {
        Err(format!(
            "{goal:?} is not reached: state {:?}, {error:?}, {world:?}",
            state(host)
        ))
    };
    match goal {
        Goal::LeftAlone => Ok(()),
        Goal::Gone if host.is_null() => Ok(()),
        Goal::Kept if !host.is_null() => Ok(()),
        Goal::Detached if host["status"]["operationalStatus"] == "detached" => Ok(()),
        Goal::Explained if !error.is_empty() => Ok(()),
        Goal::State(wanted, on, disk) => {
            let is_ok = error.is_empty() && host["status"]["operationalStatus"] == "OK";
            let is_ok = is_ok || (*wanted == "available" && shows_failed_image(host));
            // The next reboot repeats the service of a machine that runs.
            let is_ok = is_ok || (wanted.ends_with("provisioned") && host["status"]["errorType"] == "servicing error");
            let is_in_state = state(host) == *wanted && is_ok;
            let has_power = on.is_none_or(|on| world.is_on == on && host["status"]["poweredOn"] == on);
            let has_disk = disk.is_empty() || world.disk.as_deref() == Some(disk);
            let has_volumes = *wanted != "available" || (has_asked_volumes(host) && are_made(host, world));
            let is_shown = *wanted != "provisioned" || runs_what_is_asked(host, world);
            // Without it Ironic does not boot the agent of the machine.
            let boot = host["spec"]["bootMACAddress"].as_str();
            let has_port = boot.is_none_or(|boot| is_external(host) || world.ports.iter().any(|port| port == boot));
            if is_in_state && has_power && has_disk && is_shown && has_volumes && has_port {
                Ok(())
            } else {
                differs()
            }
        }
        Goal::Gone | Goal::Kept | Goal::Detached | Goal::Explained => differs(),
    }
}

/// Whether the RAID volumes that the host asks for are recorded as made, and none where it asks for none.
pub(super) fn has_asked_volumes(host: &Value) -> bool {
    let (asked, made) = (&host["spec"]["raid"], &host["status"]["provisioning"]["raid"]);
    let list = |raid: &Value, kind: &str| raid[kind].as_array().cloned().unwrap_or_default();
    let software = "softwareRAIDVolumes";
    let hardware = "hardwareRAIDVolumes";
    // Next to software volumes no hardware volumes are made or removed.
    let is_software = !list(asked, software).is_empty();
    let keeps_hardware = is_software || !asked[hardware].is_array() || asked[hardware] == made[hardware];
    let keeps_software = asked[hardware].is_array() && !asked[software].is_array();
    keeps_hardware && (keeps_software || list(asked, software) == list(made, software))
}

/// Whether the image that the host still names could not be deployed: that stays its error until it is tried again, which
/// a host that shall be off does not do.
fn shows_failed_image(host: &Value) -> bool {
    host["status"]["errorType"] == "provisioning error" && asks_for_system(host) && host["spec"]["online"] != true
}

/// Whether the machine has the software volumes that the host asks for.
fn are_made(host: &Value, world: &World) -> bool {
    let asked = host["spec"]["raid"]["softwareRAIDVolumes"].as_array();
    let levels: Vec<_> = asked
        .into_iter()
        .flatten()
        .map(|volume| volume["level"].clone())
        .collect();
    levels.is_empty() || levels == world.volumes
}

/// Whether the host says what it waits for.
pub(super) fn is_explained(host: &Value) -> bool {
    !message(host).is_empty()
}

/// Whether the host gave up for a reason that the specification allows.
pub(super) fn has_given_up(host: &Value) -> bool {
    message(host).contains("retry limit")
}

/// The method that deployed the system has run without the image, and does not run again.
#[test]
fn image_that_is_named_after_an_adoption_is_not_deployed() {
    let host = |deployed: &str| {
        serde_json::json!({
            "spec": { "online": true, "image": { "url": "http://images.example/a.raw" }, "customDeploy": { "method": "m" } },
            "status": { "poweredOn": true, "operationalStatus": "OK",
                "provisioning": { "state": "provisioned", "image": { "url": deployed } } },
        })
    };
    let world = |was_external| World {
        is_on: true,
        disk: None,
        ports: Vec::new(),
        volumes: Vec::new(),
        secrets: Vec::new(),
        was_external,
    };
    let reached = |deployed: &str, was_external| {
        let (host, world) = (host(deployed), world(was_external));
        check(&of(&host, &world), &host, &world).is_ok()
    };
    assert!(reached("", true));
    assert!(!reached("http://images.example/b.raw", true));
    assert!(!reached("", false));
}

#[test]
fn image_that_is_asked_for_again_on_a_lost_node_is_left_to_a_person() {
    let host = |state: &str, image: &str, message: &str| {
        serde_json::json!({
            "spec": { "online": true, "image": { "url": image } },
            "status": { "poweredOn": true, "operationalStatus": "error", "errorMessage": message, "provisioning": { "state": state } },
        })
    };
    let (asked, said) = (
        "http://images.example/a.raw",
        "it is not known whether its removal has begun: to keep the system",
    );
    for (host, is_reached) in [
        (host("deprovisioning", asked, said), true),
        (host("deprovisioning", asked, "no response"), false),
        (host("deprovisioning", "", said), false),
        (host("provisioned", asked, said), false),
    ] {
        let world = World {
            is_on: true,
            disk: None,
            ports: Vec::new(),
            volumes: Vec::new(),
            secrets: Vec::new(),
            was_external: false,
        };
        assert_eq!(check(&of(&host, &world), &host, &world).is_ok(), is_reached, "{host}");
    }
}
