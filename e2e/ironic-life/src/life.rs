//! A node's whole life: enrol, manage, inspect, clean, available, deploy, active, rebuild, delete, clean, available, gone.
//! After each phase that leaves something behind, what is there is compared with what was ordered.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_sim_bmc::{identity::Number, profile::Profile};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    compare::differences,
    ironic::Ironic,
    level::{Bmc, Level, fake_node, inspection_data, redfish_inventory, redfish_node, redfish_part},
    looks::Looks,
    node::Node,
    order::{Image, Parts, whole},
    processes::Lab,
    times::Times,
};

/// How the nodes of this driver are called.
const NAME: &str = "life-";

/// Removes what earlier runs left to be looked at; its machines are gone.
pub(crate) async fn sweep(ironic: &Ironic) -> anyhow::Result<()> {
    let listed = ironic.get("/v1/nodes?fields=uuid,name").await?;
    for node in listed.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("name").starts_with(NAME) {
            let path = format!("/v1/nodes/{}", field("uuid"));
            ironic
                .call(Method::PUT, &format!("{path}/maintenance"), Some(&json!({})))
                .await?;
            ironic.call(Method::DELETE, &path, None).await?;
        }
    }
    Ok(())
}

/// What every life of a run shares.
pub(crate) struct World<'a> {
    pub(crate) level: Level,
    pub(crate) ironic: &'a Ironic,
    pub(crate) profile: &'a Profile,
    pub(crate) images: &'a [Image],
    /// Our machines, where they are the machines.
    pub(crate) lab: Option<&'a Lab>,
    pub(crate) looks: &'a Looks<'a>,
}

/// One life being lived.
struct Life<'a> {
    world: &'a World<'a>,
    number: Number,
    node: Node<'a>,
    times: Times,
    lap: Instant,
}

/// Lives one life; the node is gone afterwards. On failure it stays, to be looked at.
pub(crate) async fn live(world: &World<'_>, number: Number, bmc: Option<&Bmc>) -> anyhow::Result<Times> {
    let name = format!("{NAME}{}-{number}", world.level.number());
    let body = match bmc {
        Some(bmc) => redfish_node(world.level, &name, bmc),
        None => fake_node(&name),
    };
    let lap = Instant::now();
    let node = Node::enrol(world.ironic, &body, world.looks).await?;
    let mut life = Life {
        world,
        number,
        node,
        times: Times::default(),
        lap,
    };
    life.live(&name).await.with_context(|| format!("node {name}"))?;
    Ok(life.times)
}

