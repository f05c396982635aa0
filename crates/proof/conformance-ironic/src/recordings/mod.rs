//! Records responses of a real Ironic and of a proxy for the tests of the client.
//!
//! A recording has the bytes of a response from its status line; requests with their credentials are not recorded. Claims
//! cover how the client handles responses of Ironic; this module checks how it handles those of a proxy.
//!
//! `in-transition` is not recorded here, because it needs a slow BMC.

mod nginx;
mod raw;
mod truncate;

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

use crate::lab::{Lab, expect_error, object};
use nginx::Nginx;
use raw::RawClient;
use truncate::TruncatingProxy;

/// The microversion of the client.
const MICROVERSION: &str = "1.110";
/// The truncation limit: the response head and more than one TLS record.
const CUT_AFTER: u64 = 24_000;
/// The number of large nodes whose list exceeds the client's limit.
const LARGE_NODES: usize = 10;
/// Bytes of a large node.
const LARGE: usize = 5_500_000;
/// The recorded part of a long body.
const KEPT_OF_BODY: usize = 1_000;
/// More than the default limit of Ironic.
const LARGE_FOR_IRONIC: usize = 1_200_000;
/// More than the default limit of nginx.
const LARGE_DRIVE: usize = 2_000_000;

/// The sources and the target of recordings.
pub struct Recorder<'a> {
    /// An Ironic of the tested release.
    pub lab: &'a Lab,
    /// An Ironic that is too old for the client.
    pub older: &'a Lab,
    /// The nginx program.
    pub nginx: &'a Path,
    /// The target directory, one file for each response.
    pub folder: &'a Path,
}

