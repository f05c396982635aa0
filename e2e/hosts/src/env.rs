//! The test environment: the simulated API server, the real Ironic, the machines behind its nodes, and the program.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic_life::ironic::Endpoint;
use metal3_ironic_life::order::Image;
use metal3_ironic_life::processes::{HEARTBEAT_MS, Lab};
use metal3_ironic_life::{Level, Session};
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::profile::Profile;
use metal3_sim_cluster::{Cluster, HttpServer, Options};
use metal3_sim_ironic::HttpsServer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::Arguments;
use crate::document::{part, with};
use crate::interceptor::Interceptor;
use crate::level::{self, HOST, credentials, name};
use crate::program::{MoreOptions, Program, ProgramOptions, write_files};

pub(crate) const NAMESPACE: &str = "default";
/// More than any run deprovisions: the deprovision budget has its own tests.
const CYCLES_PER_HOUR: usize = 100;
/// The program's user name at the API server.
pub(crate) const USER: &str = "hosts";
/// The interval of reads of a host, per host: fifty reads per second in total.
const PER_HOST: Duration = Duration::from_millis(20);
/// The minimum interval.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct TestEnv {
    pub(crate) level: Level,
    pub(crate) hosts: u16,
    pub(crate) profile: Profile,
    pub(crate) session: Session,
    pub(crate) cluster: Cluster,
    pub(crate) interceptor: Interceptor,
    /// The machines; `None` with fake hardware.
    pub(crate) lab: Option<Lab>,
    timeout: Duration,
    user: kube::Client,
    api: HttpServer,
    proxy: HttpsServer,
    program: Program,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) level: Level,
    pub(crate) hosts: u16,
    pub(crate) slots: usize,
    /// The program connects to Ironic without the interceptor; requests are not counted.
    pub(crate) direct: bool,
}

/// What few runs need.
#[derive(Debug, Default)]
pub(crate) struct Special {
    /// The machines, if not `hosts` of the profile of the command line: `PROFILE=COUNT,PROFILE=COUNT`.
    pub(crate) machines: Option<String>,
    pub(crate) program: MoreOptions,
}

impl TestEnv {
    pub(crate) async fn start(arguments: &Arguments, setup: Setup) -> anyhow::Result<Self> {
        Self::start_with(arguments, setup, Special::default()).await
    }

    pub(crate) async fn start_with(arguments: &Arguments, setup: Setup, special: Special) -> anyhow::Result<Self> {
        let prefix = format!("{NAMESPACE}~{HOST}");
        let session = arguments.place.open(&prefix).await?;
        let lab = match setup.level {
            Level::Fake => None,
            Level::Redfish | Level::Agent => {
                let usual = || format!("{}={}", arguments.profile, setup.hosts);
                let machines = special.machines.unwrap_or_else(usual);
                Some(session.start_lab(machines, arguments.place.port, HEARTBEAT_MS).await?)
            }
        };
        let cluster = Cluster::start(&Options::seeded(1));
        cluster
            .install(&kinds())
            .map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
        let api = cluster.serve(0, USER).await?;
        let interceptor = Interceptor::new(session.ironic.endpoint())?;
        let proxy = HttpsServer::start(0, std::sync::Arc::new(interceptor.clone())).await?;
        let home = session.home.join("hosts");
        let Endpoint {
            url,
            ca,
            username,
            password,
            ..
        } = session.ironic.endpoint();
        write_files(&home, &api.url(), username, password)?;
        let proxy_ca = home.join("interceptor.crt");
        std::fs::write(&proxy_ca, proxy.ca())?;
        let (ironic_url, ca) = match setup.direct {
            true => (url.clone(), PathBuf::from(ca)),
            false => (proxy.url(), proxy_ca),
        };
        let options = ProgramOptions {
            home,
            ironic: ironic_url,
            ca,
            slots: setup.slots,
            // After each kill the life cycle runs again within the hour.
            deprovision_budget: usize::from(setup.hosts) * CYCLES_PER_HOUR,
            more: special.program,
        };
        Ok(Self {
            level: setup.level,
            hosts: setup.hosts,
            profile: metal3_ironic_life::built_in_profile(&arguments.profile)?,
            lab,
            timeout: Duration::from_secs(arguments.timeout),
            user: cluster.client("user"),
            api,
            proxy,
            program: Program::start(options, interceptor.clone(), cluster.crashes()),
            interceptor,
            cluster,
            session,
        })
    }

