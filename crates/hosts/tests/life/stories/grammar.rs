//! The steps of a story, generated from a seed. Every member of the schema has a row with values, so that a new
//! member fails the test until it has one.

use std::time::Duration;

use metal3_runtime::patch::apply;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::Random;
use metal3_sim_ironic::{BiosReports, FirmwareUpdates};
use serde_json::{Value, json};

use super::additions;
use super::discs::DriveFault;
use super::disks;
use crate::env::{address, bmc};
use crate::interceptor::IronicFault;

/// The only host of a story.
pub(super) const HOST: u32 = 1;
/// Existing Secrets for user data and the like with different contents, one for the agent's network, and one that does
/// not exist.
pub(super) const DATA: &str = "data";
pub(super) const OTHER_DATA: &str = "other-data";
pub(super) const NETWORK: &str = "network";
const MISSING: &str = "missing";
/// Replaced by the address of the machine's first card.
pub(super) const OWN_MAC: &str = "own-mac";

/// The instance of another user of Ironic.
pub(super) const OTHER_INSTANCE: &str = "0ddba11c-0ffe-4e11-8c0d-e00000000000";

/// The third contains a password that must not be shown.
pub(super) const IMAGES: [&str; 6] = [
    "http://images.example/a.raw",
    "http://images.example/b.raw",
    "http://user:canary-hunter2@images.example/c.raw",
    "oci://registry.example/d",
    // Ironic shows both with the same mask.
    "http://images.example/e.raw?token=canary-hunter2-1",
    "http://images.example/e.raw?token=canary-hunter2-2",
];
/// The Secret with the login to the registry of the last image.
pub(super) const LOGINS: &str = "logins";
/// That login.
pub(super) const REGISTRY_LOGIN: &str = "user:canary-hunter2";
/// An image that is booted from a virtual drive.
pub(super) const LIVE: &str = "http://images.example/live.iso";
/// Where the second image redirects to, in some stories.
pub(super) const MIRROR: &str = "http://mirror.example/b.raw";

/// One edit of the user: several members at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Edit(Value),
    Delete,
    /// Replaces the faults of the machine.
    Break(Vec<Fault>),
    Login(Login),
    RestartController,
    RestartIronic,
    LoseDatabase,
    /// The request to Ironic of this number from now on fails, or its response is late.
    Request(usize, IronicFault),
    /// The next write of the controller is lost in this way.
    Write(WriteFault),
    /// An operator of Ironic sets or ends the maintenance of the node.
    Maintenance(bool),
    /// An operator of Ironic services the node.
    Service,
    /// An operator of Ironic reboots the machine.
    OperatorReboot,
    /// An operator of Ironic gives the node to another instance.
    Assign,
    /// A person presses the power button.
    PowerButton,
    /// Ironic rejects every request of this kind from now on.
    Reject(&'static str, u16),
    /// A clock that was a year ahead wrote the status.
    ClockAhead,
    /// The user asks for these BIOS settings; null: the object is deleted.
    Settings(Value),
    /// What a reboot of the running machine may change; null: the policy is deleted.
    Policy(Value),
    /// How the machine reports changed BIOS settings from now on.
    Bios(BiosReports),
    /// The user asks for these updates of the firmware; null: the object is deleted.
    Updates(Value),
    /// How the machine makes updates from now on.
    Firmware(FirmwareUpdates),
    /// The user asks for this image in the virtual drive; null: the object is deleted.
    Disc(Value),
    /// What the drive of the machine does from now on.
    Drive(DriveFault),
    /// What another builder of agents does from now on.
    Builder(Builds),
    /// The user deletes the image of the agent.
    DeleteAgentImage,
    /// Another manager recorded that the host is serviced, and was replaced.
    LeftInService,
    Wait(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    Right,
    Changed,
    Labelled,
    Deleted,
    /// Another one, which the BMC refuses.
    Bad,
    /// Another one, and the account of the BMC with it.
    Rotated,
    /// The first one, and the account of the BMC with it.
    Back,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteFault {
    CrashBefore,
    CrashAfter,
    Lost,
    Conflict,
}

/// How Ironic fetches images, and how old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IronicKind {
    Plain,
    /// The second image redirects.
    Redirects,
    /// The conductor downloads and converts images.
    Converts,
    /// It cannot abort a deployment.
    Old,
}

/// Which agent a host boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentKind {
    /// That of Ironic.
    Usual,
    /// The configured one, with an image for each host.
    Configured,
    /// One that another builder makes for each host.
    Built,
}

