//! The first process of a stack: creates the network, starts the servers in order, then waits for the first one to end.
//!
//! It restarts nothing: a server that ends stops the stack, so that a test fails.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{WaitOptions, wait};

use crate::components::{self, Component};
use crate::families::{CERT_MANAGER, FAMILIES, Family, KUBERNETES, SERVERS};
use crate::places::{BRIDGE, NODE_NAME, Places};
use crate::wait::{Stopwatch, until};
use crate::{build, pki, registry};

/// Written when all servers are ready: the phases of the start in milliseconds.
pub(crate) const READY: &str = "ready.json";
/// Written when a start fails or a server ends: the error.
pub(crate) const FAILED: &str = "failed.txt";

/// Half a minute was measured on a cold machine with a busy disk.
const API_SERVER_LIMIT: Duration = Duration::from_secs(120);
const START_LIMIT: Duration = Duration::from_secs(60);

/// The components of a stack.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Extent {
    /// Only etcd and the API server, without controllers.
    #[arg(long, conflicts_with = "kubelet_flags")]
    pub(crate) only_api: bool,
    /// With `--only-api`, also the controllers that delete dependents and empty namespaces.
    #[arg(long, requires = "only_api")]
    pub(crate) collector: bool,
    /// Flags for the kubelet: `--kubelet=--refresh=1`.
    #[arg(long = "kubelet", allow_hyphen_values = true)]
    kubelet_flags: Vec<String>,
    /// A registry of images, for Pods with images by digest.
    #[arg(long)]
    pub(crate) registry: bool,
}

impl Extent {
    pub(crate) fn with_kubelet_flags(flags: &[&str]) -> Self {
        Self {
            only_api: false,
            collector: false,
            kubelet_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            registry: false,
        }
    }

    /// The same with a registry.
    pub(crate) fn with_registry(self) -> Self {
        Self { registry: true, ..self }
    }

    /// The families that it requires.
    pub(crate) fn families(&self) -> &'static [Family] {
        if self.only_api { SERVERS } else { FAMILIES }
    }

    /// The command line of these options.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let only_api = self.only_api.then(|| "--only-api".to_owned());
        let flags = self.kubelet_flags.iter().map(|flag| format!("--kubelet={flag}"));
        let collector = self.collector.then(|| "--collector".to_owned());
        let only_api = only_api.into_iter().chain(collector);
        let registry = self.registry.then(|| "--registry".to_owned());
        only_api.chain(registry).chain(flags).collect()
    }
}

pub(crate) fn run(places: &Places, extent: &Extent) -> anyhow::Result<()> {
    let done = start(places, extent).and_then(|servers| wait_for_first_end(&servers));
    if let Err(error) = &done {
        fs::write(places.state_file(FAILED), format!("{error:#}")).unwrap_or_default();
    }
    done
}

type Servers = BTreeMap<u32, &'static str>;

fn start(places: &Places, extent: &Extent) -> anyhow::Result<Servers> {
    let mut phases = Vec::new();
    let mut servers = Servers::new();
    network(places)?;
    let watch = Stopwatch::start();
    spawn(places, &components::etcd(places), &mut servers)?;
    spawn(places, &components::api_server(places), &mut servers)?;
    until(API_SERVER_LIMIT, "the API server", || {
        kubectl(places, &["get", "--raw", "/readyz"]).map(Some)
    })?;
    phases.push(("etcd and kube-apiserver".to_owned(), watch.millis()));
    if extent.registry {
        spawn(places, &registry::component(places)?, &mut servers)?;
        until(START_LIMIT, "the registry", || Ok(registry::serves().then_some(())))?;
    }
    if extent.collector {
        spawn(
            places,
            &components::controller_manager(places, components::COLLECTORS),
            &mut servers,
        )?;
    }
    if !extent.only_api {
        let watch = Stopwatch::start();
        run_pods(places, &extent.kubelet_flags, &mut servers)?;
        phases.push((
            "controllers, scheduler, cert-manager, kubelet".to_owned(),
            watch.millis(),
        ));
    }
    fs::write(places.state_file(READY), serde_json::to_vec(&phases)?)?;
    Ok(servers)
}

