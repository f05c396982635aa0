//! `chart-server`: a real API server reads each form of the charts, in a dry run: its schemas, defaults and admission. Then Helm
//! installs and upgrades them there: [`installed`].
//!
//! Monitors and rules are left out: their kinds are those of Prometheus' operator, which no such server has.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use metal3_domain::yaml;
use serde_json::{Value, json};

use super::check::{Helm, NAMESPACE, TENANT, values};
use super::installed;
use super::{DEFINITIONS, PROGRAM, tree};
use crate::run::{next_to, succeed};

/// Values of objects that no form has by itself.
const MORE: [&str; 4] = [
    "dashboards.enabled=true",
    "ironic.username=a",
    "ironic.password=b",
    "ironic.ca=PEM",
];

/// The programs, and the configuration of kubectl.
#[derive(clap::Args)]
pub(crate) struct Programs {
    /// The program `helm`
    #[arg(long)]
    helm: PathBuf,
    /// The program `kubectl`
    #[arg(long)]
    kubectl: PathBuf,
    /// The configuration of kubectl
    #[arg(long)]
    pub(super) kubeconfig: PathBuf,
    /// Definitions of cert-manager, of which most forms have objects
    #[arg(long)]
    cert_manager: PathBuf,
}

/// Has the server read the charts in a folder.
pub(crate) fn run(folder: &Path, programs: &Programs) -> Result<bool> {
    let helm = Helm {
        program: programs.helm.clone(),
        charts: folder.to_path_buf(),
    };
    let needed = programs.cert_manager.display().to_string();
    succeed(kubectl(programs).args(["apply", "--server-side", "--filename", &needed]))?;
    succeed(kubectl(programs).args(["wait", "--for=condition=Established", "crd", "--all"]))?;
    let namespaces = [NAMESPACE, TENANT]
        .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    apply(programs, &namespaces, &[])?;
    let file = next_to(folder, "values.json");
    let outcome = all(&helm, programs, &file);
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("remove {}", file.display()))?;
    }
    let (forms, objects) = outcome?;
    println!("charts: the API server accepts the {objects} objects of {forms} forms");
    let claims = installed::run(&helm, programs)?;
    println!("charts: {claims} claims about releases on the API server hold");
    Ok(true)
}

/// The number of forms and objects that were accepted.
fn all(helm: &Helm, programs: &Programs, file: &Path) -> Result<(usize, usize)> {
    let (mut objects, path) = (0, file.display().to_string());
    let mut forms = tree::forms();
    // A process that observes has the same objects, or none of them, and roles that only read.
    forms.retain(|form| !form.observes || form.left_out == [false; 3]);
    let mut definitions = BTreeSet::new();
    for form in &forms {
        for (chart, values) in [DEFINITIONS, PROGRAM].into_iter().zip(values(form)) {
            let text = values.to_string();
            // Those of a form are those of every other one with the same values, and large.
            if chart == DEFINITIONS && !definitions.insert(text.clone()) {
                continue;
            }
            fs::write(file, text).with_context(|| format!("write {path}"))?;
            let mut arguments = vec!["--values", path.as_str()];
            if chart == PROGRAM && form.left_out == [false; 3] {
                arguments.extend(MORE.iter().flat_map(|one| ["--set", one]));
            }
            let rendered = helm.objects(chart, &arguments)?;
            objects +=
                apply(programs, &rendered, &["--dry-run=server"]).with_context(|| format!("{chart}, {form:?}"))?;
        }
    }
    Ok((forms.len(), objects))
}

/// Applies objects; returns their number, which the server must answer, too.
pub(super) fn apply(programs: &Programs, objects: &[Value], more: &[&str]) -> Result<usize> {
    let arguments = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--output=name",
        "--filename=-",
    ];
    let text: String = objects.iter().map(yaml::document).collect();
    let accepted = with_input(programs, &[&arguments[..], more].concat(), &text)?
        .lines()
        .count();
    ensure!(
        accepted == objects.len(),
        "kubectl applied {accepted} of {} objects",
        objects.len()
    );
    Ok(accepted)
}

/// What kubectl prints for an input.
pub(super) fn with_input(programs: &Programs, arguments: &[&str], text: &str) -> Result<String> {
    let mut kubectl = kubectl(programs)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("run kubectl")?;
    let mut input = kubectl.stdin.take().context("write to kubectl")?;
    input.write_all(text.as_bytes()).context("write to kubectl")?;
    drop(input);
    let output = kubectl.wait_with_output().context("wait for kubectl")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let verb = arguments.first().copied().unwrap_or_default();
    ensure!(output.status.success(), "kubectl {verb}: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn kubectl(programs: &Programs) -> Command {
    let mut kubectl = Command::new(&programs.kubectl);
    kubectl.arg("--kubeconfig").arg(&programs.kubeconfig);
    kubectl
}
