//! The worlds that are looked at: a sandbox, and a simulated API server with many hosts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::body::{Body, to_bytes};
use http::{Request, Response};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use metal3_api::catalog;
use metal3_console::lab::Lab;
use metal3_console::{Console, Options};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sandbox::lab::Machines;
use metal3_sandbox::steps::apply_text;
use metal3_sandbox::variables::Variables;
use metal3_sandbox::world::{Fault, Faults, Setup, World};
use metal3_sim_cluster::{Cluster, cluster_api};
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::workload;

const TEMPLATE: &str = include_str!("../../../../e2e/scenarios/objects/cluster.yaml");
/// Hosts of a rack of the large fleet.
pub(crate) const RACK: u32 = 40;
/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";
/// A host whose name and label [`scripted`] replaces.
const NAMED: &str = "zz-name";
/// A host whose other texts are scripts.
pub(crate) const SCRIPTED: &str = "zz-script";
/// Text that is a script wherever it is taken for one.
pub(crate) const SCRIPT: &str = "</code><img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>";

/// A console about a simulated cluster, at an address or at a free one.
pub(crate) async fn console(client: Client, address: Option<SocketAddr>) -> Result<Console> {
    console_with(client, address, None).await
}

/// The same about simulated machines, which pages break and mend.
pub(crate) async fn console_of(world: &Arc<World>, address: Option<SocketAddr>) -> Result<Console> {
    let lab: Arc<dyn Lab> = Arc::new(Machines(Arc::clone(world)));
    console_with(world.cluster.client("console"), address, Some(lab)).await
}

async fn console_with(client: Client, address: Option<SocketAddr>, lab: Option<Arc<dyn Lab>>) -> Result<Console> {
    let options = Options {
        address: address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        namespace: None,
        default_namespace: NAMESPACE.to_owned(),
        is_read_only: false,
        lab,
    };
    let clock = Arc::new(SystemClock::start());
    let console = Console::open(client, clock, &options, |_| {}).await?;
    console.listed().await;
    Ok(console)
}

/// A client to which the server lists a host whose name and label no API server accepts.
pub(crate) fn scripted(cluster: &Cluster) -> Client {
    let service = cluster.service("console");
    let rewritten = service_fn(move |request: Request<kube::client::Body>| {
        let (service, is_watch) = (
            service.clone(),
            request.uri().query().is_some_and(|query| query.contains("watch")),
        );
        async move {
            let answer = service.oneshot(request).await?;
            if is_watch {
                return Ok::<_, BoxError>(answer.map(Body::new));
            }
            let (mut head, body) = answer.into_parts();
            let text = to_bytes(Body::new(body), 64 << 20).await?;
            let (name, script) = (format!("\"{NAMED}\""), Value::from(SCRIPT).to_string());
            head.headers.remove(http::header::CONTENT_LENGTH);
            let text = String::from_utf8_lossy(&text).replace(&name, &script);
            Ok(Response::from_parts(head, Body::from(text)))
        }
    });
    Client::new(rewritten, NAMESPACE)
}

/// A world of the sandbox: a Cluster on some machines, and a machine whose BMC refuses the login.
pub(crate) async fn sandbox(hosts: u32) -> Result<Arc<World>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let world = Arc::new(World::start(&Setup::faster(1, clock, 60))?);
    for number in 1..=hosts {
        let labels = json!({ "rack": format!("r{}", number.div_ceil(2)), "zone": if number % 2 == 0 { "north" } else { "south" } });
        world.add_host(number, &labels).await?;
        if number == 1 {
            set_fault(&world, number, Some(Fault::WrongPassword)).await?;
        }
    }
    let name = Variables::from([("CLUSTER_NAME".to_owned(), "demo".to_owned())]);
    apply_text(&world, TEMPLATE, &name).await?;
    Ok(world)
}

/// What a person does who mends a login: the machine accepts it, and the Secret is written again, which controllers see at once.
pub(crate) async fn mend(world: &World, number: u32) -> Result<()> {
    set_fault(world, number, None).await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": format!("host-{number}-bmc"), "namespace": NAMESPACE }, "stringData": { "password": "another" } });
    world.apply(&secret).await.context("write the Secret")
}

