//! Takes whole answers of a real Ironic, and of what stands before one, for the client's tests to give them once more.
//!
//! What is written is an answer from its status line on, byte by byte; requests, and so logins, never are. What the client
//! makes of the answers of Ironic is claimed by the contract; of those that something between them spoils it is judged
//! here, as they are taken.
//!
//! Not taken here is `in-transition`, which takes a BMC that is slow at the right moment.

mod cut;
mod nginx;
mod wire;

use std::path::Path;

use anyhow::{Context as _, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::node::{NewNode, Order};
use metal3_ironic::calls::provision::{ConfigDrive, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::endpoint::Endpoint;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::{Client, Error};
use serde_json::{Value, json};

use crate::lab::{Lab, object, refused};
use cut::Cut;
use nginx::Nginx;
use wire::Line;

/// What the client speaks to an Ironic of our days.
const DIALECT: &str = "1.110";
/// So much of an answer passes before it is cut off: its head, and more than one record of TLS.
const CUT_AFTER: u64 = 24_000;
/// Nodes with so much in them that a list of them is longer than the client reads.
const HEAVY_NODES: usize = 10;
/// Bytes of each.
const HEAVY: usize = 5_500_000;
/// What is kept of a body that is too long to be kept.
const KEPT_OF_BODY: usize = 1_000;
/// More than Ironic takes as it is installed.
const HEAVY_FOR_IRONIC: usize = 1_200_000;
/// More than nginx takes as it is installed.
const HEAVY_DRIVE: usize = 2_000_000;

/// Where the answers come from, and where they go.
#[derive(Debug)]
pub struct Recorder<'a> {
    /// An Ironic of the release that the client is tried with.
    pub lab: &'a Lab,
    /// One that is older than what the client takes.
    pub older: &'a Lab,
    /// The program of a proxy.
    pub nginx: &'a Path,
    /// One file for each answer.
    pub folder: &'a Path,
}

impl Recorder<'_> {
    /// Takes them all.
    ///
    /// # Errors
    /// When one of them is not what it is taken for.
    pub async fn record(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.folder)?;
        self.refusals().await.context("refusals")?;
        self.versions().await.context("versions")?;
        self.nodes_at_work().await.context("nodes at work")?;
        self.certificate().await.context("the certificate")?;
        self.cut_off().await.context("an answer that is cut off")?;
        self.too_long().await.context("an answer that is too long")?;
        self.of_a_proxy().await.context("a proxy")
    }

    fn keep(&self, name: &str, status: u16, answer: &[u8]) -> anyhow::Result<()> {
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        ensure!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {line}");
        println!("{name}: {line}, {} bytes", answer.len());
        Ok(std::fs::write(self.folder.join(format!("{name}.http")), answer)?)
    }

    async fn refusals(&self) -> anyhow::Result<()> {
        let line = Line::to(self.lab)?;
        let missing = line.ask("GET", "/v1/nodes/n", DIALECT, None).await?;
        self.keep("not-found", 404, &missing)?;
        let stranger = Line::to(self.lab)?.with_password("not the password");
        let answer = stranger.ask("GET", "/v1/nodes/n", DIALECT, None).await?;
        self.keep("wrong-login", 401, &answer)?;
        let taken = self.lab.new_node();
        let uuid = self.lab.create(taken.clone()).await?;
        for (name, driver, status) in [("exists", "fake-hardware", 409), ("unknown-driver", "nope", 400)] {
            let node = json!({ "name": taken.name, "driver": driver });
            let answer = line.ask("POST", "/v1/nodes", DIALECT, Some(&node)).await?;
            self.keep(name, status, &answer)?;
        }
        let states = format!("/v1/nodes/{uuid}/states/provision");
        for (name, target, status) in [("wrong-state", "active", 400), ("accepted", "manage", 202)] {
            let order = json!({ "target": target });
            let answer = line.ask("PUT", &states, DIALECT, Some(&order)).await?;
            self.keep(name, status, &answer)?;
        }
        // Of an Ironic as it is installed, which takes less.
        let heavy = json!({ "extra": filler(HEAVY_FOR_IRONIC) });
        let answer = Line::to(self.older)?
            .ask("POST", "/v1/nodes", DIALECT, Some(&heavy))
            .await?;
        self.keep("body-too-large", 413, &answer)?;
        self.lab.reach(&uuid, &ProvisionState::Manageable).await?;
        self.lab.remove(&uuid).await
    }

    async fn versions(&self) -> anyhow::Result<()> {
        let line = Line::to(self.lab)?;
        for (name, version) in [("version-too-new", "1.200"), ("version-too-old", "1.0")] {
            let answer = line.ask("GET", "/v1/nodes/n", version, None).await?;
            self.keep(name, 406, &answer)?;
        }
        let older = Line::to(self.older)?;
        let answer = older.ask("GET", "/v1/nodes/n", DIALECT, None).await?;
        self.keep("ironic-too-old", 406, &answer)?;
        let call = calls::node::get(&NodeRef::Name("n".into()));
        judged("ironic-too-old", self.older.client.send(&call).await, "version")
    }

    async fn nodes_at_work(&self) -> anyhow::Result<()> {
        let uuid = self.lab.node().await?;
        self.lab
            .go(&uuid, Transition::Manage, &ProvisionState::Manageable)
            .await?;
        let on = calls::state::set_power(&NodeRef::from(&uuid), Power::On);
        self.lab.client.send(&on).await?;
        let patch = json!([{ "op": "add", "path": "/extra/a", "value": "b" }]);
        let path = format!("/v1/nodes/{uuid}");
        let answer = Line::to(self.lab)?.ask("PATCH", &path, DIALECT, Some(&patch)).await?;
        self.keep("locked", 409, &answer)
            .context("was Ironic started with recordings.conf as its EXTRA_CONF?")?;
        self.lab.remove(&uuid).await
    }

    /// A handshake is signed anew each time; what stays of it is the certificate.
    async fn certificate(&self) -> anyhow::Result<()> {
        let shown = Line::to(self.lab)?.certificate().await?;
        println!("certificate: {} bytes", shown.len());
        Ok(std::fs::write(self.folder.join("certificate.der"), shown)?)
    }

    async fn cut_off(&self) -> anyhow::Result<()> {
        let uuid = self.heavy().await?;
        let cut = Cut::before(Line::to(self.lab)?.address(), CUT_AFTER).await?;
        let call = calls::node::get(&NodeRef::from(&uuid));
        let client = self.client(&format!("https://{}", cut.address())).await?;
        judged("reset-in-body", client.send(&call).await, "unreachable")?;
        let line = Line::to(self.lab)?.at(cut.address());
        let (came, broken) = line.listen("GET", &format!("/v1/nodes/{uuid}"), DIALECT, None).await?;
        let broken = broken.context("the answer came whole")?;
        println!("reset-in-body: {broken}");
        self.keep("reset-in-body", 200, &came)?;
        self.lab.remove(&uuid).await
    }

    async fn too_long(&self) -> anyhow::Result<()> {
        let mut heavy = Vec::new();
        for _ in 0..HEAVY_NODES {
            heavy.push(self.heavy().await?);
        }
        let call = calls::node::list::<Node>(Order::Created, 1_000, None);
        judged("fifty-megabytes", self.lab.client.send(&call).await, "unexpected")?;
        let path = "/v1/nodes?detail=true&limit=1000";
        let answer = Line::to(self.lab)?.ask("GET", path, DIALECT, None).await?;
        ensure!(answer.len() > 50 << 20, "{} bytes", answer.len());
        let head = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .context("no head")?;
        let kept = answer.get(..head.saturating_add(KEPT_OF_BODY)).context("no body")?;
        self.keep("fifty-megabytes", 200, kept)?;
        for uuid in heavy {
            self.lab.remove(&uuid).await?;
        }
        Ok(())
    }

    /// A node with much in it.
    async fn heavy(&self) -> anyhow::Result<NodeUuid> {
        let more = object([("extra", filler(HEAVY))]);
        let new = NewNode {
            more,
            ..self.lab.new_node()
        };
        self.lab.create(new).await
    }

    async fn of_a_proxy(&self) -> anyhow::Result<()> {
        let nginx = Nginx::before_nobody(self.nginx).await?;
        let client = self.client(&format!("http://{}", nginx.address())).await?;
        let (node, line) = (NodeRef::Name("n".into()), Line::plain(nginx.address()));
        judged("proxy-502", client.send(&calls::node::get(&node)).await, "unexpected")?;
        let answer = line.ask("GET", "/v1/nodes/n", DIALECT, None).await?;
        self.keep("proxy-502", 502, &answer)?;
        let drive = object([("user_data", filler(HEAVY_DRIVE))]);
        let order = json!({ "target": "active", "configdrive": drive });
        let deploy = Transition::Deploy {
            config_drive: ConfigDrive(drive),
            steps: Vec::new(),
        };
        let call = calls::provision::request(&node, deploy)?;
        judged("proxy-413", client.send(&call).await, "invalid")?;
        let answer = line
            .ask("PUT", "/v1/nodes/n/states/provision", DIALECT, Some(&order))
            .await?;
        self.keep("proxy-413", 413, &answer)?;
        nginx.stop().await
    }

    /// A client of the same Ironic by another way.
    async fn client(&self, way: &str) -> anyhow::Result<Client> {
        let mut settings = self.lab.settings()?;
        settings.endpoint = Endpoint::parse(way)?;
        Ok(Client::new(settings, self.lab.clock.clone()).await?)
    }
}

/// Words of so many bytes.
fn filler(bytes: usize) -> Value {
    json!({ "filler": "metal ".repeat(bytes / 6) })
}

fn judged<T>(name: &str, answer: Result<T, Error>, category: &str) -> anyhow::Result<()> {
    let error = refused(answer, category).context(name.to_owned())?;
    println!("{name}: {category}: {error}");
    Ok(())
}
