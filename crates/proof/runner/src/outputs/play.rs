//! Plays the story in the sandbox under paused time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_files::workspace;
use metal3_manager::{plugin, why};
use metal3_runtime::clock::TimerClock;
use metal3_sandbox::world::{BMC_PASSWORD, Fault, Faults, NAMESPACE, Setup, World};
use serde_json::json;
use tokio::time::sleep;

use super::requests::{Requests, of_managers, of_viewer};
use super::story::{EACH_MINUTE, HOSTS, STORY, Step};
use crate::world::{apply_file, simulated_time};

const MINUTE: Duration = Duration::from_mins(1);
const HALF_A_MINUTE: Duration = Duration::from_secs(30);
const CLUSTER: &str = "e2e/scenarios/objects/cluster.yaml";
/// The client name of who runs the commands.
pub(super) const VIEWER: &str = "viewer";
/// The archive, as the page names it.
const ARCHIVE: &str = "metal3-support.tar";

/// How often a user looks, beyond what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// All commands and a scrape of the metrics in each minute.
    EachMinute,
    /// No command is run at all.
    Never,
}

/// What the commands of a part of the story printed.
#[derive(Debug)]
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) commands: Vec<Shown>,
}

/// A command with its output.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) words: &'static str,
    /// Both, as on a terminal.
    pub(super) text: String,
    /// What it asks of the API server.
    pub(super) requests: u64,
}

/// A played story.
pub(super) struct Played {
    pub(super) chapters: Vec<Chapter>,
    /// Those of the managers.
    pub(super) requests: Requests,
    /// The number of commands that were run.
    pub(super) commands: u64,
    pub(super) scrapes: u64,
}

/// Plays the story.
pub(super) fn play(looks: Looks) -> Result<Played> {
    let runtime = simulated_time()?;
    runtime.block_on(async {
        let mut player = Player::start(looks).await?;
        for step in &STORY {
            player.perform(step).await?;
        }
        // Commands have ended, and no watch is renewed at this moment.
        let end = MINUTE.saturating_mul(player.minutes);
        player.until(end.saturating_add(HALF_A_MINUTE)).await;
        player.played.requests = of_managers(&player.world);
        Ok(player.played)
    })
}

struct Player {
    world: World,
    clock: Arc<dyn Clock>,
    looks: Looks,
    began: Monotonic,
    /// The minutes of the story so far.
    minutes: u32,
    played: Played,
}

impl Player {
    async fn start(looks: Looks) -> Result<Self> {
        let start = chrono::DateTime::from_timestamp(1_767_254_400, 0).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let world = World::start(&Setup::real_time(1, Arc::clone(&clock)))?;
        let faults = Faults::from_iter([Fault::WrongPassword]);
        world.machine(HOSTS, |machine| machine.faults = faults);
        for host in 1..=HOSTS {
            world.add_host(host, &json!({})).await?;
        }
        let file = workspace::root()?.join(CLUSTER);
        let name = [("CLUSTER_NAME".to_owned(), "edge".to_owned())];
        apply_file(&world, &file, &name.into()).await?;
        Ok(Self {
            world,
            began: clock.monotonic(),
            minutes: 0,
            clock,
            looks,
            played: Played {
                chapters: Vec::new(),
                requests: Requests::default(),
                commands: 0,
                scrapes: 0,
            },
        })
    }

    async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Minutes(minutes) => {
                for _ in 0..*minutes {
                    self.minutes = self.minutes.saturating_add(1);
                    self.until(MINUTE.saturating_mul(self.minutes)).await;
                    self.look().await?;
                }
            }
            Step::Show(title, words) if self.looks == Looks::EachMinute => {
                let mut commands = Vec::new();
                for line in *words {
                    commands.push(self.command(line).await.with_context(|| (*line).to_owned())?);
                }
                self.played.chapters.push(Chapter { title, commands });
            }
            Step::Show(..) => {}
            Step::Repair(host) => {
                self.world.machine(*host, |machine| machine.faults = Faults::default());
            }
        }
        Ok(())
    }

    /// Waits until so much of the story is over. A command takes a moment, which must not make it longer: watches would be renewed
    /// more often.
    async fn until(&self, time: Duration) {
        sleep(time.saturating_sub(self.clock.monotonic().since(self.began))).await;
    }

    async fn look(&mut self) -> Result<()> {
        if self.looks == Looks::Never {
            return Ok(());
        }
        let metrics = self.world.metrics().render();
        ensure!(metrics.contains("metal3_"), "there are no metrics");
        self.played.scrapes = self.played.scrapes.saturating_add(1);
        for words in EACH_MINUTE {
            self.command(words).await.with_context(|| words.to_owned())?;
        }
        Ok(())
    }

    /// Runs a command as `kubectl metal3` does.
    async fn command(&mut self, words: &'static str) -> Result<Shown> {
        let before = of_viewer(&self.world);
        let (output, code) = match words {
            "support-bundle" => self.bundle().await?,
            words => self.printed(words).await?,
        };
        ensure!(
            !output.contains(BMC_PASSWORD),
            "the password of a BMC is shown: {output}"
        );
        self.played.commands = self.played.commands.saturating_add(1);
        let code = if code == 0 {
            String::new()
        } else {
            format!("(exit code {code})\n")
        };
        Ok(Shown {
            words,
            text: format!("$ kubectl metal3 {words}\n{output}{code}"),
            requests: of_viewer(&self.world).saturating_sub(before),
        })
    }

    async fn printed(&self, words: &str) -> Result<(String, u8)> {
        let client = self.world.cluster.client(VIEWER);
        let now = || self.clock.now().into();
        let mut words = words.split_whitespace().map(str::to_owned);
        let first = words.next().unwrap_or_default();
        if first == "why" {
            let (wanted, _) = why::parse(words)?;
            let (output, state) = wanted.run(&client, NAMESPACE, now()).await?;
            return Ok((output, state.exit_code()));
        }
        let (wanted, _) = plugin::parse(&first, words)?;
        let mut output = String::new();
        let state = wanted
            .run(&client, NAMESPACE, now, &mut |text: &str| output.push_str(text))
            .await?;
        Ok((output, state.exit_code()))
    }

    /// Creates the archive, and lists it.
    async fn bundle(&self) -> Result<(String, u8)> {
        let folder = std::env::temp_dir().join(format!("metal3-outputs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let file = folder.join(ARCHIVE);
        let path = file.to_str().context("the folder of temporary files is not text")?;
        let printed = self.printed(&format!("support-bundle --file={path}")).await;
        let archive = std::fs::read(&file).with_context(|| format!("read {path}"));
        let listed = std::process::Command::new("tar").arg("-tf").arg(&file).output();
        let removed = std::fs::remove_dir_all(&folder);
        let ((output, code), archive) = (printed?, archive?);
        removed.with_context(|| format!("delete {}", folder.display()))?;
        let canary = BMC_PASSWORD.as_bytes();
        ensure!(
            !archive.windows(canary.len()).any(|part| part == canary),
            "the archive contains the password of a BMC"
        );
        let listed = String::from_utf8(listed.context("run tar")?.stdout).context("the list of the archive")?;
        let output = output.replace(path, ARCHIVE);
        Ok((format!("{output}\n$ tar -tf {ARCHIVE}\n{listed}"), code))
    }
}
