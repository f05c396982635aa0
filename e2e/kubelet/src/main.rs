//! `process-kubelet`: a Node that runs Pods as processes of one machine.
//!
//! Each Pod has a network namespace and a host name; each container has mount and process namespaces, its own root
//! directory and the files of its image: those of an image by digest are pulled from a registry of this machine, those of an
//! image by tag are in a table. Deployments, rollouts, endpoints and scheduling are handled by the real controllers. Resource
//! limits and seccomp profiles are not implemented; a Pod that requires an unsupported feature is refused by Event and status.
//!
//! Invariant: no process, mount or interface of a Pod outlives the Pod or the kubelet.

mod clock;
mod context;
mod events;
mod logs;
mod machine;
mod node;
mod plan;
mod pod;
mod pods;
mod server;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;

use crate::context::{Context, Limits};
use crate::events::Events;
use crate::machine::addresses::Pool;
use crate::plan::environment::ApiServer;
use crate::plan::user::Users;
use crate::pod::pull::Images;

#[derive(Debug, Parser)]
#[command(about = "A Node that runs Pods as processes")]
struct Arguments {
    #[arg(long)]
    node_name: String,
    /// Address of the Node and of the API server.
    #[arg(long)]
    address: IpAddr,
    /// Port of the API server.
    #[arg(long, default_value_t = 6443)]
    api_port: u16,
    /// Pod addresses, a /24 on the bridge.
    #[arg(long)]
    pod_subnet: String,
    /// The bridge of the Pods.
    #[arg(long)]
    bridge: String,
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Serving certificate of the Node.
    #[arg(long)]
    certificate: PathBuf,
    #[arg(long)]
    key: PathBuf,
    /// Certificate authority of the clients that may read logs.
    #[arg(long)]
    authority: PathBuf,
    /// Table of images by tag: rows of name and binary.
    #[arg(long)]
    images: PathBuf,
    /// Directory of volumes and root directories.
    #[arg(long)]
    state: PathBuf,
    /// Directory of the containers' logs.
    #[arg(long)]
    logs: PathBuf,
    /// Refresh interval of volumes in seconds.
    #[arg(long, default_value_t = 5)]
    refresh: u64,
    /// Seconds after which a token is renewed, unless four fifths of its lifetime are less.
    #[arg(long, default_value_t = 86_400)]
    token_age: u64,
    /// Seconds before the second restart of a container; doubled each time.
    #[arg(long, default_value_t = 1)]
    backoff: u64,
    /// Maximum seconds between restarts.
    #[arg(long, default_value_t = 60)]
    backoff_limit: u64,
}

/// One thread: the parent-death signal is sent when the starting *thread* ends, and the main thread ends last.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another crypto provider is installed"))?;
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .init();
    let arguments = Arguments::parse();
    let identity = server::Identity {
        certificate: arguments.certificate.clone(),
        key: arguments.key.clone(),
        authority: arguments.authority.clone(),
    };
    let (address, logs) = (SocketAddr::new(arguments.address, node::PORT), arguments.logs.clone());
    let cx = Arc::new(context(arguments).await?);
    tokio::select! {
        served = server::serve(address, &identity, logs) => served,
        () = node::keep(&cx) => Ok(()),
        () = pods::run(cx.clone()) => Ok(()),
    }
}

async fn context(arguments: Arguments) -> anyhow::Result<Context> {
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig).context("reading --kubeconfig")?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // The callers retry.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let map = std::fs::read_to_string("/proc/self/uid_map").context("reading /proc/self/uid_map")?;
    let http = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .redirect(reqwest::redirect::Policy::none());
    Ok(Context {
        events: Events::new(client.clone(), &arguments.node_name),
        client,
        http: http
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .context("the client of probes")?,
        node_name: arguments.node_name,
        server: ApiServer {
            host: arguments.address.to_string(),
            port: arguments.api_port,
        },
        node_address: arguments.address.to_string(),
        bridge: arguments.bridge,
        users: Users::of_map(&map),
        images: arguments.images,
        pulled: Images::new(arguments.state.join("images"))?,
        state: arguments.state,
        logs: arguments.logs,
        pool: Mutex::new(Pool::parse(&arguments.pod_subnet).map_err(anyhow::Error::msg)?),
        limits: Limits {
            refresh: Duration::from_secs(arguments.refresh.max(1)),
            token_age: Duration::from_secs(arguments.token_age),
            backoff_first: Duration::from_secs(arguments.backoff),
            backoff_limit: Duration::from_secs(arguments.backoff_limit),
        },
    })
}
