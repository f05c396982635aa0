//! The controllers in a dry run, for the time of a report: what they would write and order first.
//!
//! They run with the arguments and variables of the Go managers in whose place they come. Nothing is written: their writers send
//! nothing, and their clients refuse each write in addition, because no lease is ever held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use metal3_domain::clock::Clock;
use metal3_domain::uri::public_text;
use metal3_flags::{Options, Owner};
use metal3_grants::LeaderElection;
use metal3_hosts::ironics::USUAL_NAME;
use metal3_ironic::calls::node;
use metal3_ironic::model::node::Node;
use metal3_preflight::{Change, DryRun, NotRead};
use metal3_runtime::cache::{Key, Unwatched};
use metal3_runtime::client::check_write_allowed;
use metal3_runtime::guard::{Guard, GuardStatus};
use metal3_runtime::lease::{LeaderElector, Leadership, LeaseTarget, LeaseTimings};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchHealth;
use metal3_runtime::write::{DryRunObserver, Effect, Work};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::brief;
use super::target::{OF_IRONIC, Target};
use crate::hosts_config::HostsConfig;
use crate::machines;
use crate::pod::PodIdentity;
use crate::product::{self, Product, Running, WriteAccess};
use crate::served;
use crate::session::{ClusterClients, Session};

/// How often the end is looked for.
const STEP: Duration = Duration::from_secs(1);
/// Without a reconcile for this time there is nothing more to see.
const QUIET: Duration = Duration::from_secs(10);
/// The longest time to wait for a first response of Ironic.
const IRONIC: Duration = Duration::from_secs(15);
/// What a dry run needs besides a client.
#[derive(Clone)]
pub struct Surroundings {
    /// Opens the clients of the controllers.
    pub clients: Arc<dyn ClusterClients>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The environment of the command.
    pub variable: fn(&str) -> Option<String>,
    /// The client of Ironic in place of that of the environment.
    pub ironic: Option<metal3_ironic::Client>,
}

