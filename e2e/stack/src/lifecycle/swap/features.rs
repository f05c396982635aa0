//! Hosts at rest that use more of the host operator than an image, and addresses that no machine asked for.

use anyhow::Context;
use metal3_api::infrastructure::names::{
    HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_CAPM3, HOST_STATUS_ANNOTATION, NODE_REUSE_LABEL,
};
use serde_json::{Value, json};

use super::stage::{LIMIT, Stage, host};
use crate::lifecycle::install;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

pub(super) const LIVE: u64 = 31;
pub(super) const STEPS: u64 = 32;
pub(super) const DISC: u64 = 33;
pub(super) const SUBSCRIBED: u64 = 34;
/// Its BMC accepts power requests and does nothing.
pub(super) const STUCK: u64 = 35;
/// Its agent cannot collect the inventory.
pub(super) const UNINSPECTED: u64 = 36;
pub(super) const VOLUMES: u64 = 37;
/// Its disks are kept for the next machine of its owner.
pub(super) const KEPT: u64 = 39;
/// As a move of its cluster leaves it that was interrupted.
pub(super) const MOVED: u64 = 40;
/// Its BIOS has a setting that a user asked for.
pub(super) const SET: u64 = 41;
const ADDRESSES: &str = "spare";
const GROUP: &str = "ipam.metal3.io";

