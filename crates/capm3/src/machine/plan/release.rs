//! Giving back what a machine has: first what runs on the host, then the host, then the data, then the machine itself.

use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::Sight;
use metal3_capi::owner::is_owned_by;
use metal3_runtime::patch::remove_finalizer;

use super::{Pass, Verdict, documents};
use crate::documents::version;
use crate::machine::action::{Action, Deed};
use crate::machine::conditions::{Deletion, Stage};
use crate::machine::facts;

impl<'a> Pass<'a> {
    /// Goes on with the deletion of the machine.
    pub(super) fn release(&mut self) -> Verdict {
        // Without our finalizer nothing waits for us, and nothing was taken.
        if !self.has_finalizer() {
            return Verdict::Quiet;
        }
        if let Some(why) = self.hidden() {
            return Verdict::Say(Stage::Deleting(Deletion::HostNotReleased(why)));
        }
        // differs (`data-after-host`): the Go manager gives the data back while the host still runs.
        let data_first = !self.rules.host_before_data;
        if data_first && let Some(verdict) = self.give_back_data() {
            return verdict;
        }
        if let Some(host) = self.host_to_give_back() {
            let verdict = self.give_back(host);
            if self.rules.machine_last {
                return verdict;
            }
        }
        // differs (`machine-data-awaited`): the Go manager lets the machine go before its data.
        if self.rules.machine_last
            && !data_first
            && let Some(verdict) = self.give_back_data()
        {
            return verdict;
        }
        if self.must_see_host() {
            return Verdict::ConfirmHost;
        }
        self.patch_machine(|machine| {
            let finalizers = machine.metadata.finalizers.iter().flatten();
            let others: Vec<String> = finalizers.filter(|name| *name != MACHINE_FINALIZER).cloned().collect();
            machine.metadata.finalizers = Some(others).filter(|others| !others.is_empty());
        });
        Verdict::Quiet
    }

    /// Whether the host that the machine names has still to be read live: until then "no host runs for it" may be old.
    fn must_see_host(&self) -> bool {
        self.rules.confirm_freed && facts::named(self.facts.machine).is_some() && !self.facts.hosts.named_is_live
    }

    /// Why the machine's host may be one that cannot be seen.
    fn hidden(&self) -> Option<String> {
        if !self.rules.heed_unknown {
            return None;
        }
        let hosts = &self.facts.hosts;
        let unreadable = |host: &str, why: &str| format!("BareMetalHost {host} cannot be read: {why}; correct it");
        match (facts::named(self.facts.machine), hosts.named) {
            (Some(host), Sight::Unknown(why)) => Some(unreadable(host, why)),
            (Some(_), Sight::Seen(_) | Sight::Absent) => None,
            (None, _) => hosts.unreadable.map(|host| unreadable(host, "it may be the machine's")),
        }
    }

    fn host_to_give_back(&self) -> Option<&'a BareMetalHost> {
        let claimed = self.facts.hosts.claimed.first().copied();
        let named = || self.facts.hosts.named.seen().filter(|_| !self.rules.release_own);
        claimed.or_else(named)
    }

    fn give_back(&mut self, host: &'a BareMetalHost) -> Verdict {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        let under_way = |message| Verdict::Say(Stage::Deleting(Deletion::UnderWay(message)));
        let must_clear = documents::is_used(host);
        if !must_clear && self.rules.wait_for_host && !documents::is_at_rest(host) {
            let state = &host.status.provisioning.state;
            return under_way(format!(
                "waiting for BareMetalHost {name}, which is in state {state}, to come to rest"
            ));
        }
        if self.rules.confirm_release && !self.facts.confirmed {
            return Verdict::Confirm;
        }
        if must_clear {
            let fast_track = self.facts.settings.fast_track;
            self.patch_host(host, Deed::Deprovision, |host| documents::deprovision(host, fast_track));
            return under_way(format!("deprovisioning BareMetalHost {name}"));
        }
        let cluster = self.cluster_name();
        self.label_secret(host, None);
        self.patch_host(host, Deed::Release, |host| documents::release(host, cluster));
        under_way(format!("BareMetalHost {name} is given back"))
    }

    /// Gives the data back, or says what they wait for; nothing when they are gone.
    fn give_back_data(&mut self) -> Option<Verdict> {
        let name = self.name();
        let claim = match self.facts.claim {
            Sight::Absent => return None,
            Sight::Seen(claim) => claim,
            Sight::Unknown(why) => {
                let why = format!("Metal3DataClaim {name} cannot be read: {why}; correct it");
                return Some(Verdict::Say(Stage::Deleting(Deletion::DataNotReleased(why))));
            }
        };
        if self.rules.own_data && !is_owned_by(&claim.metadata, self.facts.machine.metadata.uid.as_deref()) {
            return None;
        }
        let (Some(version), Some(uid)) = (version(&claim.metadata), claim.metadata.uid.clone()) else {
            return None;
        };
        let claim_name = name.to_owned();
        // Deleting it needs no live look: our finalizer keeps it.
        if claim.metadata.deletion_timestamp.is_none() {
            self.actions.push(Action::DeleteClaim {
                claim: claim_name,
                uid,
                version,
            });
        } else {
            let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
            if let Some(patch) = remove_finalizer(present, MACHINE_FINALIZER, &version) {
                if self.must_see_host() {
                    return Some(Verdict::ConfirmHost);
                }
                self.actions.push(Action::PatchClaim {
                    claim: claim_name,
                    patch,
                });
            }
        }
        let message = format!("waiting for Metal3DataClaim {name} to go");
        Some(Verdict::Say(Stage::Deleting(Deletion::UnderWay(message))))
    }
}
