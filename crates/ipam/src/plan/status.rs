//! What a pool's status says: the record of grants, the map, the figures, the conditions.

use std::collections::BTreeMap;

use metal3_api::ipam::v1alpha1::{Allocator, IPPoolStatus};
use metal3_api::meta::{Condition, ConditionStatus, IpText};
use metal3_domain::ip::{AddressCount, address_text};
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;
use serde_json::json;

use super::pending::entry;
use super::{Decisions, Pass, Pause, Standing};
use crate::action::Figures;
use crate::choice::{Allotment, Grant};
use crate::claim::ClaimKind;
use crate::documents::merged;
use crate::names::{RELEASE_ORPHANS_ANNOTATION, condition, reason};
use crate::ranges::place;

/// Most entries of the map, and most bytes in it: an object of the API server has a limit, and names may be long.
const MOST_GRANTS_SHOWN: usize = 5_000;
const MOST_BYTES_SHOWN: usize = 600_000;

impl Pass<'_> {
    /// The patch for the status, if anything in it changes, and the figures.
    pub(super) fn status(
        &self,
        pending: &[Grant],
        allotment: &Allotment<'_>,
        decided: &Decisions,
    ) -> (Option<MergePatch>, Figures) {
        let mut status = self.pool.status.clone();
        if self.rules.record_first {
            self.record(&mut status, pending);
        }
        let mut is_truncated = self.is_condition_true(condition::INDEXES_TRUNCATED);
        // While more claims wait than fit into a pass the map would change with every pass; it is brought up to date
        // with the last one.
        if !decided.is_cut_short {
            let (indexes, cut) = self.indexes();
            is_truncated = cut;
            if indexes != status.indexes {
                status.indexes = indexes;
                status.last_updated = Some(self.facts.now);
            }
        }
        let figures = self.figures(pending, allotment, decided);
        let text = |count: u128| Some(AddressCount::Exactly(count).to_string());
        status.capacity = Some(self.ranges.capacity().to_string());
        status.allocated = text(figures.used);
        status.available = text(figures.available);
        status.reserved = text(figures.reserved);
        let ours = self.conditions(&figures, is_truncated, decided);
        status.conditions = merged(&status.conditions, ours, &condition::OF_POOL, self.facts.now);
        (self.status_patch(&status), figures)
    }

    /// The patch that says the pool rests; nothing else of the status is touched.
    pub(super) fn paused_status(&self, pause: &Pause) -> Option<MergePatch> {
        let why = match pause {
            Pause::ByAnnotation => "the annotation cluster.x-k8s.io/paused is set; remove it to go on".to_owned(),
            Pause::ByCluster(name) => format!("Cluster {name} is paused; the pool goes on with it"),
        };
        let paused = self.says(condition::PAUSED, true, reason::PAUSED, why);
        let mut status = self.pool.status.clone();
        status.conditions = merged(&status.conditions, vec![paused], &[condition::PAUSED], self.facts.now);
        self.status_patch(&status)
    }

    fn status_patch(&self, status: &IPPoolStatus) -> Option<MergePatch> {
        let before = json!({ "status": self.pool.status });
        let changes = Changes::between(&before, &json!({ "status": status }));
        changes.status.map(|patch| patch.with_precondition(&self.version))
    }

    fn record(&self, status: &mut IPPoolStatus, pending: &[Grant]) {
        let recorded = status
            .allocator
            .as_ref()
            .map(|allocator| allocator.pending.as_slice())
            .unwrap_or_default();
        let wanted: Vec<_> = pending.iter().map(entry).collect();
        if recorded != wanted.as_slice() {
            status.allocator = Some(Allocator {
                writer: Some(self.facts.me.to_owned()),
                pending: wanted,
            });
        }
    }

    /// The map from claims to addresses, and whether it is cut short.
    fn indexes(&self) -> (BTreeMap<String, IpText>, bool) {
        let (mut indexes, mut bytes) = (BTreeMap::new(), 0);
        for (claim, objects) in self.account.answered() {
            let Some(address) = objects.filter_map(|held| held.address).next() else {
                continue;
            };
            // differs: ipam-claims-of-one-name. The Go manager takes claims of one name for one claim.
            let taken = claim.kind == ClaimKind::ClusterApi && indexes.contains_key(&claim.name);
            let name = if taken {
                second_name(&claim.name)
            } else {
                claim.name.clone()
            };
            let address = address_text(address);
            bytes += name.len() + address.len() + 6;
            if indexes.len() == MOST_GRANTS_SHOWN || bytes > MOST_BYTES_SHOWN {
                return (indexes, true);
            }
            indexes.insert(name, IpText(address));
        }
        (indexes, false)
    }

    fn figures(&self, pending: &[Grant], allotment: &Allotment<'_>, decided: &Decisions) -> Figures {
        let held = self.account.used();
        let promised = pending
            .iter()
            .filter(|grant| !held.contains(place(grant.address)))
            .count();
        let count = |number: usize| u128::try_from(number).unwrap_or(u128::MAX);
        let covered = self.ranges.covered();
        let is_free = |at: &std::net::Ipv6Addr| {
            covered.contains(*at) && !held.contains(*at) && !pending.iter().any(|grant| place(grant.address) == *at)
        };
        Figures {
            capacity: self.ranges.capacity().saturating(),
            used: count(self.account.in_use() + promised),
            available: allotment.taken().free_of(self.ranges).saturating(),
            reserved: count(self.ranges.reserved().filter(is_free).count()),
            waiting: decided.waiting,
        }
    }

    fn conditions(&self, figures: &Figures, is_truncated: bool, decided: &Decisions) -> Vec<Condition> {
        let mut conditions = vec![
            self.ready(),
            if figures.available == 0 {
                let text = "every address is granted or reserved; add a range to spec.pools, or delete claims";
                self.says(condition::EXHAUSTED, true, reason::NO_FREE_ADDRESS, text)
            } else {
                self.says(condition::EXHAUSTED, false, reason::ADDRESSES_FREE, "")
            },
            match self.facts.accounts.overlapping(self.facts.key) {
                Some(other) => {
                    let text = format!(
                        "IPPool {} has addresses of this pool; both may grant them unless the ranges or pre-allocations keep them apart",
                        other.name
                    );
                    self.says(condition::OVERLAPPING, true, reason::OVERLAPS_POOL, text)
                }
                None => self.says(condition::OVERLAPPING, false, reason::NO_OVERLAP, ""),
            },
            self.says(condition::PAUSED, false, reason::NOT_PAUSED, ""),
        ];
        if is_truncated {
            let text = "status.indexes shows a part of the grants; the IPAddress objects show all";
            conditions.push(self.says(condition::INDEXES_TRUNCATED, true, reason::TOO_MANY_GRANTS, text));
        }
        if let Some((count, first)) = &decided.held_orphans {
            let text = format!(
                "{count} address objects have no claim that owns them, as after a restore (one is {first}); they are kept. \
                 To release them, annotate the pool with {RELEASE_ORPHANS_ANNOTATION}={count}"
            );
            conditions.push(self.says(condition::ORPHANS_HELD, true, reason::MANY_ORPHANS, text));
        }
        conditions
    }

    fn ready(&self) -> Condition {
        let not = |reason, text: String| self.says(condition::READY, false, reason, text);
        if let Some((kind, name)) = self.facts.accounts.unreadable(&self.facts.key.namespace) {
            let text = format!("{kind} {name} cannot be read and may hold any address; correct it or delete it");
            return not(reason::OBJECT_UNREADABLE, text);
        }
        match &self.standing {
            Standing::Leaving => not(
                reason::DELETING,
                "the pool goes once no address of it is granted; delete the claims on it".to_owned(),
            ),
            Standing::WithoutCluster(name) => not(
                reason::CLUSTER_NOT_FOUND,
                format!(
                    "spec.clusterName: there is no Cluster {name} in the namespace; create it, or leave the name out"
                ),
            ),
            Standing::Serving | Standing::Paused(_) | Standing::Unknown if self.ranges.covered().is_empty() => not(
                reason::NO_USABLE_RANGE,
                "no entry of spec.pools yields an address; give one a start and an end, or a subnet".to_owned(),
            ),
            Standing::Serving | Standing::Paused(_) | Standing::Unknown => {
                self.says(condition::READY, true, reason::READY, "")
            }
        }
    }

    fn says(&self, aspect: &str, holds: bool, reason: Reason, message: impl Into<String>) -> Condition {
        Condition {
            type_: aspect.to_owned(),
            status: if holds {
                ConditionStatus::True
            } else {
                ConditionStatus::False
            },
            observed_generation: self.pool.metadata.generation,
            reason: reason.as_str().to_owned(),
            message: message.into(),
            ..Condition::default()
        }
    }

    fn is_condition_true(&self, aspect: &str) -> bool {
        let is_true = |c: &Condition| c.type_ == aspect && c.status == ConditionStatus::True;
        self.pool.status.conditions.iter().any(is_true)
    }
}

/// The name in the map of an IPAddressClaim where an IPClaim has its own.
pub(super) fn second_name(name: &str) -> String {
    format!("ipaddressclaim/{name}")
}
