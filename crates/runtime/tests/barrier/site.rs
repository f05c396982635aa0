//! Where a flow runs: a server with its kinds and claims, and nothing else of these kinds.

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

use crate::account::finished;
use crate::flow::{AnswerContent, NAMESPACE};
use crate::server::Server;

pub(crate) struct Site {
    pub(crate) server: Server,
    /// Between two looks whether all is done.
    glance: Duration,
    /// Longer than any watch is late.
    echoes: Duration,
}

impl Site {
    /// A site with so many claims.
    pub(crate) async fn open(claims: u32) -> Self {
        let server = Server::open().await;
        let kinds = [Metal3DataClaim::KIND, Metal3Data::KIND, IPClaim::KIND, IPAddress::KIND];
        let kinds: Vec<Definition> = definitions()
            .into_iter()
            .filter(|definition| kinds.contains(&definition.kind))
            .collect();
        let (glance, echoes) = match &server {
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
        Self { server, glance, echoes }
    }

    pub(crate) async fn finished(&self) {
        while !finished(&self.server).await {
            sleep(self.glance).await;
        }
    }

    /// Waits for what is still on its way.
    pub(crate) async fn echoes(&self) {
        sleep(self.echoes).await;
    }
}

/// Creates the kinds where they are not there yet, and waits until the server serves them.
async fn install(client: &Client, kinds: &[Definition]) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in kinds {
        let mut document: CustomResourceDefinition = serde_json::from_value(kind.manifest()).unwrap();
        // There is no webhook here, and the flow uses one version of each kind.
        document.spec.conversion = None;
        let name = document.metadata.name.clone().unwrap();
        match api.get_opt(&name).await.unwrap() {
            None => drop(api.create(&PostParams::default(), &document).await.unwrap()),
            // An installation converts. What is cleared before a flow would be its addresses and data.
            Some(there) => assert!(
                there.spec.conversion.is_none_or(|by| by.strategy == "None"),
                "{name} is somebody's installation: name a server that is there for these suites alone"
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

/// Removes what an earlier flow left.
async fn clear(client: &Client) {
    async fn of<K: AnswerContent>(client: &Client) {
        let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
        // Just established, a kind is not served at once.
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