impl Stage<'_> {
    /// Deploys hosts without an image to write, when they are available.
    pub(super) fn deploy_others(&self) -> anyhow::Result<()> {
        let image = json!({"url": self.0.fleet.image_url()?, "format": "live-iso"});
        self.patch(LIVE, &json!({"spec": {"image": image}}))?;
        // A step of the simulated agent.
        self.patch(STEPS, &json!({"spec": {"customDeploy": {"method": "install_system"}}}))
    }

    /// Adds what running hosts have, and waits for it.
    pub(super) fn use_features(&self) -> anyhow::Result<()> {
        let disc = object(
            "metal3.io/v1alpha1",
            ("DataImage", &host(DISC)),
            &json!({"url": self.0.fleet.image_url()?}),
        );
        let events = object(
            "metal3.io/v1alpha1",
            ("BMCEventSubscription", &host(SUBSCRIBED)),
            &json!({"hostName": host(SUBSCRIBED), "destination": "https://192.0.2.1/events", "context": "rack 7"}),
        );
        install::create(self.0.stack, NAMESPACE, &[disc, events])?;
        self.until_set("a finalizer of the DataImage", "dataimages", "/metadata/finalizers/0")?;
        self.annotate(DISC, "reboot.metal3.io")?;
        self.until_set("an image in the drive", "dataimages", "/status/attachedImage/url")?;
        self.until_set(
            "a subscription in the BMC",
            "bmceventsubscriptions",
            "/status/subscriptionID",
        )
    }

    /// Claims of both kinds for addresses of a pool that no Cluster has.
    pub(super) fn claim_addresses(&self) -> anyhow::Result<()> {
        let pool = json!({"namePrefix": ADDRESSES, "prefix": 24, "gateway": "192.0.2.1",
            "pools": [{"start": "192.0.2.10", "end": "192.0.2.19"}]});
        let reference = json!({"apiGroup": GROUP, "kind": "IPPool", "name": ADDRESSES});
        let objects = [
            object("ipam.metal3.io/v1alpha1", ("IPPool", ADDRESSES), &pool),
            object(
                "ipam.metal3.io/v1alpha1",
                ("IPClaim", "first"),
                &json!({"pool": {"name": ADDRESSES}}),
            ),
            object(
                "ipam.cluster.x-k8s.io/v1beta1",
                ("IPAddressClaim", "second"),
                &json!({"poolRef": reference}),
            ),
        ];
        install::create(self.0.stack, NAMESPACE, &objects)?;
        self.until_set("an address", "ipclaims.ipam.metal3.io", "/status/address/name")?;
        let claims = "ipaddressclaims.ipam.cluster.x-k8s.io";
        self.until_set("an address of Cluster API", claims, "/status/addressRef/name")
    }

    /// Asks for a mirror of two disks, which the agent makes in a cleaning.
    pub(super) fn volume(&self, number: u64, size: u32) -> anyhow::Result<()> {
        let disks = [json!({"deviceName": "/dev/sda"}), json!({"deviceName": "/dev/sdb"})];
        let volume = json!({"level": "1", "sizeGibibytes": size, "physicalDisks": disks});
        self.patch(number, &json!({"spec": {"raid": {"softwareRAIDVolumes": [volume]}}}))
    }

    /// Waits until the host has recorded that volume.
    pub(super) fn has_volume(&self, number: u64, size: u32) -> anyhow::Result<()> {
        until(
            LIMIT,
            &format!("{} to have a volume of {size} GiB", host(number)),
            || {
                let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
                let mut found = hosts.iter().filter(|one| name(one) == host(number));
                Ok(found.any(|one| made(one, size)).then_some(()))
            },
        )
    }

    /// Asks for a BIOS setting, which a cleaning applies. The Go manager creates the object when it has inspected the host.
    pub(super) fn tune(&self, number: u64, turbo: &str) -> anyhow::Result<()> {
        let resource = "hostfirmwaresettings.metal3.io";
        until(LIMIT, &format!("the settings of {}", host(number)), || {
            let all = list(self.0.stack, NAMESPACE, resource)?;
            Ok(all.iter().any(|one| name(one) == host(number)).then_some(()))
        })?;
        let patch = format!("--patch={}", json!({"spec": {"settings": {"ProcTurboMode": turbo}}}));
        let args = [
            "--namespace",
            NAMESPACE,
            "patch",
            resource,
            &host(number),
            "--type=merge",
            &patch,
        ];
        self.0.stack.kubectl(&args).map(drop)
    }

    /// Waits until the machine has that setting and its host is available.
    pub(super) fn is_tuned(&self, number: u64, turbo: &str) -> anyhow::Result<()> {
        self.has_setting(number, turbo, |host| {
            host["status"]["provisioning"]["state"] == "available"
        })
    }

    /// Waits until the machine has that setting and its host is as this says.
    pub(super) fn has_setting(
        &self,
        number: u64,
        turbo: &str,
        is_ready: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<()> {
        until(LIMIT, &format!("{} to have the setting {turbo}", host(number)), || {
            let machines = self.0.fleet.machine_states(self.0.stack)?;
            let mut machines = machines.iter().filter(|machine| machine["number"] == number);
            let has = machines.any(|machine| machine["settings"]["ProcTurboMode"] == turbo);
            let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
            let mut hosts = hosts.iter().filter(|one| name(one) == host(number));
            Ok((has && hosts.any(&is_ready)).then_some(()))
        })
    }

    /// Keeps a free host for the machines of an owner that has none now.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        self.patch(KEPT, &json!({"metadata": {"labels": {NODE_REUSE_LABEL: "md-others"}}}))
    }

    /// Pauses a host and writes its status into its annotations, as the machines' controller does before a move.
    pub(super) fn pause_in_move(&self) -> anyhow::Result<()> {
        let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
        let found = hosts.iter().find(|one| name(one) == host(MOVED));
        let status = found.context("the host of the move is gone")?["status"].to_string();
        let annotations = json!({HOST_STATUS_ANNOTATION: status, HOST_PAUSED_ANNOTATION: HOST_PAUSED_BY_CAPM3});
        self.patch(MOVED, &json!({"metadata": {"annotations": annotations}}))
    }

    /// Makes two hosts fail that fail for ever.
    pub(super) fn break_machines(&self) -> anyhow::Result<()> {
        self.fault(UNINSPECTED, "inspection-error")?;
        self.create(UNINSPECTED, |_| {})?;
        self.fault(STUCK, "power-stuck")?;
        self.patch(STUCK, &json!({"spec": {"online": false}}))?;
        for (number, error) in [(UNINSPECTED, "inspection error"), (STUCK, "power management error")] {
            until(LIMIT, &format!("{} to have a {error}", host(number)), || {
                let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
                let mut found = hosts.iter().filter(|one| name(one) == host(number));
                Ok(found.any(|one| one["status"]["errorType"] == error).then_some(()))
            })?;
        }
        Ok(())
    }

    fn fault(&self, number: u64, fault: &str) -> anyhow::Result<()> {
        let number = u32::try_from(number)?;
        self.0.fleet.break_machine(self.0.stack, number, &[fault.into()])
    }

    /// Waits until each object of a resource has the member.
    fn until_set(&self, what: &str, resource: &str, path: &str) -> anyhow::Result<()> {
        until(LIMIT, what, || {
            let all = list(self.0.stack, NAMESPACE, resource)?;
            let is_set = |one: &Value| one.pointer(path).is_some_and(|value| *value != "");
            Ok((!all.is_empty() && all.iter().all(is_set)).then_some(()))
        })
    }
}

fn made(host: &Value, size: u32) -> bool {
    let provisioning = &host["status"]["provisioning"];
    provisioning["state"] == "available" && provisioning["raid"]["softwareRAIDVolumes"][0]["sizeGibibytes"] == size
}

pub(super) fn object(version: &str, (kind, name): (&str, &str), spec: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}