    /// Stops all processes; remaining nodes stay in Ironic for analysis.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.program.stop().await?;
        self.api.stop().await;
        self.proxy.stop().await;
        match self.lab {
            Some(lab) => lab.stop().await,
            None => Ok(()),
        }
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> + use<> {
        (1..=self.hosts).map(Number)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    pub(crate) async fn create<K>(&self, document: Value) -> anyhow::Result<()>
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

    pub(crate) async fn create_secret(&self, name: &str, values: Value) -> anyhow::Result<()> {
        self.create::<Secret>(json!({ "metadata": { "name": name, "labels": { "environment.metal3.io": "baremetal" } }, "stringData": values }))
            .await
    }

    pub(crate) async fn create_host(&self, number: Number) -> anyhow::Result<()> {
        self.create_host_with(number, json!({})).await
    }

    /// With additional members of its spec.
    pub(crate) async fn create_host_with(&self, number: Number, more: Value) -> anyhow::Result<()> {
        let lab = self.lab.as_ref();
        self.create_secret(&credentials(number), level::login(lab)).await?;
        let host = level::host(self.level, lab, number)?;
        let spec = with(part(&host, "spec"), more);
        self.create::<BareMetalHost>(with(host, json!({ "spec": spec }))).await
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

    /// Deletes the Secrets of a deleted host.
    pub(crate) async fn delete_secrets(&self, names: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        for name in names {
            let secrets = self.api::<Secret>();
            if let Some(secret) = secrets.get_opt(&name).await? {
                let finalizers = secret.metadata.finalizers.unwrap_or_default();
                ensure!(
                    finalizers.is_empty(),
                    "Secret {name} still has finalizers: {finalizers:?}"
                );
                secrets.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn get(&self, number: Number) -> anyhow::Result<Option<BareMetalHost>> {
        Ok(self.api::<BareMetalHost>().get_opt(&name(number)).await?)
    }

    pub(crate) async fn hardware(&self, number: Number) -> anyhow::Result<Value> {
        let data = self.api::<HardwareData>().get(&name(number)).await?;
        let data = serde_json::to_value(data)?;
        Ok(data.pointer("/spec/hardware").cloned().unwrap_or_default())
    }

    /// Waits until a condition on a host holds; `None` for a host that does not exist.
    pub(crate) async fn until(
        &self,
        number: Number,
        what: &str,
        condition: impl Fn(Option<&BareMetalHost>) -> bool,
    ) -> anyhow::Result<()> {
        let end = Instant::now() + self.timeout;
        loop {
            let host = self.get(number).await?;
            if condition(host.as_ref()) {
                return Ok(());
            }
            ensure!(
                !self.program.has_ended(),
                "the program ended before {} was {what}",
                name(number)
            );
            if Instant::now() >= end {
                let node = self.node(number).await?;
                let status = serde_json::to_value(host.map(|host| host.status))?;
                bail!(
                    "{} is not {what} after {:?}: {status}; node {node}",
                    name(number),
                    self.timeout
                );
            }
            sleep(PER_HOST.saturating_mul(self.hosts.into()).max(MIN_INTERVAL)).await;
        }
    }

    /// Repeats a check until it holds; its last error after the timeout.
    pub(crate) async fn eventually(&self, check: impl AsyncFn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let end = Instant::now() + self.timeout;
        loop {
            let Err(error) = check().await else { return Ok(()) };
            ensure!(!self.program.has_ended(), "the program ended: {error:#}");
            if Instant::now() >= end {
                return Err(error.context(format!("after {:?}", self.timeout)));
            }
            sleep(MIN_INTERVAL).await;
        }
    }

    /// The machine of a host.
    pub(crate) async fn machine(&self, number: Number) -> anyhow::Result<Value> {
        self.lab()?.view(&format!("/machines/{number}")).await
    }

    /// The node of a host; null when it does not exist.
    pub(crate) async fn node(&self, number: Number) -> anyhow::Result<Value> {
        const FIELDS: &str = "uuid,name,provision_state,power_state,last_error,maintenance,driver_info,\
                              raid_interface,raid_config,target_raid_config";
        let wanted = format!("{NAMESPACE}~{}", name(number));
        let listed = self.session.ironic.get(&format!("/v1/nodes?fields={FIELDS}")).await?;
        let nodes = listed
            .get("nodes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let found = nodes.into_iter().find(|node| part(node, "name") == wanted.as_str());
        Ok(found.unwrap_or_default())
    }

    pub(crate) fn image(&self, number: Number) -> anyhow::Result<&Image> {
        self.session.image(usize::from(number.0))
    }

    pub(crate) fn lab(&self) -> anyhow::Result<&Lab> {
        self.lab.as_ref().context("this level has no machines")
    }
}

fn kinds() -> Vec<metal3_api::crd::Definition> {
    metal3_api::metal3::definitions().to_vec()
}
