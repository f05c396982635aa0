//! The binary: machines for a real Ironic, until SIGTERM.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_sim_bmc::{
    agent::Checksum,
    control,
    endpoint::{Endpoint, Place},
    identity::Number,
    lab::Lab,
    machine::{Machine, Timing},
    profile::{self, Profile},
    redfish::Credentials,
    server,
    store::Store,
    tls,
};
use tokio::{signal::unix::SignalKind, time::Instant};

/// Simulated bare-metal machines: a Redfish BMC each, and the deploy agent once Ironic has booted it.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Machines to simulate: PROFILE=COUNT, repeatable; numbered from 1 on in this order
    #[arg(long = "machines", value_name = "PROFILE=COUNT", default_value = "small=1")]
    machines: Vec<String>,
    /// Directory for endpoint.json, the certificate and disk content; created if missing
    #[arg(long)]
    data: PathBuf,
    /// Certificate authority of Ironic's API
    #[arg(long, value_name = "PEM")]
    ironic_ca: PathBuf,
    /// Port of all BMCs, and of agents and control on 127.0.0.1
    #[arg(long, default_value_t = 27443)]
    port: u16,
    /// Machine N's BMC listens on this loopback address plus N
    #[arg(long, default_value = "127.77.0.0")]
    bmc_network: Ipv4Addr,
    /// Profiles to use instead of the built-in ones
    #[arg(long, value_name = "YAML")]
    profiles: Option<PathBuf>,
    /// Milliseconds from a power request to the change
    #[arg(long, default_value_t = 100)]
    power_delay: u64,
    /// Milliseconds from power on to the ramdisk's first request
    #[arg(long, default_value_t = 500)]
    boot_delay: u64,
    /// Milliseconds for each clean or deploy step
    #[arg(long, default_value_t = 100)]
    step_delay: u64,
    /// Checksum that is accepted for any content, for images that are not available here; repeatable
    #[arg(long = "accept-digest", value_name = "DIGEST")]
    trusted_checksums: Vec<String>,
    /// Heartbeat interval of an idle agent in milliseconds
    #[arg(long, default_value_t = 5000)]
    beat: u64,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("labhosts: a crypto provider is installed already");
        return ExitCode::FAILURE;
    }
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labhosts: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if !arguments.bmc_network.is_loopback() {
        bail!(
            "--bmc-network {} is not a loopback address: BMCs must not be reachable from other hosts",
            arguments.bmc_network
        );
    }
    let store = arguments.data.join("content");
    std::fs::create_dir_all(&store).with_context(|| format!("cannot make {}", store.display()))?;
    let machines = machines(&profiles(arguments.profiles.as_deref())?, &arguments.machines)?;
    let addresses = machines
        .iter()
        .map(|machine| IpAddr::V4(machine.number.bmc_address(arguments.bmc_network)));
    let identity = tls::identity(addresses.chain([IpAddr::V4(Ipv4Addr::LOCALHOST)]))?;
    let control = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let lab = Arc::new(Lab {
        hosts: Lab::hosts(machines),
        credentials: Credentials {
            username: "admin".into(),
            password: password()?,
        },
        timing: Timing {
            power: Duration::from_millis(arguments.power_delay),
            boot: Duration::from_millis(arguments.boot_delay),
            step: Duration::from_millis(arguments.step_delay),
            beat: Duration::from_millis(arguments.beat),
        },
        store: Store::new(store),
        agents_url: format!("https://{control}"),
        certificate: Arc::clone(&identity.pem),
        client: client(&arguments.ironic_ca)?,
        tasks: tokio_util::task::TaskTracker::new(),
        stop: tokio_util::sync::CancellationToken::new(),
        trusted_checksums: trusted_checksums(&arguments.trusted_checksums)?,
        epoch: Instant::now(),
    });
    let (mut ended, mut interrupted) = (
        tokio::signal::unix::signal(SignalKind::terminate())?,
        tokio::signal::unix::signal(SignalKind::interrupt())?,
    );
    server::serve_bmcs(&lab, &identity, arguments.bmc_network, arguments.port).await?;
    server::listen(&lab, &identity, control, control::router(Arc::clone(&lab))).await?;
    lab.start();
    announce(&arguments, &lab)?;
    tokio::select! {
        _ = ended.recv() => {}
        _ = interrupted.recv() => {}
    }
    lab.shut_down(Duration::from_secs(2)).await;
    // The login of a stopped lab is useless.
    std::fs::remove_file(arguments.data.join("endpoint.json")).context("cannot remove endpoint.json")
}

