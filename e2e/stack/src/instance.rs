//! The commands of a stack: up, exec, down.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::families::{CLUSTER_API, CLUSTER_API_IMAGES};
use crate::namespaces::{self, Started, process_start};
use crate::places::Places;
use crate::record::Record;
use crate::supervise::{Extent, FAILED, READY};
use crate::wait::{Stopwatch, until};
use crate::{build, components, pki, repository, tools};

const START_LIMIT: Duration = Duration::from_secs(240);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Builds missing programs, starts the stack, and prints its addresses.
pub(crate) fn up(places: &Places, extent: &Extent) -> anyhow::Result<()> {
    let _lock = lock(places)?;
    if let Some(record) = Record::of_running(places)? {
        ensure!(
            record.only_api == extent.only_api,
            "stack `{}` is up, but {} controllers: `stack --name {} down` stops it",
            places.name,
            if record.only_api { "without" } else { "with" },
            places.name
        );
        println!("stack `{}` is already up (process {})", places.name, record.holder.pid);
        print_addresses(places);
        return Ok(());
    }
    tools::ensure_packages(places, tools::STACK)?;
    if extent.registry {
        tools::ensure_packages(places, tools::REGISTRY)?;
    }
    namespaces::ensure_allowed()?;
    let watch = Stopwatch::start();
    let built = build::missing(places, extent.families())?;
    let build_time = watch.millis();
    if places.state().exists() {
        println!("removing the files of a killed stack `{}`", places.name);
        remove_state(places)?;
    }
    let watch = Stopwatch::start();
    prepare(places, extent)?;
    let holder = spawn(places, extent)?;
    let mut record = Record {
        holder,
        only_api: extent.only_api,
        phases: vec![("files and certificates".to_owned(), watch.millis())],
    };
    record.write(places)?;
    let mut phases = match await_ready(places, holder) {
        Ok(phases) => phases,
        Err(error) => {
            stop(places, holder)?;
            return Err(error.context(format!("the logs are in {}", places.state().join("log").display())));
        }
    };
    record.phases.append(&mut phases);
    record.write(places)?;
    print_report(places, extent, &record, watch.millis(), built.then_some(build_time));
    Ok(())
}

/// Stops the stack and removes its files. It is no error when the stack is not running.
pub(crate) fn down(places: &Places) -> anyhow::Result<()> {
    let lock = lock(places)?;
    let watch = Stopwatch::start();
    let running = Record::of_running(places)?;
    if let Some(record) = &running {
        stop(places, record.holder)?;
    }
    let left = places.state().exists();
    remove_state(places)?;
    drop(lock);
    fs::remove_file(places.lock()).unwrap_or_default();
    match (running, left) {
        (Some(_), _) => println!("stack `{}` stopped in {} ms", places.name, watch.millis()),
        (None, true) => println!("stack `{}` was not running; its files are removed", places.name),
        (None, false) => println!("stack `{}` is not up", places.name),
    }
    Ok(())
}

