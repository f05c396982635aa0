//! Checks the claims of the simulated API server: on itself, or on the server of a kubeconfig.
//!
//! Prints `N claims hold`; every claim that does not hold is named and makes the exit code 1. With `--differ SEED` it
//! also sends the same random requests to both servers and prints each answer that differs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use metal3_conformance_cluster as conformance;

#[derive(Debug, Parser)]
struct Arguments {
    /// The server to examine in place of the simulator.
    #[arg(long, env = "SIM_CONFORMANCE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Compare the simulator with the server of the kubeconfig on random requests of this seed. May be repeated: the
    /// seeds run side by side.
    #[arg(long, requires = "kubeconfig")]
    differ: Vec<u64>,
    /// Print the matrix of verbs and features, and check nothing.
    #[arg(long)]
    matrix: bool,
    /// Requests per seed.
    #[arg(long, default_value_t = 10_000)]
    operations: u64,
}

/// Differences of one seed that are printed: after the first the states have parted.
const SHOWN: usize = 5;

async fn client(path: &PathBuf) -> anyhow::Result<kube::Client> {
    let file = Kubeconfig::read_from(path).context("reading the kubeconfig")?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

fn simulator() -> kube::Client {
    conformance::simulator(1).client("conformance")
}

async fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let real = match &arguments.kubeconfig {
        Some(path) => Some(client(path).await?),
        None => None,
    };
    // A namespace of a real server lives longer than a run: the next one needs other names.
    let run = format!("sim{}", std::process::id());
    let examined = real.clone().unwrap_or_else(simulator);
    let webhook = conformance::Webhook::serve().await?;
    let asked = match &real {
        Some(_) => webhook.client_config(),
        None => conformance::in_process(),
    };
    let outcomes = conformance::check(examined, &run, &asked).await?;
    webhook.stop().await;
    let broken: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.broken.as_ref().map(|why| (outcome.claim, why)))
        .collect();
    for (claim, why) in &broken {
        println!("broken: {claim:?}\n        {why}");
    }
    println!("{} claims hold", outcomes.len().saturating_sub(broken.len()));
    let mut sound = broken.is_empty();
    if let Some(real) = real {
        let compared = conformance::differ(simulator(), real, &arguments.differ, arguments.operations, &run).await?;
        for conformance::Compared {
            seed,
            events,
            differences,
        } in &compared
        {
            for difference in differences.iter().take(SHOWN) {
                println!("{difference}");
            }
            println!(
                "seed {seed}: {} operations, {events} events, {} differences",
                arguments.operations,
                differences.len()
            );
            sound &= differences.is_empty();
        }
    }
    Ok(sound)
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.matrix {
        print!("{}", conformance::matrix());
        return Ok(ExitCode::SUCCESS);
    }
    let sound = run(&arguments).await?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