fn trusted_checksums(digests: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let digits = |digest: &String| match Checksum::parse(digest) {
        Ok(Checksum::Digest(_, digits)) => Ok(digits),
        _ => bail!("--accept-digest {digest}: give an MD5, SHA-256 or SHA-512 digest"),
    };
    digests.iter().map(digits).collect()
}

fn password() -> anyhow::Result<String> {
    metal3_sim_bmc::redfish::secret().map_err(|_| anyhow::anyhow!("the system gives no random bytes"))
}

fn profiles(path: Option<&Path>) -> anyhow::Result<BTreeMap<String, Profile>> {
    let text = match path {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => profile::BUILT_IN.to_owned(),
    };
    Ok(profile::parse(&text)?)
}

fn machines(profiles: &BTreeMap<String, Profile>, wanted: &[String]) -> anyhow::Result<Vec<Machine>> {
    let mut machines = Vec::new();
    for group in wanted {
        let (name, count) = group
            .split_once('=')
            .with_context(|| format!("--machines {group}: write PROFILE=COUNT"))?;
        let count: u16 = count
            .parse()
            .with_context(|| format!("--machines {group}: {count} is not a number"))?;
        let profile = profiles.get(name).with_context(|| {
            let known: Vec<_> = profiles.keys().map(String::as_str).collect();
            format!("--machines {group}: choose a profile of {}", known.join(", "))
        })?;
        let profile = Arc::new(profile.clone());
        for _ in 0..count {
            let number = u16::try_from(machines.len() + 1).context("--machines: at most 65535 in all")?;
            machines.push(Machine::new(Number(number), name, Arc::clone(&profile)));
        }
    }
    Ok(machines)
}

/// Ironic's API has a listen backlog of five and closes idle connections after ten seconds.
fn client(ca: &Path) -> anyhow::Result<reqwest::Client> {
    let pem = std::fs::read(ca).with_context(|| format!("cannot read {}", ca.display()))?;
    let client = reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
        .pool_max_idle_per_host(8)
        .pool_idle_timeout(Duration::from_secs(8))
        .no_proxy()
        .build()?;
    Ok(client)
}

fn announce(arguments: &Arguments, lab: &Lab) -> anyhow::Result<()> {
    let ca = std::path::absolute(arguments.data.join("labhosts.crt"))?;
    std::fs::write(&ca, lab.certificate.as_bytes())?;
    let machines = lab.hosts.values().map(|host| {
        let machine = &host.lock().machine;
        let address = host.number.bmc_address(arguments.bmc_network);
        Place {
            number: host.number,
            profile: machine.profile_name.clone(),
            redfish_address: format!("https://{address}:{}", arguments.port),
            redfish_system_id: format!("/redfish/v1/Systems/{}", host.number.uuid()),
            macs: machine
                .profile
                .each_nic()
                .map(|(index, _)| host.number.mac(index))
                .collect(),
        }
    });
    let endpoint = Endpoint {
        control_url: lab.agents_url.clone(),
        ca: ca.display().to_string(),
        username: lab.credentials.username.clone(),
        password: lab.credentials.password.clone(),
        pid: std::process::id(),
        machines: machines.collect(),
    };
    endpoint.write(&arguments.data.join("endpoint.json"))?;
    println!("{} machines, control at {}", lab.hosts.len(), lab.agents_url);
    Ok(())
}
