//! `console-test`: the console in a real browser. Each check prints a line; the first that fails ends the run.

mod accessible;
mod actions;
mod browser;
mod large;
mod login;
mod map;
mod quick;
mod views;
mod workload;
mod world;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use browser::Browser;

/// The arguments.
struct Arguments {
    browser: PathBuf,
    /// An empty folder for the profile of the browser.
    profile: PathBuf,
    /// The folder for pictures.
    pictures: Option<PathBuf>,
    /// Hosts of the large fleet.
    hosts: u32,
}

const USAGE: &str = "use console-test --profile FOLDER [--browser PROGRAM] [--pictures FOLDER] [--hosts NUMBER]";

fn arguments() -> Result<Arguments> {
    let mut found = Arguments {
        browser: PathBuf::from("chromium"),
        profile: PathBuf::new(),
        pictures: None,
        hosts: 1_000,
    };
    let mut all = std::env::args().skip(1);
    while let Some(name) = all.next() {
        let value = all.next().with_context(|| format!("{name} has no value; {USAGE}"))?;
        match name.as_str() {
            "--browser" => found.browser = PathBuf::from(value),
            "--profile" => found.profile = PathBuf::from(value),
            "--pictures" => found.pictures = Some(PathBuf::from(value)),
            "--hosts" => found.hosts = value.parse().context(USAGE)?,
            _ => bail!("{name:?}: {USAGE}"),
        }
    }
    anyhow::ensure!(found.profile.is_dir(), "--profile names no folder; {USAGE}");
    Ok(found)
}

/// Names what was checked.
fn checked(what: &str) {
    println!("ok  {what}");
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut browser = Browser::start(&arguments.browser, &arguments.profile)?;
    views::check(&runtime, &mut browser, arguments.pictures.as_deref())?;
    login::check(&runtime, &mut browser)?;
    quick::check(&runtime, &mut browser, (arguments.hosts, arguments.pictures.as_deref()))?;
    views::only_this_machine(&mut browser)?;
    anyhow::ensure!(
        browser.complaints.is_empty(),
        "the pages complain: {:?}",
        browser.complaints
    );
    checked("no page reported an error, or asked another machine");
    Ok(())
}
