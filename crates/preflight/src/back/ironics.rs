//! The Ironics in which hosts are registered.

use std::collections::BTreeSet;

use metal3_api::metal3::names::REGISTERED_IN_ANNOTATION;
use metal3_api::metal3::v1alpha1::BareMetalHost;

use crate::finding::{Decision, Finding};
use crate::hosts::stays_paused;
use crate::objects::Objects;

/// What hosts record.
#[derive(Default)]
struct Records {
    /// The Ironics of hosts that a Go manager serves.
    served: BTreeSet<String>,
    /// Those of paused ones, each with its host.
    paused: BTreeSet<(String, String)>,
    /// Hosts with a node and without a record that a Go manager serves.
    unrecorded: BTreeSet<String>,
}

/// A Go manager has one Ironic, finds no node of a host of another one there, and registers the machine in its own, whatever runs on
/// it. So does a release of this program that does not know the record.
pub(super) fn findings(objects: &Objects) -> Option<Finding> {
    let records = Records::of(objects);
    let finding = |decision, what: String, cure: &str| {
        Some(Finding::new(decision, "Ironics", what, cure).row("host-several-ironics"))
    };
    if records.served.len() > 1 {
        let names: Vec<&str> = records.served.iter().map(String::as_str).collect();
        let what = format!(
            "hosts are registered in {}: a Go manager has one Ironic, and would register the machines of the others in it a second time",
            names.join(", ")
        );
        let cure = "move the hosts of all but one there: detach them, change their label, and attach them again. Or run one Go manager \
                    for each Ironic, with namespaces of its own. Or pause the others, and keep them paused";
        return finding(Decision::No, what, cure);
    }
    let first = records.first()?;
    if let Some(one) = records.unrecorded.first() {
        let what = format!(
            "{} with a node, as {one}, do not record their Ironic, and others record {first}: a Go manager would register those of \
             another one in it a second time",
            records.unrecorded.len()
        );
        let cure = format!(
            "let this program record them (a paused host is not), or set the annotation {REGISTERED_IN_ANNOTATION} yourself"
        );
        return finding(Decision::No, what, &cure);
    }
    let mut elsewhere = records.paused.iter().filter(|(ironic, _)| ironic != first);
    let (what, cure) = match elsewhere.next() {
        None => (
            format!("all hosts are registered in {first}: IRONIC_ENDPOINT of the Go manager must be that one"),
            "",
        ),
        Some((other, host)) => (
            format!(
                "hosts are registered in {first}: IRONIC_ENDPOINT of the Go manager must be that one. Paused hosts, as {host}, are \
                 registered in {other}, and without the pause it would register their machines a second time"
            ),
            "keep their pause, or move them to that Ironic before the switch",
        ),
    };
    finding(Decision::Go, what, cure)
}

impl Records {
    fn of(objects: &Objects) -> Self {
        let mut records = Self::default();
        for (name, host) in objects.of::<BareMetalHost>() {
            let ironic = host.annotation(REGISTERED_IN_ANNOTATION);
            match (ironic.filter(|ironic| !ironic.is_empty()), stays_paused(&host)) {
                (Some(ironic), false) => drop(records.served.insert(ironic.to_owned())),
                (Some(ironic), true) => drop(records.paused.insert((ironic.to_owned(), name))),
                (None, false) if !host.status.provisioning.id.is_empty() => drop(records.unrecorded.insert(name)),
                (None, _) => {}
            }
        }
        records
    }

    fn first(&self) -> Option<&str> {
        let paused = self.paused.iter().map(|(ironic, _)| ironic);
        self.served.iter().chain(paused).next().map(String::as_str)
    }
}
