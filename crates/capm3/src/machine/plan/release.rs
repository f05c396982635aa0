//! Deletion of a machine: deprovisions the host, releases it, then the data, then removes the finalizer.

use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::is_owned_by;
use metal3_runtime::plan::Observed;

use super::cleanup::remove_claim_finalizer;
use super::{Decision, Planner, host_changes};
use crate::diff::version;
use crate::machine::action::{Action, HostChange, Reads};
use crate::machine::conditions::{Deletion, Stage};
use crate::machine::facts;

impl<'a> Planner<'a> {
    pub(super) fn release(&mut self) -> Decision {
        // Without this finalizer the machine has claimed nothing.
        if !self.has_finalizer() {
            return Decision::Unchanged;
        }
        if let Some(why) = self.unreadable_host() {
            return Decision::UpdateStatus(Stage::Deleting(Deletion::HostNotReleased(why)));
        }
        // differs (`data-after-host`): the Go manager releases the data while the host still runs.
        let data_first = !self.rules.host_before_data();
        if data_first && let Some(decision) = self.release_data() {
            return decision;
        }
        if let Some(host) = self.host_to_release() {
            let decision = self.release_host(host);
            if self.rules.machine_last() {
                return decision;
            }
        }
        // differs (`machine-data-awaited`): the Go manager removes the finalizer before the data are deleted.
        if self.rules.machine_last()
            && !data_first
            && let Some(decision) = self.release_data()
        {
            return decision;
        }
        if let Some(reads) = self.unconfirmed_host() {
            return Decision::Read(reads);
        }
        // Without its finalizer the machine ends, and its dependents with it.
        let named = self.facts.hosts.named.as_deref().into_present();
        for host in named.into_iter().chain(self.facts.hosts.claimed()) {
            if let Some(decision) = self.disown_first(host) {
                return decision;
            }
        }
        self.patch_machine(|machine| {
            let finalizers = machine.metadata.finalizers.iter().flatten();
            let others: Vec<String> = finalizers.filter(|name| *name != MACHINE_FINALIZER).cloned().collect();
            machine.metadata.finalizers = Some(others).filter(|others| !others.is_empty());
        });
        Decision::Unchanged
    }

    /// The recorded host, if it must still be read live: the cache may be older than a claim.
    pub(super) fn unconfirmed_host(&self) -> Option<Reads> {
        let is_unconfirmed = self.rules.confirm_freed() && !self.facts.hosts.named_is_live;
        let host = facts::named(self.before).filter(|_| is_unconfirmed)?;
        Some(Reads::Host(host.to_owned()))
    }

    /// The message when an unreadable host may be the machine's.
    fn unreadable_host(&self) -> Option<String> {
        if !self.rules.respect_unreadable() {
            return None;
        }
        let hosts = &self.facts.hosts;
        let unreadable = |host: &str, why: &str| format!("BareMetalHost {host} cannot be read: {why}; correct it");
        match (facts::named(self.before), &hosts.named) {
            (Some(host), Observed::Unknown(why)) => Some(unreadable(host, &why.to_string())),
            (Some(_), Observed::Present(_) | Observed::Absent) => None,
            (None, _) => hosts
                .unreadable
                .as_ref()
                .map(|host| unreadable(host, "it may be the machine's")),
        }
    }

    fn host_to_release(&self) -> Option<&'a BareMetalHost> {
        let hosts = &self.facts.hosts;
        let named = || hosts.named.as_deref().into_present();
        hosts
            .claimed()
            .next()
            .or_else(|| named().filter(|_| !self.rules.release_own()))
    }

    fn release_host(&mut self, host: &'a BareMetalHost) -> Decision {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        let under_way = |message| Decision::UpdateStatus(Stage::Deleting(Deletion::UnderWay(message)));
        let must_clear = host_changes::is_used(host);
        if !must_clear && self.rules.wait_for_host() && !host_changes::is_idle(host) {
            let state = &host.status.provisioning.state;
            return under_way(format!(
                "waiting for BareMetalHost {name} in state {state} to become idle"
            ));
        }
        if self.rules.confirm_release() && !self.facts.confirmed {
            return Decision::Read(Reads::Machine);
        }
        if must_clear {
            if let Some(template) = self.unconfirmed_template() {
                return Decision::Read(Reads::Template(template.to_owned()));
            }
            if let Some(why) = self.unreadable_template() {
                return Decision::UpdateStatus(Stage::Deleting(Deletion::ReuseUndecided(why)));
            }
            if let Some(decision) = self.undecided_cleaning(host) {
                return decision;
            }
            let (fast_track, cleaning) = (self.facts.settings.fast_track, self.cleaning_mode());
            self.patch_host(host, HostChange::Deprovision, |host| {
                host_changes::deprovision(host, fast_track, cleaning)
            });
            return under_way(format!("deprovisioning BareMetalHost {name}"));
        }
        // No other machine gets a host that may end with this one.
        if let Some(decision) = self.disown_first(host) {
            return decision;
        }
        let kept = match self.kept_for() {
            Ok(kept) => kept,
            Err(decision) => return decision,
        };
        let cluster = self.cluster_name();
        self.label_secret(host, None);
        self.patch_host(host, HostChange::Release, |host| {
            host_changes::release(host, cluster, kept.as_ref())
        });
        under_way(match kept {
            Some(kept) => format!("BareMetalHost {name} is kept for {}", kept.owner),
            None => format!("BareMetalHost {name} is released"),
        })
    }

    /// Releases the data, or returns what the release waits for; `None` when the claim does not exist.
    fn release_data(&mut self) -> Option<Decision> {
        let name = self.name();
        let claim = match self.facts.claim.as_deref() {
            Observed::Absent => return None,
            Observed::Present(claim) => claim,
            Observed::Unknown(why) => {
                let why = format!("Metal3DataClaim {name} cannot be read: {why}; correct it");
                return Some(Decision::UpdateStatus(Stage::Deleting(Deletion::DataNotReleased(why))));
            }
        };
        if self.rules.own_data() && !is_owned_by(&claim.metadata, self.before.metadata.uid.as_deref()) {
            return None;
        }
        let (Some(version), Some(uid)) = (version(&claim.metadata), claim.metadata.uid.clone()) else {
            return None;
        };
        // No live read is needed: the finalizer keeps the claim.
        if claim.metadata.deletion_timestamp.is_none() {
            self.actions.push(Action::DeleteClaim {
                claim: name.to_owned(),
                uid,
                version,
            });
        } else if let Some(patch) = remove_claim_finalizer(claim) {
            if let Some(reads) = self.unconfirmed_host() {
                return Some(Decision::Read(reads));
            }
            self.actions.push(patch);
        }
        let message = format!("waiting for Metal3DataClaim {name} to be deleted");
        Some(Decision::UpdateStatus(Stage::Deleting(Deletion::UnderWay(message))))
    }
}