/// Runs a command in the stack's network and returns its exit code.
pub(crate) fn exec(places: &Places, args: &[OsString]) -> anyhow::Result<ExitCode> {
    let status = command(places, args)?.status().context("running nsenter")?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// A command in the stack's network, with its tools, kubeconfig and clusterctl configuration.
pub(crate) fn command(places: &Places, args: &[impl AsRef<std::ffi::OsStr>]) -> anyhow::Result<Command> {
    let mut command = namespaces::enter(Record::required(places)?.holder)?;
    command
        .args(args)
        .env("PATH", places.search_path()?)
        .envs(environment(places));
    Ok(command)
}

/// The environment of kubectl and clusterctl.
///
/// Cluster API runs with the topology controller, Ignition and taints everywhere: without objects that use them they cost nothing that
/// can be measured.
pub(crate) fn environment(places: &Places) -> [(&'static str, PathBuf); 7] {
    [
        ("KUBECONFIG", places.kubeconfig(pki::ADMIN)),
        ("KUBECACHEDIR", places.state_file("kubecache")),
        ("XDG_CONFIG_HOME", places.state_file("xdg")),
        ("CLUSTERCTL_DISABLE_VERSIONCHECK", "true".into()),
        ("CLUSTER_TOPOLOGY", "true".into()),
        ("EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION", "true".into()),
        ("EXP_MACHINE_TAINT_PROPAGATION", "true".into()),
    ]
}

/// Adds or replaces a row of the image table, for containers that start afterwards.
pub(crate) fn set_image(places: &Places, image: &str, binary: &Path) -> anyhow::Result<()> {
    set_image_of_files(places, image, binary, &[])
}

/// The same for an image with more files: the path in the container, and the path on the machine.
pub(crate) fn set_image_of_files(
    places: &Places,
    image: &str,
    binary: &Path,
    files: &[(&str, &Path)],
) -> anyhow::Result<()> {
    Record::required(places)?;
    let found = |path: &Path| {
        let found = path.canonicalize();
        found.with_context(|| format!("no program at {}", path.display()))
    };
    let mut row = format!("{image} {}", found(binary)?.display());
    for (to, from) in files {
        row += &format!(" {to}={}", found(from)?.display());
    }
    ensure!(
        !image.contains(['/', ':', '@', ' ']) && !image.is_empty(),
        "`{image}`: the last element of the image's name, without tag: `cluster-api-controller`"
    );
    let path = places.images();
    let table = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let others = table
        .lines()
        .filter(|line| line.split_whitespace().next() != Some(image));
    let mut table: Vec<String> = others.map(str::to_owned).collect();
    table.push(row);
    // By a rename: the kubelet may read the table at any time.
    let partial = path.with_extension("partial");
    fs::write(&partial, table.join("\n") + "\n")?;
    fs::rename(&partial, &path).with_context(|| format!("writing {}", path.display()))
}

/// Allows one command at a time per stack.
fn lock(places: &Places) -> anyhow::Result<File> {
    let path = places.lock();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)?;
    match file.try_lock() {
        Ok(()) => {
            writeln!(file, "{}", std::process::id())?;
            Ok(file)
        }
        Err(fs::TryLockError::WouldBlock) => {
            bail!(
                "another `stack` command is running for stack `{}` ({} is locked)",
                places.name,
                path.display()
            )
        }
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}

fn prepare(places: &Places, extent: &Extent) -> anyhow::Result<()> {
    for folder in ["", "log/pods", "pods", "etcd"] {
        fs::create_dir_all(places.state().join(folder))?;
    }
    fs::set_permissions(places.state(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    pki::write(places)?;
    fs::write(places.state_file("audit.yaml"), components::AUDIT_POLICY)?;
    if extent.only_api {
        return Ok(());
    }
    let home = places.family(&CLUSTER_API);
    let rows: Vec<String> = CLUSTER_API_IMAGES
        .iter()
        .map(|image| format!("{image} {}\n", home.join(image).display()))
        .collect();
    fs::write(places.images(), rows.concat())?;
    repository::seed(places)
}

fn spawn(places: &Places, extent: &Extent) -> anyhow::Result<Started> {
    let log = File::create(places.log("stack"))?;
    let mut command = namespaces::unshare(&std::env::current_exe()?);
    command
        .arg("--cache")
        .arg(places.cache())
        .arg("--name")
        .arg(&places.name)
        .arg("--network")
        .arg(places.network().to_string())
        .arg("supervise");
    command.args(extent.arguments());
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("starting the stack's first process")?;
    let start = process_start(child.id()).context("the stack's first process ended at once")?;
    Ok(Started { pid: child.id(), start })
}

fn await_ready(places: &Places, holder: Started) -> anyhow::Result<Vec<(String, u64)>> {
    let outcome = until(START_LIMIT, "the stack", || {
        if let Ok(text) = fs::read(places.state_file(READY)) {
            // Not written atomically: an incomplete file is invalid JSON.
            return Ok(serde_json::from_slice(&text).ok().map(Ok));
        }
        if let Ok(reason) = fs::read_to_string(places.state_file(FAILED)) {
            return Ok(Some(Err(anyhow::anyhow!(reason))));
        }
        if !holder.is_alive() {
            let output = fs::read_to_string(places.log("stack")).unwrap_or_default();
            return Ok(Some(Err(anyhow::anyhow!(
                "the stack's first process ended: {}",
                output.trim()
            ))));
        }
        Ok(None)
    });
    outcome?
}

/// Kills the holder. The process namespace with all its processes ends before the holder does.
fn stop(places: &Places, holder: Started) -> anyhow::Result<()> {
    let first = namespaces::first_process(holder).ok();
    let first = first.and_then(|pid| process_start(pid).map(|start| Started { pid, start }));
    namespaces::kill(first.unwrap_or(holder))?;
    until(STOP_LIMIT, &format!("the end of stack `{}`", places.name), || {
        let ended = !holder.is_alive() && !first.is_some_and(Started::is_alive);
        Ok(ended.then_some(()))
    })
}

fn remove_state(places: &Places) -> anyhow::Result<()> {
    let state = places.state();
    match fs::remove_dir_all(&state) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("removing {}", state.display())),
    }
    // The parent directory is removed with the last stack.
    state
        .parent()
        .map(fs::remove_dir)
        .transpose()
        .map_or(Ok(()), |_| Ok(()))
}

fn print_report(places: &Places, extent: &Extent, record: &Record, total: u64, build: Option<u64>) {
    let versions: Vec<String> = extent
        .families()
        .iter()
        .map(|family| format!("{} {}", family.name, family.version()))
        .collect();
    println!("versions    {}", versions.join(", "));
    print_addresses(places);
    if let Some(build) = build {
        println!("built in    {:.1} s", seconds(build));
    }
    let phases: Vec<String> = record
        .phases
        .iter()
        .map(|(what, ms)| format!("{what} {:.1} s", seconds(*ms)))
        .collect();
    println!("started in  {:.1} s: {}", seconds(total), phases.join(", "));
}

fn print_addresses(places: &Places) {
    let (node, pods) = (places.node_address(), places.pod_subnet());
    println!("API server  https://{node}:6443 in a separate network, Pods in {pods}");
    println!("kubeconfig  {}", places.kubeconfig(pki::ADMIN).display());
    println!("logs        {}", places.state().join("log").display());
    println!("enter with  make stack-exec CMD='kubectl get pods -A'");
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "printed with one decimal"
)]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
