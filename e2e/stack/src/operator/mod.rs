//! The suite about the Cluster API operator: the commands of docs/install.md install it from its module, and the release by it.
//! Cluster API and the first release of machines come from ConfigMaps, addresses from an artifact in the registry of the stack.
//!
//! Each claim depends on the previous ones, so they run in order and the first failure ends the run.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod page;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::build::{self, CLUSTER_API_PROVIDERS, METADATA, OPERATOR_COMPONENTS};
use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::families::{CLUSTER_API, CLUSTER_API_OPERATOR, FAMILIES};
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::products::load::{claim, grants, has_address, left_in_namespace, list, name, pool};
use crate::products::written::{NEXT, Written, labelled, next_image};
use crate::wait::{Stopwatch, until};
use crate::{instance, registry};
use page::Commands;

/// The program of the operator, and the last element of its image's name.
const PROGRAM: &str = "cluster-api-operator";
const PLUGIN: &str = "kubectl-operator";
/// A start of the managers on two cores that also run the API server.
const LONG: Duration = Duration::from_secs(240);
/// The namespace of what users create.
const USERS: &str = "users";
/// The providers of the release: kind, namespace, components, and the label of their objects.
const PROVIDERS: [(&str, &str, &str, &str); 2] = [
    (
        "infrastructureproviders",
        "capm3-system",
        "infrastructure-components.yaml",
        "infrastructure-metal3",
    ),
    (
        "ipamproviders",
        "metal3-ipam-system",
        "ipam-components.yaml",
        "ipam-metal3",
    ),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    /// The page with the commands.
    #[arg(long)]
    page: PathBuf,
}

/// What the claims need.
struct Operated<'a> {
    stack: &'a Stack,
    commands: Commands,
    written: Written,
    /// The version of the release.
    version: String,
    /// Where the commands run.
    folder: PathBuf,
}

type Check = fn(&Operated<'_>) -> Proof;

/// In this order: each claim starts with the state that the previous one left.
const CLAIMS: &[Claim<Check>] = &[
    ("the_operator_of_its_module_becomes_available", operator),
    ("its_providers_become_ready_at_the_version_of_the_release", providers),
    ("an_address_is_granted_and_a_template_admitted", used),
    (
        "a_change_of_the_version_rolls_the_managers_and_keeps_the_address",
        upgraded,
    ),
    ("deleted_providers_leave_definitions_and_the_objects_of_users", deleted),
];

/// Proves the suite on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    ensure!(
        released.bundle.is_some(),
        "--bundle: the release with its images, which the Pods pull"
    );
    ensure_made(released.files().into_iter().chain([&options.page]), "make e2e-operator")?;
    // Its objects are rendered by kubectl.
    build::missing(places, FAMILIES)?;
    build::missing(places, &[CLUSTER_API_OPERATOR])?;
    let args: Vec<OsString> = vec![
        "operator".into(),
        "--page".into(),
        fs::canonicalize(&options.page)?.into(),
    ];
    Ok(exit_code(released.prove(places, || Ok(()), args)?))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    let release = &options.released.release;
    let page = &options.page;
    let page = fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let written = Written::of(&stack, release)?;
    let operated = Operated {
        commands: Commands::read(&page)?,
        version: written.version("ipam-metal3")?,
        folder: folder(&stack, release, &written)?,
        stack: &stack,
        written,
    };
    instance::set_image(places, PROGRAM, &places.family(&CLUSTER_API_OPERATOR).join(PROGRAM))?;
    for (held, (name, proof)) in CLAIMS.iter().enumerate() {
        if !report(name, proof(&operated)) {
            println!("{held} of {} claims hold", CLAIMS.len());
            return Ok(exit_code(false));
        }
    }
    println!("{} claims about the operator hold", CLAIMS.len());
    Ok(exit_code(true))
}

/// The folder of a user: the release, the next one, the files of Cluster API and of the operator, and its plugin.
fn folder(stack: &Stack, release: &Path, written: &Written) -> anyhow::Result<PathBuf> {
    let places = &stack.places;
    let folder = places.state_file("user");
    for inner in ["bin", "cluster-api"] {
        fs::create_dir_all(folder.join(inner))?;
    }
    symlink(release, folder.join("out"))?;
    let next = written.next(stack)?;
    symlink(next.file(""), folder.join("next"))?;
    let home = places.family(&CLUSTER_API_OPERATOR);
    symlink(home.join(PLUGIN), folder.join("bin").join(PLUGIN))?;
    symlink(home.join(OPERATOR_COMPONENTS), folder.join(OPERATOR_COMPONENTS))?;
    let [(_, _, core), ..] = CLUSTER_API_PROVIDERS else {
        anyhow::bail!("Cluster API has no provider");
    };
    let home = places.family(&CLUSTER_API);
    for file in [core, METADATA] {
        fs::copy(home.join(file), folder.join("cluster-api").join(file))?;
    }
    Ok(folder)
}

