//! Plays a scenario for a person: each step is named, what happens is shown, and what is waited for is explained.
//!
//! The time of the world passes a number of times faster than real time, for machines and controllers alike. It stands
//! still in a pause, and is not held back while a script lets hours pass.

mod pace;
mod scripts;
mod words;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_explain::ObjectId;
use metal3_explain::offline::explain_objects;
use metal3_explain::text::render;
use metal3_runtime::clock::TimerClock;
use metal3_scenario::{Expectation, ExpectedCause, Scenario, Step};
use metal3_sim_capi::view::Object;
use tokio::time::{Instant, sleep, timeout};

use super::admission;
use super::command::{is_terminal, print_access, print_ideas, program, stay_open};
use super::display::{Display, Snapshot};
use super::flags::Flags;
use super::http_server::HttpServer;
use super::kubeconfig;
use super::steps::{Performed, Performer};
use super::world::Setup;
use pace::Pace;
pub(super) use scripts::{Script, list};

/// Seconds before each step, on a terminal.
const PAUSE: u32 = 3;
/// Timeout of every wait, in the time of the world.
const TIMEOUT: Duration = Duration::from_secs(3_600);
const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// Longest time in which nothing happens that is played.
const LONGEST: Duration = Duration::from_mins(30);

/// A running script.
struct Player {
    performer: Performer,
    display: Display,
    clock: Arc<dyn Clock>,
    pace: Pace,
    pause: Duration,
}

/// Plays a script. Returns whether each step held.
pub(super) async fn play(flags: &Flags, script: &Script) -> Result<bool> {
    let scenario = Scenario::read(script.text).context("read the script")?;
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(SystemClock::start().now()));
    let mut setup = Setup::real_time(flags.seed, Arc::clone(&clock));
    setup.looks_before_joins = scenario.looks_before_joins;
    if let Some(namespace) = &scenario.namespace {
        setup.namespace.clone_from(namespace);
    }
    let pace = Pace::start(flags.speed);
    let performer = Performer::start(&setup, Box::new(scripts::objects)).await?;
    admission::install(&performer.world.cluster);
    let serving = HttpServer::open(&performer.world.cluster, &clock, flags.port).await;
    let serving = serving.context("--port: listen on loopback")?;
    kubeconfig::write(&flags.kubeconfig, serving.url())?;
    print_access(flags, serving.url());
    println!(
        "time        {} times faster than real time; it stands still in pauses",
        flags.speed
    );
    println!("script      {}: {}\n", script.name(), scenario.about);
    let title = format!("capm3 sandbox: {}: {}", script.name(), scenario.about);
    let default = if is_terminal() { PAUSE } else { 0 };
    let mut player = Player {
        display: Display::of(&performer.world, Arc::clone(&clock), is_terminal(), &title, flags.speed),
        performer,
        clock,
        pace,
        pause: Duration::from_secs(flags.pause.unwrap_or(default).into()),
    };
    let outcome = player.all(&scenario).await;
    player.display.close();
    let snapshot = player.display.snapshot();
    println!("\n{}", snapshot.trees());
    if let Err(error) = outcome {
        println!("{error:#}\n{}", snapshot.problems());
        return Ok(false);
    }
    println!("the script has ended, and each of its steps held; `make scenario` also counts the writes of quiet times");
    if !flags.once {
        print_ideas(flags, &ideas(&player.performer.namespace));
    }
    stay_open(flags).await;
    Ok(true)
}