/// What another builder of agents does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builds {
    /// It serves each request.
    Served,
    /// It reports an error.
    Failed,
    /// It does not run.
    Stopped,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Story {
    pub(super) seed: u64,
    pub(super) ironic: IronicKind,
    pub(super) agent: AgentKind,
    /// The members of the spec that the host is created with.
    pub(super) created: Value,
    pub(super) steps: Vec<Step>,
}

/// A member of the spec and its values. Null removes the member.
type Member = (&'static str, Vec<Value>);

pub(super) fn image(url: &str) -> Value {
    if url == IMAGES[3] {
        return image_of_registry(LOGINS);
    }
    if url == LIVE {
        return json!({ "url": url, "checksum": null, "checksumType": null, "format": "live-iso", "ociAuthSecretName": null });
    }
    json!({ "url": url, "checksum": "c".repeat(64), "checksumType": "sha256", "format": "raw", "ociAuthSecretName": null })
}

fn image_of_registry(secret: &str) -> Value {
    json!({ "url": IMAGES[3], "checksum": null, "checksumType": null, "format": "raw", "ociAuthSecretName": secret })
}

fn login(name: &str, scheme: &str) -> Value {
    let address = format!("{scheme}://{}/redfish/v1/Systems/1", bmc(HOST));
    json!({ "address": address, "credentialsName": name })
}

/// The members that decide about disks and power; an edit has one of these more often than others.
fn decisive_members() -> Vec<Member> {
    vec![
        ("online", vec![json!(true), json!(true), json!(false)]),
        (
            "image",
            vec![
                image(IMAGES[0]),
                image(IMAGES[1]),
                image(IMAGES[2]),
                image(IMAGES[3]),
                image(IMAGES[4]),
                image(IMAGES[5]),
                image_of_registry(MISSING),
                Value::Null,
                Value::Null,
            ],
        ),
        (
            "automatedCleaningMode",
            vec![json!("disabled"), json!("metadata"), Value::Null],
        ),
        ("disablePowerOff", vec![json!(true), json!(false), Value::Null]),
        ("externallyProvisioned", vec![json!(true), json!(false), Value::Null]),
    ]
}

fn other_members() -> Vec<Member> {
    let secret = |name: &str| json!({ "name": name });
    let secrets = || vec![secret(DATA), secret(OTHER_DATA), Value::Null, secret(MISSING)];
    let or_absent = |value: Value| vec![value, Value::Null];
    let hints = vec![
        json!({ "deviceName": "/dev/sda" }),
        json!({ "minSizeGigabytes": 10 }),
        Value::Null,
    ];
    let logins = vec![
        login("bmc-1", "redfish-virtualmedia"),
        login("bmc-1", "redfish-virtualmedia"),
        login("bmc-1", "redfish"),
        login(MISSING, "redfish-virtualmedia"),
        json!({ "address": address(HOST), "credentialsName": "bmc-1", "disableCertificateVerification": true }),
    ];
    let methods = METHODS.map(|method| json!({ "method": method }));
    let methods = methods.into_iter().chain([Value::Null, Value::Null]).collect();
    let boot_modes = ["UEFI", "legacy", "UEFISecureBoot"].map(|mode| json!(mode));
    vec![
        ("bmc", logins),
        ("bootMACAddress", or_absent(json!(OWN_MAC))),
        ("bootMode", boot_modes.into_iter().chain([Value::Null]).collect()),
        ("userData", secrets()),
        ("networkData", secrets()),
        ("metaData", secrets()),
        ("preprovisioningNetworkDataName", or_absent(json!(NETWORK))),
        ("rootDeviceHints", hints),
        (
            "inspectionMode",
            vec![json!("agent"), json!("fast"), json!("disabled"), Value::Null],
        ),
        ("architecture", or_absent(json!("x86_64"))),
        (
            "consumerRef",
            or_absent(json!({ "name": "user", "namespace": "default" })),
        ),
        ("description", or_absent(json!("rack 7"))),
        ("taints", or_absent(json!([{ "key": "a", "effect": "NoSchedule" }]))),
        ("hardwareProfile", or_absent(json!("unknown"))),
        ("customDeploy", methods),
        (
            "raid",
            vec![
                json!({ "softwareRAIDVolumes": [] }),
                json!({ "softwareRAIDVolumes": [{ "level": "1" }] }),
                json!({ "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": 9 }, { "level": "0" }] }),
                json!({ "hardwareRAIDVolumes": [{ "level": "5", "name": "data" }] }),
                json!({ "hardwareRAIDVolumes": [] }),
                Value::Null,
                Value::Null,
            ],
        ),
        // Admission refuses it.
        ("firmware", or_absent(json!({ "sriovEnabled": true }))),
        ("networkInterfaces", vec![Value::Null]),
    ]
}

