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
use metal3_explain::text::render;
use metal3_runtime::clock::TimerClock;
use metal3_scenario::{Expectation, ExpectedCause, Scenario, Step};
use tokio::time::{Instant, sleep, timeout};

use super::admission;
use super::command::{access, print_ideas, stay_open};
use super::display::{Display, Head, Notices, Snapshot};
use super::flags::Flags;
use super::http_server::HttpServer;
use super::kubeconfig::Kubeconfig;
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
    let kubeconfig = Kubeconfig::write(&flags.kubeconfig, serving.url())?;
    let access = access(&kubeconfig, serving.url());
    access.iter().for_each(|line| say!("{line}"));
    say!(
        "time        {} times faster than real time; it stands still in pauses",
        flags.speed
    );
    say!("script      {}: {}\n", script.name(), scenario.about);
    let head = flags.is_screen.then(|| Head {
        title: format!("capm3 sandbox: {}: {}", script.name(), scenario.about),
        access: access.clone(),
    });
    let default = if flags.is_screen { PAUSE } else { 0 };
    let shown = (head, Notices::default());
    let mut player = Player {
        display: Display::of(&performer.world, Arc::clone(&clock), shown, flags.speed),
        performer,
        clock,
        pace,
        pause: Duration::from_secs(flags.pause.unwrap_or(default).into()),
    };
    let outcome = player.all(&scenario).await;
    player.display.close().await;
    let snapshot = player.display.snapshot();
    say!("\n{}", snapshot.trees());
    if let Err(error) = outcome {
        say!("{error:#}\n{}", snapshot.problems());
        return Ok(false);
    }
    say!("the script has ended, and each of its steps held");
    if !flags.once {
        print_ideas(&access, &ideas(&player.performer.namespace));
    }
    stay_open(flags).await;
    Ok(true)
}

fn ideas(namespace: &str) -> [(&'static str, String); 3] {
    [
        (
            "look at what the script left",
            format!("kubectl -n {namespace} get clusters,machines,baremetalhosts"),
        ),
        (
            "read the history of its machines",
            format!("kubectl -n {namespace} get events"),
        ),
        ("play another script", "capm3 sandbox --scenario list".to_owned()),
    ]
}

impl Player {
    async fn all(&mut self, scenario: &Scenario) -> Result<()> {
        self.performer.add_hosts(scenario.hosts).await?;
        let count = scenario.steps.len();
        for (number, step) in (1..).zip(&scenario.steps) {
            let step_words = words::describe(step);
            self.display
                .say(&format!("step {number} of {count}: {step_words}"))
                .await;
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
        self.display.say(text.trim_end()).await;
        ensure!(is_found, "it waits for something else");
        self.pace.stand_still(self.pause.saturating_mul(2)).await;
        Ok(())
    }
}

/// Why the first of the objects that wait for the cause waits, as `kubectl metal3 why` says it. Without one, why any waits.
fn explanation(snapshot: &Snapshot, cause: &ExpectedCause, namespace: &str, clock: &Arc<dyn Clock>) -> String {
    let objects = snapshot.objects();
    let all = cause.explained(&objects);
    let found = all.iter().find(|one| cause.is_end_of(one)).or_else(|| all.first());
    found.map_or_else(
        || format!("there is no {}", cause.kind),
        |found| render(found, namespace, clock.now().into()),
    )
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;
    use crate::out;

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
        out::tests::taken();
        assert!(played(&Script::named("wrong-password").unwrap()));
        let printed = out::tests::taken();
        // In the step, and in the explanation.
        assert!(printed.matches("RegistrationError").count() >= 2, "{printed}");
    }

    /// The machine that waits is not the first one of its kind.
    #[test]
    fn explanation_is_that_of_the_object_that_waits() {
        out::tests::taken();
        assert!(played(&Script::named("pools").unwrap()));
        let printed = out::tests::taken();
        let after = printed.split("the answer is NoFreeAddress of IPPool").nth(1).unwrap();
        let explained = after.split("Who acts").next().unwrap();
        assert!(explained.contains("NoFreeAddress"), "{printed}");
        tree_is_true(&printed);
    }

    #[test]
    fn what_was_deleted_is_not_in_the_tree_at_the_end() {
        out::tests::taken();
        assert!(played(&Script::named("kamaji").unwrap()));
        let printed = out::tests::taken();
        let end = printed.rsplit("step 11 of 11").next().unwrap();
        assert!(!end.contains("Cluster/"), "{printed}");
    }

    /// The last waits of the script are for machines that are ready.
    fn tree_is_true(printed: &str) {
        let tree = printed.rsplit("\n\nCluster/").next().unwrap();
        assert!(tree.contains("Machine/") && !tree.contains("Provisioning"), "{printed}");
    }

    #[test]
    fn step_that_does_not_hold_ends_the_script() {
        assert!(!played(&Script::of(
            "about: x\nhosts: 0\nsteps: [{ check: { kind: Machine } }, { restart: null }]"
        )));
    }
}