fn ideas(namespace: &str) -> [(&'static str, String); 3] {
    let program = program();
    [
        (
            "look at what the script left",
            format!("kubectl -n {namespace} get clusters,machines,baremetalhosts"),
        ),
        (
            "read the history of its machines",
            format!("kubectl -n {namespace} get events"),
        ),
        ("play another script", format!("{program} sandbox --scenario list")),
    ]
}

impl Player {
    async fn all(&mut self, scenario: &Scenario) -> Result<()> {
        self.performer.add_hosts(scenario.hosts).await?;
        let count = scenario.steps.len();
        for (number, step) in (1..).zip(&scenario.steps) {
            let step_words = words::describe(step);
            self.display.say(&format!("step {number} of {count}: {step_words}"));
            self.pace.stand_still(self.pause).await;
            let performed = self.perform(step).await;
            performed.with_context(|| format!("step {number} does not hold: {step_words}"))?;
        }
        Ok(())
    }

    async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Wait(expectation) => self.wait(expectation).await,
            Step::Holds { expectation, during } => self.holds(expectation, during.0).await,
            Step::Why(cause) => self.explain(cause).await,
            Step::Quiet(span) => self.pass(span.0).await,
            step => match self.display.during(self.performer.perform(step)).await? {
                Performed::Yes => Ok(()),
                Performed::ByCaller => bail!("the sandbox has no published manifests"),
            },
        }
    }

    async fn wait(&mut self, expectation: &Expectation) -> Result<()> {
        let performer = &self.performer;
        let mut last = Ok(());
        let met = self.display.during(timeout(TIMEOUT, async {
            loop {
                last = performer.check(expectation).await;
                if last.is_ok() {
                    return;
                }
                sleep(POLL_INTERVAL).await;
            }
        }));
        if met.await.is_err() {
            last.context("not within an hour")?;
        }
        Ok(())
    }

    /// Lets time pass while the expectation is met.
    async fn holds(&mut self, expectation: &Expectation, during: Duration) -> Result<()> {
        let _free = self.pace.not_held_back();
        let (performer, end) = (&self.performer, Instant::now() + during.min(LONGEST));
        let held = async {
            while Instant::now() < end {
                performer.check(expectation).await?;
                sleep(POLL_INTERVAL).await;
            }
            performer.check(expectation).await
        };
        self.display.during(held).await
    }

    async fn pass(&mut self, span: Duration) -> Result<()> {
        let _free = self.pace.not_held_back();
        self.display.during(sleep(span.min(LONGEST))).await;
        Ok(())
    }

    /// Waits until the explanation ends at the cause, and shows it.
    async fn explain(&mut self, cause: &ExpectedCause) -> Result<()> {
        let found = self.display.until(|snapshot| cause.check(&snapshot.objects()).is_ok());
        let is_found = timeout(TIMEOUT, found).await.is_ok();
        let text = explanation(self.display.snapshot(), cause, &self.performer.namespace, &self.clock);
        self.display.say(text.trim_end());
        ensure!(is_found, "it waits for something else");
        self.pace.stand_still(self.pause.saturating_mul(2)).await;
        Ok(())
    }
}

/// Why the first of the objects waits, as `kubectl metal3 why` says it.
fn explanation(snapshot: &Snapshot, cause: &ExpectedCause, namespace: &str, clock: &Arc<dyn Clock>) -> String {
    let objects = snapshot.objects();
    let selected = objects.iter().map(|object| Object(object.clone())).find(|object| {
        let is_name = |name: &String| name == object.name();
        object.kind() == cause.kind && cause.name.as_ref().is_none_or(is_name)
    });
    let Some(object) = selected else {
        return format!("there is no {}", cause.kind);
    };
    let version = object.text("/apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let id = ObjectId::foreign(group, object.kind(), object.name());
    render(&explain_objects(&id, &objects), namespace, clock.now().into())
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn played(script: &Script) -> bool {
        let folder = std::env::temp_dir().join(format!("sandbox-{}-{}", script.name(), std::process::id()));
        let line = format!("--once --speed 10000 --kubeconfig {}", folder.join("config").display());
        let flags = Flags::parse(line.split(' ').map(str::to_owned), &folder)
            .unwrap()
            .unwrap();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let held = runtime.block_on(play(&flags, script)).unwrap();
        runtime.shutdown_background();
        std::fs::remove_dir_all(&folder).unwrap();
        held
    }

    #[test]
    fn script_is_played_to_its_end() {
        assert!(played(&Script::named("wrong-password").unwrap()));
    }

    #[test]
    fn step_that_does_not_hold_ends_the_script() {
        assert!(!played(&Script::of(
            "about: x\nhosts: 0\nsteps: [{ check: { kind: Machine } }, { restart: null }]"
        )));
    }
}