impl Recorder<'_> {
    /// Records all responses.
    ///
    /// # Errors
    /// When a response is not the expected one.
    pub async fn record(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.folder)?;
        self.refusals().await.context("refusals")?;
        self.versions().await.context("versions")?;
        self.nodes_at_work().await.context("nodes at work")?;
        self.certificate().await.context("the certificate")?;
        self.cut_off().await.context("an answer that is cut off")?;
        self.too_long().await.context("an answer that is too long")?;
        self.proxy_errors().await.context("a proxy")
    }

    fn keep(&self, name: &str, status: u16, answer: &[u8]) -> anyhow::Result<()> {
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        ensure!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {line}");
        println!("{name}: {line}, {} bytes", answer.len());
        Ok(std::fs::write(self.folder.join(format!("{name}.http")), answer)?)
    }

    async fn refusals(&self) -> anyhow::Result<()> {
        let raw = RawClient::to(self.lab)?;
        let missing = raw.request("GET", "/v1/nodes/n", MICROVERSION, None).await?;
        self.keep("not-found", 404, &missing)?;
        let wrong_login = RawClient::to(self.lab)?.with_password("not the password");
        let answer = wrong_login.request("GET", "/v1/nodes/n", MICROVERSION, None).await?;
        self.keep("wrong-login", 401, &answer)?;
        let taken = self.lab.new_node();
        let uuid = self.lab.create(taken.clone()).await?;
        for (name, driver, status) in [("exists", "fake-hardware", 409), ("unknown-driver", "nope", 400)] {
            let node = json!({ "name": taken.name, "driver": driver });
            let answer = raw.request("POST", "/v1/nodes", MICROVERSION, Some(&node)).await?;
            self.keep(name, status, &answer)?;
        }
        let states = format!("/v1/nodes/{uuid}/states/provision");
        for (name, target, status) in [("wrong-state", "active", 400), ("accepted", "manage", 202)] {
            let body = json!({ "target": target });
            let answer = raw.request("PUT", &states, MICROVERSION, Some(&body)).await?;
            self.keep(name, status, &answer)?;
        }
        // This Ironic has the default limit.
        let large = json!({ "extra": filler(LARGE_FOR_IRONIC) });
        let answer = RawClient::to(self.older)?
            .request("POST", "/v1/nodes", MICROVERSION, Some(&large))
            .await?;
        self.keep("body-too-large", 413, &answer)?;
        self.lab.reach(&uuid, &ProvisionState::Manageable).await?;
        self.lab.remove(&uuid).await
    }

    async fn versions(&self) -> anyhow::Result<()> {
        let raw = RawClient::to(self.lab)?;
        for (name, version) in [("version-too-new", "1.200"), ("version-too-old", "1.0")] {
            let answer = raw.request("GET", "/v1/nodes/n", version, None).await?;
            self.keep(name, 406, &answer)?;
        }
        let older = RawClient::to(self.older)?;
        let answer = older.request("GET", "/v1/nodes/n", MICROVERSION, None).await?;
        self.keep("ironic-too-old", 406, &answer)?;
        let call = calls::node::get(&NodeRef::Name("n".into()));
        expect_client_error("ironic-too-old", self.older.client.send(&call).await, "version")
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
        let answer = RawClient::to(self.lab)?
            .request("PATCH", &path, MICROVERSION, Some(&patch))
            .await?;
        self.keep("locked", 409, &answer)
            .context("was Ironic started with recordings.conf as its EXTRA_CONF?")?;
        self.lab.remove(&uuid).await
    }

    /// Only the certificate of a TLS handshake is constant.
    async fn certificate(&self) -> anyhow::Result<()> {
        let certificate = RawClient::to(self.lab)?.certificate().await?;
        println!("certificate: {} bytes", certificate.len());
        Ok(std::fs::write(self.folder.join("certificate.der"), certificate)?)
    }

    async fn cut_off(&self) -> anyhow::Result<()> {
        let uuid = self.large_node().await?;
        let proxy = TruncatingProxy::start(RawClient::to(self.lab)?.address(), CUT_AFTER).await?;
        let call = calls::node::get(&NodeRef::from(&uuid));
        let client = self.client(&format!("https://{}", proxy.address())).await?;
        expect_client_error("reset-in-body", client.send(&call).await, "unreachable")?;
        let raw = RawClient::to(self.lab)?.at(proxy.address());
        let (received, error) = raw
            .exchange_bytes("GET", &format!("/v1/nodes/{uuid}"), MICROVERSION, None)
            .await?;
        let error = error.context("the response was not truncated")?;
        println!("reset-in-body: {error}");
        self.keep("reset-in-body", 200, &received)?;
        self.lab.remove(&uuid).await
    }

    async fn too_long(&self) -> anyhow::Result<()> {
        let mut large = Vec::new();
        for _ in 0..LARGE_NODES {
            large.push(self.large_node().await?);
        }
        let call = calls::node::list::<Node>(Order::Created, 1_000, None);
        expect_client_error("fifty-megabytes", self.lab.client.send(&call).await, "unexpected")?;
        let path = "/v1/nodes?detail=true&limit=1000";
        let answer = RawClient::to(self.lab)?
            .request("GET", path, MICROVERSION, None)
            .await?;
        ensure!(answer.len() > 50 << 20, "{} bytes", answer.len());
        let head = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .context("no head")?;
        let kept = answer.get(..head.saturating_add(KEPT_OF_BODY)).context("no body")?;
        self.keep("fifty-megabytes", 200, kept)?;
        for uuid in large {
            self.lab.remove(&uuid).await?;
        }
        Ok(())
    }

    /// Creates a large node.
    async fn large_node(&self) -> anyhow::Result<NodeUuid> {
        let more = object([("extra", filler(LARGE))]);
        let new = NewNode {
            more,
            ..self.lab.new_node()
        };
        self.lab.create(new).await
    }

    async fn proxy_errors(&self) -> anyhow::Result<()> {
        let nginx = Nginx::without_upstream(self.nginx).await?;
        let client = self.client(&format!("http://{}", nginx.address())).await?;
        let (node, raw) = (NodeRef::Name("n".into()), RawClient::plain(nginx.address()));
        expect_client_error("proxy-502", client.send(&calls::node::get(&node)).await, "unexpected")?;
        let answer = raw.request("GET", "/v1/nodes/n", MICROVERSION, None).await?;
        self.keep("proxy-502", 502, &answer)?;
        let drive = object([("user_data", filler(LARGE_DRIVE))]);
        let body = json!({ "target": "active", "configdrive": drive });
        let deploy = Transition::Deploy {
            config_drive: ConfigDrive(drive),
            steps: Vec::new(),
        };
        let call = calls::provision::request(&node, deploy)?;
        expect_client_error("proxy-413", client.send(&call).await, "invalid")?;
        let answer = raw
            .request("PUT", "/v1/nodes/n/states/provision", MICROVERSION, Some(&body))
            .await?;
        self.keep("proxy-413", 413, &answer)?;
        nginx.stop().await
    }

    /// A client of the same Ironic with another URL.
    async fn client(&self, url: &str) -> anyhow::Result<Client> {
        let mut settings = self.lab.settings()?;
        settings.endpoint = Endpoint::parse(url)?;
        Ok(Client::new(settings, self.lab.clock.clone()).await?)
    }
}

/// A value of this size.
fn filler(bytes: usize) -> Value {
    json!({ "filler": "metal ".repeat(bytes / 6) })
}

fn expect_client_error<T>(name: &str, answer: Result<T, Error>, category: &str) -> anyhow::Result<()> {
    let error = expect_error(answer, category).context(name.to_owned())?;
    println!("{name}: {category}: {error}");
    Ok(())
}
