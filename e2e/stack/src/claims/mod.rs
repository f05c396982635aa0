//! The suite about the stack and the process kubelet, proved on a fresh stack.
//!
//! The claims about Pods and clusterctl run inside the stack's network, several at a time; those about starting,
//! stopping and killing run outside, after them. Nothing is retried or skipped: the last line counts the
//! claims that hold, and a failed claim makes the run fail.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod containers;
mod definitions;
mod images;
mod machine;
pub(crate) mod providers;
pub(crate) mod stack;
mod volumes;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use parking_lot::Mutex;

use crate::claim::{Claim, Proof, exit_code, report};
use crate::instance;
use crate::places::Places;
use crate::supervise::Extent;
use crate::wait::Stopwatch;
use stack::Stack;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only claims whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Directory with manifests of other providers (`capm3-components.yaml`, …), to be installed as well.
    #[arg(long)]
    upstream: Option<PathBuf>,
    /// Set by the suite itself when it runs in the stack's network.
    #[arg(long, hide = true)]
    inside: bool,
}

pub(crate) use machine::keep_logs;

/// A claim about a running stack.
type StackClaim = Claim<fn(&Stack) -> Proof>;

macro_rules! claims {
    ($($module:ident: $($name:ident)+;)+) => {
        &[$($((stringify!($name), $module::$name),)+)+]
    };
}

/// Run concurrently.
const CLAIMS: &[StackClaim] = claims! {
    providers:
        clusterctl_installs_upgrades_describes_and_deletes_providers;
    definitions:
        recorded_objects_are_the_same_under_the_definitions_of_both_sides;
    containers:
        a_pod_without_binary_waits_with_a_reason_and_starts_when_there_is_one
        a_container_gets_the_arguments_and_variables_of_its_manifest
        a_container_runs_as_the_user_of_its_manifest
        a_read_only_root_cannot_be_written
        a_container_sees_no_other_processes_and_networks
        unsupported_features_are_refused_by_event_and_status
        an_unready_pod_is_removed_from_its_service_until_it_is_ready
        a_failed_liveness_probe_restarts_the_container
        exec_tcp_and_startup_probes_are_run
        a_crashing_container_is_restarted_with_back_off
        a_finished_pod_is_not_restarted
        logs_are_kept_per_container_run_and_can_be_followed
        a_container_that_ignores_sigterm_is_killed_after_its_grace_period
        a_removed_pod_leaves_nothing;
    images:
        an_image_by_digest_is_pulled_unpacked_and_run_as_it_says
        a_changed_byte_of_an_image_is_refused_wherever_it_is
        an_image_that_cannot_be_pulled_is_waited_for_with_a_reason;
    volumes:
        each_kind_of_volume_has_the_content_of_its_source
        volumes_follow_their_sources
        containers_share_an_empty_dir_that_survives_restarts
        a_token_belongs_to_the_service_account_and_is_renewed;
    workloads:
        replicas_are_pods_with_unique_addresses
        a_rolling_update_keeps_all_replicas_available
        a_disruption_budget_refuses_eviction
        the_other_replica_replaces_a_killed_leader
        the_node_keeps_its_lease
        the_audit_log_has_one_user_per_manager
        an_owner_is_set_only_by_a_user_who_may_delete_the_object;
};

/// The number of claims that run concurrently: most of the time they wait.
const SIDE_BY_SIDE: usize = 4;

/// Proves all claims; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    if options.inside {
        return inside(places, options);
    }
    let places = places.named("claims");
    let watch = Stopwatch::start();
    instance::down(&places)?;
    // Shorter than the default, so that the renewal is observable.
    let flags = Extent::with_kubelet_flags(&["--refresh=1", "--token-age=8"]);
    instance::up(&places, &flags.with_registry())?;
    let mut args = vec![
        std::env::current_exe()?.into_os_string(),
        "--cache".into(),
        places.cache().into(),
    ];
    args.extend(["--name".into(), "claims".into(), "claims".into(), "--inside".into()]);
    args.extend(["--only".into(), options.only.clone().into()]);
    if let Some(upstream) = &options.upstream {
        args.extend(["--upstream".into(), upstream.into()]);
    }
    let outcome = instance::command(&places, &args)?.status();
    // The exit code is the number of failed claims; another value means that the suite did not finish.
    let code = outcome
        .ok()
        .and_then(|status| status.code())
        .and_then(|code| usize::try_from(code).ok());
    let count = selected(&options.only).count();
    let mut failed = code.filter(|failed| *failed <= count).unwrap_or(count);
    let logs = if failed == 0 { None } else { Some(keep_logs(&places)?) };
    let mut held = count.saturating_sub(failed);
    let outside = machine::CLAIMS.iter().filter(|(name, _)| name.contains(&options.only));
    for (name, proof) in outside {
        if report(name, proof(&places)) {
            held += 1
        } else {
            failed += 1
        }
    }
    instance::down(&places)?;
    if let Some(logs) = logs {
        println!("logs are kept in {}", logs.display());
    }
    println!("{held} claims hold, {:.0} s", watch.elapsed().as_secs_f64());
    Ok(exit_code(failed == 0))
}

fn selected(only: &str) -> impl Iterator<Item = &'static StackClaim> {
    CLAIMS.iter().filter(move |(name, _)| name.contains(only))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, options.upstream.clone());
    let test_server = std::env::current_exe()?.with_file_name("test-server");
    ensure!(
        test_server.is_file(),
        "{} is missing: `cargo build -p metal3-e2e-test-server`",
        test_server.display()
    );
    instance::set_image(places, "test-server", &test_server)?;
    let queue = Mutex::new(selected(&options.only));
    let failures = Mutex::new(0_usize);
    let next = || queue.lock().next();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((name, proof)) = next() {
                    let holds = report(name, proof(&stack));
                    if !holds {
                        *failures.lock() += 1;
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    Ok(u8::try_from(failures).map_or(ExitCode::FAILURE, ExitCode::from))
}
