//! The program `sim-ironic`: the simulated Ironic as a process of its own, for measurements.
//!
//! It serves HTTPS on loopback until its input ends, so that it never outlives who started it. The first line of the output
//! has the URL and the certificate. Each line of the input is a command, answered by one line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_ironic::meter::Meter;
use metal3_sim_ironic::{Ironic, Login, Options, Pace, bmc_address};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A simulated Ironic with machines, over HTTPS. Its input has commands: `take` prints the traffic since the last `take`,
/// `away MILLISECONDS` closes the port and all connections for a while, `machine NUMBER` prints what a machine has on its disk and how often
/// it was written and erased, `break NUMBER` lets its BMC answer no more.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Port on loopback; 0 for any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Folder with the files `username` and `password` of the accepted login
    #[arg(long)]
    login: PathBuf,
    /// How many times faster than real ones the machines are
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    speed: u32,
    /// Number of machines, at the BMC addresses of a simulated world
    #[arg(long, default_value_t = 0)]
    machines: u32,
    /// Seed of UUIDs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("sim-ironic: a crypto provider is installed already");
        return ExitCode::FAILURE;
    }
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sim-ironic: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let login = Login {
        username: read(&arguments.login.join("username"))?,
        password: read(&arguments.login.join("password"))?,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut options = Options::new(arguments.seed, Arc::clone(&clock));
    options.pace = Pace::faster(arguments.speed);
    let ironic = Ironic::start(options);
    // In the order of their numbers, which determine their MAC addresses.
    for number in 1..=arguments.machines {
        let made = ironic.machine_at(&bmc_address(number), |_| ());
        made.context("there is no hardware profile")?;
    }
    let meter = Arc::new(Meter::new(ironic.behind(&login), clock));
    let mut server = ironic
        .serve_through(arguments.port, meter.clone())
        .await
        .with_context(|| format!("cannot listen on port {}", arguments.port))?;
    println!("{}", json!({ "url": server.url(), "ca": server.ca() }));
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        match Command::parse(&line)? {
            Command::Take => println!("{}", serde_json::to_string(&meter.take())?),
            Command::Away(period) => {
                println!("{{}}");
                server = server.away(period).await?;
            }
            Command::Machine(number) => println!("{}", seen(&ironic, number)?),
            Command::Break(number) => {
                let broken = ironic.machine_at(&bmc_address(number), |machine| {
                    machine.faults = [Fault::DeadBmc].into_iter().collect();
                });
                broken.context("there is no such machine")?;
                println!("{{}}");
            }
        }
    }
    server.stop().await;
    Ok(())
}

/// The lines of the input. A thread of its own reads them, because a read cannot be cancelled.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

/// What a test compares with the orders of a user.
fn seen(ironic: &Ironic, number: u32) -> anyhow::Result<Value> {
    let found = ironic.machine_at(&bmc_address(number), |machine| {
        json!({ "image": machine.disk.as_ref().map(|image| &image.source), "written": machine.counts.written,
            "erased": machine.counts.erased })
    });
    found.context("there is no such machine")
}

fn parse_number(line: &str, number: &str) -> anyhow::Result<u32> {
    number
        .parse()
        .with_context(|| format!("`{line}`: no number of a machine"))
}

enum Command {
    Take,
    Away(Duration),
    Machine(u32),
    Break(u32),
}

impl Command {
    fn parse(line: &str) -> anyhow::Result<Self> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("take", "") => Ok(Self::Take),
            ("away", period) => {
                let period = period.parse().with_context(|| format!("`{line}`: no milliseconds"))?;
                Ok(Self::Away(Duration::from_millis(period)))
            }
            ("machine", number) => Ok(Self::Machine(parse_number(line, number)?)),
            ("break", number) => Ok(Self::Break(parse_number(line, number)?)),
            _ => bail!("`{line}` is not a command: take, away MILLISECONDS, machine NUMBER, break NUMBER"),
        }
    }
}
