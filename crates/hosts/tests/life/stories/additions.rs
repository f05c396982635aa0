//! Steps that are added to some stories. Each kind is drawn apart, so that the other steps of a story do not depend on it.

use std::time::Duration;

use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::Random;
use metal3_sim_ironic::{BiosReports, FirmwareUpdates};
use serde_json::{Value, json};

use super::discs::DriveFault;
use super::disks;
use super::grammar::{
    AgentKind, Builds, IMAGES, IronicKind, LIVE, Login, NETWORK, Step, Story, detached_by_force, image, pick,
};
use crate::ironics::{A, B, LABEL};

pub(super) fn add_to(story: &mut Story) {
    settings(story, stream(story.seed, SETTINGS));
    updates(story, stream(story.seed, UPDATES));
    discs(story, stream(story.seed, DISCS));
    detachment_from_an_old_ironic(story, stream(story.seed, DETACHMENT));
    live_images(story, stream(story.seed, LIVE_IMAGES));
    agents(story, stream(story.seed, AGENTS));
    labels(story, stream(story.seed, LABELS));
    policies(story, stream(story.seed, POLICIES));
    logins(story, stream(story.seed, ROTATIONS));
    disks::add_to(story, stream(story.seed, DISKS));
}

/// Factors of a seed, one for each kind: any numbers, as long as they differ. Another number is another set of stories.
const SETTINGS: u64 = 0x517c_c1b7;
const UPDATES: u64 = 0x2545_f491;
const DISCS: u64 = 0x1b87_3593;
const DETACHMENT: u64 = 0x6c62_272e;
const LIVE_IMAGES: u64 = 0x3c6e_f372;
const AGENTS: u64 = 0x7f4a_7c15;
const LABELS: u64 = 0x85eb_ca6b;
const POLICIES: u64 = 0x9e37_79f9;
const ROTATIONS: u64 = 0xb529_7a4d;
const DISKS: u64 = 0x4cf5_ad43;

fn stream(seed: u64, factor: u64) -> Random {
    Random::seeded(seed.wrapping_mul(factor).wrapping_add(1))
}

pub(super) fn place(random: &mut Random, steps: &[Step]) -> usize {
    let places = u64::try_from(steps.len()).unwrap() + 1;
    usize::try_from(random.below(places)).unwrap()
}

/// BIOS settings that a user asks for; the last are invalid.
fn asked_settings() -> [Value; 8] {
    [
        json!({ "ProcTurboMode": "Disabled" }),
        json!({ "ProcTurboMode": "enabled", "NetworkBootRetryCount": 3 }),
        json!({ "NetworkBootRetryCount": "4", "QuietBoot": "false" }),
        json!({ "AssetTag": "rack-7" }),
        json!({}),
        Value::Null,
        json!({ "ProcTurboMode": "Sometimes", "QuietBoot": "false" }),
        json!({ "Turbo": 1, "AdminPassword": "canary-hunter2" }),
    ]
}

/// Edits of the BIOS settings in each third story, some of them next to another edit and some with a machine that does not
/// take them.
fn settings(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    for _ in 0..=random.below(3) {
        let at = place(&mut random, &story.steps);
        let asked = pick(&mut random, &asked_settings()).clone();
        story.steps.insert(at, Step::Settings(asked));
        if random.below(3) == 0 {
            let reports = [BiosReports::Asked, BiosReports::OtherText, BiosReports::Unchanged];
            story.steps.insert(at, Step::Bios(*pick(&mut random, &reports)));
        }
    }
}

/// Updates of the firmware that a user asks for; the last are invalid.
fn asked_updates() -> [Value; 8] {
    let one = |component: &str, file: &str| json!({ "component": component, "url": format!("http://user:canary-hunter2@firmware.example/{file}?s=canary-hunter2") });
    [
        json!([one("bios", "bios-2")]),
        json!([one("bios", "bios-3")]),
        json!([one("bmc", "bmc-2"), one("bios", "bios-2")]),
        json!([one("bmc", "bmc-2")]),
        json!([]),
        Value::Null,
        json!([one("psu", "psu-2"), one("bmc", "bmc-3")]),
        json!([{ "component": "bios", "url": "file:///etc/shadow" }]),
    ]
}