/// Deploy steps of the agent.
pub(super) const METHODS: [&str; 2] = ["install_everything", "install_little"];

const ANNOTATIONS: [(&str, &[&str]); 8] = [
    ("baremetalhost.metal3.io/paused", &["", "metal3.io/capm3"]),
    (
        "baremetalhost.metal3.io/detached",
        &[
            "",
            r#"{"deleteAction":"delay"}"#,
            r#"{"deleteAction":"delete"}"#,
            r#"{"force":true}"#,
            "words",
        ],
    ),
    ("reboot.metal3.io", &["", r#"{"mode":"hard"}"#, r#"{"force":true}"#]),
    ("reboot.metal3.io/client", &["", r#"{"mode":"hard"}"#]),
    ("inspect.metal3.io", &["", "disabled"]),
    ("inspect.metal3.io/hardwaredetails", &["{}"]),
    ("baremetalhost.metal3.io/confirm-deprovision", &[""]),
    ("example.com/own", &["1", "2"]),
];

pub(super) fn pick<'a, T>(random: &mut Random, choices: &'a [T]) -> &'a T {
    random.pick(choices).unwrap()
}

/// A merge patch of one to four members and annotations.
fn edit(random: &mut Random) -> Value {
    let (decisive, others, mut change) = (decisive_members(), other_members(), json!({}));
    for _ in 0..=random.below(3) {
        match random.below(10) {
            0..5 => {
                let (name, values) = pick(random, &decisive);
                change["spec"][name] = pick(random, values).clone();
            }
            5..8 => {
                let (name, values) = pick(random, &others);
                change["spec"][name] = pick(random, values).clone();
            }
            _ => {
                let (name, values) = pick(random, &ANNOTATIONS);
                let is_removed = random.below(2) == 0;
                let value = if is_removed {
                    Value::Null
                } else {
                    json!(pick(random, values))
                };
                change["metadata"]["annotations"][name] = value;
            }
        }
    }
    change
}

fn wait(random: &mut Random) -> Step {
    let milliseconds = *pick(random, &[20, 300, 1_000, 3_000, 8_000, 20_000, 60_000]);
    Step::Wait(Duration::from_millis(milliseconds))
}

/// A disturbance, in some cases with the steps without which it has no effect.
fn disturbance(random: &mut Random) -> Vec<Step> {
    match random.below(23) {
        0 => clock_ahead(random),
        1 => power_error(),
        2 => old_power_error(random),
        3 => forced_detachment(random),
        4 => late_edit(random),
        5 => volumes(random),
        6 => detachment_taken_back(random),
        7 => node_of_another(random),
        _ => vec![single_disturbance(random)],
    }
}

/// A clock that was a year ahead recorded a failure, whose cause is over.
fn clock_ahead(random: &mut Random) -> Vec<Step> {
    use Fault::{ChecksumMismatch, CleanStepFails, InspectionError, WrongPassword};
    let fault = *pick(
        random,
        &[ChecksumMismatch, CleanStepFails, InspectionError, WrongPassword],
    );
    vec![
        Step::Break(vec![fault]),
        Step::Edit(json!({ "spec": { "image": image(IMAGES[1]) } })),
        Step::Wait(Duration::from_secs(40)),
        Step::ClockAhead,
        Step::Break(Vec::new()),
    ]
}

/// The machine could not be powered off, and the user took the request back.
fn power_error() -> Vec<Step> {
    let online = |online: bool| Step::Edit(json!({ "spec": { "online": online } }));
    vec![
        Step::Break(vec![Fault::PowerStuck]),
        online(false),
        Step::Wait(Duration::from_secs(60)),
        Step::Break(Vec::new()),
        online(true),
        Step::Wait(Duration::from_secs(10)),
        online(false),
        Step::Wait(Duration::from_secs(10)),
        online(true),
    ]
}

/// An operator could not reboot the machine, which the user switches off or reboots later, in some cases not for the first
/// time.
fn old_power_error(random: &mut Random) -> Vec<Step> {
    let online = |online: bool| Step::Edit(json!({ "spec": { "online": online } }));
    let mut steps = Vec::new();
    if random.below(2) == 0 {
        let seconds = |seconds| Step::Wait(Duration::from_secs(seconds));
        steps.extend([online(false), seconds(20), online(true), seconds(20)]);
    }
    steps.extend([
        Step::Break(vec![Fault::PowerStuck]),
        Step::OperatorReboot,
        Step::Wait(Duration::from_secs(30)),
        Step::Break(Vec::new()),
        wait(random),
    ]);
    steps.push(if random.below(2) == 0 {
        online(false)
    } else {
        Step::Edit(json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }))
    });
    steps
}

