//! Runs scripts of kubectl, clusterctl and helm on the API server of the sandbox, and compares what they print with what
//! they printed on a real API server. With `--record` it runs them on a real one and writes the recorded files.
//!
//! Prints each difference that `differences.yaml` does not list; then the exit code is 1.

mod normal;
mod real;
mod recorded;
mod request;
mod run;
mod schemas;
mod script;
mod tutorial;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use clap::Parser;
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sandbox::api_server::ApiServer;
use serde_json::{Value, json};

use real::Real;
use recorded::{Listed, differences, parsed, written};
use request::Sender;
use run::{Outputs, Place};
use script::Script;
use tutorial::Terminal;

#[derive(Debug, Parser)]
#[command(about = "Compares kubectl on the sandbox with what it printed on a real API server")]
struct Arguments {
    /// The folder of the scripts, with `recorded/` and `differences.yaml`.
    #[arg(long, default_value = "e2e/kubectl")]
    scripts: PathBuf,
    /// Folders of kubectl, clusterctl and helm.
    #[arg(long = "programs", required = true)]
    programs: Vec<PathBuf>,
    /// A folder for files of the programs, which is emptied.
    #[arg(long)]
    home: PathBuf,
    /// Record the outputs on the server of this kubeconfig.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Write the schemas of the built-in kinds of that server into this file.
    #[arg(long, requires = "record")]
    schemas: Option<PathBuf>,
    /// Only scripts whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Print what the sandbox answers, without a comparison.
    #[arg(long)]
    show: bool,
    /// Run the commands of this page instead of the scripts.
    #[arg(long)]
    tutorial: Option<PathBuf>,
    /// Write their outputs into the page.
    #[arg(long, requires = "tutorial")]
    write: bool,
    #[command(flatten)]
    build: Build,
}

/// Where `make demo` finds the compiler and the built program, when its user has another home.
#[derive(Debug, clap::Args)]
struct Build {
    #[arg(long, env = "HOME", hide = true, default_value = "/root")]
    user: PathBuf,
    #[arg(long, env = "PATH", hide = true, default_value = "/usr/bin:/bin")]
    path: OsString,
    #[arg(long, env = "CARGO_HOME", hide = true)]
    cargo_home: Option<PathBuf>,
    #[arg(long, env = "RUSTUP_HOME", hide = true)]
    rustup_home: Option<PathBuf>,
    #[arg(long, env = "CARGO_TARGET_DIR", hide = true)]
    cargo_target_dir: Option<PathBuf>,
}

impl Build {
    fn variables(&self) -> Vec<(String, PathBuf)> {
        let or = |path: &Option<PathBuf>, folder: &str| path.clone().unwrap_or_else(|| self.user.join(folder));
        let target = self.cargo_target_dir.clone();
        let target = target.map(|folder| ("CARGO_TARGET_DIR".to_owned(), folder));
        [
            ("CARGO_HOME".to_owned(), or(&self.cargo_home, ".cargo")),
            ("RUSTUP_HOME".to_owned(), or(&self.rustup_home, ".rustup")),
        ]
        .into_iter()
        .chain(target)
        .collect()
    }
}

/// Scripts that run at the same time: a call waits for the server half of its time.
const SIDE_BY_SIDE: usize = 3;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(page) = &arguments.tutorial {
        let passed = tutorial::run(page, &terminal(&arguments)?, arguments.write)?;
        return Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let scripts = scripts(&arguments)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let begun = clock.monotonic();
    let passed = match &arguments.record {
        Some(kubeconfig) => record(&arguments, kubeconfig, scripts, &clock).await?,
        None => compare(&arguments, scripts, &clock).await?,
    };
    println!("{:.0} s", clock.monotonic().since(begun).as_secs_f64());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn scripts(arguments: &Arguments) -> Result<Vec<Script>> {
    let folder = std::fs::read_dir(&arguments.scripts).with_context(|| arguments.scripts.display().to_string())?;
    let mut paths = folder
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    let chosen = paths.iter().filter(|path| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        name.ends_with(".yaml") && name != DIFFERENCES && name.contains(&arguments.only)
    });
    chosen.map(|path| Script::read(path)).collect()
}

const DIFFERENCES: &str = "differences.yaml";

