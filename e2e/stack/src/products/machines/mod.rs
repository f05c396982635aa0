//! The claims about clusters and machines: beside the real Cluster API managers, installed by clusterctl together with
//! IP address management, and given a cluster that clusterctl generates.

pub(crate) mod access;
pub(crate) mod cluster;
pub(crate) mod metal;
pub(crate) mod scene;

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Proof;
use super::load::list;
use crate::claims::world::World;
use crate::repository::{self, Kind, Release};
use crate::wait::Stopwatch;

/// Namespace of the cluster and its hosts.
pub(crate) const NAMESPACE: &str = "metal";
/// Namespace of the managers.
const MANAGERS: &str = "capm3-system";

/// A promise, and its proof by the release in a folder.
pub(super) type Claim = (&'static str, fn(&World, &Path) -> Proof);

/// In this order: each finds the cluster as the one before has left it.
pub(super) const CLAIMS: &[Claim] = &[
    (
        "clusterctl_init_installs_machines_and_addresses_beside_cluster_api",
        install,
    ),
    (
        "webhooks_refuse_with_the_field_and_older_versions_are_converted",
        answers,
    ),
    ("a_generated_cluster_takes_hosts_and_its_machines_run", cluster::runs),
    ("what_happened_to_machines_is_told_by_events", cluster::told),
    ("workers_are_scaled_while_the_leader_is_killed", cluster::scaled),
    (
        "deleting_the_cluster_frees_every_host_and_leaves_nothing",
        cluster::deleted,
    ),
    (
        "what_is_granted_is_used_or_explained_and_nothing_was_forbidden",
        access::granted_is_used,
    ),
];

fn install(world: &World, release: &Path) -> Proof {
    host_kinds(world, release)?;
    initialized(world, release)
}

/// Offers both providers of a release to clusterctl under a version.
pub(crate) fn publish(world: &World, release: &Path, version: &str) -> anyhow::Result<()> {
    let folder = world.places.state_file("products").join(version);
    std::fs::create_dir_all(&folder)?;
    for (kind, file, templates) in [
        (Kind::Ipam, "ipam-components.yaml", Vec::new()),
        (
            Kind::Infrastructure,
            "infrastructure-components.yaml",
            vec![release.join("cluster-template.yaml")],
        ),
    ] {
        let components = folder.join(file);
        std::fs::write(&components, tagged(&release.join(file), version)?)?;
        let release = Release {
            kind,
            provider: "metal3".to_owned(),
            version: version.to_owned(),
            components,
            metadata: release.join("metadata.yaml"),
            templates,
        };
        repository::put(&world.places, &release)?;
    }
    Ok(())
}

/// The components in a file, with the version as the tag of their image.
pub(crate) fn tagged(path: &Path, version: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let image = super::release::image(&text)?;
    let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
    Ok(text.replace(image, &format!("{name}:{version}")))
}

/// `clusterctl init` with all that clusterctl knows: Cluster API's three providers, and two of the release.
pub(crate) fn initialized(world: &World, release: &Path) -> Proof {
    publish(world, release, super::release::FIRST)?;
    let watch = Stopwatch::start();
    init(
        world,
        "--core cluster-api --bootstrap kubeadm --control-plane kubeadm --infrastructure metal3 --ipam metal3",
    )?;
    let took = watch.elapsed();
    let deployments = list(world, MANAGERS, "deployments")?;
    let deployment = deployments.first().context("no Deployment")?;
    let (wanted, there) = (
        &deployment["spec"]["replicas"],
        &deployment["status"]["availableReplicas"],
    );
    ensure!(wanted == there, "{there} of {wanted} replicas are available");
    Ok(format!(
        "five providers, {wanted} replicas of ours, {:.1} s",
        took.as_secs_f64()
    ))
}

/// `clusterctl init` of these providers.
pub(crate) fn init(world: &World, providers: &str) -> anyhow::Result<()> {
    // Its last test of cert-manager takes some seconds to go, and the next one would meet it.
    world.kubectl(&["wait", "--for=delete", "namespace/cert-manager-test", "--timeout=120s"])?;
    let words = ["init", "--wait-providers"]
        .into_iter()
        .chain(providers.split_whitespace());
    world.run("clusterctl", &words.collect::<Vec<_>>(), None).map(drop)
}

/// The kinds of hosts, without the manager that would look after them.
fn host_kinds(world: &World, release: &Path) -> anyhow::Result<()> {
    let path = release.join("hosts-components.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let is_kind = |document: &&str| document.contains("\nkind: CustomResourceDefinition\n");
    let kinds: Vec<&str> = text.split("---\n").filter(is_kind).collect();
    ensure!(!kinds.is_empty(), "{} defines no kind", path.display());
    let words = ["apply", "--server-side", "--filename", "-"];
    world.run("kubectl", &words, Some(&kinds.join("---\n"))).map(drop)
}

fn answers(world: &World, _: &Path) -> Proof {
    let room = world.room("answers")?;
    let older = |spec: Value| {
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3MachineTemplate",
            "metadata": {"name": "older"}, "spec": {"template": {"spec": spec}}})
    };
    let image = json!({"url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256",
        "checksumType": "sha256", "format": "raw"});
    room.apply(&older(json!({"image": image})))?;
    let newer = room.get("metal3machinetemplates.v1beta2.infrastructure.cluster.x-k8s.io/older")?;
    let format = &newer["spec"]["template"]["spec"]["image"]["diskFormat"];
    ensure!(format == "raw", "in the newer version: {}", newer["spec"]);
    let again = room.get("metal3machinetemplates.v1beta1.infrastructure.cluster.x-k8s.io/older")?;
    let format = &again["spec"]["template"]["spec"]["image"]["format"];
    ensure!(format == "raw", "in the older version again: {}", again["spec"]);
    let refused = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": {"name": "bare"}, "spec": {"image": {"url": "http://192.0.2.9/os.raw"}}});
    let refused = room
        .apply(&refused)
        .err()
        .context("an image without checksum was admitted")?;
    let said = format!("{refused:#}");
    ensure!(said.contains("spec.image.checksum"), "{said}");
    Ok(said.lines().next().unwrap_or_default().to_owned())
}
