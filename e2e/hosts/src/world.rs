//! One world: the simulated API server, the real Ironic, the machines behind its nodes, and the program between them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic_life::ironic::{Endpoint, Ironic};
use metal3_ironic_life::order::{Image, images};
use metal3_ironic_life::processes::{BEAT, Lab, Wish};
use metal3_sim_ironic::HttpsServer;
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::profile::Profile;
use metal3_sim_cluster::{Cluster, Options, HttpServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::Arguments;
use crate::document::part;
use crate::level::{self, HOST, credentials, name};
use crate::program::{Orders, Program, write_files};
use crate::tap::Tap;
use metal3_ironic_life::Level;

pub(crate) const NAMESPACE: &str = "default";
/// More than any run needs: the brake has tests of its own.
const LIVES_AN_HOUR: usize = 100;
/// As whom the program asks.
pub(crate) const US: &str = "hosts";
/// Between two looks at a host, for each host: fifty looks a second in all.
const GLANCE: Duration = Duration::from_millis(20);
/// The least of that.
const LEAST: Duration = Duration::from_millis(100);

pub(crate) struct World {
    pub(crate) level: Level,
    pub(crate) hosts: u16,
    pub(crate) profile: Profile,
    pub(crate) images: Vec<Image>,
    pub(crate) ironic: Ironic,
    pub(crate) cluster: Cluster,
    /// On the program's way to Ironic.
    pub(crate) tap: Tap,
    /// The machines, where there are any.
    pub(crate) lab: Option<Lab>,
    pub(crate) patience: Duration,
    user: kube::Client,
    api: HttpServer,
    door: HttpsServer,
    program: Program,
    _alone: File,
}

/// What of an arrangement differs from run to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) level: Level,
    pub(crate) hosts: u16,
    pub(crate) slots: usize,
    /// The program asks Ironic itself, and nothing is counted.
    pub(crate) direct: bool,
}

impl World {
    pub(crate) async fn begin(arguments: &Arguments, setup: Setup) -> anyhow::Result<Self> {
        let place = arguments.place.home();
        let endpoint = Endpoint::read(&place.join("endpoint.json"))?;
        let alone = arguments.place.alone()?;
        let images = images(Path::new(&endpoint.files_root), &endpoint.files_url)?;
        let ironic = Ironic::new(endpoint)?;
        sweep(&ironic).await.context("cannot remove what an earlier run left")?;
        let lab = machines(arguments, &ironic, setup, &place).await?;
        let cluster = Cluster::start(&Options::seeded(1));
        cluster
            .install(&kinds())
            .map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
        let api = cluster.serve(0, US).await?;
        let tap = Tap::on(ironic.endpoint())?;
        let door = HttpsServer::start(0, std::sync::Arc::new(tap.clone())).await?;
        let home = place.join("hosts");
        let Endpoint {
            url,
            ca,
            username,
            password,
            ..
        } = ironic.endpoint();
        write_files(&home, &api.url(), username, password)?;
        let authority = home.join("tap.crt");
        std::fs::write(&authority, door.ca())?;
        let (ironic_url, authority) = match setup.direct {
            true => (url.clone(), PathBuf::from(ca)),
            false => (door.url(), authority),
        };
        let orders = Orders {
            home,
            ironic: ironic_url,
            authority,
            slots: setup.slots,
            // All of them go within the hour, each time a life is tried again after a kill.
            departures: usize::from(setup.hosts) * LIVES_AN_HOUR,
        };
        Ok(Self {
            level: setup.level,
            hosts: setup.hosts,
            profile: metal3_ironic_life::built_in_profile(&arguments.profile)?,
            images,
            lab,
            patience: Duration::from_secs(arguments.patience),
            user: cluster.client("user"),
            api,
            door,
            program: Program::start(orders, tap.clone()),
            tap,
            cluster,
            ironic,
            _alone: alone,
        })
    }

    /// Ends what was started; hosts that are left stay in Ironic, to be looked at.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.program.stop().await?;
        self.api.stop().await;
        self.door.stop().await;
        match self.lab {
            Some(lab) => lab.stop().await,
            None => Ok(()),
        }
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> + use<> {
        (1..=self.hosts).map(Number)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    async fn make<K>(&self, document: Value) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(document)?;
        self.api::<K>().create(&PostParams::default(), &object).await?;
        Ok(())
    }

    pub(crate) async fn make_secret(&self, name: &str, values: Value) -> anyhow::Result<()> {
        self.make::<Secret>(json!({ "metadata": { "name": name }, "stringData": values }))
            .await
    }