/// What the controllers did not send, and which of their keys failed.
#[derive(Default)]
struct Collected(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    changes: BTreeSet<Change>,
    failed: BTreeMap<(&'static str, String), String>,
    reconciles: u64,
    /// Reconciles that have not ended.
    running: usize,
    /// Controllers that wait for their first lists.
    waiting: usize,
}

impl Collected {
    /// Reconciles that ended, those under way, and controllers that wait for their first lists.
    fn at_work(&self) -> (u64, usize, usize) {
        let seen = self.0.lock();
        (seen.reconciles, seen.running, seen.waiting)
    }
}

impl DryRunObserver for Collected {
    fn write(&self, effect: &Effect) {
        let place = (effect.group.as_str(), effect.resource.as_str());
        let change = Change::write(effect.verb, place, &effect.object.to_string(), &effect.body);
        self.0.lock().changes.extend(change);
    }

    fn order(&self, kind: &str, object: &Key, verb: &'static str, interrupts: bool) {
        let change = Change::order(kind, &object.to_string(), verb, interrupts);
        self.0.lock().changes.insert(change);
    }

    fn works(&self, work: Work, began: bool) {
        let mut seen = self.0.lock();
        let count = match work {
            Work::FirstLists => &mut seen.waiting,
            Work::Reconcile => &mut seen.running,
        };
        *count = if began {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
    }

    fn reconciled(&self, controller: &'static str, key: &str, failure: Option<String>) {
        let (mut seen, at) = (self.0.lock(), (controller, key.to_owned()));
        seen.reconciles = seen.reconciles.saturating_add(1);
        match failure {
            Some(why) => drop(seen.failed.insert(at, public_text(&why))),
            None => drop(seen.failed.remove(&at)),
        }
    }
}

/// The watches of a product that runs.
struct Watched {
    owner: Owner,
    health: Vec<WatchHealth>,
}

impl Watched {
    /// Whether each watch has delivered, or said why not.
    fn is_decided(&self) -> bool {
        let is_decided = |one: &WatchHealth| is_served(one) || one.unwatched().is_some() || one.last_error().is_some();
        self.health.iter().all(is_decided)
    }

    fn is_served(&self) -> bool {
        let is_read = |one: &WatchHealth| is_served(one) || one.unwatched() == Some(Unwatched::NotServed);
        self.health.iter().all(is_read)
    }

    /// What is not known because a kind could not be read.
    fn not_known(&self) -> Vec<NotRead> {
        let unread = self.health.iter().filter_map(|one| {
            let why = match one.unwatched() {
                Some(Unwatched::NotServed) => return None,
                Some(Unwatched::NotPermitted) => "you may not list and watch it".to_owned(),
                None if is_served(one) => return None,
                None => one
                    .last_error()
                    .map_or_else(|| "its first list has not ended".to_owned(), |why| brief(&why)),
            };
            let depends = match one.unwatched() {
                Some(_) => "a part of what",
                None => "what",
            };
            Some(NotRead {
                what: format!("{depends} {} would do", self.owner.name()),
                why: format!("{} could not be read: {why}", one.kind()),
            })
        });
        unread.collect()
    }
}

fn is_served(health: &WatchHealth) -> bool {
    health.served().now_or_never().is_some()
}

/// A run of all products.
pub(super) struct Run<'a> {
    pub(super) client: &'a Client,
    pub(super) surroundings: &'a Surroundings,
    /// The only namespace of the report.
    pub(super) namespace: Option<&'a str>,
    /// The longest time.
    pub(super) limit: Duration,
}

impl Run<'_> {
    /// Runs the controllers of all targets until nothing more is to be seen.
    pub(super) async fn observe(&self, targets: &[Target<'_>]) -> DryRun {
        let (collected, mut not_known, mut running) = (Arc::new(Collected::default()), Vec::new(), Vec::new());
        if targets.is_empty() {
            not_known.push(NotRead {
                what: "what this program would do".to_owned(),
                why: "no Go manager was found whose settings it would have".to_owned(),
            });
        }
        for target in targets {
            not_known.extend(target.not_known());
            for owner in target.owners() {
                match self.begin(target, owner, &collected).await {
                    Ok(product) => running.push((owner, product)),
                    Err(why) => not_known.push(NotRead {
                        what: format!("what {} would do", owner.name()),
                        why,
                    }),
                }
            }
        }
        not_known.extend(self.watch(running, &collected).await);
        let mut seen = collected.0.lock();
        let failed = std::mem::take(&mut seen.failed).into_iter();
        not_known.extend(failed.map(|((controller, key), why)| NotRead {
            what: format!("{controller} {key}"),
            why,
        }));
        not_known.sort();
        not_known.dedup();
        DryRun {
            changes: std::mem::take(&mut seen.changes),
            not_known,
        }
    }

    /// Builds the controllers of one product. An error says why they cannot run.
    async fn begin(&self, target: &Target<'_>, owner: Owner, collected: &Arc<Collected>) -> Result<Running, String> {
        let product = product::find(owner);
        let served = served::ask(self.client, product.kinds)
            .await
            .map_err(|error| brief(&error.to_string()))?;
        let missing = served::missing(product.kinds, &served);
        if !missing.is_empty() {
            return Err(missing.join("; "));
        }
        let options = target.options(self.namespace)?;
        let hosts = match owner {
            Owner::Hosts => Some(self.hosts(target, &options).await?),
            Owner::Capm3 | Owner::Ipam => None,
        };
        let surroundings = self.surroundings;
        let session = Session {
            machines: machines::settings(|name| target.variable(name)),
            options,
            pod: PodIdentity {
                namespace: target
                    .manager
                    .deployment
                    .split_once('/')
                    .map(|(namespace, _)| namespace.to_owned()),
                identity: "preflight".to_owned(),
            },
            client: self.client.clone(),
            leases: self.client.clone(),
            clients: Arc::clone(&surroundings.clients),
            hosts,
            clock: Arc::clone(&surroundings.clock),
            metrics: Metrics::new(),
            verbosity: None,
            dry_run: Some(Arc::<Collected>::clone(collected)),
        };
        let access = self.access(product)?;
        (product.begin)(&session, access).map_err(|error| error.to_string())
    }

    /// Clients that refuse each write: the elector is dropped, so the lease is never held. The plans are those of the time after the
    /// switch, in which no Go manager runs.
    fn access(&self, product: Product) -> Result<WriteAccess, String> {
        let leadership = self.never_leading(product);
        let (leads, guard) = (leadership.clone(), Guard::forced());
        let clients = &self.surroundings.clients;
        let client = clients.writing_for(leadership.clone(), Guard::forced());
        Ok(WriteAccess {
            client: client.map_err(|error| error.to_string())?,
            permit: Arc::new(move || check_write_allowed(&leads, &guard)),
            workloads: clients.workloads(leadership, Guard::forced()),
            go_manager: Arc::new(|| Box::pin(async { GuardStatus::Clear })),
        })
    }

    fn never_leading(&self, product: Product) -> Leadership {
        let target = LeaseTarget {
            namespace: String::new(),
            name: product.lease.to_owned(),
            identity: "preflight".to_owned(),
        };
        let (timings, clock) = (LeaseTimings::default(), Arc::clone(&self.surroundings.clock));
        let metrics = Metrics::new().lease(product.lease);
        let (_, leadership) =
            LeaderElector::new::<LeaderElection>(self.client.clone(), target, timings, clock, metrics);
        leadership
    }

    /// The settings of hosts, with an Ironic that has answered.
    async fn hosts(&self, target: &Target<'_>, options: &Options) -> Result<HostsConfig, String> {
        let surroundings = self.surroundings;
        let variable = |name: &str| {
            if OF_IRONIC.contains(&name) {
                (surroundings.variable)(name)
            } else {
                target.variable(name)
            }
        };
        let is_set = |name: &str| (surroundings.variable)(name).is_some();
        if !is_set("IRONIC_ENDPOINT") && !is_set("IRONIC_ENDPOINTS") {
            return Err(
                "IRONIC_ENDPOINT is not set in the environment of this command; set it, and METAL3_AUTH_ROOT_DIR and \
                        IRONIC_CACERT_FILE if it needs them, where Ironic can be reached"
                    .to_owned(),
            );
        }
        let config = HostsConfig::of(options, variable, Arc::clone(&surroundings.clock)).await;
        let mut config = config.map_err(|error| error.to_string())?;
        if let Some(ironic) = &surroundings.ironic {
            config.ironics = ironic.clone().into();
        }
        let first = node::list::<Node>(node::Order::Created, 1, None);
        for (name, client) in config.ironics.iter() {
            let mut followed = config.ironic_resources.iter();
            let at = match followed.find(|followed| *followed.resource.name == **name) {
                Some(followed) => format!(
                    "Ironic resource {} of IRONIC_NAME, which a dry run does not follow",
                    followed.resource
                ),
                None if **name == *USUAL_NAME => "Ironic at IRONIC_ENDPOINT".to_owned(),
                None => format!("Ironic {name} of IRONIC_ENDPOINTS"),
            };
            match tokio::time::timeout(IRONIC, client.send(&first)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(format!("{at}: {error}")),
                Err(_) => return Err(format!("{at} does not answer")),
            }
        }
        Ok(config)
    }

    /// Runs until the limit, or until nothing was reconciled for a while. Returns what is not known.
    async fn watch(&self, running: Vec<(Owner, Running)>, collected: &Collected) -> Vec<NotRead> {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mut watched = Vec::new();
        for (owner, product) in running {
            for watch in product.watches {
                drop(tasks.spawn(watch(stop.clone())));
            }
            drop(tasks.spawn((product.controllers)(stop.clone())));
            watched.push(Watched {
                owner,
                health: product.watch_health,
            });
        }
        let (mut passed, mut quiet, mut reconciles) = (Duration::ZERO, Duration::ZERO, 0);
        while !watched.is_empty() && passed < self.limit && quiet < QUIET {
            tokio::time::sleep(STEP).await;
            passed += STEP;
            let (now, running, waiting) = collected.at_work();
            // While every kind is read, a controller that still waits waits for Ironic. Else it may wait for ever.
            let is_busy = running > 0 || (waiting > 0 && watched.iter().all(Watched::is_served));
            let is_quiet = !is_busy && now == reconciles && watched.iter().all(Watched::is_decided);
            quiet = if is_quiet { quiet + STEP } else { Duration::ZERO };
            reconciles = now;
        }
        let mut not_known: Vec<NotRead> = watched.iter().flat_map(Watched::not_known).collect();
        if !watched.is_empty() && quiet < QUIET {
            not_known.push(NotRead {
                what: "what else this program would do".to_owned(),
                why: format!(
                    "it was still at work after {} s; give it longer by --dry-run",
                    self.limit.as_secs()
                ),
            });
        }
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        not_known
    }
}
