//! The stand-ins at work: follow, decide, write, until nothing is due.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Clock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::kinds::{ALL, Kind, MANAGED_CONTROL_PLANE};
use crate::site::Ground;
use crate::view::{Object, SiteView, World};
use crate::watch::{News, follow};
use crate::write::Write;
use crate::{bootstrap, byoh, control_plane, core, openstack};

mod perform;

pub(crate) use perform::perform;

/// After a write that failed for a reason that no watch will tell the end of.
const RETRY: Duration = Duration::from_secs(1);
const NODE: &Kind = &Kind {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
};

/// What the stand-ins need.
#[derive(Clone)]
pub struct Parts {
    /// The API server of the management cluster.
    pub client: kube::Client,
    /// Those of the workload clusters.
    pub sites: Arc<dyn Ground>,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Whose work is done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// Cluster API's, and that of the providers beside it.
    Whole,
    /// That of the providers: Cluster API itself is there.
    Beside,
}

impl Cast {
    /// The kinds that its decisions look at.
    fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        // Beside the real Cluster API nobody knows the other.
        ALL.iter()
            .copied()
            .filter(move |kind| self == Self::Whole || *kind != MANAGED_CONTROL_PLANE)
    }
}

/// What happened.
enum Happened {
    Here(&'static Kind, News),
    There(String, News),
    Sites,
    Again,
}

/// Every write that is due.
#[must_use]
pub fn writes(world: &World, cast: Cast) -> Vec<Write> {
    let mut due = Vec::new();
    if cast == Cast::Whole {
        due.extend(core::writes(world));
        due.extend(bootstrap::writes(world));
        due.extend(control_plane::writes(world));
    }
    due.extend(control_plane::others(world));
    due.extend(byoh::writes(world));
    due.extend(openstack::writes(world));
    due
}

/// Runs the stand-ins for ever. Dropping the future ends them.
pub async fn run(parts: Parts, cast: Cast) {
    let (to, news) = unbounded_channel();
    let mut program = Program {
        world: World::default(),
        unlisted: cast.kinds().map(|kind| kind.kind).collect(),
        nodes: BTreeMap::new(),
        tasks: JoinSet::new(),
        to,
        parts,
        cast,
    };
    program.begin();
    program.live(news).await;
}

struct Program {
    parts: Parts,
    cast: Cast,
    world: World,
    /// Kinds of which not all objects are known yet: nothing is decided before.
    unlisted: BTreeSet<&'static str>,
    /// The watches of Nodes, by endpoint.
    nodes: BTreeMap<String, tokio::task::AbortHandle>,
    tasks: JoinSet<()>,
    to: UnboundedSender<Happened>,
}

impl Program {
    fn begin(&mut self) {
        for kind in self.cast.kinds() {
            let say = move |news| Happened::Here(kind, news);
            let watch = follow(self.parts.client.clone(), kind.clone(), None, self.to.clone(), say);
            self.tasks.spawn(watch);
        }
        let (mut changes, to) = (self.parts.sites.changes(), self.to.clone());
        self.tasks.spawn(async move {
            while to.send(Happened::Sites).is_ok() {
                changes.changed().await;
            }
        });
    }

    async fn live(&mut self, mut news: UnboundedReceiver<Happened>) {
        while let Some(happened) = news.recv().await {
            self.take(happened);
            while let Ok(happened) = news.try_recv() {
                self.take(happened);
            }
            if self.unlisted.is_empty() {
                self.settle(&mut news).await;
            }
        }
    }

    /// Decides and writes until nothing is due, or until what was written brought nothing new.
    async fn settle(&mut self, news: &mut UnboundedReceiver<Happened>) {
        loop {
            self.world.now = self.parts.clock.now();
            let mut is_new = false;
            for write in writes(&self.world, self.cast) {
                match perform(&self.parts, &write).await {
                    Ok(Some((kind, object))) => is_new |= self.world.put(kind, object),
                    Ok(None) => {}
                    Err(why) => {
                        tracing::debug!(?write, "not written: {why}");
                        self.again();
                    }
                }
            }
            while let Ok(happened) = news.try_recv() {
                is_new = true;
                self.take(happened);
            }
            if !is_new {
                return;
            }
        }
    }

    fn again(&mut self) {
        let to = self.to.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(RETRY).await;
            drop(to.send(Happened::Again));
        });
    }

    fn take(&mut self, happened: Happened) {
        // Tasks that have ended are forgotten.
        while self.tasks.try_join_next().is_some() {}
        match happened {
            Happened::Here(kind, News::Seen(object)) => drop(self.world.put(kind, object)),
            Happened::Here(kind, News::Gone(object)) => drop(self.world.remove(kind, &object.key())),
            Happened::Here(kind, News::Listed(keys)) => {
                self.world.keep(kind, &keys);
                self.unlisted.remove(kind.kind);
            }
            Happened::There(at, news) => {
                if let Some(site) = self.world.sites.get_mut(&at) {
                    take_node(site, news);
                }
            }
            Happened::Sites => self.look_at_sites(),
            Happened::Again => {}
        }
    }

    /// Follows the Nodes of each workload cluster that runs.
    fn look_at_sites(&mut self) {
        let endpoints = self.parts.sites.endpoints();
        self.world.sites.retain(|at, _| endpoints.contains(at));
        self.nodes.retain(|at, watch| {
            let stays = endpoints.contains(at);
            if !stays {
                watch.abort();
            }
            stays
        });
        for at in endpoints {
            if self.nodes.contains_key(&at) {
                continue;
            }
            let Some(client) = self.parts.sites.client(&at, "cluster-api") else {
                continue;
            };
            let of = at.clone();
            let say = move |news| Happened::There(of.clone(), news);
            let watch = self
                .tasks
                .spawn(follow(client, NODE.clone(), None, self.to.clone(), say));
            self.nodes.insert(at.clone(), watch);
            let site = SiteView {
                is_up: true,
                nodes: Vec::new(),
            };
            self.world.sites.insert(at, site);
        }
    }
}

fn take_node(site: &mut SiteView, news: News) {
    let mut forget = |name: &str| site.nodes.retain(|node| node.name() != name);
    match news {
        News::Seen(node) => {
            forget(node.name());
            site.nodes.push(node);
            site.nodes.sort_by_key(Object::born);
        }
        News::Gone(node) => forget(node.name()),
        News::Listed(keys) => site.nodes.retain(|node| keys.iter().any(|key| key.name == node.name())),
    }
}
