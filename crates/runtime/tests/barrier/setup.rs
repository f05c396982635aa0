//! Environment of a flow: a server with its kinds and claims, and no other objects of these kinds.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use metal3_api::catalog::definitions;
use metal3_api::crd::Definition;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use tokio::time::sleep;

use crate::flow::{FlowObject, NAMESPACE};
use crate::report::finished;
use crate::server::Server;

pub(crate) struct TestEnv {
    pub(crate) server: Server,
    /// Between two checks for completion.
    poll_interval: Duration,
    /// Longer than any watch delay.
    watch_delay: Duration,
}

impl TestEnv {
    /// A server with this number of claims.
    pub(crate) async fn open(claims: u32) -> Self {
        let server = Server::open().await;
        let kinds = [Metal3DataClaim::KIND, Metal3Data::KIND, IPClaim::KIND, IPAddress::KIND];
        let kinds: Vec<Definition> = definitions()
            .into_iter()
            .filter(|definition| kinds.contains(&definition.kind))
            .collect();
        let (poll_interval, watch_delay) = match &server {
            Server::Simulated(cluster) => {
                cluster.install(&kinds).unwrap();
                (Duration::from_secs(10), Duration::from_mins(1))
            }
            Server::Real(client) => {
                install(client, &kinds).await;
                clear(client).await;
                (Duration::from_secs(1), Duration::from_secs(15))
            }
        };
        let api: Api<Metal3DataClaim> = Api::namespaced(server.client("user"), NAMESPACE);
        for number in 0..claims {
            let claim = Metal3DataClaim::numbered(number, "");
            api.create(&PostParams::default(), &claim).await.unwrap();
        }
        Self {
            server,
            poll_interval,
            watch_delay,
        }
    }

    pub(crate) async fn finished(&self) {
        while !finished(&self.server).await {
            sleep(self.poll_interval).await;
        }
    }

    /// Waits for late watch events.
    pub(crate) async fn wait_for_watches(&self) {
        sleep(self.watch_delay).await;
    }
}

/// Creates missing kinds, and waits until the server serves them.
async fn install(client: &Client, kinds: &[Definition]) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in kinds {
        let mut document: CustomResourceDefinition = serde_json::from_value(kind.manifest()).unwrap();
        // No webhook runs, and the flow uses one version of each kind.
        document.spec.conversion = None;
        let name = document.metadata.name.clone().unwrap();
        match api.get_opt(&name).await.unwrap() {
            None => drop(api.create(&PostParams::default(), &document).await.unwrap()),
            // Only an installation converts; clearing would delete its addresses and data.
            Some(there) => assert!(
                there.spec.conversion.is_none_or(|by| by.strategy == "None"),
                "{name} belongs to an installation: name a server dedicated to these suites"
            ),
        }
        let is_served = |definition: CustomResourceDefinition| {
            let conditions = definition
                .status
                .and_then(|status| status.conditions)
                .unwrap_or_default();
            conditions
                .iter()
                .any(|one| one.type_ == "Established" && one.status == "True")
        };
        while !is_served(api.get(&name).await.unwrap()) {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Deletes the objects of an earlier flow.
async fn clear(client: &Client) {
    async fn of<K: FlowObject>(client: &Client) {
        let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
        // A newly established kind is not served at once.
        while api.list(&ListParams::default().limit(1)).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
        let all = (DeleteParams::default(), ListParams::default());
        let _ = api.delete_collection(&all.0, &all.1).await.unwrap();
    }
    of::<IPAddress>(client).await;
    of::<IPClaim>(client).await;
    of::<Metal3Data>(client).await;
    of::<Metal3DataClaim>(client).await;
}
