//! The suite about an installation as a user does it: the three ways of README.md, run as they stand there, and inputs that
//! are wrong, with what is seen, which is compared with docs/install.md.

mod page;
mod ways;
mod wrong;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;

use super::fleet::{Fleet, FleetOptions, Wanted};
use super::install;
use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::products::load::list;
use crate::products::machines::NAMESPACE;
use crate::products::written::Written;
use crate::wait::until;
use page::Page;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// The page with the three ways.
    #[arg(long)]
    readme: PathBuf,
    /// The page with the wrong inputs.
    #[arg(long)]
    page: PathBuf,
    /// Only claims whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Write what was seen into that page, instead of comparing it.
    #[arg(long)]
    write: bool,
}

impl Options {
    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = vec!["installation".into()];
        args.extend(self.fleet.args()?);
        for (flag, path) in [("--readme", &self.readme), ("--page", &self.page)] {
            args.extend([flag.into(), fs::canonicalize(path)?.into()]);
        }
        args.extend(["--only".into(), self.only.clone().into()]);
        args.extend(self.write.then(|| "--write".into()));
        Ok(args)
    }
}

/// What the claims need.
struct Installation<'a> {
    stack: &'a Stack,
    fleet: &'a Fleet,
    /// The folder of the release, with its charts.
    release: &'a Path,
    /// The program of the release, for `kubectl metal3`.
    program: &'a Path,
    written: Written,
    readme: String,
    page: Page,
}

type Check = fn(&Installation<'_>) -> Proof;

/// In this order: each claim starts with a cluster in which nothing of the release is installed.
const CLAIMS: &[Claim<Check>] = &[
    // First, because the next one installs Cluster API.
    ("a_missing_cluster_api_is_said", wrong::no_cluster_api),
    (
        "the_lines_of_readme_for_clusterctl_install_what_registers_a_host",
        ways::clusterctl,
    ),
    ("the_lines_of_readme_for_helm_install_what_registers_a_host", ways::helm),
    (
        "the_lines_of_readme_for_kubectl_install_what_registers_a_host",
        ways::kubectl,
    ),
    ("an_unreachable_ironic_is_said", wrong::unreachable),
    ("a_wrong_login_is_said", wrong::login),
    ("definitions_of_another_version_are_said", wrong::definitions),
    ("a_go_manager_that_runs_is_said", wrong::go_manager),
    ("a_missing_cert_manager_is_said", wrong::no_cert_manager),
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
    let files = released.files().into_iter().chain(options.fleet.files());
    let files = files.chain([&options.readme, &options.page]);
    ensure_made(files, "make e2e-install")?;
    Ok(exit_code(released.prove(places, || Ok(()), options.args()?)?))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    let wanted = Wanted {
        machines: 1,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let released = &options.released;
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let installation = Installation {
        stack: &stack,
        fleet: &fleet,
        release: &released.release,
        program: &released.binary,
        written: Written::of(&stack, &released.release)?,
        readme: read(&options.readme)?,
        page: Page::new(options.page.clone(), options.write)?,
    };
    stack.create_namespace(NAMESPACE)?.keep();
    let claims: Vec<_> = CLAIMS.iter().filter(|(name, _)| name.contains(&options.only)).collect();
    for (held, (name, proof)) in claims.iter().enumerate() {
        if !report(name, proof(&installation)) {
            println!("{held} of {} claims hold", claims.len());
            return Ok(exit_code(false));
        }
    }
    println!("{} claims about the installation hold", claims.len());
    Ok(exit_code(true))
}

impl Installation<'_> {
    /// Creates the host of the only machine, as its administrator does.
    fn create_host(&self) -> anyhow::Result<()> {
        let machine = self.fleet.machines.first().context("there is no machine")?;
        let objects: [Value; 2] = install::of_machine(self.fleet, machine)?;
        // The API server builds its OpenAPI documents again for new definitions, and kubectl reads them before it creates.
        self.stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
        until(install_limit(), "a host that is admitted", || {
            self.stack
                .send(&["--namespace", NAMESPACE, "apply"], &objects)
                .map(Some)
        })
    }

    fn host(&self) -> anyhow::Result<Value> {
        let hosts = list(self.stack, NAMESPACE, "baremetalhosts")?;
        hosts.into_iter().next().context("there is no host")
    }

    fn delete_host(&self) -> anyhow::Result<()> {
        let args = [
            "--namespace",
            NAMESPACE,
            "delete",
            "baremetalhosts,secrets",
            "--all",
            "--timeout=120s",
        ];
        self.stack.kubectl(&args).map(drop)
    }

    /// Removes all that any way installed, the definitions included.
    fn clean(&self) -> anyhow::Result<()> {
        for chart in ["metal3-rs", "metal3-rs-crds"] {
            let args = [
                "uninstall",
                chart,
                "--namespace",
                ways::NAMESPACE,
                "--ignore-not-found",
                "--wait",
            ];
            self.stack.run("helm", &args, None)?;
        }
        let mut args = vec!["delete", "--ignore-not-found", "--timeout=120s"];
        let files = ways::FILES.map(|file| self.written.file(file).to_string_lossy().into_owned());
        args.extend(files.iter().flat_map(|file| ["--filename", file.as_str()]));
        self.stack.kubectl(&args).map(drop)
    }
}

/// The start of a program, and of the machines' first cleaning.
const fn install_limit() -> std::time::Duration {
    std::time::Duration::from_secs(240)
}
