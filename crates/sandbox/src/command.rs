//! `capm3 sandbox`: runs a simulated world and writes a kubeconfig for it.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};

use super::flags::{Flags, HELP};
use super::scenario::{self, Script};
use super::{demo, kubeconfig};

/// Runs the command with its arguments.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let home = std::env::home_dir().unwrap_or_default();
    let flags = match Flags::parse(arguments, &home) {
        Ok(Some(flags)) => flags,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => return usage(&why),
    };
    let outcome = match flags.scenario.as_deref() {
        None => demonstrate(&flags),
        Some("list") => {
            print!("{}", scenario::list());
            Ok(true)
        }
        Some(name) => match Script::named(name) {
            Ok(script) => play(&flags, &script),
            Err(why) => return usage(&why),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("capm3 sandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!("capm3 sandbox: {why}");
    ExitCode::from(2)
}

fn demonstrate(flags: &Flags) -> Result<bool> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    until_stopped(flags, runtime.context(RUNTIME)?, demo::live(flags))
}

fn play(flags: &Flags, script: &Script) -> Result<bool> {
    // Time that advances only when every task waits, and is held back: all timers of the controllers are as fast as the machines.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    until_stopped(flags, runtime.context(RUNTIME)?, scenario::play(flags, script))
}

const RUNTIME: &str = "start the async runtime";

/// Ctrl-C is the usual end, but with `--once`.
fn until_stopped(flags: &Flags, runtime: Runtime, work: impl Future<Output = Result<bool>>) -> Result<bool> {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("listen for Ctrl-C")?;
                Ok(!flags.once)
            }
            outcome = work => outcome,
        }
    });
    // A thread that holds time back may still sleep.
    runtime.shutdown_background();
    outcome
}

/// Waits for Ctrl-C, unless `--once` is set.
pub(super) async fn stay_open(flags: &Flags) {
    if !flags.once {
        println!("\nCtrl-C ends the sandbox and deletes everything in it");
        std::future::pending::<()>().await;
    }
}

pub(super) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Prints how the sandbox is reached.
pub(super) fn print_access(flags: &Flags, url: &str) {
    println!("API server  {url}");
    println!("kubeconfig  export KUBECONFIG={}", kubeconfig::shown(&flags.kubeconfig));
}

/// Prints what a user may do next.
pub(super) fn print_ideas(flags: &Flags, ideas: &[(&str, String)]) {
    println!("\nThree things to try, in another terminal:");
    println!("     export KUBECONFIG={}", kubeconfig::shown(&flags.kubeconfig));
    for (number, (what, command)) in (1..).zip(ideas) {
        println!("  {number}. {what}:\n     {command}");
    }
}

/// This program, from any folder.
pub(super) fn program() -> String {
    let path = std::env::current_exe().ok();
    path.map_or_else(|| "capm3".to_owned(), |path| crate::kubeconfig::shown(&path))
}