/// Starts the controllers, the scheduler, cert-manager and the kubelet, and waits for a ready Node.
fn run_pods(places: &Places, kubelet_flags: &[String], servers: &mut Servers) -> anyhow::Result<()> {
    for component in [
        components::controller_manager(places, components::CONTROLLERS),
        components::scheduler(places),
    ] {
        spawn(places, &component, servers)?;
    }
    let kubelet = std::env::current_exe()?.with_file_name("process-kubelet");
    ensure!(
        kubelet.is_file(),
        "{} is missing: `cargo build -p metal3-e2e-kubelet`",
        kubelet.display()
    );
    spawn(
        places,
        &components::kubelet(places, kubelet, kubelet_flags.to_vec()),
        servers,
    )?;
    certificates(places)?;
    spawn(places, &components::cert_manager(places), servers)?;
    until(START_LIMIT, "the default ServiceAccount", || {
        kubectl(places, &["get", "serviceaccount", "default"]).map(Some)
    })?;
    kubectl(
        places,
        &["wait", "--for=condition=Ready", "node", NODE_NAME, "--timeout=60s"],
    )?;
    Ok(())
}

fn certificates(places: &Places) -> anyhow::Result<()> {
    let crds = places.family(&CERT_MANAGER).join(build::CERT_MANAGER_CRDS);
    let crds = crds.to_str().context("the cache folder's name is not text")?;
    kubectl(places, &["create", "namespace", "cert-manager"])?;
    kubectl(places, &["apply", "--server-side", "--filename", crds])?;
    kubectl(
        places,
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"],
    )?;
    Ok(())
}

/// The network is a bridge: the Node is an address on it, each Pod a veth pair.
fn network(places: &Places) -> anyhow::Result<()> {
    let subnet = format!("{}/24", places.node_address());
    let steps: &[&[&str]] = &[
        &["hostname", NODE_NAME],
        &["ip", "link", "set", "lo", "up"],
        &["ip", "link", "add", BRIDGE, "type", "bridge"],
        &["ip", "address", "add", &subnet, "dev", BRIDGE],
        &["ip", "link", "set", BRIDGE, "up"],
    ];
    for step in steps {
        let (program, arguments) = step.split_first().context("an empty command")?;
        let done = Command::new(program)
            .args(arguments)
            .output()
            .with_context(|| format!("running {program}"))?;
        if !done.status.success() {
            bail!("{}: {}", step.join(" "), String::from_utf8_lossy(&done.stderr).trim());
        }
    }
    Ok(())
}

fn spawn(places: &Places, component: &Component, servers: &mut Servers) -> anyhow::Result<()> {
    let log = places.log(component.name);
    let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let child = Command::new(&component.program)
        .args(&component.arguments)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("starting {}", component.program.display()))?;
    servers.insert(child.id(), component.name);
    Ok(())
}

fn kubectl(places: &Places, arguments: &[&str]) -> anyhow::Result<String> {
    let program: PathBuf = places.family(&KUBERNETES).join("kubectl");
    let done = Command::new(program)
        .arg("--kubeconfig")
        .arg(places.kubeconfig(pki::ADMIN))
        .args(arguments)
        .env("KUBECACHEDIR", places.state_file("kubecache"))
        .output()
        .context("running kubectl")?;
    if !done.status.success() {
        bail!(
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Reaps processes as process 1 of the namespace until one of the servers ends.
fn wait_for_first_end(servers: &Servers) -> anyhow::Result<()> {
    loop {
        let ended = wait(WaitOptions::empty()).context("waiting for the servers")?;
        let Some((pid, status)) = ended else { continue };
        let name = u32::try_from(pid.as_raw_nonzero().get())
            .ok()
            .and_then(|pid| servers.get(&pid));
        if let Some(name) = name {
            bail!("{name} ended ({status:?}), see its log");
        }
    }
}
