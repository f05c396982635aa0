//! The phases of one size, from an empty server to an empty server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use metal3_ironic_life::simulated::SimulatedIronic;
use tokio::time::{Instant, sleep, timeout};

use crate::drive::{Change, change_all, create_secrets, host_name};
use crate::fleet::{Fleet, Target};
use crate::floor::{self, Sample};
use crate::manager::{Manager, Managers};
use crate::meter::Meter;
use crate::outcome::{Api, Phase, Size};
use crate::processes::require_all;
use crate::progress::{States, Wait};
use crate::server::Server;

/// How long a manager that has just started may take to write to a new host.
const EXTRA_LIMIT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(10);
/// One host alone, and those that are created for restarts.
const EXTRAS: u32 = 4;
/// After the return of Ironic, requests are counted for at least this long: until the first host that goes on later is looked at, or, when
/// all go on sooner, until the manager rests.
const RETURN: Duration = Duration::from_secs(10);

/// What all sizes share.
pub(crate) struct World {
    pub(crate) driver: Server,
    pub(crate) watcher: Server,
    pub(crate) floor: Server,
    pub(crate) meter: Meter,
    pub(crate) program: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) speed: u32,
    pub(crate) slots: u32,
    pub(crate) idle_seconds: u64,
    pub(crate) away_seconds: u64,
    pub(crate) log_level: u8,
    /// Without restarts and outages, and without what times are compared with.
    pub(crate) is_brief: bool,
}

/// One size in the making.
pub(crate) struct Run<'a> {
    world: &'a World,
    fleet: Fleet,
    ironic: SimulatedIronic,
    managers: Managers,
    hosts: u32,
    size: &'a mut Size,
}

/// Begins of a phase.
struct Begun {
    name: &'static str,
    since: Instant,
}

/// Runs one size.
///
/// Returns what was measured before an error, too.
pub(crate) async fn run(world: &World, hosts: u32) -> (Size, anyhow::Result<()>) {
    let mut size = Size {
        hosts,
        ..Size::default()
    };
    let result = measure(world, &mut size).await;
    (size, result)
}

async fn measure(world: &World, size: &mut Size) -> anyhow::Result<()> {
    let hosts = size.hosts;
    println!("--- {hosts} hosts");
    let ironic = SimulatedIronic::start(&world.home, hosts.saturating_add(EXTRAS), world.speed).await?;
    let slots = if world.slots == 0 { hosts.max(20) } else { world.slots };
    let managers = Managers::new(world, &ironic, slots);
    let fleet = Fleet::default();
    let run = Run {
        world,
        fleet: fleet.clone(),
        ironic,
        managers,
        hosts,
        size,
    };
    tokio::select! {
        done = run.phases() => done,
        ended = fleet.watch(world.watcher.clone()) => ended.and_then(|()| anyhow::bail!("the watch of hosts ended")),
        ended = world.meter.clone().run() => ended.and_then(|()| anyhow::bail!("the meter ended")),
    }
}