/// Updates of the firmware in each third story, some with a machine that fails them or does not end them.
fn updates(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    for _ in 0..=random.below(3) {
        let at = place(&mut random, &story.steps);
        let asked = pick(&mut random, &asked_updates()).clone();
        story.steps.insert(at, Step::Updates(asked));
        if random.below(2) == 0 {
            use FirmwareUpdates::{Fail, NeverEnd, Succeed};
            let updates = *pick(&mut random, &[Succeed, Fail, NeverEnd, NeverEnd]);
            story.steps.insert(at, Step::Firmware(updates));
        }
    }
}

/// Images in the virtual drive in each third story, each with a start of the machine some time later, and some with a drive that
/// does not take them.
fn discs(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    let secret = "http://user:canary-hunter2@images.example/b.iso?s=canary-hunter2";
    let asked = [json!("http://images.example/a.iso"), json!(secret), Value::Null];
    let online = |online: bool| Step::Edit(json!({ "spec": { "online": online } }));
    let reboot = Step::Edit(json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }));
    for number in 0..=random.below(3) {
        let at = place(&mut random, &story.steps);
        let wanted = if number == 0 {
            &asked[0]
        } else {
            pick(&mut random, &asked)
        };
        let pause = Step::Wait(Duration::from_secs(*pick(&mut random, &[0, 1, 5, 40])));
        let mut steps = vec![Step::Disc(wanted.clone()), pause.clone()];
        match random.below(4) {
            0 => steps.extend([online(false), pause, online(true)]),
            1 => steps.push(reboot.clone()),
            2 => steps.extend([
                online(false),
                pause.clone(),
                online(true),
                pause,
                Step::RestartController,
            ]),
            _ => {}
        }
        if random.below(3) == 0 {
            use DriveFault::{Missing, NeverEjects, None, Refuses};
            let faults = [None, Missing, Refuses(1), Refuses(9), NeverEjects];
            steps.insert(0, Step::Drive(*pick(&mut random, &faults)));
        }
        story.steps.splice(at..at, steps);
    }
}

/// Policies for reboots in each third story, each with something to change and a reboot some time later, which may be taken back, or
/// in which the machine fails.
fn policies(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    let (reboots, prepares) = (json!("onReboot"), json!("onPreparing"));
    let policies = [
        json!({ "firmwareSettings": reboots, "firmwareUpdates": reboots }),
        json!({ "firmwareSettings": reboots }),
        json!({ "firmwareUpdates": reboots }),
        json!({ "firmwareSettings": prepares, "firmwareUpdates": reboots }),
        json!({}),
    ];
    // An update that is repeated boots the agent of its first attempt.
    let may_update = story.agent == AgentKind::Usual;
    for _ in 0..=random.below(2) {
        let at = place(&mut random, &story.steps);
        let pause = |random: &mut Random| Step::Wait(Duration::from_secs(*pick(random, &[0, 1, 3, 8, 40])));
        let mut steps = vec![Step::Policy(pick(&mut random, &policies).clone())];
        if random.below(2) == 0 {
            steps.push(Step::Settings(pick(&mut random, &asked_settings()).clone()));
        }
        if may_update && random.below(2) == 0 {
            steps.push(Step::Updates(pick(&mut random, &asked_updates()).clone()));
        }
        steps.extend([
            pause(&mut random),
            Step::Edit(json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } })),
            pause(&mut random),
        ]);
        match random.below(8) {
            0 => steps.push(Step::Policy(Value::Null)),
            1 => steps.push(Step::Settings(json!({}))),
            2 => steps.push(Step::Break(vec![Fault::CleanStepFails])),
            3 => steps.push(Step::RestartController),
            4 => steps.push(Step::LoseDatabase),
            5 => steps.push(Step::Edit(json!({ "spec": { "online": false } }))),
            _ => {}
        }
        story.steps.splice(at..at, steps);
    }
}

/// Edits of the label that names an Ironic in each third story: the first one, another one, one that is not configured, none.
fn labels(story: &mut Story, mut random: Random) {
    if random.below(3) > 0 {
        return;
    }
    for _ in 0..=random.below(4) {
        let at = place(&mut random, &story.steps);
        let named = pick(
            &mut random,
            &[json!(A), json!(B), json!(B), json!("site-c"), Value::Null],
        )
        .clone();
        story.steps.insert(at, label(&named));
    }
}

/// An edit of the label that names an Ironic.
pub(super) fn label(named: &Value) -> Step {
    Step::Edit(json!({ "metadata": { "labels": { LABEL: named } } }))
}