impl Operated<'_> {
    /// Runs commands of the page in the folder of the user.
    fn run(&self, commands: &str) -> anyhow::Result<String> {
        let registry = format!("http://{}", registry::for_pods(&self.stack.places));
        let commands = page::with(commands, &registry, &self.version)?;
        // kubectl finds its plugin next to the files.
        let shell = format!("cd '{}'\nPATH=$PWD/bin:$PATH\n{commands}", self.folder.display());
        self.stack
            .run("bash", &["-e", "-o", "pipefail", "-c", &shell], None)
            .with_context(|| self.reasons())
    }

    /// The conditions of the providers that are not true.
    fn reasons(&self) -> String {
        let mut said = Vec::new();
        for kind in ["coreproviders", "infrastructureproviders", "ipamproviders"] {
            let all = self.stack.kubectl(&["get", kind, "--all-namespaces", "--output=json"]);
            let all: Value = serde_json::from_str(&all.unwrap_or_default()).unwrap_or_default();
            said.extend(all["items"].as_array().into_iter().flatten().flat_map(untrue));
        }
        format!("conditions of the providers: {said:?}")
    }

    /// The installed version of each provider of the release.
    fn versions(&self) -> anyhow::Result<Vec<String>> {
        let of = |(kind, namespace, ..): (&str, &str, &str, &str)| {
            let all = list(self.stack, namespace, kind)?;
            let one = all.first().with_context(|| format!("no {kind} in {namespace}"))?;
            Ok(one["status"]["installedVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned())
        };
        PROVIDERS.into_iter().map(of).collect()
    }

    /// The image and the UID of the Deployment of each provider, which is rolled out.
    fn deployments(&self) -> anyhow::Result<Vec<(String, String)>> {
        let of = |(_, namespace, ..): (&str, &str, &str, &str)| {
            let own = [
                "--namespace",
                namespace,
                "rollout",
                "status",
                "deployment",
                "--timeout=240s",
            ];
            self.stack.kubectl(&own)?;
            let all = list(self.stack, namespace, "deployments")?;
            let [one] = &all[..] else {
                anyhow::bail!("{} Deployments in {namespace}", all.len());
            };
            let image = &one["spec"]["template"]["spec"]["containers"][0]["image"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Ok((text(image), text(&one["metadata"]["uid"])))
        };
        PROVIDERS.into_iter().map(of).collect()
    }

    /// The addresses of the users' claims.
    fn granted(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let granted = grants(self.stack, USERS)?;
        ensure!(!granted.is_empty(), "no claim has an address");
        Ok(granted)
    }

    fn claim(&self, number: usize) -> anyhow::Result<()> {
        let arguments = ["--namespace", USERS, "apply"];
        self.stack.send(&arguments, &[claim("kept", number)])?;
        let named = format!("kept-claim-{number}");
        until(LONG, "an address", || {
            let claims = list(self.stack, USERS, "ipclaims.ipam.metal3.io")?;
            let own = claims.iter().find(|claim| name(claim) == named);
            Ok(own.is_some_and(has_address).then_some(()))
        })
    }
}

/// The conditions of a provider that are not true.
fn untrue(provider: &Value) -> Vec<String> {
    let conditions = provider["status"]["conditions"].as_array();
    let others = conditions.into_iter().flatten().filter(|one| one["status"] != "True");
    let own = name(provider);
    others
        .map(|one| format!("{} {own}: {} {}", provider["kind"], one["type"], one["message"]))
        .collect()
}

fn operator(operated: &Operated<'_>) -> Proof {
    let watch = Stopwatch::start();
    operated.run(&operated.commands.operator)?;
    Ok(format!(
        "{} {}, {:.1} s",
        CLUSTER_API_OPERATOR.name,
        CLUSTER_API_OPERATOR.version(),
        watch.elapsed().as_secs_f64()
    ))
}

fn providers(operated: &Operated<'_>) -> Proof {
    let watch = Stopwatch::start();
    operated.run(&operated.commands.sources)?;
    // cert-manager writes the CA of the operator's webhooks after its Pods are ready.
    until(LONG, "providers that are admitted", || {
        operated.run(&operated.commands.providers).map(Some)
    })?;
    operated.run(&operated.commands.ready)?;
    let versions = operated.versions()?;
    ensure!(
        versions.iter().all(|version| *version == operated.version),
        "installed: {versions:?}, not {}",
        operated.version
    );
    let deployments = operated.deployments()?;
    ensure!(
        deployments.iter().all(|(image, _)| image.contains("@sha256:")),
        "{deployments:?}"
    );
    Ok(format!(
        "{} providers at {}, {:.1} s",
        versions.len() + 1,
        operated.version,
        watch.elapsed().as_secs_f64()
    ))
}

fn used(operated: &Operated<'_>) -> Proof {
    operated.stack.create_namespace(USERS)?.keep();
    let image = json!({"url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256",
        "checksumType": "sha256", "format": "raw"});
    let template = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3MachineTemplate",
        "metadata": {"name": "kept"}, "spec": {"template": {"spec": {"image": image}}}});
    let objects = [pool("kept", "10.64.0.10", "10.64.0.20"), template];
    operated.stack.send(&["--namespace", USERS, "apply"], &objects)?;
    operated.claim(0)?;
    Ok(operated.granted()?.into_values().collect::<Vec<_>>().join(" "))
}

