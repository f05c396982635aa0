//! The life cycle of a node: enrol, manage, inspect, clean, available, deploy, active, rebuild, undeploy, clean,
//! available, delete. After each phase the inventory or the disks are compared with the order.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_sim_bmc::{identity::Number, profile::Profile};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    Session,
    compare::differences,
    level::{Bmc, Level, fake_node, inspection_data, redfish_inventory, redfish_node, redfish_part},
    node::Node,
    order::{ConfigDrive, Image, config_drive_image},
    poller::NodePoller,
    processes::Lab,
    times::Times,
};

/// The prefix of the names of this driver's nodes.
pub(crate) const NAME: &str = "life-";

/// The environment of all nodes of a run.
pub(crate) struct TestEnv<'a> {
    pub(crate) level: Level,
    pub(crate) session: &'a Session,
    pub(crate) profile: &'a Profile,
    /// labhosts, unless the machines are another simulator's.
    pub(crate) lab: Option<&'a Lab>,
    pub(crate) poller: &'a NodePoller<'a>,
}

/// One running life cycle.
struct LifeCycle<'a> {
    env: &'a TestEnv<'a>,
    number: Number,
    node: Node<'a>,
    times: Times,
    phase_started: Instant,
}

/// Runs one life cycle and deletes the node. After a failure the node stays for analysis.
pub(crate) async fn run(env: &TestEnv<'_>, number: Number, bmc: Option<&Bmc>) -> anyhow::Result<Times> {
    let name = format!("{NAME}{}-{number}", env.level.number());
    let body = match bmc {
        Some(bmc) => redfish_node(env.level, &name, bmc),
        None => fake_node(&name),
    };
    let phase_started = Instant::now();
    let node = Node::create(&env.session.ironic, &body, env.poller).await?;
    let mut cycle = LifeCycle {
        env,
        number,
        node,
        times: Times::default(),
        phase_started,
    };
    cycle.run(&name).await.with_context(|| format!("node {name}"))?;
    Ok(cycle.times)
}

