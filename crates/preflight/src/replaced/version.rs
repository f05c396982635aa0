//! The release of a Go manager: by the tag of its image, its labels and the inventory of clusterctl, which may contradict each other.

use std::collections::BTreeSet;

use metal3_flags::Owner;

use crate::facts::{Facts, Provider};
use crate::finding::{Decision, Finding, NotRead};
use crate::managers::{Manager, Series};

/// The newest series that is known.
fn newest(manager: &Manager) -> Series {
    if manager.controllers == [Owner::Hosts.name()] {
        Series::new(0, 14)
    } else {
        Series::new(1, 14)
    }
}

/// The oldest series whose objects this program takes over.
fn oldest(manager: &Manager) -> Series {
    if manager.controllers == [Owner::Hosts.name()] {
        Series::new(0, 9)
    } else {
        Series::new(1, 9)
    }
}

/// Each source that says the series, with the series. The tag of the image comes first: it is what runs.
fn sources(facts: &Facts, manager: &Manager) -> Vec<(String, Series)> {
    let label = manager.labelled.as_deref().and_then(Series::parse);
    let provider = facts.providers.iter().flatten().find(|one| is_of(one, manager));
    let recorded = provider.and_then(|one| Some((one, Series::parse(&one.version)?)));
    let tag = manager
        .series
        .map(|series| (format!("the tag of {}", manager.image), series));
    let label = label.map(|series| ("its label app.kubernetes.io/version".to_owned(), series));
    let recorded = recorded.map(|(one, series)| (format!("{} in the inventory of clusterctl", one.name), series));
    [tag, label, recorded].into_iter().flatten().collect()
}

/// The providers whose version is that of the controllers. That of machines contained those of addresses, of the same series.
const PROVIDERS: [(Owner, &str); 3] = [
    (Owner::Capm3, "infrastructure-metal3"),
    (Owner::Ipam, "ipam-metal3"),
    (Owner::Ipam, "infrastructure-metal3"),
];

/// Whether the version of the provider is that of the manager: by its label, or by the namespace without one.
fn is_of(provider: &Provider, manager: &Manager) -> bool {
    let namespace = manager.deployment.split('/').next().unwrap_or_default();
    let mut known = PROVIDERS.iter().filter(|(_, name)| *name == provider.name);
    let is_known = known.any(|(owner, _)| manager.controllers == [owner.name()]);
    let is_named = match &manager.provider {
        Some(label) => *label == provider.name,
        None => PROVIDERS
            .iter()
            .find(|(owner, _)| manager.controllers == [owner.name()])
            .is_some_and(|(_, first)| *first == provider.name),
    };
    is_known && is_named && provider.namespace == namespace
}

/// What says the series first.
pub(crate) fn series(facts: &Facts, manager: &Manager) -> Option<Series> {
    sources(facts, manager).first().map(|(_, series)| *series)
}

/// Whether the release is one whose objects are taken over. Each source counts.
pub(super) fn findings(facts: &Facts, manager: &Manager, object: &str) -> Vec<Finding> {
    let (oldest, newest) = (oldest(manager), newest(manager));
    let sources = sources(facts, manager);
    let all: BTreeSet<Series> = sources.iter().map(|(_, series)| *series).collect();
    let mut findings = Vec::new();
    if let Some(series) = all.last().filter(|series| **series > newest) {
        findings.push(Finding::new(
            Decision::No,
            object,
            format!("release {series} is newer than {newest}, the newest whose objects are taken over"),
            "take a newer release of this program, or go back to that release first",
        ));
    }
    if let Some(series) = all.first().filter(|series| **series < oldest) {
        findings.push(Finding::new(
            Decision::No,
            object,
            format!("release {series} is older than {oldest}, the oldest whose objects are taken over"),
            format!("upgrade it to {oldest} or later first"),
        ));
    }
    if all.len() > 1 {
        let sure = format!("make sure that it is {oldest} or later");
        let each: Vec<String> = sources
            .iter()
            .map(|(source, series)| format!("{series} by {source}"))
            .collect();
        let what = format!("its release is not clear: it is {}", each.join(", "));
        findings.push(Finding::new(Decision::Go, object, what, sure));
    }
    findings
}

/// That nothing says the release: it may be one whose objects are not taken over.
pub(super) fn not_known(facts: &Facts, manager: &Manager) -> Option<NotRead> {
    if !sources(facts, manager).is_empty() {
        return None;
    }
    let unread = match facts.providers {
        Some(_) => "",
        None => ", and the inventory of clusterctl could not be read",
    };
    Some(NotRead {
        what: format!("the release of Deployment {}", manager.deployment),
        why: format!(
            "the tag of {} does not say it{unread}; make sure that it is from {} to {}, and label the Deployment with it: \
             app.kubernetes.io/version",
            manager.image,
            oldest(manager),
            newest(manager)
        ),
    })
}
