//! The controller and its user on a simulated API server. The example that counts requests includes this file too, so it
//! uses only what is public.

use std::sync::Arc;

use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use metal3_api::cluster::IPAddressClaim;
use metal3_api::crd::Definition;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_domain::clock::Clock;
use metal3_ipam::claim::ClaimKind;
use metal3_ipam::reconciler::caches::Caches;
use metal3_ipam::reconciler::{Parts, controller};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The kinds of this group, and those of Cluster API.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::ipam::definitions();
    kinds.extend(metal3_sim_cluster::cluster_api());
    kinds
}

/// Starts the controller with its watches. Dropping the set stops it.
pub(crate) fn start(client: &Client, clock: &Arc<dyn Clock>, identity: &str, workers: usize) -> JoinSet<()> {
    let (caches, stop) = (Caches::default(), CancellationToken::new());
    let (events, _) = EventRecorder::bounded(16);
    let parts = Parts {
        caches: caches.clone(),
        clock: Arc::clone(clock),
        events,
        metrics: Metrics::new(),
        identity: identity.to_owned(),
        watch_filter: None,
        workers,
    };
    let controller = controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(client, clock, &stop));
    let mut tasks = JoinSet::new();
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    tasks.spawn(async move {
        controller.run(stop).await;
    });
    tasks
}

/// A claim of a kind on a pool.
pub(crate) fn claim_document(kind: ClaimKind, pool: &str, metadata: Value) -> Value {
    let spec = match kind {
        ClaimKind::Metal3 => json!({ "pool": { "name": pool } }),
        ClaimKind::ClusterApi => json!({ "poolRef": { "name": pool, "kind": "IPPool", "apiGroup": "ipam.metal3.io" } }),
    };
    json!({ "metadata": metadata, "spec": spec })
}

/// Creates a claim. `api`: client and namespace of the user.
pub(crate) async fn create_claim(api: (&Client, &str), kind: ClaimKind, document: Value) -> anyhow::Result<()> {
    let (client, namespace, params) = (api.0.clone(), api.1, PostParams::default());
    match kind {
        ClaimKind::Metal3 => {
            let claims: Api<IPClaim> = Api::namespaced(client, namespace);
            claims.create(&params, &serde_json::from_value(document)?).await?;
        }
        ClaimKind::ClusterApi => {
            let claims: Api<IPAddressClaim> = Api::namespaced(client, namespace);
            claims.create(&params, &serde_json::from_value(document)?).await?;
        }
    }
    Ok(())
}

/// Deletes a claim.
pub(crate) async fn delete_claim(api: (&Client, &str), kind: ClaimKind, name: &str) -> kube::Result<()> {
    let (client, namespace, params) = (api.0.clone(), api.1, DeleteParams::default());
    match kind {
        ClaimKind::Metal3 => {
            let claims: Api<IPClaim> = Api::namespaced(client, namespace);
            claims.delete(name, &params).await.map(drop)
        }
        ClaimKind::ClusterApi => {
            let claims: Api<IPAddressClaim> = Api::namespaced(client, namespace);
            claims.delete(name, &params).await.map(drop)
        }
    }
}
