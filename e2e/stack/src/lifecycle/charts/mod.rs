//! The suite about the Helm charts: the real helm installs, upgrades, rolls back and uninstalls them while hosts of a real
//! Ironic run. According to Ironic's log none of it touches a host.

mod hosts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::audit;
use super::fleet::{Fleet, FleetOptions, Wanted};
use super::install;
use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::helm::{DEFINITIONS, Helm, NAMESPACE, PROGRAM};
use crate::places::Places;
use crate::products::load::{claim, grants, has_address, left_in_namespace, list, name, pool};
use crate::products::machines::init;
use crate::products::written::NEXT;
use crate::wait::Stopwatch;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Directory written by `make chart`.
    #[arg(long)]
    charts: PathBuf,
    /// The program helm.
    #[arg(long)]
    helm: PathBuf,
}

impl Options {
    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = vec!["charts".into()];
        args.extend(self.fleet.args()?);
        for (flag, path) in [("--charts", &self.charts), ("--helm", &self.helm)] {
            args.extend([flag.into(), std::fs::canonicalize(path)?.into()]);
        }
        Ok(args)
    }
}

/// What the claims need.
struct Charts<'a> {
    stack: &'a Stack,
    fleet: &'a Fleet,
    helm: Helm<'a>,
    /// Directory of the release, for the definitions that kubectl applies.
    release: &'a Path,
}

/// Proves the suite on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.fleet.files());
    ensure_made(files.chain([&options.charts, &options.helm]), "make e2e-chart")?;
    Ok(exit_code(released.prove(places, || Ok(()), options.args()?)?))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    crate::instance::set_image(places, install::IMAGE, &options.released.binary)?;
    let wanted = Wanted {
        machines: hosts::MACHINES,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let charts = Charts {
        stack: &stack,
        fleet: &fleet,
        helm: Helm {
            stack: &stack,
            helm: &options.helm,
            charts: &options.charts,
        },
        release: &options.released.release,
    };
    for (held, (name, proof)) in CLAIMS.iter().enumerate() {
        if !report(name, proof(&charts)) {
            println!("{held} of {} claims hold", CLAIMS.len());
            return Ok(exit_code(false));
        }
    }
    println!("{} claims about the charts hold", CLAIMS.len());
    Ok(exit_code(true))
}

