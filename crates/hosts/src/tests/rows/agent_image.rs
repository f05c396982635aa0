//! The agent that is built for a host (`--build-preprov-image`).

use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_ironic::slots::SlotState;
use metal3_runtime::patch::apply;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::Row;
use super::given::{asked, available, inspecting, port, preparing, provisioned, provisioning, registering};
use crate::facts::NodeFreshness;
use crate::node::{Ramdisk, Ramdisks};
use crate::tests::fixture::{Fixture, OTHER_UID, UID, at, secret};

const URL: &str = "http://192.0.2.9/h.iso";
const CREATES: &str = "creates the image of the agent, replan";
const WAITS: &str = "withheld: PreprovisioningImagePending, waits for the image of the agent";

/// With the flag, and an image as its builder leaves it.
fn built(fixture: Fixture) -> Fixture {
    with_image(fixture, json!({}))
}

fn with_image(fixture: Fixture, change: Value) -> Fixture {
    let mut document = json!({
        "metadata": { "name": "h", "namespace": "metal", "uid": "i", "resourceVersion": "50", "generation": 1,
            "finalizers": ["baremetalhost.metal3.io/preprovisioningImage", "preprovisioningimage.metal3.io"],
            "ownerReferences": [{ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": UID }] },
        "spec": { "architecture": "x86_64", "acceptFormats": ["iso", "initrd"] },
        "status": { "architecture": "x86_64", "format": "iso", "imageUrl": URL, "conditions": [
            { "type": "Ready", "status": "True", "observedGeneration": 1, "reason": "ImageSuccess", "message": "", "lastTransitionTime": at(0) },
        ] },
    });
    apply(&change, &mut document);
    let image: PreprovisioningImage = serde_json::from_value(document).unwrap();
    flagged(fixture).with(|fixture| fixture.agent_image = Observed::Present(image))
}

/// With the flag, and no image.
fn flagged(fixture: Fixture) -> Fixture {
    fixture.with(|fixture| {
        fixture.settings.builds_agent_images = true;
        fixture.agent_image = Observed::Absent;
    })
}

fn with_own(change: &Value) -> Value {
    let mut whole = json!({ "metadata": { "annotations": { "preprovisioningimage.metal3.io/builder": "capm3" } } });
    apply(change, &mut whole);
    whole
}

/// The node has the agent of the image.
fn booting(fixture: Fixture, state: &str) -> Fixture {
    fixture.node_with(
        state,
        json!({ "driver_info": { "deploy_iso": URL, "metal3_agent": digest(URL) } }),
    )
}

fn digest(iso: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{iso}\n\n\n").as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn deleted_image(change: Value) -> Value {
    let mut whole = json!({ "metadata": { "deletionTimestamp": at(0), "generation": 2 } });
    apply(&change, &mut whole);
    whole
}

fn error(message: &str) -> Value {
    json!({ "status": { "architecture": null, "imageUrl": null, "conditions": [
        { "type": "Ready", "status": "False", "observedGeneration": 1, "reason": "MissingNetworkData", "message": "", "lastTransitionTime": at(0) },
        { "type": "Error", "status": "True", "observedGeneration": 1, "reason": "MissingNetworkData", "message": message, "lastTransitionTime": at(0) },
    ] } })
}

fn manageable(fixture: Fixture) -> Fixture {
    fixture
        .node("manageable")
        .with(|fixture| {
            fixture.inventory = Some(None);
            fixture.slot = Some(SlotState::Granted);
        })
        .live()
}

fn named(fixture: Fixture) -> Fixture {
    fixture
        .spec(json!({ "preprovisioningNetworkDataName": "net" }))
        .with(|fixture| fixture.agent_network = Some(Some(secret("net", &[("networkData", "{}")]))))
}

pub(super) fn images() -> Vec<Row> {
    let to_inspect = || manageable(inspecting());
    let net = |version: &str| json!({ "spec": { "networkDataName": "net" }, "status": { "networkData": { "name": "net", "version": version } } });
    vec![
        to_inspect().row("no flag", "requests inspect, waits for the node"),
        flagged(to_inspect()).row("no image yet", CREATES),
        flagged(to_inspect()).with(|fixture| fixture.agent_image_refused = Some("exceeded quota")).row("the API server refuses it", "withheld: PreprovisioningImageRefused, waits for a time"),
        flagged(to_inspect()).with(|fixture| fixture.agent_image = Observed::Unknown(UnknownReason::Unreadable("no kind".to_owned()))).row("a kind that is not installed", "withheld: PreprovisioningImageRefused, waits for a time"),
        built(to_inspect()).row("an image, and a node without it", "requests change node, replan"),
        booting(built(to_inspect()), "manageable").live().row("the same, and the node has it", "requests inspect, waits for the node"),
        with_image(to_inspect(), json!({ "status": { "conditions": null } })).row("an image that is not ready", WAITS),
        with_image(to_inspect(), json!({ "metadata": { "generation": 2 } })).row("an image that was ready before an edit", WAITS),
        with_image(to_inspect(), json!({ "status": { "architecture": "aarch64" } })).row("an image of another architecture", WAITS),
        with_image(to_inspect(), json!({ "status": { "format": null } })).row("an image without a format", WAITS),
        with_image(to_inspect(), error("NetworkData secret not found")).row("a builder that fails", "writes the status, registration error: the builder of PreprovisioningImage h reports: NetworkData secret not found; correct what it names, in the host or in the configuration of the builder, waits for the image of the agent"),
        with_usual(booting(with_image(to_inspect(), error("NetworkData secret not found")), "manageable")).live().row("the builder of a Go manager that is gone", "writes the status, registration error: the builder of PreprovisioningImage h reports: NetworkData secret not found; correct what it names, in the host or in the configuration of the builder. If its builder does not run any more, hand it over to the configured images: kubectl annotate preprovisioningimage --namespace metal h preprovisioningimage.metal3.io/builder=capm3, waits for the image of the agent"),
        with_image(to_inspect(), json!({ "status": { "format": "initrd" } })).row("a ramdisk without a kernel", "writes the status, registration error: the builder of PreprovisioningImage h reports: Preprovisioning Image is not acceptable to provisioner: its status names no kernel, and DEPLOY_KERNEL_URL is not set; correct what it names, in the host or in the configuration of the builder, waits for the image of the agent"),
        with_image(to_inspect(), json!({ "status": { "format": "initrd", "kernelUrl": "http://192.0.2.9/k" } })).row("a ramdisk with its kernel", "requests change node, replan"),
        with_image(to_inspect(), { let mut failed = error("disk full"); failed["status"]["conditions"][1]["observedGeneration"] = Value::Null; failed }).row("an error without a generation", "writes the status, registration error: the builder of PreprovisioningImage h reports: disk full; correct what it names, in the host or in the configuration of the builder, waits for the image of the agent"),
        with_image(deprovisioning().node("active"), json!({ "status": { "imageUrl": "http://192.0.2.9/\n" } })).live().row("a URL that Ironic does not take, while the system is removed", "requests deleted, waits for the node"),
        with_image(to_inspect(), json!({ "spec": { "architecture": "aarch64" } })).row("an image for another spec", "changes the image of the agent, replan"),
        with_image(to_inspect(), json!({ "metadata": { "finalizers": null } })).row("an image without the finalizer", "changes the image of the agent, replan"),
        built(to_inspect()).host(json!({ "metadata": { "labels": { "rack": "r" } } })).row("a host with another label", "changes the image of the agent, replan"),
        built(to_inspect()).host(json!({ "metadata": { "labels": { "rack": "r" } } })).with(|fixture| fixture.agent_image_refused = Some("no labels")).row("a label that the image may not have", "requests change node, replan"),
        with_image(to_inspect(), json!({ "metadata": { "finalizers": null } })).with(|fixture| fixture.agent_image_refused = Some("no finalizers")).row("a finalizer that the image may not have", "withheld: PreprovisioningImageRefused, waits for a time"),
        with_image(to_inspect(), json!({ "metadata": { "ownerReferences": [{ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": OTHER_UID }] } })).row("the image of a former host", WAITS),
        // A deleted image that is held.
        booting(with_image(to_inspect(), deleted_image(json!({}))), "manageable").live().row("a deleted image that is what the host asks for", "requests inspect, waits for the node"),
        with_image(to_inspect(), deleted_image(json!({ "spec": { "architecture": "aarch64" }, "status": { "architecture": "aarch64" } }))).row("a deleted image that is not what the host asks for", "changes the image of the agent, replan"),
        with_image(inspecting().node("inspect wait"), deleted_image(json!({ "spec": { "architecture": "aarch64" } }))).row("the same while its machine boots it", "waits for the node"),
        with_image(preparing().node("clean hold"), deleted_image(json!({ "spec": { "architecture": "aarch64" } }))).row("the same while its machine runs the agent and waits", "writes the status, preparation error: in Ironic the node is in state \"clean hold\", which is unexpected for a host in state \"preparing\"; the node is not changed. Undeploy the node in Ironic if its system is not needed, waits for the node"),
        with_image(deprovisioning().node("active"), deleted_image(json!({ "spec": { "architecture": "aarch64" } }))).live().row("the same before an erasure, which may boot it", "requests deleted, waits for the node"),
        with_image(inspecting(), deleted_image(json!({ "spec": { "architecture": "aarch64" } }))).row("the same with an unknown node", "reads Node, replan"),
        with_image(to_inspect().freshness(NodeFreshness::Stale), deleted_image(json!({ "spec": { "architecture": "aarch64" } }))).row("the same with a node before the last order", "waits for the node"),
        with_image(to_inspect(), deleted_image(json!({ "metadata": { "finalizers": ["example.org/other"] } }))).row("a deleted image that is let go", WAITS),
        // Network data.
        with_image(named(to_inspect()), net("39")).row("an image with an older version of the network data", WAITS),
        with_image(named(to_inspect()), net("40")).row("an image with the network data", "requests change node, replan"),
        with_image(named(to_inspect()), net("40")).with(|fixture| if let Some(Some(one)) = &mut fixture.agent_network { one.metadata.finalizers = None; }).row("network data that may be deleted", "changes Secret net, replan"),
        with_image(named(to_inspect()), net("40")).with(|fixture| if let Some(Some(one)) = &mut fixture.agent_network { (one.metadata.labels, one.metadata.finalizers) = (None, None); }).row("network data without the label", "writes the status, registration error: Secret net is not labelled for use by hosts, so it is not read. If spec.preprovisioningNetworkDataName names the right Secret, run: kubectl label secret --namespace metal net environment.metal3.io=baremetal, waits for Secret net"),
        with_image(named(to_inspect()), with_own(&net("40"))).with(|fixture| fixture.agent_network = Some(Some(secret("net", &[("networkData", &" ".repeat(70_000))])))).row("too many network data for a configured image", "writes the status, registration error: Secret net, which spec.preprovisioningNetworkDataName names, has 70000 bytes of network data, and an agent gets 65536 at most; shorten them, waits for Secret net"),
        booting(built(to_inspect()), "manageable").with(|fixture| if let Some(Some((node, _))) = &mut fixture.node { node["network_data"] = json!({ "links": [] }); }).live().row("network data that the node has and the host does not name", "requests change node, replan"),
        // Masked URLs.
        with_image(to_inspect(), json!({ "status": { "imageUrl": "http://192.0.2.9/h?token=t" } })).node_with("manageable", json!({ "driver_info": { "deploy_iso": "http://192.0.2.9/h?token=***", "metal3_agent": digest("http://192.0.2.9/h?token=t") } })).live().row("a masked URL that was sent", "requests change node, replan"),
        with_image(to_inspect(), json!({ "status": { "imageUrl": "http://192.0.2.9/h?token=t" } })).node_with("manageable", json!({ "driver_info": { "deploy_iso": "http://192.0.2.9/h?token=******", "metal3_agent": digest("http://192.0.2.9/h?token=t") } })).live().row("the same as Ironic masks it", "requests inspect, waits for the node"),
        with_image(to_inspect(), json!({ "status": { "imageUrl": "http://192.0.2.9/h?token=u" } })).node_with("manageable", json!({ "driver_info": { "deploy_iso": "http://192.0.2.9/h?token=******", "metal3_agent": digest("http://192.0.2.9/h?token=t") } })).live().row("a masked URL with a new token", "requests change node, replan"),
        // Where no agent is built, and where none is waited for.
        flagged(registering().node("enroll").live()).row("a host that is not registered", "requests manage, waits for the node"),
        flagged(to_inspect()).spec(json!({ "inspectionMode": "fast" })).row("an inspection by the BMC", "requests change node, replan"),
        flagged(provisioned().node_with("active", json!({ "power_state": "power on" }))).row("a host that runs", "settled"),
        flagged(available().node("available")).row("an available host", CREATES),
        booting(with_image(available(), deleted_image(json!({}))), "available").row("an available host whose image is deleted", "changes the image of the agent, replan"),
        with_image(available().node("available"), json!({ "status": null })).row("an available host whose image is not ready", "settled"),
        with_image(asked(), json!({ "status": null })).row("the same with an image to deploy", "writes the status, to provisioning, replan"),
        with_image(provisioning().node("available"), json!({ "status": null })).row("a deployment", WAITS),
        with_image(provisioning().node("manageable"), json!({ "status": null })).row("a cleaning before it", WAITS),
        with_image(live_image(&json!("disabled")), json!({ "status": null })).row("no cleaning before a live image", "requests provide, waits for the node"),
        with_image(live_image(&json!("metadata")), json!({ "status": null })).row("a cleaning before a live image", WAITS),
        with_image(provisioning().node("wait call-back"), json!({ "status": null })).row("a deployment that has begun", "waits for the node"),
        with_image(preparing().node("manageable"), json!({ "status": null })).row("a host with nothing to prepare", "writes the status, to available, replan"),
        with_image(preparing().node("manageable").spec(json!({ "raid": { "hardwareRAIDVolumes": [{ "level": "1" }] } })), json!({ "status": null })).row("a cleaning that prepares", WAITS),
        // Erasure waits for no builder.
        with_image(deprovisioning().node("active"), json!({ "status": null })).live().row("a system that is removed", "requests deleted, waits for the node"),
        flagged(deprovisioning().node("active")).live().with(|fixture| fixture.agent_image_refused = Some("exceeded quota")).row("the same, and the image is refused", "requests deleted, waits for the node"),
        with_image(deprovisioning().node("active"), error("no disk")).live().row("the same, and the builder fails", "requests deleted, waits for the node"),
        flagged(deprovisioning().deleted().node("active")).live().row("a deleted host without an image", "requests deleted, waits for the node"),
        with_usual(flagged(deprovisioning().deleted().node("active"))).live().row("the same, and an agent is configured", "requests change node, replan"),
        with_usual(booting(flagged(deprovisioning().deleted()), "active")).live().row("the same, and the node has a former one", "requests change node, replan"),
        with_usual(booting(with_image(deprovisioning().deleted(), with_own(&json!({ "spec": { "architecture": "aarch64" } }))), "active")).live().row("the same, and the image of this program is behind the host", "requests change node, replan"),
        with_usual(booting(with_image(deprovisioning().deleted(), json!({ "spec": { "architecture": "aarch64" } })), "active")).live().row("the same with the image of another builder", "requests deleted, waits for the node"),
        with_usual(booting(built(deprovisioning().deleted()), "active")).live().status(json!({ "errorCount": 1 })).row("an erasure with the image that failed once", "requests deleted, waits for the node"),
        with_usual(booting(built(deprovisioning().deleted()), "active")).live().status(json!({ "errorCount": 2 })).row("an erasure with the image that failed twice", "requests change node, replan"),
        with_usual(booting(built(deprovisioning().deleted()), "active")).live().status(json!({ "errorCount": 2, "provisioningFailCount": 2 })).row("an erasure after failed deployments", "requests deleted, waits for the node"),
        built(deprovisioning().deleted().node_with("active", json!({ "driver_info": { "deploy_iso": "http://192.0.2.9/old.iso" } }))).live().row("a deleted host whose image is ready", "requests change node, replan"),
        booting(built(deprovisioning().deleted()), "active").live().row("the same, and the node has it", "requests deleted, waits for the node"),
        with_image(deprovisioning().deleted().node_with("active", json!({ "driver_info": { "deploy_iso": "http://192.0.2.9/old.iso" } })), json!({ "status": null })).live().row("a deleted host whose image is not ready", "requests deleted, waits for the node"),
        built(Fixture::new("deleting").deleted().no_node()).row("the end of a deletion", "changes Secret bmc, changes the image of the agent, changes the host, replan"),
        flagged(Fixture::new("deleting").deleted().no_node()).row("the same without an image", "changes Secret bmc, changes the host, replan"),
    ]
}

/// Nothing boots the agent when a live image is deployed.
fn live_image(cleaning: &Value) -> Fixture {
    let iso =
        json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso", "checksum": null, "checksumType": null });
    provisioning()
        .spec(json!({ "image": iso, "automatedCleaningMode": cleaning }))
        .status(json!({ "lastAttemptedImage": null }))
        .node_with(
            "manageable",
            json!({ "automated_clean": cleaning == "metadata", "deploy_interface": "ramdisk" }),
        )
        .with(|fixture| fixture.slot = Some(SlotState::Granted))
        .live()
}

fn deprovisioning() -> Fixture {
    Fixture::new("deprovisioning")
        .status_image("a")
        .with(|fixture| fixture.slot = Some(SlotState::Granted))
        .with(|fixture| fixture.ports = Some(vec![port()]))
}

fn with_usual(fixture: Fixture) -> Fixture {
    let usual = Ramdisk {
        iso: Some("http://192.0.2.9/usual.iso".to_owned()),
        ..Ramdisk::default()
    };
    fixture.with(|fixture| {
        fixture.settings.node.ramdisks = Ramdisks {
            usual,
            ..Ramdisks::default()
        }
    })
}

/// The builder of an image is decided when it is created.
#[test]
fn new_image_names_this_builder_if_something_is_configured_for_its_architecture() {
    use crate::action::Action;
    let builder = |fixture: Fixture| {
        let plan = flagged(manageable(inspecting()))
            .with(|new| new.settings = fixture.settings)
            .plan();
        let created = plan.actions.iter().find_map(|action| match action {
            Action::CreateAgentImage(image) => Some(image.clone()),
            _ => None,
        });
        let image = created.unwrap();
        let metadata = image.metadata;
        assert_eq!(metadata.name.as_deref(), Some("h"));
        assert_eq!(metadata.owner_references.unwrap()[0].uid, UID);
        assert_eq!(image.spec.architecture.as_deref(), Some("x86_64"));
        let is_own = metadata.annotations.is_some();
        let of_builder = is_own.then_some("preprovisioningimage.metal3.io");
        let finalizers: Vec<&str> = std::iter::once("baremetalhost.metal3.io/preprovisioningImage")
            .chain(of_builder)
            .collect();
        assert_eq!(metadata.finalizers.unwrap(), finalizers);
        is_own
    };
    assert!(!builder(flagged(inspecting())));
    assert!(builder(with_usual(flagged(inspecting()))));
    let mut arm = with_usual(flagged(inspecting()));
    let ramdisks = &mut arm.settings.node.ramdisks;
    let usual = std::mem::take(&mut ramdisks.usual);
    ramdisks.by_architecture.insert("aarch64".to_owned(), usual);
    assert!(!builder(arm));
}
