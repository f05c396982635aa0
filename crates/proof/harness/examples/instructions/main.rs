//! Counts the instructions of the three paths that run for every event: a cache that stores objects, the plan of the
//! demo controller, and the difference of two documents.

mod callgrind;
#[path = "../../tests/demo/plan.rs"]
mod plan;

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::Time;
use metal3_runtime::cache::{Cache, Index, Indexes, Item, Key};
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use serde_json::{Value, json};

use callgrind::{Bench, counted_work};

const BENCH: Bench = Bench {
    paths: &["ingest", "plan", "patch"],
    sizes: [1_000, 10_000],
    // A tree gains a level or two in between.
    steepest: 1.2,
    baseline: concat!(env!("CARGO_MANIFEST_DIR"), "/examples/instructions/baseline.txt"),
    run,
};

fn main() -> Result<()> {
    BENCH.main()
}

fn run(path: &str, size: u32) -> Result<()> {
    match path {
        "ingest" => ingest(size),
        "plan" => plan_all(size),
        "patch" => {
            patch(size);
            Ok(())
        }
        other => bail!("no path {other:?}"),
    }
}

/// Index by the value of a label that ten objects share.
#[derive(Debug, Default)]
struct ByLabel(Index<String>);

impl Indexes<ConfigMap> for ByLabel {
    fn replace(&mut self, key: &Key, old: Option<&ConfigMap>, new: Option<&ConfigMap>) {
        let label = |object: &ConfigMap| object.metadata.labels.as_ref()?.get("owner").cloned();
        self.0.replace(key, old.and_then(label), new.and_then(label));
    }
}

fn item(number: u32, version: u32) -> Result<Item<ConfigMap>> {
    let document = json!({
        "metadata": {
            "name": format!("n{number}"), "namespace": "ns", "uid": format!("u{number}"),
            "resourceVersion": version.to_string(), "labels": {"owner": format!("o{}", number / 10)},
        },
        "data": {"version": version.to_string()},
    });
    Ok(Item::Object(serde_json::from_value(document)?))
}

/// A first list, a change of every object, and the deletion of half of them.
fn ingest(size: u32) -> Result<()> {
    let at = |version: u32| ResourceVersion::parse(&version.to_string());
    let mut cache = Cache::<ConfigMap, ByLabel>::default();
    let mut deleted = 0_u32;
    cache.subscribe(|change| drop(change.key()));
    let list = (0..size).map(|number| item(number, 1)).collect::<Result<Vec<_>>>()?;
    let changes = (0..size).map(|number| item(number, number.saturating_add(10)));
    let changes = changes.collect::<Result<Vec<_>>>()?;
    let ends =
        (0..size / 2).map(|number| Ok(item(number, number.saturating_add(size).saturating_add(10))?.identity()?));
    let ends = ends.collect::<Result<Vec<_>>>()?;
    let (mut parts, first) = (Some((list, changes)), at(2)?);
    let mut refused = None;
    counted_work(&mut || {
        let Some((list, changes)) = parts.take() else { return };
        let mut entered = cache.listed(list, first.clone());
        for change in changes {
            entered = entered.and_then(|()| cache.observed(change));
        }
        for end in &ends {
            cache.observed_deleted(end);
            deleted = deleted.saturating_add(1);
        }
        refused = entered.err();
    });
    ensure!(
        refused.is_none() && deleted == size / 2,
        "the cache refused: {refused:?}"
    );
    Ok(())
}

/// One step for each claim: a third gets the finalizer, a third a child, a third a status.
fn plan_all(size: u32) -> Result<()> {
    let claim = |number: u32| {
        let mut claim = IPClaim::default();
        claim.metadata.name = Some(format!("n{number}"));
        claim.metadata.namespace = Some("ns".to_owned());
        claim.metadata.uid = Some(format!("u{number}"));
        claim.metadata.resource_version = Some("7".to_owned());
        claim.metadata.finalizers = (!number.is_multiple_of(3)).then(|| vec![plan::FINALIZER.to_owned()]);
        claim
    };
    let facts = |number: u32| {
        let claim = claim(number);
        let child = (number % 3 > 1).then(|| Arc::new(plan::child_of(&claim)));
        plan::Facts {
            claim: Arc::new(claim),
            child,
        }
    };
    let all = (0..size).map(facts).collect::<Vec<_>>();
    let (mut steps, mut failed) = (0_u32, 0_u32);
    counted_work(&mut || {
        for facts in &all {
            match plan::plan(facts, Time::default()) {
                Ok(plan) => steps = steps.saturating_add(u32::from(plan.action.is_some() || plan.after.is_some())),
                Err(_) => failed = failed.saturating_add(1),
            }
        }
    });
    ensure!(
        steps == size && failed == 0,
        "{steps} of {size} have a step, {failed} failed"
    );
    Ok(())
}

/// Two documents with `size` members, a tenth of which differ.
fn patch(size: u32) {
    let document = |moved: bool| {
        let member = |number: u32| {
            let changed = moved && number.is_multiple_of(10);
            (
                format!("m{number}"),
                json!({"kept": [1, 2, {"a": "b"}], "value": changed}),
            )
        };
        let members: Value = (0..size).map(member).collect::<serde_json::Map<_, _>>().into();
        json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": members, "status": {"phase": moved}})
    };
    let (before, after) = (document(false), document(true));
    let mut changes = None;
    counted_work(&mut || changes = Some(Changes::between(&before, &after)));
    drop(changes);
}
