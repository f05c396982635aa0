//! Owners of hosts that the API server does not let this program remove: each is reported once, and tried again later.

use std::collections::HashMap;

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use metal3_runtime::events::Importance;
use parking_lot::Mutex;

use super::Machines;
use crate::machine::action::{Action, HostChange};
use crate::machine::conditions::OWNER_RETRY;
use crate::machine::facts::Facts;
use crate::machine::plan::owners::refused;
use crate::reasons::machine::HOST_OWNER_KEPT;

/// The refusals, by machine: why, and when.
#[derive(Default)]
pub(super) struct RefusedOwners(Mutex<HashMap<Key, (String, Monotonic)>>);

impl RefusedOwners {
    /// Why the last attempt was refused, until it is time for another one.
    pub(super) fn of(&self, machine: &Key, now: Monotonic) -> Option<String> {
        let all = self.0.lock();
        let (why, at) = all.get(machine)?;
        (now.since(*at) < OWNER_RETRY).then(|| why.clone())
    }

    /// Records a refusal. Returns whether it is the first one.
    fn record(&self, machine: &Key, why: &str, now: Monotonic) -> bool {
        let refusal = (why.to_owned(), now);
        self.0.lock().insert(machine.clone(), refusal).is_none()
    }

    pub(super) fn remove(&self, machine: &Key) {
        self.0.lock().remove(machine);
    }
}

/// The host of an action that removes the machine from its owners.
pub(super) fn disowned(action: &Action) -> Option<&str> {
    match action {
        Action::PatchHost {
            host,
            change: HostChange::Disown,
            ..
        } => Some(host),
        _ => None,
    }
}

impl Machines {
    /// Records that an owner may not be removed, and reports it once.
    pub(super) fn report_owner(&self, key: &Key, facts: &Facts, host: &str, why: &str) {
        if !self.refused.record(key, why, self.clock.monotonic()) {
            return;
        }
        let hosts = &facts.hosts;
        let all = hosts.claimed().chain(hosts.named.as_deref().into_present());
        let mut hosts = all.filter(|one| one.metadata.name.as_deref() == Some(host));
        let machine = facts.machine.as_deref();
        let message = |host: &BareMetalHost, machine: &Metal3Machine| refused(host, &machine.metadata, why);
        let message = hosts
            .next()
            .zip(machine)
            .and_then(|(host, machine)| message(host, machine));
        let message = message.unwrap_or_else(|| why.to_owned());
        tracing::warn!(machine = %key, %host, "{message}");
        if let Some(machine) = machine {
            self.events
                .record(machine, Importance::Warning, HOST_OWNER_KEPT, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn refusal_is_new_once_and_known_until_it_is_time_for_another_attempt() {
        let (refused, machine) = (
            RefusedOwners::default(),
            Key {
                namespace: "metal".to_owned(),
                name: "m0".to_owned(),
            },
        );
        let at = |since_start: Duration| Monotonic::new(since_start);
        assert_eq!(refused.of(&machine, at(Duration::ZERO)), None);
        assert!(refused.record(&machine, "forbidden", at(Duration::ZERO)));
        let before = OWNER_RETRY.saturating_sub(Duration::from_secs(1));
        assert_eq!(refused.of(&machine, at(before)).as_deref(), Some("forbidden"));
        assert_eq!(refused.of(&machine, at(OWNER_RETRY)), None, "it is tried again");
        assert!(
            !refused.record(&machine, "forbidden", at(OWNER_RETRY)),
            "and not reported again"
        );
        refused.remove(&machine);
        assert!(refused.record(&machine, "forbidden", at(OWNER_RETRY)));
    }
}
