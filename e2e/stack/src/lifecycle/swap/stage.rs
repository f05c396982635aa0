//! The hosts of the suite: the states that a Go manager can leave.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context;
use metal3_api::infrastructure::conversion::{Version, convert};
use serde_json::{Value, json};

use super::features::{DISC, KEPT, LIVE, MOVED, SET, STEPS, STUCK, SUBSCRIBED, UNINSPECTED, VOLUMES};
use super::products::Family;
use super::release::GoRelease;
use super::work::{CUT, FLASHED, InFlight, PAIR, REBOOTED, REBUILT, RETUNED, SERVICED, SWITCHED, UNSERVICED, UPDATED};
use crate::claims::stack::Stack;
use crate::lifecycle::cluster::LONG;
use crate::lifecycle::env::TestEnv;
use crate::lifecycle::fleet::Fleet;
use crate::lifecycle::{install, workers};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::running;
use crate::wait::until;

/// The slow inspection of all machines, on a machine with other work.
pub(super) const LIMIT: Duration = Duration::from_secs(1500);
pub(super) const MACHINES: usize = 47;
/// Machines that the cluster may use: those of the label.
pub(super) const OF_CLUSTER: [u64; 5] = [1, 2, 3, 4, 5];
/// Machines that run what the suite does not simulate.
pub(super) const PROVISIONED: [u64; 16] = [
    7, 9, 10, 11, 17, 18, 22, 24, DISC, SUBSCRIBED, STUCK, MOVED, SERVICED, FLASHED, UNSERVICED, CUT,
];
/// The same without an image on the disk.
const DEPLOYED: [u64; 2] = [LIVE, STEPS];
/// Its consumer is a HostClaim, a kind that only newer Go managers serve; otherwise it is available.
const CLAIMED: u64 = 6;
const CLAIM: &str = "claim";
const EXTERNAL: u64 = 8;
const DETACHED: u64 = 9;
const PAUSED: u64 = 10;
const OFF: u64 = 11;
/// The login of its BMC is wrong.
const UNREGISTERED: u64 = 12;
/// Its image has another checksum.
const UNPROVISIONED: u64 = 13;
const AVAILABLE: u64 = 14;
const AVAILABLE_OFF: u64 = 15;
/// It has no BMC.
const UNMANAGED: u64 = 23;
pub(super) const REBOOT: &str = "reboot.metal3.io";

/// Milliseconds for a boot and for a step of the agent, so that a switch meets work in flight.
pub(super) const BOOT_DELAY: u64 = 5000;
pub(super) const STEP_DELAY: u64 = 2500;

/// The states at rest, for the report.
pub(super) const AT_REST: &[(u64, &str)] = &[
    (
        CLAIMED,
        "available, taken by a HostClaim that no policy permits any more",
    ),
    (7, "provisioned"),
    (EXTERNAL, "externally provisioned"),
    (DETACHED, "provisioned, detached"),
    (PAUSED, "provisioned, paused by annotation"),
    (OFF, "provisioned, powered off"),
    (AVAILABLE, "available"),
    (AVAILABLE_OFF, "available, to be off"),
    (UNMANAGED, "unmanaged"),
    (LIVE, "provisioned with a live ISO"),
    (STEPS, "provisioned by deploy steps"),
    (VOLUMES, "available, with RAID volumes"),
    (DISC, "provisioned, with a DataImage"),
    (SUBSCRIBED, "provisioned, with a BMCEventSubscription"),
    (SET, "available, with BIOS settings"),
    (KEPT, "available, kept for the machines of another owner"),
    (MOVED, "provisioned, paused in the middle of a move"),
    (
        UNSERVICED,
        "provisioned, with a service that failed before the way back",
    ),
    (CUT, "provisioned, with updates at a reboot"),
];
/// Errors that are retried by either manager.
pub(super) const FAILED: &[(u64, &str)] = &[
    (UNREGISTERED, "registration error: wrong login"),
    (UNPROVISIONED, "provisioning error: wrong checksum"),
    (STUCK, "power management error: the BMC does nothing"),
    (UNINSPECTED, "inspection error: no inventory"),
];

/// What preflight refuses to switch with. The definitions of an older release are reported once, for the first.
pub(super) fn stops(to: Family, release: &GoRelease) -> BTreeSet<String> {
    let stop = match to {
        Family::Ours => None,
        Family::Go => {
            let first = release.older().first();
            first.map(|name| format!("CustomResourceDefinition {name}"))
        }
    };
    stop.into_iter().collect()
}