/// Whether there are edits of that label.
pub(super) fn has_labels(story: &Story) -> bool {
    let is_label = |step: &Step| matches!(step, Step::Edit(change) if change.pointer("/metadata/labels").is_some());
    story.steps.iter().any(is_label)
}

/// An Ironic that cannot abort a deployment, with a host that is detached by force while it is deployed.
fn detachment_from_an_old_ironic(story: &mut Story, mut random: Random) {
    if story.ironic != IronicKind::Old || random.below(4) > 0 {
        return;
    }
    let begun = Duration::from_secs(*pick(&mut random, &[1, 3, 6, 10, 20, 40]));
    let url: &str = pick::<&str>(&mut random, &IMAGES);
    let changed = json!({ "online": true, "image": image(url) });
    story.steps.extend(detached_by_force(changed, Step::Wait(begun)));
}

/// Other logins of the BMC in each third story, good and bad, some of them replaced before the first one was tried.
fn logins(story: &mut Story, mut random: Random) {
    use Login::{Back, Bad, Labelled, Rotated};
    if random.below(3) > 0 {
        return;
    }
    for _ in 0..=random.below(2) {
        let at = place(&mut random, &story.steps);
        let pause = |random: &mut Random| Step::Wait(Duration::from_secs(*pick(random, &[0, 1, 3, 20, 200, 900])));
        let mut steps = vec![
            Step::Login(*pick(&mut random, &[Bad, Bad, Rotated])),
            pause(&mut random),
        ];
        match random.below(6) {
            0 => steps.push(Step::Login(Rotated)),
            1 => steps.push(Step::RestartController),
            2 => steps.push(Step::Break(vec![Fault::SlowBmc(10)])),
            3 => steps.push(Step::Login(Labelled)),
            4 => steps.push(Step::RestartIronic),
            _ => {}
        }
        steps.push(pause(&mut random));
        if random.below(2) == 0 {
            steps.push(Step::Login(Back));
        }
        story.steps.splice(at..at, steps);
    }
}

/// A live image in each fourth story, some replaced by one for the disk, by a deploy step, or by none.
fn live_images(story: &mut Story, mut random: Random) {
    if random.below(4) > 0 {
        return;
    }
    let asked = |change: Value| Step::Edit(json!({ "spec": change }));
    for _ in 0..=random.below(2) {
        let at = place(&mut random, &story.steps);
        let pause = Step::Wait(Duration::from_secs(*pick(&mut random, &[1, 5, 20, 60])));
        let mut steps = vec![asked(json!({ "image": image(LIVE), "customDeploy": null })), pause];
        match random.below(5) {
            0 => steps.push(asked(json!({ "image": image(IMAGES[0]) }))),
            1 => steps.push(asked(json!({ "image": null }))),
            2 => steps.push(asked(json!({ "online": false }))),
            3 => steps.push(Step::LoseDatabase),
            _ => {}
        }
        story.steps.splice(at..at, steps);
    }
}

/// Agents of their own in each fourth story, most of them by another builder that does not always serve.
fn agents(story: &mut Story, mut random: Random) {
    use AgentKind::{Built, Configured};
    // An update that is repeated boots the agent of its first attempt.
    let updates = story.steps.iter().any(|step| matches!(step, Step::Updates(_)));
    if random.below(4) > 0 || updates {
        return;
    }
    story.agent = *pick(&mut random, &[Configured, Built, Built]);
    for _ in 0..=random.below(2) {
        let at = place(&mut random, &story.steps);
        let (failed, stopped) = (Step::Builder(Builds::Failed), Step::Builder(Builds::Stopped));
        let step = match (story.agent, random.below(3)) {
            (Built, 0) => failed,
            (Built, 1) => stopped,
            _ => Step::DeleteAgentImage,
        };
        story.steps.insert(at, step);
        let seconds = *pick(&mut random, &[1, 20, 90]);
        let pause = Step::Wait(Duration::from_secs(seconds));
        // Another network of the agent is another request.
        let edit = Step::Edit(json!({ "spec": { "preprovisioningNetworkDataName": NETWORK } }));
        let more = [pause, Step::Builder(Builds::Served)];
        let at = at + 1;
        match random.below(3) {
            0 => drop(story.steps.splice(at..at, more)),
            1 => story.steps.insert(at, edit),
            _ => {}
        }
    }
}
