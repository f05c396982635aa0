//! The suite about the release before this one: the real helm upgrades it to this one and rolls back to it while hosts of a real
//! Ironic are deployed, cleaned and inspected. What was asked ends, once, and nothing else happens.

mod definitions;
mod judge;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use serde_json::{Value, json};

use super::audit;
use super::cluster::LONG;
use super::fleet::{Delays, Fleet, FleetOptions, Wanted};
use super::install;
use super::swap::logs;
use super::swap::record::Mark;
use super::upgrade::{logins_recorded, nodes_listed};
use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::helm::{DEFINITIONS, Helm, NAMESPACE as MANAGERS, PROGRAM};
use crate::places::Places;
use crate::products::load::{claim, grants, has_address, list, name, pool};
use crate::products::machines::{NAMESPACE, init};
use crate::wait::{Stopwatch, until};
use crate::yaml::documents;
use judge::{Happened, violations};
use work::{AT_REST, MACHINES, PAIR, STEPS, Work, host};

/// Last element of the name of the image of the previous release.
const IMAGE: &str = "capm3-previous";
const READY: [&str; 2] = ["--wait", "--timeout=180s"];
/// Milliseconds for a boot and for a step of the agent, so that a step meets work in flight.
const DELAYS: Delays = Delays { boot: 5000, step: 2500 };

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Directory written by `make chart`.
    #[arg(long)]
    charts: PathBuf,
    /// The same of the previous release, for an image with the name `capm3-previous`.
    #[arg(long)]
    previous_charts: PathBuf,
    /// The program of the previous release.
    #[arg(long)]
    previous_binary: PathBuf,
    /// The program helm.
    #[arg(long)]
    helm: PathBuf,
}

impl Options {
    fn paths(&self) -> [(&'static str, &PathBuf); 4] {
        [
            ("--charts", &self.charts),
            ("--previous-charts", &self.previous_charts),
            ("--previous-binary", &self.previous_binary),
            ("--helm", &self.helm),
        ]
    }

    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = vec!["previous".into()];
        args.extend(self.fleet.args()?);
        for (flag, path) in self.paths() {
            args.extend([flag.into(), fs::canonicalize(path)?.into()]);
        }
        Ok(args)
    }
}

/// Proves the suite on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.fleet.files());
    let paths = options.paths();
    ensure_made(files.chain(paths.map(|(_, path)| path)), "make e2e-previous")?;
    Ok(exit_code(released.prove(places, || Ok(()), options.args()?)?))
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    crate::instance::set_image(places, install::IMAGE, &options.released.binary)?;
    crate::instance::set_image(places, IMAGE, &options.previous_binary)?;
    let wanted = Wanted {
        machines: MACHINES,
        delays: DELAYS,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let helm = |charts| Helm {
        stack: &stack,
        helm: &options.helm,
        charts,
    };
    let suite = Suite {
        stack: &stack,
        fleet: &fleet,
        previous: helm(&options.previous_charts),
        this: helm(&options.charts),
    };
    for (held, (name, proof)) in CLAIMS.iter().enumerate() {
        if !report(name, proof(&suite)) {
            println!("{held} of {} claims hold", CLAIMS.len());
            return Ok(exit_code(false));
        }
    }
    println!("{} claims about the previous release hold", CLAIMS.len());
    Ok(exit_code(true))
}

struct Suite<'a> {
    stack: &'a Stack,
    fleet: &'a Fleet,
    previous: Helm<'a>,
    this: Helm<'a>,
}

