//! `capm3 select`: which host a machine would choose, and why not the others. It only reads.

use anyhow::{Context as _, Result, bail};
use kube::api::ListParams;
use kube::{Api, Client};
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_capm3::machine::select::Question;
use metal3_runtime::client::Chosen;

/// The machine to choose for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// Its namespace.
    pub namespace: String,
    /// The name of the Metal3Machine.
    pub machine: String,
}

impl Select {
    /// Reads the objects that decide, and reports the choice line by line.
    ///
    /// # Errors
    /// When the machine does not exist, its selector is invalid, or a request fails.
    pub async fn run(&self, client: &Client, report: &mut impl FnMut(String)) -> Result<()> {
        let name = &self.machine;
        let machine: Option<Metal3Machine> = self.find(client, Some(name)).await?;
        let machine = machine.with_context(|| format!("Metal3Machine {}/{name} does not exist", self.namespace))?;
        let owner = owner::first::<Machine>(&machine.metadata).map(|owner| owner.name.as_str());
        let owner: Option<Machine> = self.find(client, owner).await?;
        let cluster = owner.as_ref().map(|owner| owner.spec.cluster_name.as_str());
        let cluster: Option<Cluster> = self.find(client, cluster).await?;
        let metal3_clusters: Vec<Metal3Cluster> = self.list(client).await?;
        let hosts: Vec<BareMetalHost> = self.list(client).await?;
        let machines: Vec<Machine> = self.list(client).await?;
        let question = Question {
            machine: &machine,
            owner: owner.as_ref(),
            cluster: cluster.as_ref(),
            metal3_clusters: &metal3_clusters,
            hosts: &hosts,
            machines: &machines,
        };
        report(format!("Metal3Machine {}/{name}", self.namespace));
        question.answer()?.into_iter().for_each(report);
        Ok(())
    }

    async fn find<K: Kind>(&self, client: &Client, name: Option<&str>) -> Result<Option<K>> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let found = Api::<K>::namespaced(client.clone(), &self.namespace)
            .get_opt(name)
            .await;
        found.with_context(|| format!("read {} {}/{name}", K::KIND, self.namespace))
    }

    async fn list<K: Kind>(&self, client: &Client) -> Result<Vec<K>> {
        let list = Api::<K>::namespaced(client.clone(), &self.namespace)
            .list(&ListParams::default())
            .await;
        Ok(list.with_context(|| format!("list {}", K::PLURAL))?.items)
    }
}

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    namespace: Option<String>,
    machine: String,
}

impl Wanted {
    /// The machine, in this namespace unless the user names another one.
    #[must_use]
    pub fn in_namespace(self, default: &str) -> Select {
        Select {
            namespace: self.namespace.unwrap_or_else(|| default.to_owned()),
            machine: self.machine,
        }
    }
}

/// Parses the arguments after `select`, and returns the kubeconfig and its context too.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(Wanted, Chosen)> {
    const VALID: &str = "use --machine=NAME, --namespace=NAME, --kubeconfig=FILE and --context=NAME";
    let (mut machine, mut namespace, mut chosen) = (None, None, Chosen::default());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, arguments.next()),
        };
        let place = match name.as_str() {
            "--machine" => &mut machine,
            "--namespace" | "-n" => &mut namespace,
            "--kubeconfig" => &mut chosen.kubeconfig,
            "--context" => &mut chosen.context,
            _ => bail!("{name:?}: {VALID}"),
        };
        *place = Some(value.with_context(|| format!("{name} has no value; {VALID}"))?);
    }
    let machine = machine.with_context(|| format!("--machine is missing; {VALID}"))?;
    Ok((Wanted { namespace, machine }, chosen))
}