pub(super) fn host(number: u64) -> String {
    install::host(&number.into())
}

/// Machines whose disks hold no cluster's system.
pub(super) fn without_a_cluster() -> impl Iterator<Item = u64> {
    (1..=u64::try_from(MACHINES).unwrap_or_default()).filter(|number| !OF_CLUSTER.contains(number))
}

fn new_host(fleet: &Fleet, number: u64, change: impl FnOnce(&mut [Value; 2])) -> anyhow::Result<[Value; 2]> {
    let machine = fleet.machines.iter().find(|machine| machine["number"] == number);
    let machine = machine.with_context(|| format!("there is no machine {number}"))?;
    let mut items = install::of_machine(fleet, machine)?;
    let role = match number {
        CLAIMED => CLAIM,
        // Machines of the cluster may use it by its labels, but for the one that keeps it.
        KEPT => "cluster",
        _ if OF_CLUSTER.contains(&number) => "cluster",
        _ => "manual",
    };
    items[1]["metadata"]["labels"] = json!({"role": role});
    change(&mut items);
    Ok(items)
}

pub(super) struct Stage<'a>(pub(super) &'a TestEnv<'a>, pub(super) &'a GoRelease);

impl Stage<'_> {
    fn stack(&self) -> &Stack {
        self.0.stack
    }

    pub(super) fn create(&self, number: u64, change: impl FnOnce(&mut [Value; 2])) -> anyhow::Result<()> {
        install::create(self.stack(), NAMESPACE, &new_host(self.0.fleet, number, change)?)
    }

    pub(super) fn patch(&self, number: u64, patch: &Value) -> anyhow::Result<()> {
        let args = ["--namespace", NAMESPACE, "patch", "bmh", &host(number), "--type=merge"];
        let patch = format!("--patch={patch}");
        self.stack().kubectl(&[&args[..], &[&patch]].concat()).map(drop)
    }

    pub(super) fn annotate(&self, number: u64, annotation: &str) -> anyhow::Result<()> {
        self.patch(number, &json!({"metadata": {"annotations": {annotation: ""}}}))
    }

    /// The members of an image to provision.
    fn image(&self, checksum: Option<&str>) -> anyhow::Result<Value> {
        let url = self.0.fleet.image_url()?;
        let checksum = checksum.map_or_else(|| format!("{url}.sha256"), str::to_owned);
        let image = json!({"url": url, "checksum": checksum, "checksumType": "sha256", "format": "raw"});
        Ok(json!({"image": image, "userData": {"name": "plain", "namespace": NAMESPACE}}))
    }

    fn provision(&self, number: u64, checksum: Option<&str>) -> anyhow::Result<()> {
        self.patch(number, &json!({"spec": self.image(checksum)?}))
    }

    /// Claims a host through the kind of the host operator, which takes it and does no more in this release. The policy goes afterwards:
    /// this program would give the host its image.
    fn claim(&self) -> anyhow::Result<()> {
        let mut spec = self.image(None)?;
        spec["poweredOn"] = true.into();
        spec["hostSelector"] = json!({"matchLabels": {"role": CLAIM}});
        let object = |kind: &str, spec: Value| json!({"apiVersion": "metal3.io/v1alpha1", "kind": kind, "metadata": {"name": CLAIM}, "spec": spec});
        let policy = object(
            "HostDeployPolicy",
            json!({"hostClaimNamespaces": {"names": [NAMESPACE]}}),
        );
        install::create(self.stack(), NAMESPACE, &[policy, object("HostClaim", spec)])?;
        until(LIMIT, "a host to be taken by the HostClaim", || {
            let hosts = list(self.stack(), NAMESPACE, "baremetalhosts")?;
            let mut hosts = hosts.iter().filter(|one| name(one) == host(CLAIMED));
            Ok(hosts
                .any(|one| one["spec"]["consumerRef"]["name"] == CLAIM)
                .then_some(()))
        })?;
        let policy = ["delete", "--namespace", NAMESPACE, "hostdeploypolicy", CLAIM];
        self.stack().kubectl(&policy).map(drop)
    }

    /// Waits until each of these hosts has its state, and fails with those that have another.
    fn reached(&self, what: &str, wanted: &BTreeMap<String, Option<&str>>) -> anyhow::Result<()> {
        let mut others = String::new();
        until(LIMIT, what, || {
            let states = states(self.stack())?;
            let other = |(name, state): &(&String, &Option<&str>)| states.get(*name).map(String::as_str) != **state;
            let open: Vec<String> = wanted
                .iter()
                .filter(other)
                .map(|(name, _)| format!("{name}: {}", states.get(name).map_or("gone", String::as_str)))
                .collect();
            others = open.join(", ");
            Ok(open.is_empty().then_some(()))
        })
        .with_context(|| others)
    }

    fn all(&self, what: &str, state: &str, numbers: &[u64]) -> anyhow::Result<()> {
        let wanted = numbers.iter().map(|number| (host(*number), Some(state))).collect();
        self.reached(what, &wanted)
    }

    /// Brings all hosts and the cluster to rest.
    pub(super) fn set(&self) -> anyhow::Result<()> {
        let stack = self.stack();
        stack.create_namespace(NAMESPACE)?.keep();
        let plain = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain"},
            "stringData": {"userData": "#cloud-config\n"}});
        let unmanaged = json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": host(UNMANAGED)}, "spec": {"online": true}});
        install::create(stack, NAMESPACE, &[plain, unmanaged])?;
        let others = [
            CLAIMED,
            UNPROVISIONED,
            AVAILABLE,
            AVAILABLE_OFF,
            PAIR[0],
            VOLUMES,
            REBUILT,
            KEPT,
            SET,
            RETUNED,
            UPDATED,
        ];
        let inspected = [&OF_CLUSTER[..], &PROVISIONED, &DEPLOYED, &others].concat();
        for number in &inspected {
            self.create(*number, |_| {})?;
        }
        self.create(EXTERNAL, |items| {
            items[1]["spec"]["externallyProvisioned"] = true.into()
        })?;
        self.create(UNREGISTERED, |items| {
            items[0]["stringData"]["password"] = "wrong".into()
        })?;
        self.all("hosts to be available", "available", &inspected)?;
        self.keep()?;
        install::cluster_with(self.0, |objects| {
            use_labelled_hosts(objects)?;
            self.in_its_version(objects)
        })?;
        for number in PROVISIONED {
            self.provision(number, None)?;
        }
        self.deploy_others()?;
        self.prepare()?;
        self.provision(UNPROVISIONED, Some(&"0".repeat(64)))?;
        self.patch(AVAILABLE_OFF, &json!({"spec": {"online": false}}))?;
        if self.1.serves_claims {
            self.claim()?;
        }
        self.claim_addresses()?;
        let provisioned = [&PROVISIONED[..], &DEPLOYED].concat();
        self.all("hosts to be provisioned", "provisioned", &provisioned)?;
        self.are_prepared()?;
        self.use_features()?;
        self.allow_services()?;
        self.pause_in_move()?;
        self.break_machines()?;
        self.annotate(DETACHED, "baremetalhost.metal3.io/detached")?;
        self.annotate(PAUSED, "baremetalhost.metal3.io/paused")?;
        self.patch(OFF, &json!({"spec": {"online": false}}))?;
        running(stack, 3)?;
        self.off(&[OFF, AVAILABLE_OFF])
    }

    /// Asks for volumes and for BIOS settings.
    fn prepare(&self) -> anyhow::Result<()> {
        for number in [VOLUMES, REBUILT] {
            self.volume(number, 20)?;
        }
        for number in [SET, RETUNED] {
            self.tune(number, "Disabled")?;
        }
        Ok(())
    }

    fn are_prepared(&self) -> anyhow::Result<()> {
        for number in [VOLUMES, REBUILT] {
            self.has_volume(number, 20)?;
        }
        for number in [SET, RETUNED] {
            self.is_tuned(number, "Disabled")?;
        }
        Ok(())
    }

    /// The objects as a user of an older release writes them.
    pub(super) fn in_its_version(&self, objects: &mut [Value]) -> anyhow::Result<()> {
        if self.1.older().is_empty() {
            return Ok(());
        }
        let of_machines = |object: &&mut Value| Version::from_api_version(object["apiVersion"].as_str()?).map(drop);
        for object in objects.iter_mut().filter(|object| of_machines(object).is_some()) {
            *object = convert(object, Version::V1Beta1)?;
            self.1.remove_newer_members(object);
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("annotations");
            }
        }
        Ok(())
    }

    fn off(&self, numbers: &[u64]) -> anyhow::Result<()> {
        until(LIMIT, "hosts to be off", || {
            let hosts = list(self.stack(), NAMESPACE, "baremetalhosts")?;
            let is_off = |number: &u64| {
                let mut hosts = hosts.iter().filter(|one| name(one) == host(*number));
                hosts.any(|one| one["status"]["poweredOn"] == false)
            };
            Ok(numbers.iter().all(is_off).then_some(()))
        })
    }

    /// Orders the work of a switch, so that all of it is in flight at the end.
    pub(super) fn begin(&self, work: &InFlight) -> anyhow::Result<()> {
        self.create(work.inspected, |_| {})?;
        self.all("a new host to be inspected", "inspecting", &[work.inspected])?;
        self.provision(work.provisioned, None)?;
        workers::scale(self.stack(), work.workers)?;
        self.all("a host to be deployed", "provisioning", &[work.provisioned])?;
        self.patch(work.deprovisioned, &json!({"spec": {"image": null}}))?;
        let deleted = host(work.deleted);
        let args = ["--namespace", NAMESPACE, "delete", "bmh", &deleted, "--wait=false"];
        self.stack().kubectl(&args)?;
        self.all("a host to be cleaned", "deprovisioning", &[work.deprovisioned])?;
        self.create(work.registered, |_| {})
    }

    /// Asks for what takes less time than the prediction, so that it is in flight too.
    pub(super) fn ask(&self, work: &mut InFlight) -> anyhow::Result<()> {
        self.ask_for_services(work)?;
        work.remediated = Some(self.begin_remediation()?);
        // One after the other: settings take less time than volumes, and may be there when the switch begins.
        self.tune(RETUNED, work.turbo)?;
        self.all("a host to get its settings", "preparing", &[RETUNED])?;
        self.update(UPDATED, &[("bios", &work.firmware)])?;
        self.all("a host to get its firmware", "preparing", &[UPDATED])?;
        if work.is_paused {
            self.pause_cluster()?;
        }
        // At the same time: a service takes half a minute.
        self.begin_services()?;
        self.volume(REBUILT, work.volume)?;
        self.are_in_service()?;
        self.all("a host to get its volume", "preparing", &[REBUILT])?;
        self.annotate(REBOOTED, REBOOT)?;
        self.patch(SWITCHED, &json!({"spec": {"online": work.online}}))
    }

    /// Waits until the work has ended, and running machines have done what was asked.
    pub(super) fn ended(&self, work: &InFlight) -> anyhow::Result<()> {
        if work.is_paused {
            self.resume_cluster()?;
        }
        self.reached("the work in flight to end", &work.ends())?;
        self.has_volume(REBUILT, work.volume)?;
        self.is_tuned(RETUNED, work.turbo)?;
        self.is_updated(&work.firmware)?;
        self.are_serviced(work)?;
        self.end_remediation()?;
        until(LONG, "running machines to do what was asked", || {
            let hosts = list(self.stack(), NAMESPACE, "baremetalhosts")?;
            let of = |number| hosts.iter().find(|one| name(one) == host(number));
            let is_rebooted = of(REBOOTED).is_some_and(|one| one["metadata"]["annotations"][REBOOT].is_null());
            let is_switched = of(SWITCHED).is_some_and(|one| one["status"]["poweredOn"] == work.online);
            Ok((is_rebooted && is_switched).then_some(()))
        })?;
        running(self.stack(), work.workers.saturating_add(1))
    }
}

/// Hosts with the label, so that those of other states stay as they are.
fn use_labelled_hosts(objects: &mut [Value]) -> anyhow::Result<()> {
    let templates = objects
        .iter_mut()
        .filter(|object| object["kind"] == "Metal3MachineTemplate");
    for template in templates {
        template["spec"]["template"]["spec"]["hostSelector"] = json!({"matchLabels": {"role": "cluster"}});
    }
    Ok(())
}

/// The state of each host.
pub(super) fn states(stack: &Stack) -> anyhow::Result<BTreeMap<String, String>> {
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    let state = |host: &Value| {
        let state = host["status"]["provisioning"]["state"].as_str();
        (name(host), state.unwrap_or_default().to_owned())
    };
    Ok(hosts.iter().map(state).collect())
}
