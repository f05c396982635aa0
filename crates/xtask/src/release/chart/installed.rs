//! Releases of the charts on a real API server. No Pod runs there: the claims are about objects.
//!
//! Each claim starts with the state that the previous one left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use metal3_domain::yaml;
use metal3_runtime::guard;
use serde_json::Value;

use super::check::{Helm, NAMESPACE, TENANT};
use super::dry_run::{Programs, apply, kubectl, with_input};
use super::{CHARTS, DEFINITIONS, PROGRAM};
use crate::release::form::{DEFINITION, Form, key};
use crate::run::{next_to, succeed};

/// The image of the older release.
const OLDER: &str = "registry.example/metal3/older@sha256:00";
const ENDPOINT: &str = "https://ironic.example:6385";

struct Server<'a> {
    helm: &'a Helm,
    programs: &'a Programs,
    /// Copies of the charts, with another image.
    older: PathBuf,
}

type Claim = fn(&Server<'_>) -> Result<()>;

const CLAIMS: [(&str, Claim); 4] = [
    (
        "an upgrade that reuses the values runs the image of the newer chart",
        reused,
    ),
    (
        "an upgrade for a namespace that is missing fails and changes nothing",
        missing_namespace,
    ),
    (
        "definitions of another namespace or of other certificates are refused with what to do",
        other_definitions,
    ),
    (
        "a removal by the label leaves definitions and the namespace, and nothing else",
        removed,
    ),
];

/// Holds the claims; returns their number.
pub(super) fn run(helm: &Helm, programs: &Programs) -> Result<usize> {
    let older = next_to(&helm.charts, "older");
    copy(&helm.charts, &older)?;
    let server = Server { helm, programs, older };
    let outcome = CLAIMS
        .iter()
        .try_for_each(|(name, claim)| claim(&server).with_context(|| (*name).to_owned()));
    fs::remove_dir_all(&server.older).with_context(|| format!("remove {}", server.older.display()))?;
    outcome.map(|()| CLAIMS.len())
}

/// The folders of the charts, with another image.
fn copy(charts: &Path, older: &Path) -> Result<()> {
    fs::create_dir_all(older).with_context(|| format!("create {}", older.display()))?;
    for chart in CHARTS {
        succeed(Command::new("cp").arg("-R").arg(charts.join(chart)).arg(older))?;
    }
    let file = older.join(PROGRAM).join("Chart.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let image = of_chart(&text)?;
    fs::write(&file, text.replace(image, OLDER)).with_context(|| format!("write {}", file.display()))
}

/// The image that `Chart.yaml` names.
fn of_chart(text: &str) -> Result<&str> {
    let mut values = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(super::IMAGE_ANNOTATION)?.strip_prefix(": "));
    let image = values.next().context("Chart.yaml names no image")?;
    Ok(image.trim_matches('"'))
}

impl Server<'_> {
    /// Runs Helm; returns whether it succeeds, and what it prints.
    fn helm(&self, arguments: &[&str], chart: Option<&Path>) -> Result<(bool, String)> {
        let mut helm = Command::new(&self.helm.program);
        helm.args(arguments)
            .args(chart)
            .arg("--kubeconfig")
            .arg(&self.programs.kubeconfig);
        let output = helm.output().context("run helm")?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok((output.status.success(), text))
    }

    /// Installs or upgrades a chart in a namespace.
    fn apply(&self, verb: &str, chart: &Path, namespace: &str, more: &[&str]) -> Result<(bool, String)> {
        let name = chart.file_name().and_then(|name| name.to_str()).unwrap_or(PROGRAM);
        let arguments = [&[verb, "--namespace", namespace][..], more, &[name]].concat();
        self.helm(&arguments, Some(chart))
    }

    fn this(&self, chart: &str) -> PathBuf {
        self.helm.charts.join(chart)
    }

    /// A member of an object of the namespace, or of the cluster.
    fn at(&self, object: &str, pointer: &str) -> Result<Value> {
        let mut kubectl = kubectl(self.programs);
        kubectl.args(["--namespace", NAMESPACE, "get", object, "--output=json"]);
        let output = kubectl.output().context("run kubectl")?;
        ensure!(
            output.status.success(),
            "kubectl get {object}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let object: Value = serde_json::from_slice(&output.stdout)?;
        Ok(object.pointer(pointer).cloned().unwrap_or_default())
    }
}

fn done((succeeded, text): (bool, String)) -> Result<()> {
    match succeeded {
        true => Ok(()),
        false => bail!("helm: {text}"),
    }
}

fn refused((succeeded, text): (bool, String), why: &str) -> Result<()> {
    ensure!(!succeeded && text.contains(why), "helm does not say {why:?}: {text}");
    Ok(())
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";
const DEPLOYMENT: &str = "deployment/metal3-controller-manager";

fn reused(server: &Server<'_>) -> Result<()> {
    let endpoint = format!("ironic.endpoint={ENDPOINT}");
    done(server.apply("install", &server.this(DEFINITIONS), NAMESPACE, &[])?)?;
    done(server.apply("install", &server.older.join(PROGRAM), NAMESPACE, &["--set", &endpoint])?)?;
    let before = server.at(DEPLOYMENT, IMAGE)?;
    ensure!(before == OLDER, "the older release has the image {before}");
    done(server.apply("upgrade", &server.this(PROGRAM), NAMESPACE, &["--reuse-values"])?)?;
    let chart = server.this(PROGRAM).join("Chart.yaml");
    let text = fs::read_to_string(&chart).with_context(|| format!("read {}", chart.display()))?;
    let (wanted, after) = (of_chart(&text)?, server.at(DEPLOYMENT, IMAGE)?);
    ensure!(after == wanted, "the image is {after} and not {wanted}");
    let kept = server.at("configmap/metal3", "/data/IRONIC_ENDPOINT")?;
    ensure!(kept == ENDPOINT, "the endpoint is {kept}");
    Ok(())
}

/// The role that is narrowed to a namespace.
const ROLE: &str = "clusterrole/metal3-capm3-manager-role";

fn missing_namespace(server: &Server<'_>) -> Result<()> {
    let before = server.at(ROLE, "/rules")?;
    let values = ["--reset-then-reuse-values", "--set", "watchNamespace=nowhere"];
    let answer = server.apply("upgrade", &server.this(PROGRAM), NAMESPACE, &values)?;
    refused(answer, "the namespace nowhere does not exist; create it first")?;
    let after = server.at(ROLE, "/rules")?;
    ensure!(after == before, "the role has {after}");
    // One that exists is accepted, and so is the way back.
    for watched in [TENANT, ""] {
        let value = format!("watchNamespace={watched}");
        let values = ["--reset-then-reuse-values", "--set-string", &value];
        done(server.apply("upgrade", &server.this(PROGRAM), NAMESPACE, &values)?)?;
    }
    let after = server.at(ROLE, "/rules")?;
    ensure!(after == before, "the role has {after} after the way back");
    Ok(())
}

fn other_definitions(server: &Server<'_>) -> Result<()> {
    let values = ["--reset-then-reuse-values", "--set", "certificates=self-managed"];
    let answer = server.apply("upgrade", &server.this(PROGRAM), NAMESPACE, &values)?;
    refused(answer, "is not of certificates=self-managed: upgrade metal3-rs-crds")?;
    for chart in [PROGRAM, DEFINITIONS] {
        done(server.helm(&["uninstall", chart, "--namespace", NAMESPACE], None)?)?;
    }
    let other = ["--take-ownership"];
    done(server.apply("install", &server.this(DEFINITIONS), "default", &other)?)?;
    let answer = server.apply("install", &server.this(PROGRAM), NAMESPACE, &[])?;
    refused(
        answer,
        "is converted in namespace default: install metal3-rs-crds and metal3-rs both in metal3-system",
    )
}

fn removed(server: &Server<'_>) -> Result<()> {
    let objects = Form::default().objects(OLDER, None);
    apply(server.programs, &objects, &[])?;
    let (label, value) = guard::PART_OF_LABEL;
    let text: String = objects.iter().map(yaml::document).collect();
    let selector = format!("--selector={label}={value}");
    with_input(server.programs, &["delete", "--filename=-", &selector], &text)?;
    let left = with_input(
        server.programs,
        &["get", "--filename=-", "--ignore-not-found", "--output=name"],
        &text,
    )?;
    let wanted = objects
        .iter()
        .map(key)
        .filter_map(|(kind, _, name)| match kind.as_str() {
            DEFINITION => Some(format!("customresourcedefinition.apiextensions.k8s.io/{name}")),
            "Namespace" => Some(format!("namespace/{name}")),
            _ => None,
        });
    let (left, wanted): (BTreeSet<String>, BTreeSet<String>) =
        (left.lines().map(str::to_owned).collect(), wanted.collect());
    ensure!(left == wanted, "left are {left:?}");
    Ok(())
}