/// The host is detached while it changes its image.
fn forced_detachment(random: &mut Random) -> Vec<Step> {
    let changed = json!({ "image": image(pick::<&str>(random, &IMAGES)) });
    detached_by_force(changed, wait(random))
}

/// The user changes the spec, and detaches the host by force some time later.
pub(super) fn detached_by_force(changed: Value, pause: Step) -> Vec<Step> {
    let detached = json!({ "baremetalhost.metal3.io/detached": r#"{"force":true}"# });
    vec![
        Step::Edit(json!({ "spec": changed })),
        pause,
        Step::Edit(json!({ "metadata": { "annotations": detached } })),
    ]
}

/// The program dies while it detaches the host, or Ironic does not delete the node, and the user takes the annotation back.
fn detachment_taken_back(random: &mut Random) -> Vec<Step> {
    let detached = |value: Value| {
        Step::Edit(json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/detached": value } } }))
    };
    vec![
        // The node of a machine in use is deleted in maintenance.
        Step::Edit(json!({ "spec": { "image": image(IMAGES[0]), "online": true } })),
        Step::Wait(Duration::from_mins(30)),
        pick(
            random,
            &[
                Step::Request(2, IronicFault::KilledBefore),
                Step::Request(3, IronicFault::KilledBefore),
                Step::Reject("DELETE nodes/_", 409),
            ],
        )
        .clone(),
        detached(json!("")),
        Step::Wait(Duration::from_secs(*pick(random, &[1, 8]))),
        detached(Value::Null),
    ]
}

/// The node is given to another instance before the user asks for something.
fn node_of_another(random: &mut Random) -> Vec<Step> {
    vec![
        Step::Edit(json!({ "spec": { "image": null } })),
        wait(random),
        Step::Assign,
        Step::Edit(edit(random)),
        wait(random),
    ]
}

/// The user changes what is deployed, while Ironic is slow or a Secret is missing.
fn late_edit(random: &mut Random) -> Vec<Step> {
    let secret = |name: &str| json!({ "name": name });
    let begun = pick::<&str>(random, &[DATA, OTHER_DATA, MISSING]);
    let mut changed = json!({ "userData": secret(pick::<&str>(random, &[DATA, OTHER_DATA])) });
    for member in ["rootDeviceHints", "bootMode", "networkData", "metaData"] {
        let others = other_members();
        let values = others
            .iter()
            .find(|(name, _)| *name == member)
            .map(|(_, values)| values);
        if let Some(values) = values.filter(|_| random.below(2) == 0) {
            changed[member] = pick(random, values).clone();
        }
    }
    if random.below(2) == 0 {
        changed["image"] = image(pick::<&str>(random, &IMAGES));
    }
    vec![
        Step::Request(*pick(random, &[1, 3]), IronicFault::Late),
        Step::Edit(
            json!({ "spec": { "online": true, "image": image(pick::<&str>(random, &IMAGES)), "userData": secret(begun) } }),
        ),
        Step::Wait(Duration::from_secs(*pick(random, &[3, 8]))),
        Step::Edit(json!({ "spec": changed })),
    ]
}

/// The host asks for software volumes and then for others. Meanwhile their cleaning fails, or Ironic loses them.
fn volumes(random: &mut Random) -> Vec<Step> {
    let asked = |raid: Value| Step::Edit(json!({ "spec": { "image": null, "raid": raid } }));
    let keep_disks = json!({ "spec": { "automatedCleaningMode": "disabled" } });
    let others = other_members();
    let lists = others.iter().find(|(name, _)| *name == "raid").map(|(_, lists)| lists);
    let mut steps = vec![
        asked(json!({ "softwareRAIDVolumes": [{ "level": "1" }] })),
        wait(random),
    ];
    match random.below(4) {
        0 => steps.push(Step::Break(vec![Fault::CleanStepFails])),
        1 => steps.push(Step::LoseDatabase),
        2 => steps.extend([Step::Edit(keep_disks), Step::LoseDatabase]),
        _ => steps.push(Step::RestartController),
    }
    steps.push(wait(random));
    if let Some(lists) = lists {
        steps.push(asked(pick(random, lists).clone()));
    }
    steps
}

fn single_disturbance(random: &mut Random) -> Step {
    use IronicFault::{Failed, KilledAfter, KilledBefore, Late, Locked, Queued, ReplyLost, WrongState};
    use WriteFault::{Conflict, CrashAfter, CrashBefore, Lost};
    match random.below(16) {
        0 => Step::RestartController,
        1 => Step::RestartIronic,
        2 => Step::LoseDatabase,
        3 | 4 => {
            let faults = [
                KilledBefore,
                KilledAfter,
                ReplyLost,
                Locked,
                WrongState,
                Failed,
                Late,
                Queued,
            ];
            Step::Request(1, *pick(random, &faults))
        }
        5 => Step::Write(*pick(random, &[CrashBefore, CrashAfter, Lost, Conflict])),
        6..9 => Step::Break(machine_faults(random)),
        9 => Step::Login(*pick(
            random,
            &[Login::Right, Login::Changed, Login::Labelled, Login::Deleted],
        )),
        10 => Step::Maintenance(random.below(2) == 0),
        11 | 12 => {
            let (request, status) = *pick(random, &REJECTIONS);
            Step::Reject(request, status)
        }
        13 => Step::LeftInService,
        14 => Step::Service,
        _ => Step::PowerButton,
    }
}

/// Requests that Ironic may reject for good.
const REJECTIONS: [(&str, u16); 5] = [
    ("PUT nodes/_/states/power", 400),
    ("PUT nodes/_/states/provision manage", 400),
    ("PUT nodes/_/states/provision inspect", 400),
    ("PUT nodes/_/states/provision adopt", 400),
    ("GET nodes/_/validate", 500),
];

fn machine_faults(random: &mut Random) -> Vec<Fault> {
    let one = *pick(random, &metal3_sim_bmc::fault::ALL);
    // Not a fault of the machine alone: its inspection names other cards.
    if random.below(2) == 0 || one == Fault::ForeignMac {
        Vec::new()
    } else {
        vec![one]
    }
}

impl Story {
    pub(super) fn generate(seed: u64) -> Self {
        let mut random = Random::seeded(seed.wrapping_mul(0x9e37_79b9));
        use IronicKind::{Converts, Old, Plain, Redirects};
        let ironic = *pick(&mut random, &[Plain, Plain, Redirects, Converts, Old]);
        let mut created = json!({});
        if random.below(3) == 0 {
            // Applied to an empty object: a member that the edit removes is absent.
            let edited = edit(&mut random);
            apply(edited.get("spec").unwrap_or(&json!({})), &mut created);
        }
        // Such a host needs a slot.
        if random.below(4) == 0 {
            created["bmc"] = login("bmc-1", "redfish");
        }
        let mut steps = Vec::new();
        // Most stories are about a host in use.
        if random.below(4) > 0 {
            steps.push(Step::Wait(Duration::from_secs(40)));
            let url = pick(&mut random, &IMAGES);
            steps.push(Step::Edit(json!({ "spec": { "image": image(url) } })));
            steps.push(Step::Wait(Duration::from_secs(20 * random.below(3))));
        }
        for _ in 0..=random.below(7) {
            match random.below(12) {
                0 => steps.push(Step::Delete),
                1..8 => steps.push(Step::Edit(edit(&mut random))),
                _ => steps.extend(disturbance(&mut random)),
            }
            if random.below(3) > 0 {
                steps.push(wait(&mut random));
            }
        }
        let mut story = Self {
            seed,
            ironic,
            agent: AgentKind::Usual,
            created,
            steps,
        };
        additions::add_to(&mut story);
        story
    }
}

#[test]
fn every_member_of_the_schema_has_values_in_the_grammar() {
    let schema = metal3_api::crd::schema::structural::<metal3_api::metal3::v1alpha1::BareMetalHostSpec>();
    let schema = serde_json::to_value(&schema).unwrap();
    let spec = schema["properties"].as_object().unwrap();
    let known: Vec<_> = decisive_members()
        .into_iter()
        .chain(other_members())
        .chain([("cleaning", disks::values())])
        .map(|(name, _)| name)
        .collect();
    let missing: Vec<_> = spec.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "give values to {missing:?}");
    assert!(spec.len() > 20);
}