/// Runs the scripts, several at a time; the outputs have their order.
async fn outputs(place: Place, scripts: Vec<Script>) -> Result<Vec<(String, Outputs)>> {
    let run = move || -> Result<Vec<(String, Outputs)>> {
        place.warm()?;
        let (next, done) = (numbers(scripts.len()), std::sync::Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(|| {
                    while let Some(script) = next().and_then(|number| scripts.get(number)) {
                        let outputs = place.run(script);
                        if let Ok(mut done) = done.lock() {
                            done.push((script.name.clone(), outputs));
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().map_err(|_| anyhow!("a script did not end"))?;
        done.sort_by(|(one, _), (other, _)| one.cmp(other));
        done.into_iter().map(|(name, outputs)| Ok((name, outputs?))).collect()
    };
    tokio::task::spawn_blocking(run).await?
}

/// Numbers from 0, each once, from any thread.
fn numbers(count: usize) -> impl Fn() -> Option<usize> + Sync {
    let next = std::sync::atomic::AtomicUsize::new(0);
    move || Some(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).filter(|number| *number < count)
}

fn terminal(arguments: &Arguments) -> Result<Terminal> {
    if arguments.home.exists() {
        std::fs::remove_dir_all(&arguments.home)?;
    }
    std::fs::create_dir_all(&arguments.home)?;
    let own = arguments.programs.iter().cloned();
    Ok(Terminal {
        programs: own.chain(std::env::split_paths(&arguments.build.path)).collect(),
        home: std::path::absolute(&arguments.home)?,
        variables: arguments.build.variables(),
    })
}

async fn place(arguments: &Arguments, kubeconfig: Value, clock: &Arc<dyn Clock>) -> Result<Place> {
    if arguments.home.exists() {
        std::fs::remove_dir_all(&arguments.home)?;
    }
    Ok(Place {
        programs: arguments.programs.clone(),
        home: std::path::absolute(&arguments.home)?,
        sender: Sender::of(&kubeconfig).await?,
        kubeconfig,
        clock: Arc::clone(clock),
    })
}

fn recorded_path(arguments: &Arguments, script: &str) -> PathBuf {
    arguments.scripts.join("recorded").join(format!("{script}.txt"))
}

async fn record(
    arguments: &Arguments,
    kubeconfig: &Path,
    scripts: Vec<Script>,
    clock: &Arc<dyn Clock>,
) -> Result<bool> {
    let real = Real::prepare(kubeconfig, Arc::clone(clock)).await?;
    if let Some(path) = &arguments.schemas {
        std::fs::write(path, schemas::read(&real).await?).with_context(|| path.display().to_string())?;
    }
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)?;
    let outputs = outputs(place(arguments, config, clock).await?, scripts).await?;
    for (name, outputs) in &outputs {
        let path = recorded_path(arguments, name);
        std::fs::write(&path, written(outputs)).with_context(|| path.display().to_string())?;
    }
    real.stop().await;
    println!(
        "{} calls recorded",
        outputs.iter().map(|(_, outputs)| outputs.len()).sum::<usize>()
    );
    Ok(true)
}

async fn compare(arguments: &Arguments, scripts: Vec<Script>, clock: &Arc<dyn Clock>) -> Result<bool> {
    let server = ApiServer::start(clock).await?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": [{ "name": "sandbox", "cluster": { "server": server.url() } }],
        "users": [{ "name": "admin", "user": {} }],
        "contexts": [{ "name": "sandbox", "context": { "cluster": "sandbox", "user": "admin" } }],
    });
    let outputs = outputs(place(arguments, config, clock).await?, scripts).await?;
    let (mut found, mut count) = (Vec::new(), 0_usize);
    let listed = listed(arguments)?;
    for (name, outputs) in &outputs {
        if arguments.show {
            println!("{}", written(outputs));
            continue;
        }
        count = count.saturating_add(outputs.len());
        let path = recorded_path(arguments, name);
        let real = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        found.extend(differences(name, &parsed(&real), outputs, &listed));
    }
    for difference in &found {
        println!("{difference}");
    }
    println!(
        "{count} calls, {} listed differences, {} others",
        listed.len(),
        found.len()
    );
    Ok(found.is_empty())
}

fn listed(arguments: &Arguments) -> Result<Vec<Listed>> {
    let path = arguments.scripts.join(DIFFERENCES);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_saphyr::from_str(&text)?)
}
