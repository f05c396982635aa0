//! `scale`: the released program with many hosts, on a real API server and etcd, with the simulated Ironic as a process of its
//! own.
//!
//! It runs in the network and process namespace of a stack with the API server alone (`make scale`), so that all that it starts
//! ends with that stack. Counts come from the audit log and from Ironic, times from an independent watcher.

mod drive;
mod fleet;
mod floor;
mod manager;
mod meter;
mod outcome;
mod page;
mod processes;
mod progress;
mod run;
mod server;
mod small;
mod table;
mod tail;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use kube::config::Kubeconfig;
use metal3_ironic_life::run_program;

use manager::Managers;
use meter::Meter;
use outcome::{Outcome, Setup};
use run::World;
use server::{MANAGER, NAMESPACE, SYSTEM, Server};

/// Measures the released program with many hosts on a real API server.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, in the network of a stack.
    Measure(Measure),
    /// Write the page and its pictures from the committed results.
    Page(Page),
}

#[derive(Debug, Args)]
struct Page {
    /// Folder of the checkout
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

#[derive(Debug, Args)]
struct Measure {
    /// Numbers of hosts, one run each
    #[arg(long, num_args = 1.., required = true, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    hosts: Vec<u32>,
    /// Kubeconfig of an administrator
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Audit log of the API server
    #[arg(long)]
    audit: PathBuf,
    /// The program
    #[arg(long)]
    manager: PathBuf,
    /// Whether the program is compiled as in a release
    #[arg(long)]
    optimised: bool,
    /// Folder for logs and credentials of the run
    #[arg(long)]
    home: PathBuf,
    /// How many times faster than real ones the machines are
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    speed: u32,
    /// Hosts that may use the provisioning network at once; 0 for all
    #[arg(long, default_value_t = 0)]
    slots: u32,
    /// Seconds without changes
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// Seconds without Ironic
    #[arg(long, default_value_t = 300)]
    away: u64,
    /// Write the result to this file
    #[arg(long)]
    result: Option<PathBuf>,
    /// Log level of the manager
    #[arg(long, default_value_t = 0)]
    log_level: u8,
    /// Leave out restarts, the outage and comparisons of times, and fail unless the counts are those of the committed table
    #[arg(long)]
    small: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Measure(arguments) => run_program("scale", measure(&arguments)).await,
        Command::Page(Page { root }) => run_program("scale", async { page::write(&root) }).await,
    }
}

async fn measure(arguments: &Measure) -> anyhow::Result<()> {
    let world = world(arguments).await?;
    let mut outcome = Outcome {
        setup: Setup {
            program: Managers::version(&arguments.manager)?,
            optimised: arguments.optimised,
            speed: arguments.speed,
            slots: arguments.slots,
            idle_seconds: arguments.idle,
            away_seconds: arguments.away,
        },
        sizes: Vec::new(),
    };
    for hosts in ascending(&arguments.hosts) {
        let (size, result) = run::run(&world, hosts).await;
        outcome.sizes.push(size);
        // After each size, so that a run that is ended leaves what it has.
        if let Some(path) = &arguments.result {
            let text = serde_json::to_string_pretty(&outcome)? + "\n";
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        result?;
    }
    println!("\n{}", table::text(&outcome));
    if arguments.small {
        small::check(&outcome)?;
    }
    Ok(())
}

/// Growth is between neighbours, and the last one is the largest.
fn ascending(hosts: &[u32]) -> BTreeSet<u32> {
    hosts.iter().copied().collect()
}

/// Connects to the server and installs what the runs need.
async fn world(arguments: &Measure) -> anyhow::Result<World> {
    // A folder of our own in that of the user, who may have other files there. A killed run leaves it. Absolute, because files in
    // a kubeconfig are relative to its folder.
    let home = &std::path::absolute(&arguments.home)?.join("scale-run");
    if home.exists() {
        std::fs::remove_dir_all(home).with_context(|| format!("removing {}", home.display()))?;
    }
    std::fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
    let admin = Kubeconfig::read_from(&arguments.kubeconfig).context("reading the kubeconfig")?;
    let server = Server::connect(admin.clone()).await?;
    server.install().await?;
    let manager = server.kubeconfig(&admin, (SYSTEM, MANAGER), home).await?;
    std::fs::write(home.join("manager.kubeconfig"), serde_json::to_string(&manager)?)?;
    Ok(World {
        driver: account(&server, &admin, "driver", home).await?,
        watcher: account(&server, &admin, "watcher", home).await?,
        floor: account(&server, &admin, "floor", home).await?,
        meter: Meter::new(
            arguments.audit.clone(),
            &format!("system:serviceaccount:{SYSTEM}:{MANAGER}"),
        ),
        program: std::path::absolute(&arguments.manager)?,
        home: home.clone(),
        speed: arguments.speed,
        slots: arguments.slots,
        idle_seconds: arguments.idle,
        away_seconds: arguments.away,
        log_level: arguments.log_level,
        is_brief: arguments.small,
    })
}

/// A user of the driver, so that its requests are not taken for those of the manager.
async fn account(admin: &Server, kubeconfig: &Kubeconfig, name: &str, home: &Path) -> anyhow::Result<Server> {
    admin.account(name).await?;
    let kubeconfig = admin.kubeconfig(kubeconfig, (NAMESPACE, name), home).await?;
    Server::connect(kubeconfig).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_measured_in_ascending_order_and_once() {
        assert_eq!(ascending(&[50, 25, 50]), [25, 50].into());
    }

    #[test]
    fn idle_takes_time() {
        let arguments = |idle: &str| {
            let required = [
                "scale",
                "measure",
                "--hosts",
                "1",
                "--kubeconfig=k",
                "--audit=a",
                "--manager=m",
                "--home=h",
            ];
            Arguments::try_parse_from(required.into_iter().chain(["--idle", idle]))
        };
        assert!(arguments("1").is_ok());
        assert!(arguments("0").is_err());
    }
}
