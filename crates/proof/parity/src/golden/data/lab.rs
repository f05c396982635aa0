//! A case played by the real controllers: of data, and of addresses, on a simulated API server.

use std::sync::Arc;

use anyhow::Result;
use metal3_capm3::controller::data::{self, Parts, controllers};
use metal3_capm3::data::claims::Naming;
use metal3_ipam::controller as ipam;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::{items, text};
use crate::golden::case::Case;
use crate::golden::site::{NotPut, Place, Site, play};

const NAMESPACE: &str = "metal";
const OURS: &str = "infrastructure.cluster.x-k8s.io";

/// Which of our controllers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    /// Those of templates.
    Templates,
    /// Those of data too, and address management beside them.
    All,
}

/// What a site holds in the end.
pub(super) struct Ended {
    pub(super) secrets: Vec<Value>,
    pub(super) metal3_claims: Vec<Value>,
    pub(super) general_claims: Vec<Value>,
    pub(super) claims: Vec<Value>,
    pub(super) data: Vec<Value>,
    pub(super) templates: Vec<Value>,
}

/// Plays a case to the end; nothing where the server refuses its manifests.
pub(super) fn played(case: &Case, cast: Cast, naming: Naming) -> Result<Option<Ended>> {
    play(run(case, cast, naming))?
}

async fn run(case: &Case, cast: Cast, naming: Naming) -> Result<Option<Ended>> {
    let mut site = Site::new()?;
    for namespace in [NAMESPACE, "elsewhere", "other"] {
        site.namespace(namespace).await?;
    }
    let objects: Vec<&Value> = items(&case.input, "objects").collect();
    match site.put(&objects).await {
        Ok(()) => {}
        Err(NotPut::Refused(_)) => return Ok(None),
        Err(NotPut::Broken(error)) => return Err(error),
    }
    let _controllers = start(&site, cast, naming);
    site.rest(async |site| provide(site, &case.input).await).await?;
    for step in items(&case.input, "steps") {
        // Whom an object names as owner comes first.
        let mut applied: Vec<&Value> = items(step, "apply").collect();
        applied.sort_by_key(|object| text(object, "/kind") == "Metal3DataClaim");
        match site.put(&applied).await {
            Ok(()) => {}
            Err(NotPut::Refused(_)) => return Ok(None),
            Err(NotPut::Broken(error)) => return Err(error),
        }
        for object in items(step, "delete") {
            site.delete(object).await?;
        }
        site.rest(async |_| Ok(())).await?;
    }
    let all =
        async |group: &str, version: &str, kind: &str| site.all(&Place::new(group, version, kind), NAMESPACE).await;
    Ok(Some(Ended {
        secrets: all("", "v1", "Secret").await?,
        metal3_claims: all("ipam.metal3.io", "v1alpha1", "IPClaim").await?,
        general_claims: all("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim").await?,
        claims: all(OURS, "v1beta2", "Metal3DataClaim").await?,
        data: all(OURS, "v1beta2", "Metal3Data").await?,
        templates: all(OURS, "v1beta2", "Metal3DataTemplate").await?,
    }))
}

/// Another provider answers the claims that the case says.
async fn provide(site: &Site, input: &Value) -> Result<()> {
    let place = Place::new("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim");
    for claim in site.all(&place, NAMESPACE).await? {
        let name = text(&claim, "/metadata/name");
        let granted = items(input, "externalIPAM").find(|grant| text(grant, "/claim") == name);
        if let Some(grant) = granted.filter(|_| text(&claim, "/status/addressRef/name").is_empty()) {
            let answer = json!({ "status": { "addressRef": { "name": text(grant, "/address") } } });
            let path = format!("{}/status", place.path(NAMESPACE, name));
            site.send("PATCH", &path, &answer).await?;
        }
    }
    Ok(())
}

/// Starts the controllers. Dropping the set ends them.
fn start(site: &Site, cast: Cast, naming: Naming) -> JoinSet<()> {
    let (client, stop) = (site.cluster.client("data"), CancellationToken::new());
    let caches = data::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = Parts {
        caches: caches.clone(),
        clock: Arc::clone(&site.clock),
        events,
        metrics: Metrics::new(),
        naming,
        watch_filter: None,
        template_workers: 1,
        data_workers: 1,
    };
    let (templates, objects) = controllers(parts, &Writer::new(client.clone(), Mode::Perform));
    let mut tasks = JoinSet::new();
    let watches = caches.watches(&WatchConfig::everywhere(&client, &site.clock, &stop));
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    let stopped = stop.clone();
    tasks.spawn(async move {
        templates.run(stopped).await;
    });
    if cast == Cast::All {
        tasks.spawn(async move {
            objects.run(stop).await;
        });
        start_addresses(site, &mut tasks);
    }
    tasks
}

/// Starts address management beside.
pub(in crate::golden) fn start_addresses(site: &Site, tasks: &mut JoinSet<()>) {
    let (client, stop) = (site.cluster.client("ipam"), CancellationToken::new());
    let caches = ipam::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = ipam::Parts {
        caches: caches.clone(),
        clock: Arc::clone(&site.clock),
        events,
        metrics: Metrics::new(),
        identity: "golden".to_owned(),
        watch_filter: None,
        workers: 1,
    };
    let controller = ipam::controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &site.clock, &stop));
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    tasks.spawn(async move {
        controller.run(stop).await;
    });
}