impl Run<'_> {
    async fn phases(mut self) -> anyhow::Result<()> {
        let all: Vec<u32> = (1..=self.hosts).collect();
        let extras: Vec<u32> = (1..=EXTRAS).map(|number| self.hosts.saturating_add(number)).collect();
        create_secrets(&self.world.driver, &extras).await?;
        create_secrets(&self.world.driver, &all).await?;
        let begun = self.begin("start").await?;
        let mut manager = self.managers.start()?;
        manager.alive().await?;
        let ready = begun.since.elapsed();
        self.world.meter.settle().await?;
        self.end(begun, ready, Vec::new()).await?;
        if self.world.is_brief {
            self.live(Change::Enrol, &all, &mut manager).await?;
            self.live(Change::Provision, &all, &mut manager).await?;
            self.idle().await?;
            self.last_phases(&all, manager).await?;
            return floor::clear(&self.world.driver).await;
        }
        let alone = self.alone().await?;
        self.live(Change::Enrol, &all, &mut manager).await?;
        self.live(Change::Provision, &all, &mut manager).await?;
        let sample = Sample::read(&self.world.driver, 1).await?;
        manager = self.restart(manager).await?;
        manager = self.take_over(manager, "kill").await?;
        manager = self.take_over(manager, "stop").await?;
        self.idle().await?;
        // A new leader waits a minute before it deletes a host: a request of the one before it may still be on its way.
        self.clear().await?;
        self.away(&all).await?;
        self.last_phases(&all, manager).await?;
        for (change, seconds) in alone {
            self.phase_of(change)?.alone = Some(seconds);
        }
        self.floor(&sample).await
    }

    async fn last_phases(&mut self, all: &[u32], mut manager: Manager) -> anyhow::Result<()> {
        self.live(Change::Deprovision, all, &mut manager).await?;
        self.live(Change::Delete, all, &mut manager).await?;
        manager.stop().await
    }

    /// Measures the floor of each change of all hosts.
    async fn floor(&mut self, sample: &Sample) -> anyhow::Result<()> {
        let (world, hosts) = (self.world, self.hosts);
        floor::prepare(&world.driver, sample, hosts).await?;
        for change in Change::LIFE {
            let phase = self.phase_of(change)?;
            let seconds = floor::measure(&world.floor, sample, &phase.api, hosts).await?;
            println!(
                "{:12} {seconds:6.1} s  for {} writes",
                "floor",
                Api::total(&phase.api.writes)
            );
            phase.floor = Some(seconds);
        }
        floor::clear(&world.driver).await
    }

    fn phase_of(&mut self, change: Change) -> anyhow::Result<&mut Phase> {
        let mut phases = self.size.phases.iter_mut();
        let found = phases.find(|phase| phase.name == change.name());
        found.with_context(|| format!("no phase {}", change.name()))
    }

    async fn begin(&mut self, name: &'static str) -> anyhow::Result<Begun> {
        self.world.meter.begin()?;
        self.ironic.take().await?;
        self.fleet.take_reactions();
        let since = Instant::now();
        Ok(Begun { name, since })
    }

    /// Records a phase that took this long.
    async fn end(&mut self, begun: Begun, took: Duration, states: States) -> anyhow::Result<&mut Phase> {
        let (api, processes) = self.world.meter.read()?;
        require_all(&processes)?;
        let reaction = Some(self.fleet.take_reactions()).filter(|reaction| reaction.burst.number > 0);
        println!("{:12} {:6.1} s  done", begun.name, took.as_secs_f64());
        self.size.phases.push(Phase {
            name: begun.name.to_owned(),
            seconds: took.as_secs_f64(),
            api,
            processes,
            ironic: self.ironic.take().await?,
            reaction,
            states,
            ..Phase::default()
        });
        self.size.phases.last_mut().context("no phase")
    }

    fn wait(&self, phase: &'static str, since: Instant, numbers: &[u32], target: Target) -> Wait<'_> {
        Wait {
            fleet: &self.fleet,
            meter: &self.world.meter,
            phase,
            since,
            names: numbers.iter().map(|number| host_name(*number)).collect(),
            target,
        }
    }

    /// Changes all hosts, and waits until they are where they are to be.
    async fn live(&mut self, change: Change, numbers: &[u32], manager: &mut Manager) -> anyhow::Result<()> {
        let begun = self.begin(change.name()).await?;
        let wait = self.wait(change.name(), begun.since, numbers, change.target());
        let change = change_all(&self.world.driver, &self.fleet, change, numbers);
        let work = async { tokio::try_join!(change, wait.finish()) };
        let states = tokio::select! {
            done = work => done?.1,
            ended = manager.ended() => ended.map(|()| States::new())?,
        };
        let took = begun.since.elapsed();
        self.world.meter.settle().await?;
        self.end(begun, took, states).await.map(drop)
    }

    /// The life of one host without others: what hardware and feed take anyway.
    async fn alone(&mut self) -> anyhow::Result<Vec<(Change, f64)>> {
        let number = self.hosts.saturating_add(1);
        let mut times = Vec::new();
        for change in Change::LIFE {
            let since = Instant::now();
            change.send(&self.world.driver, number).await?;
            self.wait("alone", since, &[number], change.target()).finish().await?;
            times.push((change, since.elapsed().as_secs_f64()));
            self.world.meter.settle().await?;
        }
        Ok(times)
    }

    async fn idle(&mut self) -> anyhow::Result<()> {
        let begun = self.begin("idle").await?;
        let period = Duration::from_secs(self.world.idle_seconds);
        println!("{:12} for {} s", begun.name, period.as_secs());
        sleep(period).await;
        self.end(begun, period, Vec::new()).await.map(drop)
    }

    /// Creates a host of which no manager knows yet.
    async fn extra(&mut self, number: u32) -> anyhow::Result<String> {
        let name = host_name(self.hosts.saturating_add(number));
        self.fleet.expect(&name, false);
        Change::Enrol
            .send(&self.world.driver, self.hosts.saturating_add(number))
            .await?;
        Ok(name)
    }

    /// When the manager wrote to that host.
    async fn answered(&self, name: &str) -> anyhow::Result<Instant> {
        let answer = async {
            loop {
                if let Some(at) = self.fleet.answered(name) {
                    return at;
                }
                sleep(POLL).await;
            }
        };
        timeout(EXTRA_LIMIT, answer)
            .await
            .with_context(|| format!("no manager writes to {name}"))
    }

    /// Stops the manager and starts it again, with one new host.
    async fn restart(&mut self, manager: Manager) -> anyhow::Result<Manager> {
        let begun = self.begin("restart").await?;
        manager.stop().await?;
        let name = self.extra(2).await?;
        let manager = self.managers.start()?;
        let first = self.answered(&name).await?.duration_since(manager.since);
        let extra = [self.hosts.saturating_add(2)];
        self.wait("restart", begun.since, &extra, Target::Available)
            .finish()
            .await?;
        self.world.meter.settle().await?;
        let took = begun.since.elapsed();
        let phase = self.end(begun, took, Vec::new()).await?;
        phase.figures.insert("first write".to_owned(), first.as_secs_f64());
        Ok(manager)
    }

    /// Ends the leader while another process waits, with one new host.
    async fn take_over(&mut self, leader: Manager, how: &'static str) -> anyhow::Result<Manager> {
        let mut standby = self.managers.start()?;
        standby.alive().await?;
        // Until it has listed what it caches: a standby sends nothing else for hosts.
        self.world.meter.settle().await?;
        let begun = self.begin(how).await?;
        match how {
            "kill" => leader.kill().await?,
            _ => leader.stop().await?,
        }
        let ended = Instant::now();
        let number = if how == "kill" { 3 } else { 4 };
        let name = self.extra(number).await?;
        let first = self.answered(&name).await?.duration_since(ended);
        let extra = [self.hosts.saturating_add(number)];
        self.wait(how, begun.since, &extra, Target::Available).finish().await?;
        self.world.meter.settle().await?;
        let took = begun.since.elapsed();
        let phase = self.end(begun, took, Vec::new()).await?;
        phase.figures.insert("without a leader".to_owned(), first.as_secs_f64());
        Ok(standby)
    }

    /// Deletes the hosts that restarts added.
    async fn clear(&mut self) -> anyhow::Result<()> {
        let extras: Vec<u32> = (2..=4).map(|number| self.hosts.saturating_add(number)).collect();
        for number in &extras {
            Change::Delete.send(&self.world.driver, *number).await?;
        }
        self.wait("clear", Instant::now(), &extras, Target::Gone)
            .finish()
            .await?;
        self.world.meter.settle().await
    }

    /// Ironic is away while a tenth of the hosts gets another image.
    async fn away(&mut self, all: &[u32]) -> anyhow::Result<()> {
        let begun = self.begin("away").await?;
        let busy = all.get(..all.len().div_ceil(10)).unwrap_or(all);
        change_all(&self.world.driver, &self.fleet, Change::Replace, busy).await?;
        let names: Vec<String> = busy.iter().map(|number| host_name(*number)).collect();
        // Each is on its way; the first ones may have arrived.
        for name in &names {
            self.answered(name).await?;
        }
        self.ironic.go_away(self.world.away_seconds).await?;
        let period = Duration::from_secs(self.world.away_seconds);
        println!("{:12} for {} s", begun.name, period.as_secs());
        sleep(period).await;
        // Answered when it listens again.
        let before = self.ironic.take().await?;
        let back = Instant::now();
        let waiting = names.iter().filter(|name| !self.fleet.is_at(name, Target::Provisioned));
        let waiting: Vec<&String> = waiting.collect();
        waiting.iter().for_each(|name| self.fleet.expect_answer(name));
        let (mut last, mut after) = (back, None);
        for name in &waiting {
            last = last.max(self.answered(name).await?);
            if after.is_none() && back.elapsed() >= RETURN {
                after = Some(self.ironic.take().await?);
            }
        }
        let busy_hosts = u64::try_from(waiting.len()).unwrap_or_default();
        let wait = self.wait("away", begun.since, busy, Target::Provisioned);
        let states = wait.finish().await?;
        let took = begun.since.elapsed();
        self.world.meter.settle().await?;
        let after = match after {
            Some(after) => after,
            None => self.ironic.take().await?,
        };
        let peak = after.peak;
        let phase = self.end(begun, took, states).await?;
        phase.ironic.add(before);
        phase.ironic.add(after);
        let progress = last.duration_since(back).as_secs_f64();
        for (figure, value) in [
            ("busy hosts", crate::outcome::number(busy_hosts)),
            ("all progress", progress),
            ("most requests a second after it", crate::outcome::number(peak)),
        ] {
            phase.figures.insert(figure.to_owned(), value);
        }
        Ok(())
    }
}