    pub(crate) async fn make_host(&self, number: Number) -> anyhow::Result<()> {
        let lab = self.lab.as_ref();
        self.make_secret(&credentials(number), level::login(lab)).await?;
        self.make::<BareMetalHost>(level::host(self.level, lab, number)?).await
    }

    pub(crate) async fn edit(&self, number: Number, change: Value) -> anyhow::Result<()> {
        let (api, patch) = (self.api::<BareMetalHost>(), Patch::Merge(change));
        api.patch(&name(number), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, number: Number) -> anyhow::Result<()> {
        self.api::<BareMetalHost>()
            .delete(&name(number), &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Takes away the Secrets of a host that is gone.
    pub(crate) async fn delete_secrets(&self, names: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        for name in names {
            let secrets = self.api::<Secret>();
            if let Some(secret) = secrets.get_opt(&name).await? {
                let held = secret.metadata.finalizers.unwrap_or_default();
                ensure!(held.is_empty(), "Secret {name} is still held: {held:?}");
                secrets.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn get(&self, number: Number) -> anyhow::Result<Option<BareMetalHost>> {
        Ok(self.api::<BareMetalHost>().get_opt(&name(number)).await?)
    }

    /// What was kept of an inspection.
    pub(crate) async fn hardware(&self, number: Number) -> anyhow::Result<Value> {
        let data = self.api::<HardwareData>().get(&name(number)).await?;
        let data = serde_json::to_value(data)?;
        Ok(data.pointer("/spec/hardware").cloned().unwrap_or_default())
    }

    /// Waits until a host is as wished; nothing stands for a host that does not exist.
    pub(crate) async fn until(
        &self,
        number: Number,
        what: &str,
        wished: impl Fn(Option<&BareMetalHost>) -> bool,
    ) -> anyhow::Result<()> {
        let end = Instant::now() + self.patience;
        loop {
            let host = self.get(number).await?;
            if wished(host.as_ref()) {
                return Ok(());
            }
            ensure!(
                !self.program.is_over(),
                "the program ended while {} was to be {what}",
                name(number)
            );
            if Instant::now() >= end {
                let node = self.node(number).await?;
                let status = serde_json::to_value(host.map(|host| host.status))?;
                bail!(
                    "{} is not {what} after {:?}: {status}; node {node}",
                    name(number),
                    self.patience
                );
            }
            sleep(GLANCE.saturating_mul(self.hosts.into()).max(LEAST)).await;
        }
    }

    /// The node of a host, null where there is none.
    pub(crate) async fn node(&self, number: Number) -> anyhow::Result<Value> {
        const FIELDS: &str = "uuid,name,provision_state,power_state,last_error,maintenance,driver_info";
        let wanted = format!("{NAMESPACE}~{}", name(number));
        let listed = self.ironic.get(&format!("/v1/nodes?fields={FIELDS}")).await?;
        let nodes = listed
            .get("nodes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let found = nodes.into_iter().find(|node| part(node, "name") == wanted.as_str());
        Ok(found.unwrap_or_default())
    }

    /// The machine behind a host.
    pub(crate) async fn machine(&self, number: Number) -> anyhow::Result<Value> {
        self.lab()?.view(&format!("/machines/{number}")).await
    }

    pub(crate) fn lab(&self) -> anyhow::Result<&Lab> {
        self.lab.as_ref().context("this level has no machines")
    }
}

fn kinds() -> Vec<metal3_api::crd::Definition> {
    metal3_api::metal3::definitions().to_vec()
}

async fn machines(arguments: &Arguments, ironic: &Ironic, setup: Setup, home: &Path) -> anyhow::Result<Option<Lab>> {
    if setup.level == Level::Fake {
        return Ok(None);
    }
    let wish = Wish {
        machines: vec![format!("{}={}", arguments.profile, setup.hosts)],
        port: arguments.place.port,
        beat: BEAT,
    };
    Lab::start(Path::new(&ironic.endpoint().ca), home, &wish)
        .await
        .map(Some)
}

/// Removes the nodes of hosts that an earlier run left: ours, and not all of a namespace that others use, too.
async fn sweep(ironic: &Ironic) -> anyhow::Result<()> {
    let ours = format!("{NAMESPACE}~{HOST}");
    let listed = ironic.get("/v1/nodes?fields=uuid,name").await?;
    for node in listed.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("name").starts_with(&ours) {
            let path = format!("/v1/nodes/{}", field("uuid"));
            ironic
                .call(reqwest::Method::PUT, &format!("{path}/maintenance"), Some(&json!({})))
                .await?;
            ironic.call(reqwest::Method::DELETE, &path, None).await?;
        }
    }
    Ok(())
}