impl Life<'_> {
    fn done(&mut self, phase: &'static str) {
        self.times.add(phase, self.lap.elapsed());
        self.lap = Instant::now();
    }

    async fn live(&mut self, name: &str) -> anyhow::Result<()> {
        if self.world.level != Level::Redfish {
            self.node.add_port(&self.number.mac(0)).await?;
        }
        self.done("enrol");
        self.go("manage", json!({}), "manageable").await?;
        self.inspect().await?;
        self.clean().await?;
        self.go("provide", json!({}), "available").await?;
        self.deploy(name).await?;
        self.rebuild(name).await?;
        self.go("deleted", json!({}), "available").await?;
        self.check_blank().await?;
        self.node.delete().await?;
        self.done("remove");
        Ok(())
    }

    async fn go(&mut self, verb: &'static str, body: Value, wanted: &str) -> anyhow::Result<()> {
        self.node.ask(verb, body).await?;
        self.node.wait(wanted).await.context(verb)?;
        self.done(verb);
        Ok(())
    }

    async fn inspect(&mut self) -> anyhow::Result<()> {
        self.node.ask("inspect", json!({})).await?;
        if self.world.level == Level::Fake {
            self.post_inspection_data().await?;
        }
        self.node.wait("manageable").await.context("inspect")?;
        self.done("inspect");
        let stored = self.node.get("/inventory").await?;
        let stored = stored.get("inventory").context("no inventory")?;
        let (expected, found) = match self.world.level {
            Level::Redfish => (redfish_inventory(self.world.profile, self.number), redfish_part(stored)),
            Level::Fake | Level::Agent => {
                let data = inspection_data(self.world.profile, self.number);
                (data.get("inventory").cloned().unwrap_or_default(), stored.clone())
            }
        };
        let differ = differences(&expected, &found);
        ensure!(differ.is_empty(), "the inventory is not the profile's: {differ:#?}");
        self.check_ports().await
    }

    /// Plays the ramdisk once: the node is found by its port as soon as it waits.
    async fn post_inspection_data(&self) -> anyhow::Result<()> {
        loop {
            let state = self.node.state().await?;
            match state.get("provision_state").and_then(Value::as_str) {
                Some("inspect wait") => break,
                Some("inspecting") => sleep(Duration::from_millis(50)).await,
                _ => bail!("wanted inspect wait, got {state}"),
            }
        }
        let data = inspection_data(self.world.profile, self.number);
        self.world
            .ironic
            .call(Method::POST, "/v1/continue_inspection", Some(&data))
            .await
            .map(drop)
    }

    async fn check_ports(&self) -> anyhow::Result<()> {
        let ports = self.node.get("/ports").await?;
        let ports = ports.get("ports").and_then(Value::as_array).context("no ports")?;
        let mut found: Vec<_> = ports.iter().filter_map(|port| port.get("address")?.as_str()).collect();
        found.sort_unstable();
        let mut expected: Vec<_> = self
            .world
            .profile
            .each_nic()
            .map(|(index, _)| self.number.mac(index))
            .collect();
        expected.sort_unstable();
        ensure!(found == expected, "ports {found:?} are not the cards {expected:?}");
        Ok(())
    }

    async fn clean(&mut self) -> anyhow::Result<()> {
        let body = match self.world.level {
            Level::Fake => json!({ "clean_steps": [{ "interface": "vendor", "step": "log_passthrough" }] }),
            // A reserved step needs no ramdisk; without the interface Ironic 39 answers 500.
            Level::Redfish => {
                json!({ "clean_steps": [{ "interface": "power", "step": "reboot" }], "disable_ramdisk": true })
            }
            Level::Agent => json!({ "clean_steps": [{ "interface": "deploy", "step": "erase_devices_metadata" }] }),
        };
        self.go("clean", body, "manageable").await
    }

    fn image(&self, offset: usize) -> anyhow::Result<&Image> {
        let index = usize::from(self.number.0).wrapping_add(offset) % self.world.images.len().max(1);
        self.world.images.get(index).context("no image")
    }

    async fn deploy(&mut self, name: &str) -> anyhow::Result<()> {
        let image = self.image(0)?;
        let info = match self.world.level {
            Level::Redfish => image.live_iso(),
            Level::Fake | Level::Agent => image.raw.instance_info(),
        };
        let (parts, expected) = (Parts::of(name, &self.node.uuid), image.bytes.clone());
        self.node.set("/instance_info", info).await?;
        self.go_deploy("active", "deploy", parts.ordered()).await?;
        match self.world.level {
            Level::Fake => Ok(()),
            Level::Redfish => self.check_media(&expected).await,
            Level::Agent => {
                self.check_disk(&expected).await?;
                self.check_parts(&parts).await
            }
        }
    }

    async fn rebuild(&mut self, name: &str) -> anyhow::Result<()> {
        // Ironic 39 answers 500 to the rebuild of a live ISO: a variable that only a first deploy sets.
        if self.world.level == Level::Redfish {
            return Ok(());
        }
        let image = self.image(1)?;
        let (info, expected) = (image.qcow2.instance_info(), image.bytes.clone());
        let (drive, ordered) = whole(name)?;
        self.node.set("/instance_info", info).await?;
        self.go_deploy("rebuild", "rebuild", ordered).await?;
        if self.world.level == Level::Agent {
            self.check_disk(&expected).await?;
            let found = self
                .lab()?
                .read(&format!("/machines/{}/disks/sda/config-drive", self.number))
                .await?;
            ensure!(found == drive, "the config-drive holds {} other bytes", found.len());
        }
        Ok(())
    }

    async fn go_deploy(&mut self, verb: &str, phase: &'static str, drive: Value) -> anyhow::Result<()> {
        self.node.ask(verb, json!({ "configdrive": drive })).await?;
        self.node.wait("active").await.context(phase)?;
        // A fake deploy tells the fake power nothing.
        if self.world.level != Level::Fake {
            let state = self.node.state().await?;
            ensure!(
                state.get("power_state") == Some(&json!("power on")),
                "active and not on: {state}"
            );
        }
        self.done(phase);
        Ok(())
    }

    fn lab(&self) -> anyhow::Result<&Lab> {
        self.world.lab.context("this level has machines of ours")
    }

    async fn check_disk(&self, expected: &[u8]) -> anyhow::Result<()> {
        let (lab, number) = (self.lab()?, self.number);
        let found = lab.read(&format!("/machines/{number}/disks/sda")).await?;
        ensure!(
            found == expected,
            "sda holds {} bytes that are not the image's {}",
            found.len(),
            expected.len()
        );
        let machine = lab.view(&format!("/machines/{number}")).await?;
        let running = machine.get("running").cloned().unwrap_or_default();
        ensure!(
            running == json!({ "kind": "disk", "disk": "sda" }),
            "it does not run from its disk: {running}"
        );
        Ok(())
    }

    /// The ISO that Ironic built holds the parts as they were ordered.
    async fn check_parts(&self, parts: &Parts) -> anyhow::Result<()> {
        let base = format!("/machines/{}/disks/sda/config-drive/openstack/latest", self.number);
        let user_data = self.lab()?.read(&format!("{base}/user_data")).await?;
        ensure!(
            user_data == parts.user_data.as_bytes(),
            "user_data differs: {:?}",
            String::from_utf8_lossy(&user_data)
        );
        for (file, expected) in [
            ("meta_data.json", &parts.meta_data),
            ("network_data.json", &parts.network_data),
        ] {
            let differ = differences(expected, &self.lab()?.view(&format!("{base}/{file}")).await?);
            ensure!(differ.is_empty(), "{file} differs: {differ:#?}");
        }
        Ok(())
    }

    /// A live ISO is what the BMC was given, byte for byte.
    async fn check_media(&self, expected: &[u8]) -> anyhow::Result<()> {
        let Some(lab) = self.world.lab else { return Ok(()) };
        let machine = lab.view(&format!("/machines/{}", self.number)).await?;
        let running = machine.get("running").cloned().unwrap_or_default();
        let sha256 = crate::order::sha256(expected);
        let same = running.get("sha256").and_then(Value::as_str) == Some(&sha256);
        ensure!(same, "it runs {running} and not the ISO {sha256}");
        Ok(())
    }

    async fn check_blank(&self) -> anyhow::Result<()> {
        if self.world.level != Level::Agent {
            return Ok(());
        }
        let machine = self.lab()?.view(&format!("/machines/{}", self.number)).await?;
        let disks = machine.get("disks").and_then(Value::as_array).context("no disks")?;
        let blank =
            |disk: &Value| disk.get("written") == Some(&Value::Null) && disk.get("config_drive") == Some(&Value::Null);
        ensure!(disks.iter().all(blank), "something is left on the disks: {disks:?}");
        Ok(())
    }
}
