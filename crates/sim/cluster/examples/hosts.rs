//! Prints the request times of a large test with hosts. The figures depend on the machine and are not asserted. Run it
//! as a debug build, as tests are.

use futures::TryStreamExt as _;
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};
use tokio::time::Instant;

const HOSTS: u32 = 1_000;

fn report(what: &str, start: Instant) {
    let each = start.elapsed().as_micros().checked_div(u128::from(HOSTS)).unwrap_or(0);
    println!("{what:<14} {each:>6} microseconds each");
}

fn host(number: u32) -> anyhow::Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": {"name": format!("host-{number}"), "labels": {"rack": "a"}},
        "spec": {
            "online": true, "bootMACAddress": "00:00:5e:00:53:01", "architecture": "x86_64",
            "bmc": {"address": "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "bmc"},
            "rootDeviceHints": {"deviceName": "/dev/vda", "minSizeGigabytes": 10},
        },
    }))?)
}

fn status(number: u32) -> Value {
    let nic =
        |number: u8| json!({"name": format!("eth{number}"), "mac": "00:00:5e:00:53:01", "speedGbps": 10, "model": "x"});
    let disk =
        |number: u8| json!({"name": format!("/dev/vd{number}"), "sizeBytes": 1_000_000_000_u64, "rotational": false});
    json!({"status": {
        "operationalStatus": "OK", "errorCount": 0, "errorMessage": "", "poweredOn": true,
        "provisioning": {"state": "available", "ID": format!("node-{number}"), "image": {"url": ""}},
        "hardware": {
            "hostname": format!("host-{number}"), "ramMebibytes": 4096, "cpu": {"arch": "x86_64", "count": 4},
            "nics": (0..4).map(nic).collect::<Vec<_>>(), "storage": (0..4).map(disk).collect::<Vec<_>>(),
        },
    }})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let cluster = Cluster::start(&Options::seeded(1));
    cluster
        .install(&metal3_api::catalog::definitions())
        .map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost"));
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client("bench"), "default", &resource);
    let start = Instant::now();
    for number in 0..HOSTS {
        api.create(&PostParams::default(), &host(number)?).await?;
    }
    report("create", start);
    let start = Instant::now();
    for number in 0..HOSTS {
        let name = format!("host-{number}");
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status(number)))
            .await?;
    }
    report("patch status", start);
    let start = Instant::now();
    for number in 0..HOSTS {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/hold"]}}));
        api.patch(&format!("host-{number}"), &PatchParams::default(), &patch)
            .await?;
    }
    report("patch object", start);
    let start = Instant::now();
    let items = api.list(&ListParams::default()).await?.items.len();
    report("list", start);
    let start = Instant::now();
    for number in 0..HOSTS {
        let one = ListParams::default().fields(&format!("metadata.name=host-{number}"));
        api.list(&one).await?;
    }
    report("list one", start);
    let start = Instant::now();
    let mut seen = 0_u32;
    let mut events = std::pin::pin!(api.watch(&WatchParams::default(), "0").await?);
    while let Some(event) = events.try_next().await? {
        seen = seen.saturating_add(u32::from(matches!(event, WatchEvent::Added(_))));
        if seen == HOSTS {
            break;
        }
    }
    report("watch", start);
    println!("{items} hosts");
    Ok(())
}
