//! Runs a case by the real controllers of data and addresses on a simulated API server.

use std::sync::Arc;

use anyhow::Result;
use metal3_capm3::data::claims::Naming;
use metal3_capm3::data::reconciler::{self as data, Parts, controllers};
use metal3_ipam::reconciler as ipam;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::golden::case::Case;
use crate::golden::server::{PutError, Resource, TestServer, run_paused};
use crate::values::{list, text};

const NAMESPACE: &str = "metal";
const OURS: &str = "infrastructure.cluster.x-k8s.io";

/// Controllers to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controllers {
    /// Controllers of templates.
    Templates,
    /// Controllers of templates and data, and address management.
    All,
}

/// Final objects of the server.
pub(super) struct FinalState {
    pub(super) secrets: Vec<Value>,
    pub(super) metal3_claims: Vec<Value>,
    pub(super) general_claims: Vec<Value>,
    pub(super) claims: Vec<Value>,
    pub(super) data: Vec<Value>,
    pub(super) templates: Vec<Value>,
}

/// Runs a case; `None` when the server rejects its manifests.
pub(super) fn run_case(case: &Case, controllers_to_run: Controllers, naming: Naming) -> Result<Option<FinalState>> {
    run_paused(run(case, controllers_to_run, naming))?
}

async fn run(case: &Case, controllers_to_run: Controllers, naming: Naming) -> Result<Option<FinalState>> {
    let mut server = TestServer::new()?;
    for namespace in [NAMESPACE, "elsewhere", "other"] {
        server.namespace(namespace).await?;
    }
    let objects: Vec<&Value> = list(&case.input, "/objects").collect();
    match server.put(&objects).await {
        Ok(()) => {}
        Err(PutError::Rejected(_)) => return Ok(None),
        Err(PutError::Other(error)) => return Err(error),
    }
    let _controllers = start(&server, controllers_to_run, naming);
    server.settle(async |server| provide(server, &case.input).await).await?;
    for step in list(&case.input, "/steps") {
        // Owners are created first.
        let mut applied: Vec<&Value> = list(step, "/apply").collect();
        applied.sort_by_key(|object| text(object, "/kind") == "Metal3DataClaim");
        match server.put(&applied).await {
            Ok(()) => {}
            Err(PutError::Rejected(_)) => return Ok(None),
            Err(PutError::Other(error)) => return Err(error),
        }
        for object in list(step, "/delete") {
            server.delete(object).await?;
        }
        server.settle(async |_| Ok(())).await?;
    }
    let all = async |group: &str, version: &str, kind: &str| {
        server.all(&Resource::new(group, version, kind), NAMESPACE).await
    };
    Ok(Some(FinalState {
        secrets: all("", "v1", "Secret").await?,
        metal3_claims: all("ipam.metal3.io", "v1alpha1", "IPClaim").await?,
        general_claims: all("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim").await?,
        claims: all(OURS, "v1beta2", "Metal3DataClaim").await?,
        data: all(OURS, "v1beta2", "Metal3Data").await?,
        templates: all(OURS, "v1beta2", "Metal3DataTemplate").await?,
    }))
}

/// Answers claims as the other provider of the case.
async fn provide(server: &TestServer, input: &Value) -> Result<()> {
    let place = Resource::new("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim");
    for claim in server.all(&place, NAMESPACE).await? {
        let name = text(&claim, "/metadata/name");
        let granted = list(input, "/externalIPAM").find(|grant| text(grant, "/claim") == name);
        if let Some(grant) = granted.filter(|_| text(&claim, "/status/addressRef/name").is_empty()) {
            let answer = json!({ "status": { "addressRef": { "name": text(grant, "/address") } } });
            let path = format!("{}/status", place.path(NAMESPACE, name));
            server.send("PATCH", &path, &answer).await?;
        }
    }
    Ok(())
}

/// Starts the controllers. Dropping the set stops them.
fn start(server: &TestServer, controllers_to_run: Controllers, naming: Naming) -> JoinSet<()> {
    let (client, stop) = (server.cluster.client("data"), CancellationToken::new());
    let caches = data::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = Parts {
        caches: caches.clone(),
        clock: Arc::clone(&server.clock),
        events,
        metrics: Metrics::new(),
        naming,
        watch_filter: None,
        template_workers: 1,
        data_workers: 1,
    };
    let (templates, objects) = controllers(parts, &Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &server.clock, &stop));
    let mut tasks: JoinSet<()> = watches.into_tasks().into_iter().collect();
    let stopped = stop.clone();
    tasks.spawn(async move {
        templates.run(stopped).await;
    });
    if controllers_to_run == Controllers::All {
        tasks.spawn(async move {
            objects.run(stop).await;
        });
        start_addresses(server, &mut tasks);
    }
    tasks
}

/// Starts address management.
pub(in crate::golden) fn start_addresses(server: &TestServer, tasks: &mut JoinSet<()>) {
    let (client, stop) = (server.cluster.client("ipam"), CancellationToken::new());
    let caches = ipam::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = ipam::Parts {
        caches: caches.clone(),
        clock: Arc::clone(&server.clock),
        events,
        metrics: Metrics::new(),
        identity: "golden".to_owned(),
        watch_filter: None,
        workers: 1,
    };
    let controller = ipam::controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &server.clock, &stop));
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    tasks.spawn(async move {
        controller.run(stop).await;
    });
}