type Check = fn(&Suite<'_>) -> Proof;

/// In this order: each claim starts with the state that the one before left.
const CLAIMS: &[Claim<Check>] = &[
    ("the_previous_release_registers_and_deploys_hosts", |suite| {
        suite.installed()
    }),
    ("an_upgrade_continues_what_is_in_flight", |suite| suite.upgraded()),
    ("a_rollback_continues_what_is_in_flight", |suite| suite.rolled_back()),
    ("no_request_was_forbidden", |suite| suite.not_forbidden()),
];

impl Suite<'_> {
    fn values(&self) -> anyhow::Result<Value> {
        let [(username, password), _] = self.fleet.logins();
        let authority = fs::read_to_string(&self.fleet.authority)?;
        Ok(json!({ "ironic": {
            "endpoint": self.fleet.ironic_url(), "username": username, "password": password, "ca": authority,
        } }))
    }

    /// Installs the previous release, and brings hosts and an address to rest.
    fn installed(&self) -> Proof {
        init(self.stack, "--core cluster-api --bootstrap - --control-plane -")?;
        let watch = Stopwatch::start();
        self.previous
            .apply("install", DEFINITIONS, &["--create-namespace"], None)?;
        self.previous.apply("install", PROGRAM, &READY, Some(&self.values()?))?;
        let namespace = self.stack.create_namespace(NAMESPACE)?;
        namespace.apply(&pool("kept", "10.64.0.10", "10.64.0.20"))?;
        namespace.apply(&claim("kept", 0))?;
        namespace.until("ipclaim/kept-claim-0", "granted", has_address)?;
        namespace.keep();
        // The API server builds its OpenAPI documents again for new definitions, and kubectl reads them before it creates.
        self.stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
        let all = [&AT_REST[..], &PAIR].concat();
        for number in &all {
            self.create(*number)?;
        }
        self.reach(&all.iter().map(|number| (host(*number), "available")).collect())?;
        let deployed = [AT_REST[0], PAIR[1]];
        for number in deployed {
            self.provision(number)?;
        }
        self.reach(&deployed.iter().map(|number| (host(*number), "provisioned")).collect())?;
        logins_recorded(self.stack)?;
        Ok(format!("{} hosts, {:.1} s", all.len(), watch.elapsed().as_secs_f64()))
    }

    fn upgraded(&self) -> Proof {
        self.step(&STEPS[0], install::IMAGE, || {
            self.this.apply("upgrade", DEFINITIONS, &[], None)?;
            self.this.apply("upgrade", PROGRAM, &READY, Some(&self.values()?))
        })
    }

    /// The program first: an older one knows what a newer definition has, and not the other way round.
    fn rolled_back(&self) -> Proof {
        self.step(&STEPS[1], IMAGE, || {
            for chart in [PROGRAM, DEFINITIONS] {
                self.this.run(&[&["rollback", chart, "1"][..], &READY].concat(), None)?;
            }
            Ok(())
        })
    }

    fn not_forbidden(&self) -> Proof {
        audit::nothing_forbidden_for(self.stack, &format!("system:serviceaccount:{MANAGERS}:metal3-manager"))
    }

    /// The members of the definitions, which are those of the chart that Helm has installed.
    fn members(&self) -> anyhow::Result<BTreeSet<String>> {
        let chart = documents(&self.this.manifest(DEFINITIONS)?)?;
        let names: BTreeSet<String> = chart.iter().map(name).collect();
        let installed = list(self.stack, MANAGERS, "customresourcedefinitions")?;
        let found = definitions::members(installed.iter().filter(|one| names.contains(&name(one))));
        let wrong = definitions::difference(&definitions::members(&chart), &found);
        ensure!(
            wrong.is_empty(),
            "the definitions are not those of the chart: {}",
            wrong.join(", ")
        );
        Ok(found)
    }

    /// Asks for the work, does the step when all of it is in flight, waits for its end, and judges.
    fn step(&self, work: &Work, image: &str, change: impl FnOnce() -> anyhow::Result<()>) -> Proof {
        let before = Mark::now(self.stack, self.fleet)?;
        let kept = self.kept(work)?;
        let defined = self.members()?;
        self.begin(work)?;
        let changed = Mark::now(self.stack, self.fleet)?;
        let watch = Stopwatch::start();
        change()?;
        self.runs(image)?;
        let left = self.in_flight(work)?;
        ensure!(left > 0, "all work ended before the other program ran");
        let changed_members = definitions::difference(&defined, &self.members()?).len();
        self.reach(&work.ends())?;
        self.is_deleted(work)?;
        nodes_listed(self.fleet)?;
        let seconds = watch.elapsed().as_secs_f64();
        let after = Mark::now(self.stack, self.fleet)?;
        let nodes: BTreeMap<_, _> = [&before, &changed, &after]
            .into_iter()
            .flat_map(|mark| mark.nodes.clone())
            .collect();
        let log = self.fleet.log_since(before.ironic)?;
        let audit = fs::read(self.stack.places.log("audit"))?;
        let audit = String::from_utf8_lossy(audit.get(changed.audit..after.audit).unwrap_or_default()).into_owned();
        let happened = Happened {
            orders: logs::orders(&log, &nodes),
            begun: logs::begun(&log, &nodes, &BTreeSet::new()).times,
            writes: logs::writes(&audit),
            machines: [before.machines, after.machines],
            kept: [kept, self.kept(work)?],
        };
        let found = violations(work, &happened);
        ensure!(found.is_empty(), "{}", found.join("\n       "));
        let acting = happened.orders.iter().filter(|order| order.what.acts()).count();
        Ok(format!(
            "{acting} orders to {} hosts, {left} of them in flight when the other program ran, {changed_members} members of \
             definitions changed, {seconds:.1} s",
            work.hosts().len()
        ))
    }

    fn begin(&self, work: &Work) -> anyhow::Result<()> {
        self.create(work.created)?;
        self.reach(&BTreeMap::from([(host(work.created), "inspecting")]))?;
        self.provision(work.provisioned)?;
        self.patch(work.deprovisioned, &json!({"spec": {"image": null}}))?;
        if let Some(number) = work.deleted {
            let deleted = host(number);
            let args = ["--namespace", NAMESPACE, "delete", "bmh", &deleted, "--wait=false"];
            self.stack.kubectl(&args)?;
        }
        self.reach(&work.in_flight())
    }

    /// Whether all Pods have the image, and nothing else runs.
    fn runs(&self, image: &str) -> anyhow::Result<()> {
        until(LONG, "Pods of this release alone", || {
            let pods = list(self.stack, MANAGERS, "pods")?;
            let has = |pod: &Value| {
                let name = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
                name.rsplit('/').next().and_then(|last| last.split([':', '@']).next()) == Some(image)
            };
            Ok((!pods.is_empty() && pods.iter().all(has)).then_some(()))
        })
    }

    /// How many hosts are not in the state in which they end.
    fn in_flight(&self, work: &Work) -> anyhow::Result<usize> {
        let (ends, hosts) = (work.ends(), list(self.stack, NAMESPACE, "baremetalhosts")?);
        let is_left = |one: &&Value| {
            let state = one["status"]["provisioning"]["state"].as_str();
            ends.get(&name(one)).is_some_and(|end| Some(*end) != state)
        };
        Ok(hosts.iter().filter(is_left).count())
    }

    fn create(&self, number: u64) -> anyhow::Result<()> {
        let machine = self.fleet.machines.iter().find(|machine| machine["number"] == number);
        let machine = machine.ok_or_else(|| anyhow::anyhow!("there is no machine {number}"))?;
        install::create(self.stack, NAMESPACE, &install::of_machine(self.fleet, machine)?)
    }

    fn provision(&self, number: u64) -> anyhow::Result<()> {
        let url = self.fleet.image_url()?;
        let image = json!({"url": url, "checksum": format!("{url}.sha256"), "checksumType": "sha256", "format": "raw"});
        self.patch(number, &json!({"spec": {"image": image}}))
    }

    fn patch(&self, number: u64, patch: &Value) -> anyhow::Result<()> {
        let (name, patch) = (host(number), format!("--patch={patch}"));
        let args = ["--namespace", NAMESPACE, "patch", "bmh", &name, "--type=merge", &patch];
        self.stack.kubectl(&args).map(drop)
    }

    /// Waits until each of these hosts has its state.
    fn reach(&self, wanted: &BTreeMap<String, &str>) -> anyhow::Result<()> {
        let what = wanted
            .iter()
            .map(|(host, state)| format!("{host} {state}"))
            .collect::<Vec<_>>()
            .join(", ");
        until(LONG, &what, || {
            let hosts = list(self.stack, NAMESPACE, "baremetalhosts")?;
            let has = |(wanted, state): (&String, &&str)| {
                let mut named = hosts.iter().filter(|one| name(one) == *wanted);
                named.any(|one| one["status"]["provisioning"]["state"] == **state)
            };
            Ok(wanted.iter().all(has).then_some(()))
        })
    }

    fn is_deleted(&self, work: &Work) -> anyhow::Result<()> {
        let Some(number) = work.deleted else { return Ok(()) };
        until(LONG, "a host to be gone", || {
            let hosts = list(self.stack, NAMESPACE, "baremetalhosts")?;
            Ok((!hosts.iter().any(|one| name(one) == host(number))).then_some(()))
        })
    }

    /// UIDs of the hosts that stay, and the address of each claim.
    fn kept(&self, work: &Work) -> anyhow::Result<BTreeMap<String, String>> {
        let hosts = list(self.stack, NAMESPACE, "baremetalhosts")?;
        let deleted = work.deleted.map(host);
        let stays = hosts.iter().filter(|one| Some(name(one)) != deleted);
        let uid = |one: &Value| {
            (
                name(one),
                one["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            )
        };
        let addresses = grants(self.stack, NAMESPACE)?;
        Ok(stays.map(uid).chain(addresses).collect())
    }
}
