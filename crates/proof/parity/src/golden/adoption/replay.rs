//! The moments of clusters and addresses, taken over: each is put into a server of its own as it was stored, our
//! controllers run on it until they rest, and nobody has lost anything.
//!
//! The hosts' controller is played: a host that is told to run nothing comes to rest. Cluster API is not there, so what
//! only it would let go stays.

use std::sync::Arc;

use anyhow::{Context, Result};
use metal3_capi::workload::{NodeList, WakeFn, Workloads};
use metal3_capm3::controller::alone::Alone;
use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::Fault;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Recording;
use super::hosts;
use super::losses::{Kinds, losses};
use super::moment::Moment;
use crate::golden::data::lab::start_addresses;
use crate::golden::site::{NotPut, Place, Site, play};

/// The recordings that the controllers of clusters and addresses take over. All others are of hosts.
const CLUSTERS: [&str; 3] = ["cluster", "mixed-cluster", "ip-addresses"];

/// What came of taking a recording over.
#[derive(Debug, Default)]
pub(in crate::golden) struct Taken {
    /// Moments that were.
    pub(in crate::golden) moments: usize,
    /// Moments of which nobody saw the nodes, so that they could not be.
    pub(in crate::golden) unseen: usize,
    /// What went wrong, with its moment.
    pub(in crate::golden) wrong: Vec<String>,
}

/// Takes every moment of a recording over.
pub(in crate::golden) fn taken_over(recording: &Recording) -> Result<Taken> {
    let mut taken = Taken::default();
    for (number, stretch) in recording.stretches.iter().enumerate() {
        let harms = hosts::next_harms(recording.stretches.get(number..).unwrap_or_default());
        for moment in &stretch.moments {
            let found = if CLUSTERS.contains(&recording.name.as_str()) {
                play(replayed(moment))?.map(Some)
            } else {
                play(hosts::replayed(moment, &harms))?
            };
            let Some(found) = found.with_context(|| moment.label.clone())? else {
                taken.unseen += 1;
                continue;
            };
            taken.moments += 1;
            let named = |what| format!("{} {}: {what}", recording.name, moment.label);
            taken.wrong.extend(found.into_iter().map(named));
        }
    }
    Ok(taken)
}

/// What is wrong after a moment was taken over.
async fn replayed(moment: &Moment) -> Result<Vec<String>> {
    let objects: Vec<&Value> = moment.objects.iter().map(|document| &document.value).collect();
    Ok(match handed_over(&objects).await? {
        Err(refused) => vec![refused],
        Ok(Handover { before, after }) => losses(&before, &after),
    })
}

/// What there was before our controllers took objects over, and what there is when they rest.
pub(in crate::golden) struct Handover {
    pub(in crate::golden) before: Kinds,
    pub(in crate::golden) after: Kinds,
}

/// Objects of one namespace, taken over; or why our server does not have them.
pub(in crate::golden) async fn handed_over(objects: &[&Value]) -> Result<Result<Handover, String>> {
    let mut site = Site::new()?;
    let namespace = objects
        .iter()
        .find_map(|object| object.pointer("/metadata/namespace")?.as_str());
    let namespace = namespace.unwrap_or("default").to_owned();
    site.namespace(&namespace).await?;
    match site.put(objects).await {
        Ok(()) => {}
        Err(NotPut::Refused(why)) => return Ok(Err(format!("our server refuses it: {why}"))),
        Err(NotPut::Broken(error)) => return Err(error),
    }
    let before = Kinds::of(&site, &namespace).await?;
    let alone = Alone {
        client: site.cluster.client("machines"),
        clock: Arc::clone(&site.clock),
        workloads: Arc::new(Closed),
        with_data: true,
        nudges: false,
        metrics: Metrics::new(),
        workers: 1,
    };
    let mut tasks: JoinSet<()> = alone.tasks().into_iter().collect();
    start_addresses(&site, &mut tasks);
    site.rest(async |site| {
        while site.cluster.collect_garbage() > 0 {}
        rest_hosts(site, &namespace).await
    })
    .await?;
    let after = Kinds::of(&site, &namespace).await?;
    Ok(Ok(Handover { before, after }))
}

/// Hosts that are told to run nothing come to rest.
async fn rest_hosts(site: &Site, namespace: &str) -> Result<()> {
    let place = Place::new("metal3.io", "v1alpha1", "BareMetalHost");
    for host in site.all(&place, namespace).await? {
        let at = |path: &str| host.pointer(path).cloned().unwrap_or_default();
        let runs = !at("/spec/image").is_null() || !at("/spec/customDeploy").is_null();
        let is_paused = !at("/metadata/annotations/baremetalhost.metal3.io~1paused").is_null();
        let is_busy = ["provisioned", "provisioning", "deprovisioning"]
            .contains(&at("/status/provisioning/state").as_str().unwrap_or_default());
        if !runs && !is_paused && is_busy {
            let path = place.path(namespace, at("/metadata/name").as_str().unwrap_or_default());
            let change = json!({ "status": { "poweredOn": false, "provisioning": { "state": "available" } } });
            site.send("PATCH", &format!("{path}/status"), &change).await?;
        }
    }
    Ok(())
}

/// Nobody can look into the workload clusters of a recording.
#[derive(Debug)]
struct Closed;

impl Workloads for Closed {
    fn set_wake(&self, _: WakeFn) {}

    fn nodes(&self, _: &Key, _: &Key) -> NodeList {
        NodeList::Unknown("the workload cluster is not part of the recording".to_owned())
    }

    fn remove_waiter(&self, _: &Key) {}

    fn set_provider_id<'a>(
        &'a self,
        _: &'a Key,
        _: &'a str,
        _: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        Box::pin(async { Ok(()) })
    }
}
