//! A support bundle: objects, Events and explanations of all that waits, as files of an archive.
//!
//! Of Secrets only the metadata are in it. Every value that could be a secret is masked.

mod kinds;
mod mask;
pub mod tar;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::yaml;
use serde_json::{Value, json};

use crate::chain::State;
use crate::object::{KINDS, ObjectId, SECRET};
use crate::order;
use crate::read::{NotRead, Read, Unread};
use crate::snapshot::Snapshot;
use crate::text::{missing, printable_text};
use crate::values::{name_of, namespace_of, text};
use crate::view::{Filter, View};
use crate::walk::explain;
use mask::masked;
pub(crate) use mask::masked_text;

/// More rounds than an explanation needs.
const ROUNDS: usize = 64;

/// What is read first. [`further`] follows.
#[must_use]
pub fn reads() -> Vec<Read> {
    let lists = kinds::all().into_iter().map(|kind| Read::List {
        kind,
        labels: String::new(),
    });
    lists.chain([Read::Events(ObjectId::of::<BareMetalHost>(""))]).collect()
}

/// The kinds of other providers that Clusters and Machines refer to, as far as they are not read yet.
#[must_use]
pub fn further(snapshot: &Snapshot) -> Vec<Read> {
    let known = kinds::of(snapshot);
    let objects = snapshot
        .answers()
        .filter_map(|(_, answer)| answer.as_ref().ok())
        .flatten();
    let referred = order::set(objects.flat_map(|object| kinds::referred(object)));
    let lists = referred.difference(&known).map(|kind| Read::List {
        kind: kind.clone(),
        labels: String::new(),
    });
    lists.collect()
}

/// The end of the log of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The namespace of the Pod.
    pub namespace: String,
    /// The Pod.
    pub pod: String,
    /// The container, with a mark if the log is that of the one before the last restart.
    pub container: String,
    /// The lines.
    pub text: String,
}

/// The logs of this project's programs, and what could not be read of them. They are in any namespace.
pub type Logs = (Vec<Log>, Vec<NotRead>);

/// The files, by name. `namespace` is the one that was read; without one all were.
#[must_use]
pub fn files(snapshot: &Snapshot, logs: &Logs, namespace: Option<&str>, now: Time) -> Vec<(String, String)> {
    let (logs, without) = logs;
    let unread_logs: String = without.iter().map(|one| missing(one, None)).collect();
    let not_read = not_read(snapshot, namespace) + &masked_text(&printable_text(&unread_logs));
    let mut files = vec![
        ("README.txt".to_owned(), readme(now)),
        ("not-read.txt".to_owned(), not_read),
    ];
    files.extend(logs.iter().map(|log| {
        let Log {
            namespace,
            pod,
            container,
            text,
        } = log;
        let name = format!("logs/{namespace}/{pod}/{container}.log");
        (name, masked_text(&printable_text(text)))
    }));
    let kinds = kinds::of(snapshot);
    for (read, answer) in snapshot.answers() {
        let found = answer.as_deref().unwrap_or_default();
        match read {
            Read::List { kind, .. } if kind.kind == SECRET.kind && kind.group == SECRET.group => {
                files.extend(found.iter().map(|object| secret(object)));
            }
            Read::List { kind, .. } => files.extend(found.iter().map(|object| file(kind, object))),
            Read::Events(_) => {
                // Those of other programs may repeat the output of any of them.
                let events = found.iter().filter(|event| kinds.contains(&kinds::of_event(event)));
                let events: String = events
                    .map(|event| yaml::document(&masked(Value::clone(event))))
                    .collect();
                files.push(("events.yaml".to_owned(), events));
            }
            Read::Object(_) => {}
        }
    }
    for (place, snapshot) in snapshot.by_namespace() {
        files.extend(explanations(snapshot, &place, now));
    }
    for (name, view) in [
        ("hosts.txt", View::Hosts(Filter::default())),
        ("consumers.txt", View::Consumers),
        ("pools.txt", View::Pools(None)),
        ("top.txt", View::Top),
    ] {
        if let Ok(report) = view.report(snapshot, now) {
            files.push((
                name.to_owned(),
                masked_text(&crate::view::render(&report, namespace, now)),
            ));
        }
    }
    order::sort(&mut files);
    files
}

