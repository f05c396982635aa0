//! `capm3`: reads its flags, sets up the process, and runs it until SIGTERM or SIGINT.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_flags::version::version;
use metal3_flags::{Options, Owner, Request};
use metal3_manager::cluster::Cluster;
use metal3_manager::hosts_config::HostsConfig;
use metal3_manager::machines;
use metal3_manager::pod::{NAMESPACE_FILE, PodIdentity};
use metal3_manager::product;
use metal3_manager::run::{Ended, Process};
use metal3_manager::session::Session;
use metal3_manager::{hand_back, preflight, select};
use metal3_runtime::client::{ClientFactory, RateLimit, Settings, load_config, load_viewer_config};
use metal3_runtime::logs::{self, Verbosity};
use metal3_runtime::metrics::Metrics;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "plugin")]
mod viewer;

fn main() -> ExitCode {
    #[cfg(feature = "sandbox")]
    if std::env::args().nth(1).as_deref() == Some("sandbox") {
        return metal3_sandbox::command::run(std::env::args().skip(2), variable("TERM").as_deref());
    }
    #[cfg(feature = "plugin")]
    if let Some(code) = viewer::help() {
        return code;
    }
    if std::env::args().nth(1).as_deref() == Some("hand-back") {
        return hand_back(std::env::args().skip(2));
    }
    if std::env::args().nth(1).as_deref() == Some("select") {
        return select(std::env::args().skip(2));
    }
    if std::env::args().nth(1).as_deref() == Some("preflight") {
        return preflight(std::env::args().skip(2));
    }
    #[cfg(feature = "plugin")]
    if let Some(code) = viewer::run() {
        return code;
    }
    // A word that asks as the flag does.
    let arguments = std::env::args().skip(1).enumerate();
    let arguments = arguments.map(|(place, one)| {
        if place == 0 && one == "help" {
            "--help".to_owned()
        } else {
            one
        }
    });
    let options = match metal3_flags::parse_with(arguments, variable) {
        Ok(Request::Run(options)) => *options,
        Ok(Request::Help(flags)) => {
            print_all(&help(&flags));
            return ExitCode::SUCCESS;
        }
        Ok(Request::Version(text)) => {
            print_all(&text);
            return ExitCode::SUCCESS;
        }
        Err(faults) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            return ExitCode::from(2);
        }
    };
    match start(options) {
        Ok(Ended::Stopped) => ExitCode::SUCCESS,
        Ok(Ended::LeadershipEnded) => ExitCode::FAILURE,
        Err(error) => {
            // Without a log subscriber the error goes to stderr.
            if tracing::dispatcher::has_been_set() {
                tracing::error!("{error:#}");
            } else {
                eprintln!("capm3: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The commands of the program, then the flags with which it runs controllers.
fn help(flags: &str) -> String {
    let mut text = String::new();
    #[cfg(feature = "plugin")]
    text.push_str(&viewer::commands());
    #[cfg(feature = "sandbox")]
    text.push_str("\ncapm3 sandbox, a whole simulated world: capm3 sandbox --help\n");
    text.push_str("\ncapm3 hand-back, after the Go managers have returned: docs/migration.md\n\nWithout a command it runs controllers:\n");
    text.push_str(flags);
    text
}

/// Runs `capm3 hand-back`.
fn hand_back(arguments: impl Iterator<Item = String>) -> ExitCode {
    command(
        "hand-back",
        || hand_back::parse(arguments),
        async |wanted, client| wanted.run(&client, &mut |line| println!("{line}")).await,
    )
}

/// Runs `capm3 select`, with the kubeconfig and the namespace that kubectl uses.
fn select(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (wanted, chosen) = match select::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("capm3 select: {error:#}");
            return ExitCode::from(2);
        }
    };
    let answer = block_on(async |requests| {
        let config = load_viewer_config(&chosen).await?;
        let wanted = wanted.in_namespace(&config.default_namespace);
        let mut lines = String::new();
        let client = requests.connect(config)?;
        wanted
            .run(&client, &mut |line| lines.push_str(&format!("{line}\n")))
            .await?;
        anyhow::Ok(lines)
    });
    match answer {
        Ok(lines) => {
            print_all(&lines);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("capm3 select: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a text. Who reads the output may have gone, as `head` does.
fn print_all(text: &str) {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("capm3: write the output: {error}");
            std::process::exit(1);
        }
    }
}

/// Runs `capm3 preflight`. The exit code is that of the decision: 0 for go.
fn preflight(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (wanted, chosen) = match preflight::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("capm3 preflight: {error:#}");
            return ExitCode::from(2);
        }
    };
    let answer = block_on(async |requests| {
        let config = load_viewer_config(&chosen).await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let clients = Cluster::new(requests.clone(), requests.clone(), config.clone());
        let surroundings = preflight::Surroundings {
            clients: Arc::new(clients),
            clock,
            variable,
            ironic: None,
        };
        wanted.run(&requests.connect(config)?, Some(&surroundings)).await
    });
    match answer {
        Ok((output, code)) => {
            print_all(&output);
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("capm3 preflight: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command with a client of the API server in its kubeconfig.
fn command<W>(
    name: &str,
    parse: impl FnOnce() -> Result<(W, Option<String>)>,
    run: impl AsyncFnOnce(W, kube::Client) -> Result<()>,
) -> ExitCode {
    let run = || -> Result<()> {
        let (wanted, kubeconfig) = parse()?;
        block_on(async |requests| {
            let config = load_config(kubeconfig.as_deref().map(Path::new)).await?;
            run(wanted, requests.connect(config)?).await
        })
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("capm3 {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command to its end on this thread.
fn block_on<T>(run: impl AsyncFnOnce(ClientFactory) -> Result<T>) -> Result<T> {
    let provider = rustls::crypto::ring::default_provider().install_default();
    anyhow::ensure!(provider.is_ok(), "another TLS provider is installed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the async runtime")?.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let requests = ClientFactory::new(Settings::new("capm3", &version()), clock, Metrics::new().requests());
        run(requests).await
    })
}

fn start(options: Options) -> Result<Ended> {
    let level = options.log_level.parse()?;
    let verbosity = logs::install(options.log_format.parse()?, level).context("start logging")?;
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    let provider = rustls::crypto::ring::default_provider().install_default();
    anyhow::ensure!(provider.is_ok(), "another TLS provider is installed");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime
        .context("start the async runtime")?
        .block_on(serve(options, verbosity))
}

async fn serve(options: Options, verbosity: Verbosity) -> Result<Ended> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for signals")?;
    let signals = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("received a signal to stop");
        stop.cancel();
        std::future::pending::<Result<Ended>>().await
    };
    let products = options.controllers.iter().copied().map(product::find).collect();
    let process = Process::new(session(options, verbosity).await?, products);
    tokio::select! {
        ended = process.run(stop.clone()) => Ok(ended?),
        ended = signals => ended,
    }
}

async fn session(options: Options, verbosity: Verbosity) -> Result<Session> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let metrics = Metrics::with_objectives(options.objectives.clone());
    let controllers: Vec<&str> = options.controllers.iter().map(|owner| owner.name()).collect();
    metrics.program(&version(), &controllers.join(","), Arc::clone(&clock));
    let config = load_config(options.kubeconfig.as_deref()).await?;
    let mut settings = Settings::new("capm3", &version());
    settings.rate_limit = options.pace.and_then(|(rate, burst)| RateLimit::new(rate, burst));
    let renew_deadline = options.election.map(|election| election.renew_deadline);
    let for_leases = settings.clone().for_leases(renew_deadline.unwrap_or_default());
    let mut for_workloads = settings.clone().for_tenants(options.workload_endpoints.clone());
    for_workloads.rate_limit = options
        .workload_pace
        .and_then(|(rate, burst)| RateLimit::new(rate, burst));
    let workload_clients = ClientFactory::new(for_workloads, Arc::clone(&clock), metrics.requests());
    let requests = ClientFactory::new(settings, Arc::clone(&clock), metrics.requests());
    let leases = ClientFactory::new(for_leases, Arc::clone(&clock), metrics.requests());
    let unusable = "use the credentials for the API server";
    let hosts = match options.controllers.contains(&Owner::Hosts) {
        true => Some(HostsConfig::of(&options, variable, Arc::clone(&clock)).await?),
        false => None,
    };
    let file = tokio::fs::read_to_string(NAMESPACE_FILE).await.ok();
    Ok(Session {
        pod: PodIdentity::of(variable, file, std::process::id(), clock.now()),
        client: requests.connect(config.clone()).context(unusable)?,
        leases: leases.connect(config.clone()).context(unusable)?,
        clients: Arc::new(Cluster::new(requests, workload_clients, config)),
        hosts,
        machines: machines::settings(variable),
        clock,
        metrics,
        verbosity: Some(verbosity),
        dry_run: None,
        options,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment is read here and handed on as values"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
