//! The watches, one a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metal3_api::cluster::ContractReference;
use metal3_domain::clock::Clock;
use metal3_runtime::hub::{Change, Found, Key, SharedHub};
use metal3_runtime::watch::{Scope, Watch};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::discover::{GroupKind, Trouble, find};
use super::foreign::{EndpointSources, Foreign};
use super::{Sources, Wake};
use crate::endpoint::reading::{Heard, Reading, Readings, Wanted};

/// How often a kind is tried that is not served, or that we may not list.
const RETRY: Duration = Duration::from_mins(1);

/// One kind that somebody asks for.
struct Link {
    /// Who waits for which objects.
    waiters: BTreeMap<Key, BTreeSet<Key>>,
    hub: SharedHub<Foreign>,
    trouble: Option<Trouble>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Links {
    of_kind: BTreeMap<GroupKind, Link>,
    wake: Option<Arc<Wake>>,
}

/// Watches that begin with the first question for a kind and end with the last.
pub struct Watched {
    client: kube::Client,
    namespace: Option<String>,
    clock: Arc<dyn Clock>,
    links: Arc<Mutex<Links>>,
    begin: UnboundedSender<GroupKind>,
    begun: Mutex<Option<UnboundedReceiver<GroupKind>>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes who waits for an object of a kind, or for any where none is named.
fn wake(links: &Mutex<Links>, kind: &GroupKind, object: Option<&Key>) {
    let (waiters, wake) = {
        let links = lock(links);
        let link = links.of_kind.get(kind);
        let is_waited_for = |wanted: &BTreeSet<Key>| object.is_none_or(|object| wanted.contains(object));
        let waiting = link.into_iter().flat_map(|link| &link.waiters);
        let waiters: Vec<Key> = waiting
            .filter(|(_, wanted)| is_waited_for(wanted))
            .map(|(waiter, _)| waiter.clone())
            .collect();
        (waiters, links.wake.clone())
    };
    if let Some(wake) = wake {
        waiters.iter().for_each(|waiter| wake(waiter));
    }
}

impl Watched {
    /// Watches through `client`, in one namespace or in all. Nothing is watched before it [runs](Self::run).
    #[must_use]
    pub fn new(client: kube::Client, namespace: Option<String>, clock: Arc<dyn Clock>) -> Self {
        let (begin, begun) = unbounded_channel();
        Self {
            client,
            namespace,
            clock,
            links: Arc::default(),
            begin,
            begun: Mutex::new(Some(begun)),
        }
    }

    /// Keeps the watches that are wanted, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut begun) = begun else { return };
        let mut links = futures::stream::FuturesUnordered::new();
        let _ = stop
            .run_until_cancelled(async {
                loop {
                    tokio::select! {
                        Some(kind) = begun.recv() => links.push(self.keep(kind)),
                        Some(()) = futures::StreamExt::next(&mut links), if !links.is_empty() => {}
                        else => return,
                    }
                }
            })
            .await;
    }

