//! The swap suite: a live installation of the Go managers is switched to this project's and back, with hosts in the states
//! that a Go manager can leave, and with work in flight.
//!
//! Each switch is recorded (audit log, Ironic's log, each version of each object, the machines) and judged by the same
//! invariants, in both directions. The Go managers are built outside this project: see [`upstream`].

mod back;
mod features;
mod first;
mod identity;
mod judge;
pub(super) mod logs;
mod managers;
mod pause;
mod plain;
mod predict;
mod products;
pub(super) mod record;
mod release;
mod remediation;
mod report;
mod service;
mod session;
mod stage;
mod updates;
mod upstream;
mod work;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use parking_lot::Mutex;

use super::cluster::LONG;
use super::conflicts;
use super::env::TestEnv;
use super::fleet::{Delays, Fleet, FleetOptions, Wanted};
use super::install;
use super::simulator::MachineSimulator;
use crate::claim::{exit_code, report as print};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::products::machines::host_simulator::concurrently;
use crate::wait::{Stopwatch, until};
use judge::{INVARIANTS, Seen, Turn};
use managers::{Installer, Way};
use plain::{PLAIN, Plain, Refusal};
use predict::Prediction;
use products::{Family, Product};
use record::{History, Mark, Versions};
use session::Session;
use stage::{FAILED, Stage, host};
use upstream::Upstream;
use work::{InFlight, SWITCHES};

/// Without a write to a host for so long, all is at rest.
const QUIET: Duration = Duration::from_secs(40);

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Folder of the Go managers and their manifests: docs/development.md, "The swap".
    #[arg(long)]
    upstream_bin: PathBuf,
    /// How to switch; each way goes there and back.
    #[arg(long = "way", value_enum, default_values = ["scale", "upgrade"])]
    ways: Vec<Way>,
    /// The page to write.
    #[arg(long)]
    report: Option<PathBuf>,
}

impl Options {
    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args: Vec<OsString> = vec!["swap".into(), "--upstream-bin".into()];
        args.push(self.upstream_bin.canonicalize()?.into());
        args.extend(self.fleet.args()?);
        for way in &self.ways {
            args.extend(["--way".into(), way.name().into()]);
        }
        if let Some(report) = &self.report {
            args.extend(["--report".into(), std::path::absolute(report)?.into()]);
        }
        Ok(args)
    }
}

/// Runs the suite on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let release = Upstream::of(&options.upstream_bin)?.release;
    ensure!(
        release.has_ipam_provider() || !options.ways.contains(&Way::Upgrade),
        "release {} has no clusterctl provider of addresses: use WAY=scale",
        release.series()
    );
    ensure!(
        options.ways.len() * 2 <= SWITCHES,
        "a run has work in flight for {} switches: name at most {} ways",
        SWITCHES,
        SWITCHES / 2
    );
    let files = released.files().into_iter().chain(options.fleet.files());
    ensure_made(files, "make e2e-swap")?;
    Ok(exit_code(released.prove(places, || Ok(()), options.args()?)?))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    crate::instance::set_image(places, install::IMAGE, &options.released.binary)?;
    let wanted = Wanted {
        machines: stage::MACHINES,
        delays: Delays {
            boot: stage::BOOT_DELAY,
            step: stage::STEP_DELAY,
        },
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let simulator = Mutex::new(MachineSimulator::new(&stack, &fleet));
    simulator.lock().ignore(stage::without_a_cluster());
    let env = TestEnv {
        stack: &stack,
        second: &stack,
        release: &options.released.release,
        program: &options.released.binary,
        fleet: &fleet,
        simulator: &simulator,
        parts: &[],
        seed: 1,
        autoscaler: None,
    };
    let (upstream, session) = (Upstream::of(&options.upstream_bin)?, Session::default());
    let installer = Installer {
        env: &env,
        upstream: &upstream,
        session: &session,
        program: &options.released.binary,
    };
    let watch = Stopwatch::start();
    installer.publish(Family::Go)?;
    installer.first()?;
    println!(
        "       the Go managers are installed after {:.1} s",
        watch.elapsed().as_secs_f64()
    );
    let history = Mutex::new(History::begin(&stack)?);
    let both = || {
        env.simulator().step()?;
        history.lock().keep()
    };
    let suite = Suite {
        env: &env,
        installer: &installer,
        versions: &|| history.lock().versions(),
        program: &options.released.binary,
    };
    let held = concurrently("the simulated machines", both, || suite.run(options))?;
    Ok(exit_code(held))
}