fn readme(now: Time) -> String {
    format!(
        "Support bundle of {now}, written by kubectl metal3 support-bundle.\n\n\
         objects/NAMESPACE/KIND/NAME.yaml  objects, masked; those of other providers without data of machines\n\
         secrets/NAMESPACE/NAME.yaml       metadata of Secrets, without content\nevents.yaml                       Events of these objects\n\
         why/NAMESPACE/KIND-NAME.txt       why an object waits\n\
         logs/NAMESPACE/POD/CONTAINER.log  the last lines of this project's programs, masked\nhosts.txt, consumers.txt, pools.txt, top.txt\n\
         not-read.txt                      kinds that are not installed, and what could not be read\n"
    )
}

fn not_read(snapshot: &Snapshot, namespace: Option<&str>) -> String {
    let lines = snapshot.answers().filter_map(|(read, answer)| {
        let why = answer.as_ref().err()?.clone();
        let what = read.clone();
        Some(missing(&NotRead { what, why }, namespace))
    });
    masked_text(&printable_text(&lines.collect::<String>()))
}

fn file(kind: &ObjectId, object: &Value) -> (String, String) {
    let name = format!(
        "objects/{}/{}/{}.yaml",
        namespace_of(object),
        kind.kind,
        name_of(object)
    );
    (name, yaml::document(&masked(kinds::without_data(kind, object.clone()))))
}

/// A Secret: its names, labels and owners. Annotations of a Secret may repeat its content.
fn secret(object: &Value) -> (String, String) {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let metadata = json!({
        "name": name_of(object), "namespace": namespace_of(object), "labels": part("/metadata/labels"),
        "ownerReferences": part("/metadata/ownerReferences"), "finalizers": part("/metadata/finalizers"),
        "creationTimestamp": part("/metadata/creationTimestamp"), "deletionTimestamp": part("/metadata/deletionTimestamp"),
    });
    let name = format!("secrets/{}/{}.yaml", namespace_of(object), name_of(object));
    (
        name,
        yaml::document(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata })),
    )
}

/// Why each object of a namespace waits.
fn explanations(mut snapshot: Snapshot, namespace: &str, now: Time) -> Vec<(String, String)> {
    let lists = snapshot.answers().filter_map(|(read, answer)| match (read, answer) {
        (Read::List { kind, .. }, Ok(found))
            if KINDS
                .iter()
                .any(|known| known.kind == kind.kind && known.group == kind.group) =>
        {
            Some((kind, found))
        }
        _ => None,
    });
    let ids = lists.flat_map(|(kind, found)| {
        found
            .iter()
            .map(|object| ObjectId::foreign(&kind.group, &kind.kind, text(object, "/metadata/name")))
    });
    let ids: Vec<ObjectId> = ids.collect();
    let texts = ids
        .into_iter()
        .filter_map(|id| Some((id.clone(), explanation(&id, &mut snapshot, namespace, now)?)));
    texts
        .map(|(id, text)| (format!("why/{namespace}/{}-{}.txt", id.kind, id.name), text))
        .collect()
}

/// The explanation of an object that waits. What is not in the bundle is unknown.
fn explanation(id: &ObjectId, snapshot: &mut Snapshot, namespace: &str, now: Time) -> Option<String> {
    for _ in 0..ROUNDS {
        let explanation = match explain(id, snapshot) {
            Ok(explanation) if explanation.state == State::Ready => return None,
            Ok(explanation) => explanation,
            Err(wanted) => {
                for read in wanted {
                    let why = Unread::Failed("the bundle does not contain it".to_owned());
                    snapshot.insert(read, Err(why));
                }
                continue;
            }
        };
        return Some(masked_text(&crate::text::render(&explanation, namespace, now)));
    }
    None
}

#[cfg(test)]
mod tests;