fn upgraded(operated: &Operated<'_>) -> Proof {
    let (watch, before, addresses) = (Stopwatch::start(), operated.deployments()?, operated.granted()?);
    operated.run(&operated.commands.upgrade)?;
    let versions = operated.versions()?;
    ensure!(
        versions.iter().all(|version| version == NEXT),
        "installed: {versions:?}"
    );
    let after = operated.deployments()?;
    for ((old, _), (new, _)) in before.iter().zip(&after) {
        ensure!(*new == next_image(old)?, "{new} after {old}");
    }
    ensure!(operated.granted()? == addresses, "an address changed its claim");
    operated.claim(2)?;
    let replaced = before.iter().zip(&after).filter(|((_, old), (_, new))| old != new);
    Ok(format!(
        "{} Deployments, {} of them replaced, {} grants as before, {:.1} s",
        after.len(),
        replaced.count(),
        addresses.len(),
        watch.elapsed().as_secs_f64()
    ))
}

fn deleted(operated: &Operated<'_>) -> Proof {
    let (stack, addresses) = (operated.stack, operated.granted()?);
    operated.run(&operated.commands.delete)?;
    let mut left = Vec::new();
    for (_, namespace, file, label) in PROVIDERS {
        until(LONG, "the end of the manager", || {
            Ok(list(stack, namespace, "pods")?.is_empty().then_some(()))
        })?;
        let others = || {
            let mut objects = [operated.written.existing(stack, file)?, labelled(stack, label)?].concat();
            objects.retain(|object| !is_kept(object));
            anyhow::Ok(objects)
        };
        // The garbage collector deletes some of them, which takes seconds after the Pods ended.
        let ended = until(LONG, "the end of the other objects", || {
            Ok(others()?.is_empty().then_some(()))
        });
        if ended.is_err() {
            bail!("the operator left {:?}", others()?);
        }
        left.extend(left_in_namespace(stack, namespace)?);
    }
    ensure!(operated.granted()? == addresses, "addresses are missing");
    let templates = list(stack, USERS, "metal3machinetemplates.infrastructure.cluster.x-k8s.io")?;
    ensure!(templates.len() == 1, "{} templates are left", templates.len());
    Ok(format!(
        "{} addresses are left, and in the namespaces {left:?}",
        addresses.len()
    ))
}

/// Whether a deleted provider keeps an object, of which this is kind and name.
fn is_kept(object: &str) -> bool {
    object.starts_with("customresourcedefinition.") || object.starts_with("namespace/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_namespaces_are_kept() {
        assert!(is_kept(
            "customresourcedefinition.apiextensions.k8s.io/ippools.ipam.metal3.io"
        ));
        assert!(is_kept("namespace/capm3-system"));
        assert!(!is_kept("clusterrole.rbac.authorization.k8s.io/capm3-manager-role"));
    }

    #[test]
    fn conditions_that_are_not_true_are_named() {
        let provider = json!({"kind": "IPAMProvider", "metadata": {"name": "metal3"}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "message": "yes"},
            {"type": "ProviderInstalled", "status": "False", "message": "no artifact"},
        ]}});
        let said = untrue(&provider);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].contains("ProviderInstalled") && said[0].contains("no artifact"),
            "{said:?}"
        );
        assert!(untrue(&json!({})).is_empty());
    }

    #[test]
    fn page_has_the_version_of_cluster_api() {
        let page = include_str!("../../../../docs/install.md");
        let commands = Commands::read(page).unwrap();
        let version = CLUSTER_API.version();
        assert!(
            commands.sources.contains(version) && commands.providers.contains(version),
            "{version}"
        );
    }
}