impl LifeCycle<'_> {
    fn done(&mut self, phase: &'static str) {
        self.times.add(phase, self.phase_started.elapsed());
        self.phase_started = Instant::now();
    }

    async fn run(&mut self, name: &str) -> anyhow::Result<()> {
        if self.env.level != Level::Redfish {
            self.node.add_port(&self.number.mac(0)).await?;
        }
        self.done("enrol");
        self.transition("manage", json!({}), "manageable").await?;
        self.inspect().await?;
        self.clean().await?;
        self.transition("provide", json!({}), "available").await?;
        self.deploy(name).await?;
        self.rebuild(name).await?;
        self.transition("deleted", json!({}), "available").await?;
        if self.env.level == Level::Agent {
            self.lab()?.check_blank(self.number).await?;
        }
        self.node.delete().await?;
        self.done("remove");
        Ok(())
    }

    async fn transition(&mut self, verb: &'static str, body: Value, wanted: &str) -> anyhow::Result<()> {
        self.node.provision(verb, body).await?;
        self.node.wait(wanted).await.context(verb)?;
        self.done(verb);
        Ok(())
    }

    async fn inspect(&mut self) -> anyhow::Result<()> {
        self.node.provision("inspect", json!({})).await?;
        if self.env.level == Level::Fake {
            self.post_inspection_data().await?;
        }
        self.node.wait("manageable").await.context("inspect")?;
        self.done("inspect");
        let stored = self.node.get("/inventory").await?;
        let stored = stored.get("inventory").context("no inventory")?;
        let (expected, found) = match self.env.level {
            Level::Redfish => (redfish_inventory(self.env.profile, self.number), redfish_part(stored)),
            Level::Fake | Level::Agent => {
                let data = inspection_data(self.env.profile, self.number);
                (data.get("inventory").cloned().unwrap_or_default(), stored.clone())
            }
        };
        let differ = differences(&expected, &found);
        ensure!(differ.is_empty(), "the inventory is not the profile's: {differ:#?}");
        self.check_ports().await
    }

    /// Posts the ramdisk's data once; Ironic finds the node by its port when it is in `inspect wait`.
    async fn post_inspection_data(&self) -> anyhow::Result<()> {
        loop {
            let state = self.node.state().await?;
            match state.get("provision_state").and_then(Value::as_str) {
                Some("inspect wait") => break,
                Some("inspecting") => sleep(Duration::from_millis(50)).await,
                _ => bail!("expected inspect wait, got {state}"),
            }
        }
        let data = inspection_data(self.env.profile, self.number);
        self.env
            .session
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
            .env
            .profile
            .each_nic()
            .map(|(index, _)| self.number.mac(index))
            .collect();
        expected.sort_unstable();
        ensure!(
            found == expected,
            "ports {found:?} are not those of the profile {expected:?}"
        );
        Ok(())
    }

    async fn clean(&mut self) -> anyhow::Result<()> {
        let body = match self.env.level {
            Level::Fake => json!({ "clean_steps": [{ "interface": "vendor", "step": "log_passthrough" }] }),
            // A reserved step requires no ramdisk; without the interface Ironic 39 answers 500.
            Level::Redfish => {
                json!({ "clean_steps": [{ "interface": "power", "step": "reboot" }], "disable_ramdisk": true })
            }
            Level::Agent => json!({ "clean_steps": [{ "interface": "deploy", "step": "erase_devices_metadata" }] }),
        };
        self.transition("clean", body, "manageable").await
    }

    fn image(&self, offset: usize) -> anyhow::Result<&Image> {
        self.env.session.image(usize::from(self.number.0).wrapping_add(offset))
    }

    async fn deploy(&mut self, name: &str) -> anyhow::Result<()> {
        let image = self.image(0)?;
        let info = match self.env.level {
            Level::Redfish => image.live_iso(),
            Level::Fake | Level::Agent => image.raw.instance_info(),
        };
        let (drive, expected) = (ConfigDrive::of(name, &self.node.uuid), image.bytes.clone());
        self.node.set("/instance_info", info).await?;
        self.deploy_with("active", "deploy", drive.ordered()).await?;
        match self.env.level {
            Level::Fake => Ok(()),
            Level::Redfish => match self.env.lab {
                Some(lab) => lab.check_iso(self.number, &expected).await,
                None => Ok(()),
            },
            Level::Agent => {
                let lab = self.lab()?;
                lab.check_disk(self.number, &expected).await?;
                let files = [
                    ("meta_data.json", &drive.meta_data),
                    ("network_data.json", &drive.network_data),
                ];
                lab.check_config_drive(self.number, &drive.user_data, files).await
            }
        }
    }

    async fn rebuild(&mut self, name: &str) -> anyhow::Result<()> {
        // Ironic 39 answers 500 to the rebuild of a live ISO: only a first deployment sets one of its variables.
        if self.env.level == Level::Redfish {
            return Ok(());
        }
        let image = self.image(1)?;
        let (info, expected) = (image.qcow2.instance_info(), image.bytes.clone());
        let (drive, ordered) = config_drive_image(name)?;
        self.node.set("/instance_info", info).await?;
        self.deploy_with("rebuild", "rebuild", ordered).await?;
        if self.env.level == Level::Agent {
            self.lab()?.check_disk(self.number, &expected).await?;
            let found = self
                .lab()?
                .read(&format!("/machines/{}/disks/sda/config-drive", self.number))
                .await?;
            ensure!(found == drive, "the config-drive holds {} other bytes", found.len());
        }
        Ok(())
    }

    async fn deploy_with(&mut self, verb: &str, phase: &'static str, drive: Value) -> anyhow::Result<()> {
        self.node.provision(verb, json!({ "configdrive": drive })).await?;
        self.node.wait("active").await.context(phase)?;
        // A fake deployment does not change the fake power state.
        if self.env.level != Level::Fake {
            let state = self.node.state().await?;
            ensure!(
                state.get("power_state") == Some(&json!("power on")),
                "active and not powered on: {state}"
            );
        }
        self.done(phase);
        Ok(())
    }

    fn lab(&self) -> anyhow::Result<&Lab> {
        self.env.lab.context("labhosts does not run at this level")
    }
}
