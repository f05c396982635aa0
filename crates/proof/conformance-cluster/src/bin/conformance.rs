//! Checks the claims about the simulated API server, on the simulator or on the server of a kubeconfig.
//!
//! Prints `N claims hold` and every claim that does not hold; then the exit code is 1. With `--differ SEED` it also sends
//! the same random requests to both servers and prints the differences.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use metal3_conformance_cluster as conformance;

#[derive(Debug, Parser)]
struct Arguments {
    /// The server to check instead of the simulator.
    #[arg(long, env = "SIM_CONFORMANCE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Compare the simulator with the server of the kubeconfig on random requests of this seed. May be repeated: the
    /// seeds run concurrently.
    #[arg(long, requires = "kubeconfig")]
    differ: Vec<u64>,
    /// Only print the matrix of verbs and features.
    #[arg(long)]
    matrix: bool,
    /// Requests per seed.
    #[arg(long, default_value_t = 10_000)]
    operations: u64,
}

/// The number of printed differences of a seed: later ones are consequences of the first.
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
    // Namespaces of a real server outlive a run, so every run uses other names.
    let run = format!("sim{}", std::process::id());
    let tested = real.clone().unwrap_or_else(simulator);
    let webhook = conformance::Webhook::serve().await?;
    let webhook_config = match &real {
        Some(_) => webhook.client_config(),
        None => conformance::in_process(),
    };
    let outcomes = conformance::check(tested, &run, &webhook_config).await?;
    webhook.stop().await;
    let violations: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.violation.as_ref().map(|why| (outcome.claim, why)))
        .collect();
    for (claim, why) in &violations {
        println!("violated: {claim:?}\n        {why}");
    }
    println!("{} claims hold", outcomes.len().saturating_sub(violations.len()));
    let mut passed = violations.is_empty();
    if let Some(real) = real {
        let compared = conformance::differ(simulator(), real, &arguments.differ, arguments.operations, &run).await?;
        for conformance::Comparison {
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
            passed &= differences.is_empty();
        }
    }
    Ok(passed)
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.matrix {
        print!("{}", conformance::matrix());
        return Ok(ExitCode::SUCCESS);
    }
    let passed = run(&arguments).await?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