/// A switch that has ended, and what was seen before and during it.
struct Switched {
    kind: (Way, Family),
    work: InFlight,
    marks: [Mark; 3],
    /// The lengths of the audit log and of Ironic's before the prediction.
    since: (usize, usize),
    prediction: Prediction,
    refusals: Vec<Refusal>,
    late_stops: Option<BTreeSet<String>>,
    /// The length of Ironic's log when the new managers were installed.
    switched: usize,
}

struct Suite<'a> {
    env: &'a TestEnv<'a>,
    installer: &'a Installer<'a>,
    /// The versions of all objects so far.
    versions: &'a dyn Fn() -> anyhow::Result<Versions>,
    program: &'a PathBuf,
}

impl Suite<'_> {
    /// Returns whether all invariants hold for each switch.
    fn run(&self, options: &Options) -> anyhow::Result<bool> {
        let release = &self.installer.upstream.release;
        let stage = Stage(self.env, release);
        let watch = Stopwatch::start();
        stage.set()?;
        self.quiet(Mark::now(self.env.stack, self.env.fleet)?.audit)?;
        println!(
            "       hosts and cluster are at rest after {:.1} s",
            watch.elapsed().as_secs_f64()
        );
        self.installer.publish(Family::Ours)?;
        for what in release.not_staged() {
            println!("       not staged: {what}");
        }
        // The commands so far installed the Go managers.
        drop(self.installer.session.take());
        let mut turns = Vec::new();
        let mut held = true;
        let switches = options
            .ways
            .iter()
            .flat_map(|way| [(*way, Family::Ours), (*way, Family::Go)]);
        for (number, (way, to)) in switches.enumerate() {
            let watch = Stopwatch::start();
            println!("       switch {}: to {}, {}", number + 1, to.name(), way.describe());
            let turn = self.turn(&stage, number, (way, to));
            let turn = turn.with_context(|| format!("switch {}: {}", number + 1, self.installer.session.take()))?;
            for (name, proof) in INVARIANTS {
                held &= print(name, proof(&turn));
            }
            println!("       {:.1} s", watch.elapsed().as_secs_f64());
            turns.push(turn);
            // After each: a run is too long to lose its results.
            if let Some(path) = &options.report {
                fs::write(path, report::page(&turns)).with_context(|| format!("writing {}", path.display()))?;
            }
        }
        println!("{} switches, {} invariants each", turns.len(), INVARIANTS.len());
        Ok(held)
    }

    /// One switch, recorded.
    fn turn(&self, stage: &Stage<'_>, number: usize, (way, to): (Way, Family)) -> anyhow::Result<Turn> {
        let (env, mut work) = (self.env, InFlight::of(number));
        let refused = PLAIN.iter().map(|plain| self.installer.is_refused(to, plain));
        let refused = refused.collect::<anyhow::Result<Vec<bool>>>()?;
        if to == Family::Go {
            stage.fail_service(number)?;
        }
        let before = Mark::now(env.stack, env.fleet)?;
        stage.begin(&work)?;
        let (since, prediction) = self.predict(to)?;
        stage.ask(&mut work)?;
        let late_stops = match to {
            Family::Go if !work.is_cut => Some(self.predict(to)?.1.stops()),
            Family::Go | Family::Ours => None,
        };
        if work.is_cut {
            self.cut(stage)?;
        }
        let switch = Mark::now(env.stack, env.fleet)?;
        self.installer.switch(to, way)?;
        if work.is_paused {
            // A manager looks at each of its hosts once a minute, at the latest.
            std::thread::sleep(Duration::from_secs(90));
        }
        let switched = env.fleet.mark()?;
        stage.ended(&work)?;
        self.quiet(switch.audit)?;
        let after = Mark::now(env.stack, env.fleet)?;
        self.recorded(Switched {
            kind: (way, to),
            work,
            marks: [before, switch, after],
            since,
            refusals: refusals(&refused, &prediction),
            prediction,
            late_stops,
            switched,
        })
    }

    /// Kills the leader of the hosts right after it ordered a service.
    fn cut(&self, stage: &Stage<'_>) -> anyhow::Result<()> {
        let [hosts, ..] = self.installer.products();
        stage.begin_last_service()?;
        self.installer.kill_leader(Family::Ours, &hosts)
    }

    /// A switch with what the logs say of it.
    fn recorded(&self, switched: Switched) -> anyhow::Result<Turn> {
        let (env, (way, to)) = (self.env, switched.kind);
        let (marks, prediction) = (switched.marks, switched.prediction);
        let nodes = marks.iter().flat_map(|mark| mark.nodes.clone()).collect();
        let [from, since, _] = marks.each_ref().map(|mark| mark.ironic);
        let [old, _, new] = marks.each_ref().map(|mark| &mark.managers);
        let go = if to == Family::Ours { old } else { new };
        let log = env.fleet.log_since(since)?;
        let until_resumed = log.get(..switched.switched.saturating_sub(since)).unwrap_or_default();
        let audit = fs::read(env.stack.places.log("audit"))?;
        let part =
            |range: std::ops::Range<usize>| String::from_utf8_lossy(audit.get(range).unwrap_or_default()).into_owned();
        let [begun, since_switch, end] = marks.each_ref().map(|mark| mark.audit);
        let writes = [part(begun..since_switch), part(since_switch..end)];
        let requests = writes.each_ref().map(|part| logs::requests(part));
        let gap = |product: Product| {
            let gap = logs::without_manager(&requests, &product, to == Family::Ours);
            (product.deployment, gap)
        };
        Ok(Turn {
            to,
            release: self.installer.upstream.release.clone(),
            gaps: self.installer.products().map(gap),
            way,
            work: switched.work,
            orders: logs::orders(&log, &nodes),
            until_resumed: logs::orders(until_resumed, &nodes),
            since_prediction: Seen {
                writes: logs::writes(&part(switched.since.0..end)),
                orders: logs::orders(&env.fleet.log_since(switched.since.1)?, &nodes),
            },
            begun: logs::begun(&env.fleet.log_since(from)?, &nodes, go),
            writes: writes.each_ref().map(|part| logs::writes(part)),
            leases: logs::of_leases(&requests[1]),
            conflicts: conflicts::of(&part(0..end), begun),
            versions: (self.versions)()?,
            named: prediction.hosts(),
            stops: prediction.stops(),
            late_stops: switched.late_stops,
            first: prediction.first(),
            refusals: switched.refusals,
            predicted: prediction.text(),
            session: self.installer.session.take(),
            marks,
        })
    }

    /// What preflight says, and the lengths of the audit log and of Ironic's before: from there on either manager may do what it
    /// sees.
    fn predict(&self, to: Family) -> anyhow::Result<((usize, usize), Prediction)> {
        let env = self.env;
        let audit = fs::metadata(env.stack.places.log("audit"))?.len();
        let before = (usize::try_from(audit)?, env.fleet.mark()?);
        let release = &self.installer.upstream.release;
        Ok((before, predict::run(env.stack, env.fleet, (self.program, to), release)?))
    }

    /// Waits until no host is written for a while. Hosts with an error are retried for ever.
    fn quiet(&self, since: usize) -> anyhow::Result<()> {
        let failed: Vec<String> = FAILED.iter().map(|(number, _)| host(*number)).collect();
        let (mut last, mut watch) = (usize::MAX, Stopwatch::start());
        until(LONG, "hosts that are written no more", || {
            let audit = fs::read(self.env.stack.places.log("audit"))?;
            let audit = String::from_utf8_lossy(audit.get(since..).unwrap_or_default()).into_owned();
            let writes = logs::writes(&audit);
            let of_hosts = writes
                .iter()
                .filter(|one| one.resource.starts_with("baremetalhosts") && !failed.contains(&one.name));
            let count = of_hosts.count();
            if count != last {
                (last, watch) = (count, Stopwatch::start());
            }
            Ok((watch.elapsed() > QUIET).then_some(()))
        })
    }
}

/// The plain commands, and whether preflight names what works where they are refused.
fn refusals(refused: &[bool], prediction: &Prediction) -> Vec<Refusal> {
    let refusal = |(plain, is_refused): (&Plain, &bool)| Refusal {
        plain: plain.command(),
        is_refused: *is_refused,
        is_named: prediction.names(plain),
    };
    PLAIN.iter().zip(refused).map(refusal).collect()
}
