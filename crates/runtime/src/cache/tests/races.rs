use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::cache::{Barrier, Change, MissingMetadata};
use crate::plan::UnknownReason;

/// Records the changes that a subscriber receives, as text.
fn record(cache: &mut TestCache) -> Arc<Mutex<Vec<String>>> {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&changes);
    let at = |object: Option<&ConfigMap>| {
        object
            .and_then(|o| o.metadata.resource_version.clone())
            .unwrap_or_default()
    };
    cache.subscribe(move |change| {
        let text = match change {
            Change::Applied { old, new, .. } => format!("{}>{}", at(*old), at(Some(new))),
            Change::Unreadable { key, old } => format!("{} unreadable after {}", key.name, at(*old)),
            Change::Deleted { key, old, .. } => format!("{} deleted at {}", key.name, at(*old)),
            Change::Synced => "synced".to_owned(),
        };
        sink.lock().push(text);
    });
    changes
}

#[test]
fn nothing_is_absent_before_the_first_list() {
    let mut cache = TestCache::default();
    assert_eq!(cache.get(&key("a")), Observed::Unknown(UnknownReason::NotListed));
    cache.wrote(object("b", "u", 4, "o")).unwrap();
    assert_eq!(
        (cache.get(&key("a")), cache.synced()),
        (Observed::Unknown(UnknownReason::NotListed), false)
    );
    cache.listed(Vec::new(), version(3)).unwrap();
    assert_eq!((cache.get(&key("a")), shown(&cache, "b")), (Observed::Absent, Some(4)));
}

#[test]
fn subscribers_receive_old_and_new_objects_and_deletes() {
    let mut cache = TestCache::default();
    let changes = record(&mut cache);
    cache.listed(vec![live("a", "u", 2)], version(3)).unwrap();
    cache.observed(live("a", "u", 4)).unwrap();
    cache.observed_deleted(&identity("a", "u", 5));
    cache.listed(Vec::new(), version(6)).unwrap();
    assert_eq!(*changes.lock(), [">2", "synced", "2>4", "a deleted at 4"]);
}

#[test]
fn own_write_enters_at_once_and_its_watch_event_is_not_delivered() {
    let mut cache = synced(1);
    let changes = record(&mut cache);
    cache.wrote(object("a", "u", 7, "o")).unwrap();
    for late in [5, 6, 7] {
        cache.observed(live("a", "u", late)).unwrap();
    }
    assert_eq!((shown(&cache, "a"), changes.lock().len()), (Some(7), 1));
    cache.observed(live("a", "u", 8)).unwrap();
    assert_eq!(shown(&cache, "a"), Some(8));
}

#[test]
fn response_that_arrives_after_the_delete_brings_no_object_back() {
    let mut cache = synced(1);
    cache.observed(live("a", "u", 7)).unwrap();
    cache.observed_deleted(&identity("a", "u", 8));
    cache.wrote(object("a", "u", 7, "o")).unwrap();
    cache.deleted(&identity("a", "u", 7));
    assert_eq!(cache.get(&key("a")), Observed::Absent);
    assert_eq!(cache.unconfirmed_deletes(), 0);
}

#[test]
fn object_deleted_by_the_program_stays_deleted_despite_late_watch_events() {
    let mut cache = synced(1);
    cache.observed(live("a", "u", 2)).unwrap();
    cache.deleted(&identity("a", "u", 2));
    for late in [3, 9] {
        cache.observed(live("a", "u", late)).unwrap();
        assert_eq!(cache.get(&key("a")), Observed::Absent);
    }
    // A list from before the delete shows it as well.
    cache.listed(vec![live("a", "u", 9)], version(9)).unwrap();
    assert_eq!(cache.get(&key("a")), Observed::Absent);
    cache.observed_deleted(&identity("a", "u", 10));
    assert_eq!(cache.unconfirmed_deletes(), 0);
}

#[test]
fn late_delete_of_the_old_object_keeps_the_new_one_of_its_name() {
    let mut cache = synced(1);
    cache.observed(live("a", "old", 2)).unwrap();
    cache.deleted(&identity("a", "old", 2));
    cache.wrote(object("a", "new", 5, "o")).unwrap();
    cache.observed(live("a", "old", 3)).unwrap();
    cache.observed_deleted(&identity("a", "old", 4));
    assert_eq!(shown(&cache, "a"), Some(5));
}

#[test]
fn new_object_of_an_old_name_is_delivered_as_deleted_and_applied() {
    let mut cache = synced(1);
    cache.observed(live("a", "old", 2)).unwrap();
    let changes = record(&mut cache);
    cache.wrote(object("a", "new", 5, "o")).unwrap();
    assert_eq!(*changes.lock(), ["a deleted at 2", ">5"]);
}

#[test]
fn relist_removes_missing_objects_and_keeps_own_later_writes() {
    let mut cache = TestCache::default();
    cache
        .listed(vec![live("a", "1", 2), live("b", "2", 3)], version(3))
        .unwrap();
    cache.wrote(object("c", "3", 9, "o")).unwrap();
    let changes = record(&mut cache);
    cache.listed(vec![live("b", "2", 3)], version(8)).unwrap();
    assert_eq!(
        (shown(&cache, "a"), shown(&cache, "b"), shown(&cache, "c")),
        (None, Some(3), Some(9))
    );
    assert_eq!(*changes.lock(), ["a deleted at 2"]);
    // A list newer than the write removes the object.
    cache.listed(vec![live("b", "2", 3)], version(10)).unwrap();
    assert_eq!(cache.get(&key("c")), Observed::Absent);
}

