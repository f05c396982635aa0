//! The suite: what the stack and the process kubelet promise, each promise a claim, proved on a fresh stack.
//!
//! The claims about Pods and clusterctl run inside the stack's network, several at a time; those about starting,
//! stopping and killing run outside, after them. Nothing is retried and nothing skipped: the last line counts the
//! claims that hold, and one that does not makes the run fail.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod containers;
mod machine;
pub(crate) mod providers;
mod volumes;
mod workloads;
pub(crate) mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::ensure;
use clap::Args;

use crate::life;
use crate::places::Places;
use crate::supervise::Extent;
use crate::wait::Stopwatch;
use world::World;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only claims whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Folder with manifests of other providers (`capm3-components.yaml`, …), to be installed as well.
    #[arg(long)]
    upstream: Option<PathBuf>,
    /// Set by the suite itself: it is in the stack's network now.
    #[arg(long, hide = true)]
    inside: bool,
}

pub(crate) use machine::keep_logs;

/// A promise and its proof. The proof's text is printed: figures, if there are any.
struct Claim {
    name: &'static str,
    proof: fn(&World) -> anyhow::Result<String>,
}

macro_rules! claims {
    ($($module:ident: $($name:ident)+;)+) => {
        &[$($(Claim { name: stringify!($name), proof: $module::$name },)+)+]
    };
}

/// Run side by side.
const CLAIMS: &[Claim] = claims! {
    providers:
        clusterctl_installs_upgrades_describes_and_deletes_providers;
    containers:
        a_pod_without_binary_says_so_and_starts_when_there_is_one
        a_container_gets_the_arguments_and_variables_of_its_manifest
        a_container_runs_as_the_user_of_its_manifest
        a_read_only_root_takes_no_file
        a_container_sees_neither_other_processes_nor_other_networks
        what_the_kubelet_cannot_do_is_refused_by_event_and_status
        an_unready_pod_leaves_its_service_and_comes_back
        a_failed_liveness_probe_restarts_the_container
        exec_and_tcp_and_startup_probes_are_asked
        a_crashing_container_is_restarted_with_back_off
        a_finished_pod_is_not_restarted
        logs_are_kept_per_run_and_can_be_followed
        a_deaf_container_is_killed_after_its_grace_period
        a_removed_pod_leaves_nothing;
    volumes:
        every_kind_of_volume_holds_what_it_should
        volumes_follow_their_sources
        containers_share_an_empty_folder_that_outlives_restarts
        a_token_is_its_service_accounts_and_is_renewed;
    workloads:
        replicas_are_pods_with_addresses_of_their_own
        a_rolling_update_keeps_all_replicas_available
        a_disruption_budget_refuses_eviction
        a_killed_leader_is_followed_by_the_other_replica
        the_node_keeps_its_lease
        the_audit_log_knows_one_user_per_manager;
};

/// How many claims run at a time: they mostly wait.
const SIDE_BY_SIDE: usize = 4;

/// Proves everything; the exit code says whether all of it holds.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    if options.inside {
        return inside(places, options);
    }
    let places = places.named("claims");
    let watch = Stopwatch::start();
    life::down(&places)?;
    // Shorter than a user would want, so that renewal can be seen.
    life::up(&places, &Extent::with_kubelet_flags(&["--refresh=1", "--token-age=8"]))?;
    let mut words = vec![
        std::env::current_exe()?.into_os_string(),
        "--cache".into(),
        places.cache().into(),
    ];
    words.extend(["--name".into(), "claims".into(), "claims".into(), "--inside".into()]);
    words.extend(["--only".into(), options.only.clone().into()]);
    if let Some(upstream) = &options.upstream {
        words.extend(["--upstream".into(), upstream.into()]);
    }
    let outcome = life::command(&places, &words)?.status();
    // The exit code is the number of claims that do not hold; anything else is a suite that did not come to its end.
    let code = outcome
        .ok()
        .and_then(|status| status.code())
        .and_then(|code| usize::try_from(code).ok());
    let count = selected(&options.only).count();
    let mut failed = code.filter(|failed| *failed <= count).unwrap_or(count);
    let logs = if failed == 0 { None } else { Some(keep_logs(&places)?) };
    let mut held = count.saturating_sub(failed);
    let outside = machine::CLAIMS
        .iter()
        .filter(|claim| claim.name.contains(&options.only));
    for claim in outside {
        if report(claim.name, (claim.proof)(&places)) {
            held += 1
        } else {
            failed += 1
        }
    }
    life::down(&places)?;
    if let Some(logs) = logs {
        println!("logs are kept in {}", logs.display());
    }
    println!("{held} claims hold, {:.0} s", watch.elapsed().as_secs_f64());
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn selected(only: &str) -> impl Iterator<Item = &'static Claim> {
    CLAIMS.iter().filter(move |claim| claim.name.contains(only))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let world = World::new(places, options.upstream.clone());
    let witness = std::env::current_exe()?.with_file_name("witness");
    ensure!(
        witness.is_file(),
        "{} is missing: `cargo build -p metal3-e2e-witness`",
        witness.display()
    );
    life::set_image(places, "witness", &witness)?;
    let queue = Mutex::new(selected(&options.only));
    let failures = Mutex::new(0_usize);
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(claim) = next() {
                    let holds = report(claim.name, (claim.proof)(&world));
                    if let (false, Ok(mut failures)) = (holds, failures.lock()) {
                        *failures += 1;
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or(usize::MAX);
    Ok(u8::try_from(failures).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// One line a claim, its reason below if it does not hold.
pub(crate) fn report(name: &str, proof: anyhow::Result<String>) -> bool {
    let name = name.replace('_', " ");
    match proof {
        Ok(figures) if figures.is_empty() => println!("holds  {name}"),
        Ok(figures) => println!("holds  {name}: {figures}"),
        Err(error) => {
            println!("FAILS  {name}\n       {error:#}");
            return false;
        }
    }
    true
}
