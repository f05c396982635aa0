//! The scripts of `e2e/scenarios` on this world: real Cluster API managers and a real Ironic, played machines.
//!
//! Words and judgement are those of `metal3-scenario`, so a script is the same here and on the simulated world. What a
//! world cannot do is refused with words before the script begins. One stack serves all scripts, each in a namespace of
//! its own, and after each the machines are given back and forgotten again.

mod asked;
mod kinds;
mod quiet;
mod seen;
mod stage;
mod terms;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, ensure};
use clap::Args;
use metal3_scenario::{Asked, Observed, Scenario};
use serde_json::Value;

use super::boots::Boots;
use super::fleet::{Fleet, Wanted};
use super::guests::{self, Guests};
use super::{Metal, Scene, describe, install};
use crate::claims::world::World;
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::wait::Stopwatch;
use kinds::Kinds;
use stage::Stage;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    metal: Metal,
    /// Write here what objects said of themselves, sorted.
    #[arg(long)]
    observed: Option<PathBuf>,
    /// Write here what the products asked for.
    #[arg(long)]
    asked: Option<PathBuf>,
    /// Folder of what others have published, for the scripts that apply it.
    #[arg(long)]
    published: Option<PathBuf>,
    /// The scripts.
    #[arg(required = true)]
    file: Vec<PathBuf>,
}

impl Options {
    /// This command, as it is run inside.
    fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words = vec!["scenarios".into()];
        for file in &self.file {
            words.push(std::fs::canonicalize(file)?.into());
        }
        words.extend(self.metal.words()?);
        let paths = [
            ("--observed", &self.observed),
            ("--asked", &self.asked),
            ("--published", &self.published),
        ];
        for (flag, path) in paths {
            if let Some(path) = path {
                words.extend([flag.into(), std::path::absolute(path)?.into()]);
            }
        }
        Ok(words)
    }
}

/// A script, by the name of its file.
struct Script {
    name: String,
    scenario: Scenario,
    folder: PathBuf,
    /// Folder of what others have published.
    published: Option<PathBuf>,
}

impl Script {
    /// Where all of it happens.
    fn namespace(&self) -> &str {
        self.scenario.namespace.as_deref().unwrap_or(&self.name)
    }

    /// A file that others have published.
    fn published(&self, file: &str) -> anyhow::Result<Vec<Value>> {
        let folder = self.published.as_deref();
        let folder = folder.context("no folder of what others have published is known: name it with --published")?;
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        metal3_scenario::published(&text).with_context(|| path.display().to_string())
    }

    fn read(file: &Path, published: Option<&Path>) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Self {
            name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            scenario: Scenario::read(&text).with_context(|| format!("reading {}", file.display()))?,
            folder: file.parent().unwrap_or(Path::new(".")).to_path_buf(),
            published: published.map(Path::to_path_buf),
        })
    }
}

/// Runs the scripts on a fresh stack; the exit code says whether all of it came true.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.metal.files());
    ensure_made(files, "make e2e-scenarios")?;
    // Before anything starts.
    read(options)?;
    let held = released.prove(places, || Ok(()), options.words()?)?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(options: &Options) -> anyhow::Result<Vec<Script>> {
    let all = options.file.iter();
    all.map(|file| Script::read(file, options.published.as_deref()))
        .collect()
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let scripts = read(options)?;
    let world = World::new(places, None);
    crate::life::set_image(places, install::IMAGE, &options.released.binary)?;
    let hosts = scripts.iter().map(|script| script.scenario.hosts_at_most()).max();
    let wanted = Wanted {
        machines: usize::try_from(hosts.unwrap_or_default())?,
        images: terms::published_images(&scripts)?,
    };
    let fleet = Fleet::start(&world, &options.metal, &wanted)?;
    let boots = Mutex::new(Boots::new(&world, &fleet));
    let scene = Scene {
        world: &world,
        second: &world,
        release: &options.released.release,
        fleet: &fleet,
        boots: &boots,
        parts: &[],
        seed: 1,
    };
    let watch = Stopwatch::start();
    install::first_manager_of_hosts(&scene)?;
    println!("       {}", install::providers(&scene)?);
    println!("       installed after {:.1} s", watch.elapsed().as_secs_f64());
    let guests = guests_of(&scene, &scripts)?;
    if let Some(guests) = &guests {
        scene.boots().with_guests(guests.grounds());
    }
    let mut noted = Noted::default();
    let failed = all(&scene, &scripts, &mut noted);
    // As far as it came: a run is too long to lose what it saw.
    let Noted { observed, asked } = noted;
    let texts = [
        (&options.observed, observed.to_string()),
        (&options.asked, asked.to_string()),
    ];
    for (path, text) in texts.iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        println!("what was seen is in {}", path.display());
    }
    let failed = failed?;
    super::audit::nothing_was_forbidden(&world)?;
    println!("{} scenarios on real managers, {failed} failed", scripts.len());
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The other providers, where a script speaks of their kinds.
fn guests_of(scene: &Scene<'_>, scripts: &[Script]) -> anyhow::Result<Option<Guests>> {
    for script in scripts {
        if terms::kinds(script)?.iter().any(|(_, kind)| guests::has(kind)) {
            return Guests::begin(scene.world).map(Some);
        }
    }
    Ok(None)
}