#[test]
fn list_of_a_restored_server_is_accepted() {
    let mut cache = synced(1);
    cache.observed(live("a", "u", 50)).unwrap();
    cache.wrote(object("b", "v", 60, "o")).unwrap();
    cache.listed(vec![live("a", "u", 20)], version(30)).unwrap();
    assert_eq!((shown(&cache, "a"), shown(&cache, "b")), (Some(20), None));
    cache.observed(live("a", "u", 31)).unwrap();
    assert_eq!(shown(&cache, "a"), Some(31));
}

#[test]
fn unreadable_object_is_unknown_and_keeps_its_place_in_the_indexes() {
    let mut cache = synced(1);
    let changes = record(&mut cache);
    cache.observed(live("a", "u", 2)).unwrap();
    cache.observed(unreadable("a", "u", 3)).unwrap();
    cache.observed(unreadable("b", "v", 4)).unwrap();
    assert!(
        matches!(cache.get(&key("a")), Observed::Unknown(UnknownReason::Unreadable(why)) if why.contains("spec.image"))
    );
    assert_eq!(cache.unreadable().count(), 2);
    assert_eq!(owned_by(&cache, "o"), ["a"]);
    cache.observed(Item::Object(object("a", "u", 5, "p"))).unwrap();
    assert_eq!(
        (owned_by(&cache, "o"), owned_by(&cache, "p")),
        (vec![], vec!["a".to_owned()])
    );
    cache.observed_deleted(&identity("b", "v", 6));
    let expected = [
        ">2",
        "a unreadable after 2",
        "b unreadable after ",
        "2>5",
        "b deleted at ",
    ];
    assert_eq!(*changes.lock(), expected);
}

#[test]
fn unreadable_objects_are_found_without_visiting_the_others() {
    let mut cache = synced(1);
    for number in 0..1000 {
        let (name, uid) = (format!("n{number}"), format!("u{number}"));
        cache.observed(live(&name, &uid, number + 2)).unwrap();
    }
    assert_eq!(cache.unreadable().size_hint(), (0, Some(0)));
    for (name, at) in [("a", 2000), ("b", 2001), ("c", 2002)] {
        cache.observed(unreadable(name, name, at)).unwrap();
    }
    assert_eq!(cache.unreadable().size_hint(), (3, Some(3)));
    cache.observed(live("a", "a", 2003)).unwrap();
    cache.observed_deleted(&identity("b", "b", 2004));
    cache.listed(vec![live("c", "d", 2005)], version(2006)).unwrap();
    assert_eq!(cache.unreadable().size_hint(), (0, Some(0)));
}

#[test]
fn barrier_releases_exactly_the_waits_whose_version_is_cached() {
    let mut barrier = Barrier::default();
    barrier.hold("x5", key("a"), version(5));
    barrier.hold("x4", key("a"), version(4));
    barrier.hold("x7", key("b"), version(7));
    barrier.hold("y5", key("a"), version(5));
    assert!(barrier.observed(&key("a"), &version(3)).is_empty());
    assert!(barrier.observed(&key("b"), &version(6)).is_empty());
    assert_eq!(barrier.observed(&key("a"), &version(4)), ["x4"]);
    assert_eq!(barrier.reached(&version(6)), ["x5", "y5"]);
    assert_eq!((barrier.len(), barrier.is_empty()), (1, false));
    assert_eq!(barrier.observed(&key("b"), &version(9)), ["x7"]);
    assert!(barrier.is_empty());
}

#[test]
fn bookkeeping_is_not_stored() {
    let mut cache = synced(1);
    let mut fat = object("a", "u", 2, "o");
    fat.metadata.managed_fields = Some(vec![Default::default()]);
    let annotation = "kubectl.kubernetes.io/last-applied-configuration".to_owned();
    fat.metadata.annotations = Some([(annotation, "{}".to_owned()), ("kept".to_owned(), String::new())].into());
    cache.observed(Item::Object(fat)).unwrap();
    let Observed::Present(stored) = cache.get(&key("a")) else {
        panic!("not stored")
    };
    assert_eq!(stored.metadata.managed_fields, None);
    let annotations = stored.metadata.annotations.clone().unwrap();
    assert_eq!(annotations.into_keys().collect::<Vec<_>>(), ["kept"]);
}

#[test]
fn list_with_an_object_without_identity_changes_nothing() {
    let mut cache = synced(1);
    let mut unplaced = object("b", "v", 3, "o");
    unplaced.metadata.resource_version = Some("abc".to_owned());
    let refused = cache.listed(vec![live("a", "u", 2), Item::Object(unplaced)], version(3));
    assert!(matches!(refused, Err(MissingMetadata::Version(_))));
    assert_eq!(cache.get(&key("a")), Observed::Absent);
}

#[test]
fn object_that_became_readable_is_never_the_same() {
    let mut cache = synced(1);
    let changes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&changes);
    cache.subscribe(move |change| {
        let same = change.is_same(|_, _| true);
        sink.lock().push((same, change.became_readable()));
    });
    for item in [
        live("a", "u", 2),
        live("a", "u", 3),
        unreadable("a", "u", 4),
        live("a", "u", 5),
    ] {
        cache.observed(item).unwrap();
    }
    cache.observed(unreadable("a", "u", 6)).unwrap();
    cache.observed_deleted(&identity("a", "u", 7));
    let expected = [
        (false, false),
        (true, false),
        (false, false),
        (false, true),
        (false, false),
        (false, true),
    ];
    assert_eq!(*changes.lock(), expected);
}