    /// Watches one kind while somebody waits for an object of it.
    async fn keep(&self, kind: GroupKind) {
        let link = lock(&self.links)
            .of_kind
            .get(&kind)
            .map(|link| (link.hub.clone(), link.stop.clone()));
        let Some((hub, stop)) = link else { return };
        let keeping = async {
            loop {
                let trouble = match find(&self.client, self.namespace.as_deref(), &kind).await {
                    Ok(resource) => {
                        self.note(&kind, None);
                        let scope = self.namespace.clone().map_or_else(Scope::everywhere, Scope::namespace);
                        let clock = Arc::clone(&self.clock);
                        let watch =
                            Watch::whole::<EndpointSources>(self.client.clone(), hub.clone(), &resource, scope, clock);
                        return watch.run(stop.clone()).await;
                    }
                    Err(trouble) => trouble,
                };
                if self.note(&kind, Some(trouble)) {
                    wake(&self.links, &kind, None);
                }
                tokio::time::sleep(RETRY).await;
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// Remembers what is in the way, and says whether that is news.
    fn note(&self, kind: &GroupKind, trouble: Option<Trouble>) -> bool {
        let mut links = lock(&self.links);
        let Some(link) = links.of_kind.get_mut(kind) else {
            return false;
        };
        let is_news = link.trouble != trouble;
        link.trouble = trouble;
        is_news
    }

    /// A kind that nobody has asked for yet.
    fn link(&self, kind: &GroupKind) -> Link {
        let (hub, links, of) = (SharedHub::default(), Arc::downgrade(&self.links), kind.clone());
        hub.on(move |change: &Change<'_, Foreign>| {
            if let Some(links) = links.upgrade() {
                wake(&links, &of, change.key().as_ref());
            }
        });
        Link {
            waiters: BTreeMap::new(),
            hub,
            trouble: None,
            stop: CancellationToken::new(),
        }
    }

    /// Lets `waiter` wait for exactly these.
    fn attend(&self, waiter: &Key, wanted: &BTreeMap<GroupKind, BTreeSet<Key>>) {
        let mut links = lock(&self.links);
        links.of_kind.retain(|kind, link| {
            if !wanted.contains_key(kind) {
                link.waiters.remove(waiter);
            }
            let is_idle = link.waiters.is_empty() && !wanted.contains_key(kind);
            if is_idle {
                link.stop.cancel();
            }
            !is_idle
        });
        for (kind, objects) in wanted {
            let is_new = !links.of_kind.contains_key(kind);
            let link = links.of_kind.entry(kind.clone()).or_insert_with(|| self.link(kind));
            link.waiters.insert(waiter.clone(), objects.clone());
            if is_new {
                // Nobody listens only when this program ends.
                let _ = self.begin.send(kind.clone());
            }
        }
    }

    /// What an object says, by `hear`; nothing while the first answer is on its way.
    fn read(&self, kind: &GroupKind, object: &Key, hear: impl FnOnce(&Foreign) -> Heard) -> Option<Reading> {
        let (hub, trouble) = {
            let links = lock(&self.links);
            let link = links.of_kind.get(kind)?;
            (link.hub.clone(), link.trouble.clone())
        };
        let found = hub.find(object);
        let sleeper = match &found {
            Found::Live(foreign) => foreign.sleeper.clone(),
            _ => None,
        };
        let heard = match (found, trouble) {
            (Found::Live(foreign), _) => hear(&foreign),
            (Found::Absent, _) | (Found::Unknown, Some(Trouble::NotServed)) => Heard::Absent,
            (Found::Unreadable { why }, _) => Heard::Unknown(why),
            (Found::Unknown, Some(Trouble::Forbidden(resource))) => Heard::Forbidden { verb: "list", resource },
            (Found::Unknown, Some(Trouble::Other(why))) => Heard::Unknown(why.to_owned()),
            (Found::Unknown, None) => return None,
        };
        Some(Reading {
            from: format!("{} {}", kind.1, object.name),
            heard,
            sleeper,
        })
    }
}

fn kind_of(reference: &ContractReference) -> GroupKind {
    (reference.api_group.clone(), reference.kind.clone())
}

fn services() -> GroupKind {
    (String::new(), "Service".to_owned())
}

impl Sources for Watched {
    fn wake_with(&self, wake: Wake) {
        lock(&self.links).wake = Some(Arc::new(wake));
    }

    fn look(&self, waiter: &Key, wanted: &Wanted) -> Option<Readings> {
        let mut objects: BTreeMap<GroupKind, BTreeSet<Key>> = BTreeMap::new();
        let references = wanted.infrastructure.iter().chain(&wanted.control_plane);
        let named = references.map(|reference| (kind_of(reference), reference.name.as_str()));
        let service = wanted.service.iter().map(|service| (services(), service.name.as_str()));
        for (kind, name) in named.chain(service) {
            objects.entry(kind).or_default().insert(waiter.beside(name));
        }
        self.attend(waiter, &objects);
        let mut is_pending = false;
        let mut read = |kind: GroupKind, name: &str, hear: &dyn Fn(&Foreign) -> Heard| {
            let reading = self.read(&kind, &waiter.beside(name), hear);
            is_pending |= reading.is_none();
            reading
        };
        let mut contract = |reference: &ContractReference| read(kind_of(reference), &reference.name, &Foreign::stated);
        let (infrastructure, control_plane) = (
            wanted.infrastructure.as_ref().and_then(&mut contract),
            wanted.control_plane.as_ref().and_then(&mut contract),
        );
        let service = wanted.service.as_ref().and_then(|service| {
            read(services(), &service.name, &|foreign| {
                foreign.balanced(service, wanted.port)
            })
        });
        let readings = Readings {
            infrastructure,
            control_plane,
            service,
            pool: None,
        };
        (!is_pending).then_some(readings)
    }
}
