use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::{State, explain};
use serde_json::json;

use super::*;
use crate::shared::Shared;

fn hosts() -> ObjectId {
    ObjectId::of::<BareMetalHost>("")
}

fn host(namespace: &str, name: &str, version: &str) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name, "resourceVersion": version, "managedFields": [{}] } })
}

fn changed(objects: &mut Objects) -> Vec<String> {
    let changed = objects.take_changed().into_iter();
    changed
        .map(|one| format!("{}/{}", one.namespace, one.object.name))
        .collect()
}

#[test]
fn list_replaces_the_objects_of_its_kind_and_names_what_differs() {
    let mut objects = Objects::default();
    objects.replace(&hosts(), None, vec![host("lab", "a", "1"), host("lab", "b", "2")]);
    assert_eq!(changed(&mut objects), ["lab/a", "lab/b"]);
    objects.replace(&hosts(), None, vec![host("lab", "a", "1"), host("lab", "c", "3")]);
    assert_eq!(changed(&mut objects), ["lab/b", "lab/c"]);
    objects.put(&hosts(), host("lab", "a", "4"));
    objects.remove(&hosts(), &host("lab", "c", "5"));
    assert_eq!(changed(&mut objects), ["lab/a", "lab/c"]);
    let left: Vec<&Key> = objects.keys(&hosts()).collect();
    assert_eq!(left, [&("lab".to_owned(), "a".to_owned())]);
}

#[test]
fn managed_fields_are_not_kept() {
    let mut objects = Objects::default();
    objects.put(&hosts(), host("lab", "a", "1"));
    let found = objects.get(&hosts().clone(), "lab", "a").unwrap();
    assert_eq!(found.pointer("/metadata/managedFields"), None);
}

/// What is not known is never shown as absent.
#[test]
fn answer_says_why_a_kind_has_no_objects() {
    let forbidden = || Unread::Forbidden {
        verb: "list".to_owned(),
        resource: "baremetalhosts.metal3.io".to_owned(),
    };
    let read = Read::Object(ObjectId::of::<BareMetalHost>("a"));
    let mut objects = Objects::default();
    let why = |objects: &Objects, namespace: &str| match objects.answer(namespace, &read).1 {
        Ok(found) => format!("{} objects", found.len()),
        Err(why) => why.to_string(),
    };
    assert_eq!(why(&objects, "lab"), "the console does not watch it yet");
    objects.fault(&hosts(), Some(Unread::Failed("no connection".to_owned())));
    assert_eq!(why(&objects, "lab"), "its first list is not complete");
    objects.replace(&hosts(), Some("lab".to_owned()), vec![host("lab", "a", "1")]);
    assert_eq!(why(&objects, "lab"), "1 objects");
    assert_eq!(why(&objects, "other"), "the console reads another namespace only");
    objects.refuse(&hosts(), forbidden());
    assert_eq!(why(&objects, "lab"), "you may not list baremetalhosts.metal3.io");
    assert_eq!(objects.unread().len(), 1);
    objects.refuse(&hosts(), Unread::NotInstalled);
    assert!(objects.unread().is_empty());
}

#[test]
fn objects_stay_while_the_server_does_not_answer_and_the_fault_is_named() {
    let mut objects = Objects::default();
    objects.replace(&hosts(), None, vec![host("lab", "a", "1")]);
    objects.fault(&hosts(), Some(Unread::Failed("no connection".to_owned())));
    assert_eq!((objects.keys(&hosts()).count(), objects.unread().len()), (1, 1));
    objects.fault(&hosts(), None);
    assert!(objects.unread().is_empty());
}

#[test]
fn one_namespace_is_named_only_if_it_is_that_of_each_kind() {
    let mut objects = Objects::default();
    let lab = || Some("lab".to_owned());
    objects.replace(&hosts(), lab(), Vec::new());
    objects.replace(&kinds::events(), lab(), Vec::new());
    assert_eq!(objects.only_namespace(), Some("lab"));
    objects.replace(&hosts(), None, Vec::new());
    assert_eq!(objects.only_namespace(), None);
}

#[test]
fn events_are_found_by_their_object_until_they_are_deleted() {
    let event = json!({ "metadata": { "namespace": "lab", "name": "e" }, "involvedObject": { "kind": "BareMetalHost", "name": "a" } });
    let read = Read::Events(ObjectId::of::<BareMetalHost>("a"));
    let mut objects = Objects::default();
    objects.replace(&kinds::events(), None, vec![event.clone()]);
    let count = |objects: &Objects| objects.answer("lab", &read).1.map(|found| found.len());
    assert_eq!(count(&objects), Ok(1));
    assert_eq!(changed(&mut objects), ["lab/a"]);
    objects.remove(&kinds::events(), &event);
    assert_eq!(count(&objects), Ok(0));
}

#[test]
fn no_secret_is_answered_and_kinds_of_others_are_wanted_up_to_a_limit() {
    let shared = Shared::default();
    let ask = |object: ObjectId| shared.ask("lab", |snapshot| explain(&object, snapshot));
    assert_eq!(ask(ObjectId::secret("bmc")).unwrap().state, State::Unknown);
    assert!(shared.wanted().is_empty());
    for number in 0..2 * kinds::MOST_FOREIGN {
        ask(ObjectId::foreign(&format!("g{number}.example"), "Thing", "x"));
    }
    assert_eq!(shared.wanted().len(), kinds::MOST_FOREIGN);
}

/// A page lets no time pass until then; a kind that is not read again for a reason that it names does not hold it for ever.
#[test]
fn objects_are_old_from_the_end_of_a_login_until_each_kind_is_read_again_or_named() {
    let mut objects = Objects::default();
    let kinds = ["A", "B", "C"].map(|kind| ObjectId::foreign("x.example", kind, ""));
    for kind in &kinds {
        objects.replace(kind, None, Vec::new());
    }
    assert!(!objects.is_old());
    objects.outdate();
    assert!(objects.is_old());
    objects.replace(&kinds[0], None, Vec::new());
    objects.refuse(&kinds[1], Unread::NotInstalled);
    assert!(objects.is_old());
    objects.fault(&kinds[2], Some(Unread::Failed("no answer".to_owned())));
    assert!(!objects.is_old());
    objects.outdate();
    assert!(objects.is_old());
}