type Check = fn(&Charts<'_>) -> Proof;

/// In this order: each claim starts with the state that the previous one left.
const CLAIMS: &[Claim<Check>] = &[
    (
        "helm_takes_definitions_that_kubectl_applied_only_on_request",
        definitions,
    ),
    ("helm_install_brings_the_three_products", installed),
    ("hosts_are_registered_and_one_is_provisioned", hosts::provisioned),
    ("addresses_are_granted", addresses),
    ("helm_upgrade_touches_no_host", upgraded),
    ("helm_rollback_touches_no_host", rolled_back),
    // Before the roles are deleted, which happens while Pods still end.
    ("no_request_was_forbidden", not_forbidden),
    (
        "helm_uninstall_leaves_definitions_and_the_objects_of_users",
        uninstalled,
    ),
    ("helm_install_takes_over_what_is_left", installed_again),
    ("an_uninstalled_chart_of_definitions_keeps_them", definitions_kept),
];

/// Definitions are the only objects of the release that this suite applies without helm.
fn definitions(charts: &Charts<'_>) -> Proof {
    // Cluster API is there first, as for a user: machines need its kinds.
    init(charts.stack, "--core cluster-api --bootstrap - --control-plane -")?;
    let path = charts.release.join("all-in-one.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let is_kind = |document: &&str| document.contains("\nkind: CustomResourceDefinition\n");
    let kinds: Vec<&str> = text.split("---\n").filter(is_kind).collect();
    let arguments = ["apply", "--server-side", "--filename", "-"];
    charts.stack.run("kubectl", &arguments, Some(&kinds.join("---\n")))?;
    let create = ["--create-namespace"];
    let refused = charts
        .helm
        .apply("install", DEFINITIONS, &create, None)
        .err()
        .context("helm took objects that another tool applied")?;
    ensure!(
        format!("{refused:#}").contains("invalid ownership metadata"),
        "{refused:#}"
    );
    let owned = [&create[..], &["--take-ownership"]].concat();
    charts.helm.apply("install", DEFINITIONS, &owned, None)?;
    Ok(format!("{} kinds", kinds.len()))
}

/// The values of the first installation.
fn values(charts: &Charts<'_>) -> anyhow::Result<Value> {
    let [(username, password), _] = charts.fleet.logins();
    let authority = std::fs::read_to_string(&charts.fleet.authority)?;
    Ok(json!({ "ironic": {
        "endpoint": charts.fleet.ironic_url(), "username": username, "password": password, "ca": authority,
    } }))
}

/// The namespace of a pool and its claim.
const ADDRESSES: &str = "addresses";
const READY: [&str; 2] = ["--wait", "--timeout=180s"];

fn installed(charts: &Charts<'_>) -> Proof {
    let watch = Stopwatch::start();
    charts.helm.apply("install", PROGRAM, &READY, Some(&values(charts)?))?;
    let (image, replicas) = deployed(charts)?;
    Ok(format!(
        "{image}, {replicas} replicas, {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

/// Image and available replicas of the only Deployment.
fn deployed(charts: &Charts<'_>) -> anyhow::Result<(String, u64)> {
    let deployments = list(charts.stack, NAMESPACE, "deployments")?;
    let [deployment] = &deployments[..] else {
        anyhow::bail!("{} Deployments in {NAMESPACE}", deployments.len());
    };
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let available = deployment["status"]["availableReplicas"].as_u64();
    let wanted = deployment["spec"]["replicas"].as_u64();
    ensure!(
        available == wanted,
        "{available:?} of {wanted:?} replicas are available"
    );
    Ok((
        image.as_str().unwrap_or_default().to_owned(),
        available.unwrap_or_default(),
    ))
}

fn addresses(charts: &Charts<'_>) -> Proof {
    let namespace = charts.stack.create_namespace(ADDRESSES)?;
    namespace.apply(&pool("kept", "10.64.0.10", "10.64.0.20"))?;
    namespace.apply(&claim("kept", 0))?;
    let granted = namespace.until("ipclaim/kept-claim-0", "granted", has_address)?;
    namespace.keep();
    Ok(granted["status"]["address"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

fn upgraded(charts: &Charts<'_>) -> Proof {
    let (before, replicas) = deployed(charts)?;
    let name = before.rsplit_once(':').map_or(before.as_str(), |(name, _)| name);
    let mut values = values(charts)?;
    values["image"] = format!("{name}:{NEXT}").into();
    values["replicas"] = (replicas + 1).into();
    hosts::untouched(charts, || {
        charts.helm.apply("upgrade", DEFINITIONS, &[], None)?;
        charts.helm.apply("upgrade", PROGRAM, &READY, Some(&values))?;
        let after = deployed(charts)?;
        ensure!(after == (format!("{name}:{NEXT}"), replicas + 1), "{after:?}");
        Ok(())
    })
}

fn rolled_back(charts: &Charts<'_>) -> Proof {
    hosts::untouched(charts, || {
        let arguments = ["rollback", PROGRAM, "1"];
        charts.helm.run(&[&arguments[..], &READY].concat(), None)?;
        let (image, _) = deployed(charts)?;
        ensure!(!image.ends_with(NEXT), "{image} after the rollback");
        Ok(())
    })
}

fn uninstalled(charts: &Charts<'_>) -> Proof {
    let manifest = charts.helm.manifest(PROGRAM)?;
    let objects = charts.helm.existing(&manifest)?.len();
    ensure!(objects > 0, "the release has no object");
    let (kinds, addresses) = (definitions_of(charts)?, granted(charts)?);
    let done = hosts::unchanged(charts, || {
        charts
            .helm
            .run(&["uninstall", PROGRAM, "--wait", "--timeout=180s"], None)
            .map(drop)
    })?;
    ensure!(definitions_of(charts)? == kinds, "definitions are missing");
    ensure!(granted(charts)? == addresses, "addresses are missing");
    let left = charts.helm.existing(&manifest)?;
    ensure!(left.is_empty(), "helm left {left:?}");
    let left = left_in_namespace(charts.stack, NAMESPACE)?;
    // They are created by processes: Leases by the program, and the Secret of a certificate by cert-manager.
    let is_created_later = |own: &String| own.starts_with("Lease/") || own == "Secret/metal3-webhook-service-cert";
    ensure!(left.iter().all(is_created_later), "left in {NAMESPACE}: {left:?}");
    Ok(format!(
        "{objects} objects are deleted, {} are left for the namespace; {done}",
        left.len()
    ))
}

fn installed_again(charts: &Charts<'_>) -> Proof {
    let addresses = granted(charts)?;
    let done = hosts::untouched(charts, || {
        charts.helm.apply("install", PROGRAM, &READY, Some(&values(charts)?))
    })?;
    ensure!(granted(charts)? == addresses, "addresses are missing");
    Ok(done)
}

/// The definitions of the other chart, none of which is being deleted.
fn definitions_of(charts: &Charts<'_>) -> anyhow::Result<Vec<String>> {
    existing_definitions(charts, &charts.helm.manifest(DEFINITIONS)?)
}

fn existing_definitions(charts: &Charts<'_>, manifest: &str) -> anyhow::Result<Vec<String>> {
    let names = charts.helm.existing(manifest)?;
    ensure!(!names.is_empty(), "there is no definition");
    let all = charts.stack.kubectl(&["get", "crd", "--output=json"])?;
    let all: Value = serde_json::from_str(&all)?;
    let deleted = |one: &&Value| !one["metadata"]["deletionTimestamp"].is_null();
    let deleted: Vec<String> = all["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(deleted)
        .map(name)
        .collect();
    ensure!(deleted.is_empty(), "{deleted:?} are being deleted");
    Ok(names)
}

/// The addresses of the claims.
fn granted(charts: &Charts<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let granted = grants(charts.stack, ADDRESSES)?;
    ensure!(!granted.is_empty(), "no claim has an address");
    Ok(granted)
}

fn definitions_kept(charts: &Charts<'_>) -> Proof {
    let manifest = charts.helm.manifest(DEFINITIONS)?;
    let before = existing_definitions(charts, &manifest)?;
    hosts::unchanged(charts, || {
        charts.helm.run(&["uninstall", DEFINITIONS, "--wait"], None)?;
        let after = existing_definitions(charts, &manifest)?;
        ensure!(before == after, "{} of {} definitions exist", after.len(), before.len());
        Ok(())
    })
}

fn not_forbidden(charts: &Charts<'_>) -> Proof {
    audit::nothing_forbidden_for(
        charts.stack,
        &format!("system:serviceaccount:{NAMESPACE}:metal3-manager"),
    )
}