/// Breaks or mends the machine of a host.
pub(crate) async fn set_fault(world: &World, number: u32, fault: Option<Fault>) -> Result<()> {
    for _ in 0..1_000 {
        let faults: Faults = fault.into_iter().collect();
        if world.machine(number, |machine| machine.faults = faults).is_some() {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("no machine of host {number}")
}

fn hosts(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
    let resource = ApiResource::from_gvk_with_plural(&kind, "baremetalhosts");
    Api::namespaced_with(cluster.client("admin"), NAMESPACE, &resource)
}

/// A host as it is.
pub(crate) async fn get(world: &World, name: &str) -> Result<Value> {
    let host = hosts(&world.cluster).get(name).await?;
    Ok(serde_json::to_value(host)?)
}

async fn create(cluster: &Cluster, name: &str, labels: Value, status: Value) -> Result<()> {
    let is_used = status
        .pointer("/provisioning/state")
        .is_some_and(|state| state == "provisioned" || state == "provisioning");
    let consumer = json!({ "kind": "Metal3Machine", "name": format!("edge-{name}"), "namespace": NAMESPACE });
    let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": { "online": true, "consumerRef": if is_used { consumer } else { Value::Null },
            "bmc": { "address": format!("redfish://{name}.bmc.example/redfish/v1/Systems/1"), "credentialsName": name } } });
    let api = hosts(cluster);
    api.create(&PostParams::default(), &serde_json::from_value(host)?)
        .await?;
    let status = json!({ "status": status });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// Changes the error of a host.
pub(crate) async fn set_error(cluster: &Cluster, name: &str, message: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status("registering", message) }));
    let api = hosts(cluster);
    let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
    patched.map(drop).context("change the status")
}

fn status(state: &str, error: &str) -> Value {
    let is_failed = !error.is_empty();
    json!({
        "operationalStatus": if is_failed { "error" } else { "OK" }, "errorType": is_failed.then_some("registration error"),
        "errorMessage": error, "errorCount": u8::from(is_failed), "poweredOn": true,
        "provisioning": { "state": state, "ID": "", "image": { "url": "" } },
    })
}

/// Neighbours differ.
const fn mixed(number: u32) -> u32 {
    number * 31 % 97
}

/// With the times of its operations, which differ from host to host.
fn since(mut status: Value, number: u32) -> Value {
    let clock = SystemClock::start();
    let ago = |minutes: u32| {
        let time = clock.now() - std::time::Duration::from_secs(u64::from(minutes) * 60);
        json!({ "start": time.format("%Y-%m-%dT%H:%M:%SZ").to_string(), "end": time.format("%Y-%m-%dT%H:%M:%SZ").to_string() })
    };
    let (young, old) = (number * 7 % 23, 60 + number * 7919 % 9_000);
    let provision = if mixed(number) > 40 { ago(old) } else { ago(young) };
    if let Some(status) = status.as_object_mut() {
        let history = json!({ "register": ago(old + 40), "inspect": ago(if mixed(number) > 14 { old + 20 } else { young }), "provision": provision });
        status.insert("operationHistory".to_owned(), history);
    }
    status
}

fn state_of(number: u32) -> Value {
    match mixed(number) {
        0 => status(
            "registering",
            "Failed to get power state: HTTP 401 from the BMC: login required",
        ),
        1..=9 => status("provisioning", ""),
        10..=14 => status("inspecting", ""),
        15..=40 => status("available", ""),
        _ => status("provisioned", ""),
    }
}

/// Whether a machine of a Cluster is, or will be, on a host.
const fn is_used(number: u32) -> bool {
    matches!(mixed(number), 1..=9 | 41..)
}

/// A simulated API server with hosts and what runs on them, and one whose texts are scripts.
pub(crate) async fn fleet(count: u32) -> Result<Cluster> {
    let cluster = Cluster::start(&metal3_sim_cluster::Options::seeded(1));
    let install = cluster
        .install(&catalog::definitions())
        .and_then(|()| cluster.install(&cluster_api()));
    install.map_err(|refusal| anyhow::anyhow!("install the kinds: {refusal:?}"))?;
    let mut script = status("registering", SCRIPT);
    if let Some(status) = script.as_object_mut() {
        let vendor = json!({ "manufacturer": SCRIPT, "productName": SCRIPT, "serialNumber": SCRIPT });
        status.insert(
            "hardware".to_owned(),
            json!({ "systemVendor": vendor, "hostname": SCRIPT }),
        );
    }
    create(&cluster, SCRIPTED, json!({}), script).await?;
    create(&cluster, NAMED, json!({ "note": NAMED }), status("available", "")).await?;
    for number in 0..count.saturating_sub(2) {
        let (rack, unit) = (number / RACK, number % RACK);
        if unit == 0 {
            let hosts = number..count.saturating_sub(2).min(number + RACK);
            workload::cluster(&cluster, rack, hosts.filter(|one| is_used(*one)).count()).await?;
        }
        let zone = ["north", "east", "south"].get(usize::try_from(rack % 3)?);
        let labels = json!({ "rack": format!("r{rack:03}"), "zone": zone });
        let name = format!("r{rack:03}-u{unit:02}");
        create(&cluster, &name, labels, since(state_of(number), number)).await?;
        if is_used(number) {
            workload::machine(&cluster, &name, (rack, unit), mixed(number) > 40).await?;
        }
    }
    Ok(cluster)
}
