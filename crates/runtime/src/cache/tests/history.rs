//! The cache against a model server: watch events are late, responses arrive in any order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["n0", "n1", "n2"];

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Creates or changes the object of this name; `own` writes get a response.
    Put {
        name: u8,
        owner: u8,
        own: bool,
    },
    Delete {
        name: u8,
        own: bool,
    },
    /// The watch delivers its next event.
    Watch,
    /// The response to the n-th open request arrives.
    Answer(usize),
    Relist,
}

#[derive(Debug, Clone)]
enum Event {
    Live(Box<ConfigMap>),
    Gone(Identity),
}

#[derive(Debug, Default)]
struct Server {
    now: u64,
    objects: BTreeMap<String, ConfigMap>,
    events: Vec<Event>,
    delivered: usize,
    answers: Vec<Event>,
}

impl Server {
    fn put(&mut self, name: &str, owner: &str, own: bool) {
        self.now += 1;
        let born = format!("u{}", self.now);
        let uid = self
            .objects
            .get(name)
            .and_then(|o| o.metadata.uid.clone())
            .unwrap_or(born);
        let new = object(name, &uid, self.now, owner);
        self.objects.insert(name.to_owned(), new.clone());
        self.events.push(Event::Live(Box::new(new.clone())));
        if own {
            self.answers.push(Event::Live(Box::new(new)));
        }
    }

    fn delete(&mut self, name: &str, own: bool) {
        let Some(last) = self.objects.remove(name) else { return };
        self.now += 1;
        let last = Identity::of(&last).unwrap();
        let deletion = Identity {
            version: version(self.now),
            ..last.clone()
        };
        self.events.push(Event::Gone(deletion));
        if own {
            // The response to a delete contains the object, not the version of its deletion.
            self.answers.push(Event::Gone(last));
        }
    }

    fn watch(&mut self, cache: &mut TestCache) {
        let Some(event) = self.events.get(self.delivered).cloned() else {
            return;
        };
        self.delivered += 1;
        match event {
            Event::Live(object) => cache.observed(Item::Object(*object)).unwrap(),
            Event::Gone(last) => cache.observed_deleted(&last),
        }
    }

    fn relist(&mut self, cache: &mut TestCache) {
        let items = self.objects.values().cloned().map(Item::Object).collect();
        cache.listed(items, version(self.now)).unwrap();
        self.delivered = self.events.len();
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0_u8..3, 0_u8..2, any::<bool>()).prop_map(|(name, owner, own)| Op::Put { name, owner, own }),
        3 => (0_u8..3, any::<bool>()).prop_map(|(name, own)| Op::Delete { name, own }),
        6 => Just(Op::Watch),
        4 => (0_usize..4).prop_map(Op::Answer),
        1 => Just(Op::Relist),
    ]
}

/// Object versions that a subscriber derives from changes alone.
type Reported = std::sync::Arc<parking_lot::Mutex<BTreeMap<String, u64>>>;

fn follow(cache: &mut TestCache) -> Reported {
    let reported = Reported::default();
    let sink = Reported::clone(&reported);
    cache.subscribe(move |change| {
        let mut reported = sink.lock();
        match change {
            crate::cache::Change::Applied { old, new, .. } => {
                let at: u64 = new.metadata.resource_version.as_ref().unwrap().parse().unwrap();
                let name = new.metadata.name.clone().unwrap();
                let before = reported.insert(name, at);
                assert_eq!(before.is_some(), old.is_some());
                assert!(
                    before.is_none_or(|before| before < at),
                    "went back from {before:?} to {at}"
                );
            }
            crate::cache::Change::Deleted { key, .. } => assert!(reported.remove(&key.name).is_some()),
            crate::cache::Change::Unreadable { .. } | crate::cache::Change::Synced => {}
        }
    });
    reported
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn cache_never_goes_back_and_converges_with_the_server(ops in prop::collection::vec(op(), 0..80)) {
        let (mut server, mut cache) = (Server::default(), TestCache::default());
        // An empty server has a version too.
        server.now = 1;
        let reported = follow(&mut cache);
        let mut dead = BTreeSet::new();
        server.relist(&mut cache);
        for op in ops {
            match op {
                Op::Put { name, owner, own } => server.put(&format!("n{name}"), &format!("o{owner}"), own),
                Op::Delete { name, own } => server.delete(&format!("n{name}"), own),
                Op::Watch => server.watch(&mut cache),
                Op::Relist => server.relist(&mut cache),
                Op::Answer(nth) if nth < server.answers.len() => match server.answers.remove(nth) {
                    Event::Live(object) => {
                        let written = Identity::of(&*object).unwrap();
                        cache.wrote(*object).unwrap();
                        // An object deleted before the response arrived stays hidden.
                        prop_assert!(cache.unconfirmed_deletes() > 0 || cache.shows(&written.key, &written.version), "not read: {written:?}");
                    }
                    Event::Gone(last) => {
                        cache.deleted(&last);
                        dead.insert(last.uid);
                    }
                },
                Op::Answer(_) => {}
            }
            for name in NAMES {
                if let Observed::Present(object) = cache.get(&key(name)) {
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    prop_assert!(!dead.contains(uid), "{name} {uid} was deleted and is cached again");
                }
            }
        }
        while server.delivered < server.events.len() {
            server.watch(&mut cache);
        }
        for name in NAMES {
            let real = server.objects.get(name).and_then(|o| o.metadata.resource_version.as_ref()?.parse().ok());
            prop_assert_eq!(shown(&cache, name), real, "{}", name);
            prop_assert_eq!(reported.lock().get(name).copied(), real);
        }
        for wanted in ["o0", "o1"] {
            let real: Vec<String> = server.objects.iter()
                .filter(|(_, o)| owner(o).as_deref() == Some(wanted))
                .map(|(name, _)| name.clone())
                .collect();
            prop_assert_eq!(owned_by(&cache, wanted), real);
        }
        prop_assert_eq!(cache.unconfirmed_deletes(), 0);
    }
}
