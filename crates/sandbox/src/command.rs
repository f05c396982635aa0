//! `capm3 sandbox`: runs a simulated world and writes a kubeconfig for it.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::flags::{Flags, HELP};
use super::kubeconfig::{self, Kubeconfig};
use super::scenario::{self, Script};
use super::{demo, out};

/// Runs the command with its arguments. `term` is the kind of terminal, from the environment.
pub fn run(arguments: impl Iterator<Item = String>, term: Option<&str>) -> ExitCode {
    let home = std::env::home_dir().unwrap_or_default();
    let flags = match Flags::parse(arguments, &home) {
        Ok(Some(flags)) => Flags {
            is_screen: is_screen(std::io::stdout().is_terminal(), term),
            ..flags
        },
        Ok(None) => {
            out::print(HELP);
            return ExitCode::SUCCESS;
        }
        Err(why) => return usage(&why),
    };
    let outcome = match flags.scenario.as_deref() {
        None => demonstrate(&flags),
        Some("list") => {
            out::print(&scenario::list());
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

/// A signal is the usual end, but with `--once`.
fn until_stopped(flags: &Flags, runtime: Runtime, work: impl Future<Output = Result<bool>>) -> Result<bool> {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            stopped = stopped() => {
                stopped.context("listen for signals")?;
                Ok(!flags.once)
            }
            outcome = work => outcome,
        }
    });
    // A thread that holds time back may still sleep.
    runtime.shutdown_background();
    outcome
}

/// Ctrl-C, or the end of the terminal or of the machine: after each the terminal is as it was before.
async fn stopped() -> std::io::Result<()> {
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}

/// Waits for Ctrl-C, unless `--once` is set.
pub(super) async fn stay_open(flags: &Flags) {
    if !flags.once {
        say!("\nCtrl-C ends the sandbox and deletes everything in it");
        std::future::pending::<()>().await;
    }
}

/// Whether a picture can be drawn.
fn is_screen(is_terminal: bool, term: Option<&str>) -> bool {
    is_terminal && !matches!(term, None | Some("" | "dumb"))
}

/// How the sandbox is reached, and where this program is, which explains it.
pub(super) fn access(kubeconfig: &Kubeconfig, url: &str) -> Vec<String> {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent).map(kubeconfig::shown);
    let mut lines = vec![
        format!("API server  {url}"),
        format!("kubeconfig  export KUBECONFIG={}", kubeconfig::shown(kubeconfig.path())),
    ];
    lines.extend(folder.map(|folder| format!("program     export PATH={folder}:$PATH")));
    lines
}

/// Prints what a user may do next.
pub(super) fn print_ideas(access: &[String], ideas: &[(&str, String)]) {
    say!("\nThree things to try, in another terminal:");
    for command in access
        .iter()
        .filter_map(|line| line.find("export ").map(|at| line.split_at(at).1))
    {
        say!("     {command}");
    }
    for (number, (what, command)) in (1..).zip(ideas) {
        say!("  {number}. {what}:\n     {command}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_is_for_terminals_that_can_draw_one() {
        for (is_terminal, term, expected) in [
            (true, Some("xterm-256color"), true),
            (false, Some("xterm-256color"), false),
            (true, Some("dumb"), false),
            (true, Some(""), false),
            (true, None, false),
        ] {
            assert_eq!(is_screen(is_terminal, term), expected, "{is_terminal} {term:?}");
        }
    }

    #[test]
    fn commands_of_the_access_are_repeated_with_the_ideas() {
        crate::out::tests::taken();
        let access = [
            "API server  http://x",
            "kubeconfig  export KUBECONFIG=~/k",
            "program     export PATH=~/p:$PATH",
        ];
        print_ideas(&access.map(str::to_owned), &[("look", "capm3 tree demo".to_owned())]);
        let printed = crate::out::tests::taken();
        assert!(
            printed
                .contains("     export KUBECONFIG=~/k\n     export PATH=~/p:$PATH\n  1. look:\n     capm3 tree demo\n"),
            "{printed}"
        );
    }
}