/// What was seen while scripts ran.
#[derive(Default)]
struct Noted {
    observed: Observed,
    asked: Asked,
}

/// Runs them one after another. One that does not come true does not keep others from running, if its machines can be
/// had back. How many failed.
fn all(scene: &Scene<'_>, scripts: &[Script], noted: &mut Noted) -> anyhow::Result<usize> {
    let kinds = Kinds::discover(scene.world)?;
    let mut failed = 0_usize;
    for script in scripts {
        let refusals = terms::refusals(script, &kinds)?;
        let begun = Stopwatch::start();
        let outcome = if refusals.is_empty() {
            one(scene, script, &kinds, noted)
        } else {
            Err(anyhow::anyhow!("this world refuses it:\n{}", refusals.join("\n")))
        };
        let (name, seconds) = (&script.name, begun.elapsed().as_secs_f64());
        match outcome {
            Ok(()) => println!("{name}: ok: {}: {seconds:.1} s", script.scenario.about),
            Err(error) => {
                failed = failed.saturating_add(1);
                println!("{name}: FAILED after {seconds:.1} s\n{error:#}");
            }
        }
        if refusals.is_empty() {
            let cleaned = scene.while_machines_live(|| stage::clear(scene, &kinds, script.namespace()));
            cleaned.with_context(|| format!("after {name}"))?;
        }
    }
    Ok(failed)
}

/// Runs one, and takes in what objects said and products asked for meanwhile.
fn one(scene: &Scene<'_>, script: &Script, kinds: &Kinds, noted: &mut Noted) -> anyhow::Result<()> {
    let namespace = script.namespace();
    stage::open(scene.world, namespace)?;
    let seen = seen::Seen::begin(scene.world, kinds, namespace)?;
    let mut stage = Stage::new(scene, kinds, script)?;
    let logs = asked::Mark::now(scene)?;
    let played = describe::meanwhile(scene.world, namespace, || {
        scene.while_machines_live(|| play(&mut stage, &script.scenario))
    });
    let seen = seen.end().and_then(|said| {
        let lines = said.to_string();
        ensure!(!lines.is_empty(), "nobody said anything");
        noted.observed.merge(said);
        noted.asked.merge(logs.since(scene, script)?);
        Ok(lines.lines().any(|line| line.starts_with("Cluster: ")))
    });
    // What was played is the likelier reason of whatever came after it.
    let ((), figures) = played?;
    let had_cluster = seen?;
    println!("       {figures}");
    // A script about hosts alone has none.
    if had_cluster { figures.prove() } else { Ok(()) }
}

fn play(stage: &mut Stage<'_, '_>, scenario: &Scenario) -> anyhow::Result<()> {
    stage.add_hosts(scenario.hosts)?;
    for (number, step) in scenario.steps.iter().enumerate() {
        let (number, begun) = (number.saturating_add(1), Stopwatch::start());
        stage.take(step).with_context(|| format!("step {number}: {step:?}"))?;
        println!("       step {number}: {:.1} s", begun.elapsed().as_secs_f64());
    }
    Ok(())
}
