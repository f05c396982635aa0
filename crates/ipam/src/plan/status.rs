//! The status of a pool: pending allocations, map, counts, conditions.

use std::collections::BTreeMap;

use metal3_api::ipam::v1alpha1::{self, IPPoolStatus};
use metal3_api::meta::{Condition, ConditionStatus, IpText};
use metal3_domain::ip::{AddressCount, address_text};
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;
use serde_json::json;

use super::pending::pending_address;
use super::{Decisions, Planner, PoolCounts, PoolState};
use crate::allocator::{Allocation, Refusal};
use crate::claim::ClaimKind;
use crate::documents::merged_conditions;
use crate::names::{RELEASE_ORPHANS_ANNOTATION, condition, reason};

/// Limits of the map, in entries and bytes: the API server limits the size of objects, and names may be long.
const MAX_INDEXES: usize = 5_000;
const MAX_INDEX_BYTES: usize = 600_000;

impl Planner<'_> {
    /// The status patch, if anything changes.
    pub(super) fn status(&self, counts: &PoolCounts, decided: &Decisions) -> Option<MergePatch> {
        let mut status = self.pool.status.clone();
        if self.rules.record_first() {
            self.record(&mut status, decided.pending.all());
        }
        let mut is_truncated = self.is_condition_true(condition::INDEXES_TRUNCATED);
        // While claims are left for later reconciles the map would change with each; it is updated with the last one.
        if !decided.is_cut_short {
            let (indexes, truncated) = self.indexes();
            is_truncated = truncated;
            if indexes != status.indexes {
                status.indexes = indexes;
                status.last_updated = Some(self.facts.now);
            }
        }
        let text = |count: u128| Some(AddressCount::Exactly(count).to_string());
        status.capacity = Some(self.ranges.capacity().to_string());
        status.allocated = text(counts.used);
        status.available = text(counts.available);
        status.reserved = text(counts.reserved);
        let conditions = self.conditions(counts, is_truncated, decided);
        status.conditions = merged_conditions(&status.conditions, conditions, &condition::OF_POOL, self.facts.now);
        self.status_patch(&status)
    }

    /// The patch of the paused condition; nothing else of the status changes.
    pub(super) fn paused_status(&self, why: &str) -> Option<MergePatch> {
        self.with_condition(self.new_condition(condition::PAUSED, true, reason::PAUSED, why))
    }

    /// The patch of a condition that says why nothing is done; nothing else of the status changes.
    pub(super) fn not_ready_status(&self, why: &Refusal) -> Option<MergePatch> {
        self.with_condition(self.new_condition(condition::READY, false, why.reason, why.message.clone()))
    }

    fn with_condition(&self, condition: Condition) -> Option<MergePatch> {
        let (mut status, type_) = (self.pool.status.clone(), condition.type_.clone());
        let owned = [type_.as_str()];
        status.conditions = merged_conditions(&status.conditions, vec![condition], &owned, self.facts.now);
        self.status_patch(&status)
    }

    fn status_patch(&self, status: &IPPoolStatus) -> Option<MergePatch> {
        let before = json!({ "status": self.pool.status });
        let changes = Changes::between(&before, &json!({ "status": status }));
        changes.status.map(|patch| patch.with_precondition(&self.version))
    }

    fn record(&self, status: &mut IPPoolStatus, pending: &[Allocation]) {
        let recorded = status
            .allocator
            .as_ref()
            .map(|allocator| allocator.pending.as_slice())
            .unwrap_or_default();
        let wanted: Vec<_> = pending.iter().map(pending_address).collect();
        if recorded != wanted.as_slice() {
            status.allocator = Some(v1alpha1::Allocator {
                writer: Some(self.facts.identity.to_owned()),
                pending: wanted,
            });
        }
    }

    /// The map from claims to addresses, and whether it is truncated.
    fn indexes(&self) -> (BTreeMap<String, IpText>, bool) {
        let (mut indexes, mut bytes) = (BTreeMap::new(), 0);
        for (claim, object) in self.entry.address_by_claim() {
            let Some(address) = object.address else { continue };
            // differs: ipam-claims-of-one-name. The Go manager treats claims of one name as one claim.
            let taken = claim.kind == ClaimKind::ClusterApi && indexes.contains_key(&claim.name);
            let name = if taken {
                second_name(&claim.name)
            } else {
                claim.name.clone()
            };
            let address = address_text(address);
            bytes += name.len() + address.len() + 6;
            if indexes.len() == MAX_INDEXES || bytes > MAX_INDEX_BYTES {
                return (indexes, true);
            }
            indexes.insert(name, IpText(address));
        }
        (indexes, false)
    }

    /// differs (`ipam-conditions`): the Go manager has none.
    fn conditions(&self, counts: &PoolCounts, is_truncated: bool, decided: &Decisions) -> Vec<Condition> {
        let mut conditions = vec![
            self.ready(),
            if counts.available == 0 {
                let text = "every address is granted or reserved; add a range to spec.pools, or delete claims";
                self.new_condition(condition::EXHAUSTED, true, reason::NO_FREE_ADDRESS, text)
            } else {
                self.new_condition(condition::EXHAUSTED, false, reason::ADDRESSES_FREE, "")
            },
            match self.facts.index.overlapping(self.facts.key) {
                Some(other) => {
                    let text = format!(
                        "IPPool {} has addresses of this pool; both may grant them unless the ranges or pre-allocations keep them apart",
                        other.name
                    );
                    self.new_condition(condition::OVERLAPPING, true, reason::OVERLAPS_POOL, text)
                }
                None => self.new_condition(condition::OVERLAPPING, false, reason::NO_OVERLAP, ""),
            },
            self.new_condition(condition::PAUSED, false, reason::NOT_PAUSED, ""),
        ];
        if is_truncated {
            let text = "status.indexes shows a part of the grants; the IPAddress objects show all";
            conditions.push(self.new_condition(condition::INDEXES_TRUNCATED, true, reason::TOO_MANY_GRANTS, text));
        }
        if let Some((count, first)) = &decided.kept_orphans {
            let text = format!(
                "{count} address objects have no claim that owns them, as after a restore (one is {first}); they are kept. \
                 To release them, annotate the pool with {RELEASE_ORPHANS_ANNOTATION}={count}"
            );
            conditions.push(self.new_condition(condition::ORPHANS_HELD, true, reason::MANY_ORPHANS, text));
        }
        conditions
    }

    fn ready(&self) -> Condition {
        let not_ready = |reason, text: String| self.new_condition(condition::READY, false, reason, text);
        if let Some((kind, name)) = self.facts.index.unreadable(&self.facts.key.namespace) {
            let text = format!("{kind} {name} cannot be read and may hold any address; correct it or delete it");
            return not_ready(reason::OBJECT_UNREADABLE, text);
        }
        match &self.state {
            PoolState::Deleting => not_ready(
                reason::DELETING,
                "the pool is deleted once none of its addresses is granted; delete its claims".to_owned(),
            ),
            PoolState::ClusterMissing(name) => not_ready(
                reason::CLUSTER_NOT_FOUND,
                format!(
                    "spec.clusterName: there is no Cluster {name} in the namespace; create it, or leave the name out"
                ),
            ),
            PoolState::Serving | PoolState::Paused(_) | PoolState::Unknown if self.ranges.covered().is_empty() => {
                not_ready(
                    reason::NO_USABLE_RANGE,
                    "no entry of spec.pools yields an address; give one a start and an end, or a subnet".to_owned(),
                )
            }
            PoolState::Serving | PoolState::Paused(_) | PoolState::Unknown => {
                self.new_condition(condition::READY, true, reason::READY, "")
            }
        }
    }

    fn new_condition(&self, type_: &str, is_true: bool, reason: Reason, message: impl Into<String>) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: if is_true {
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

    fn is_condition_true(&self, type_: &str) -> bool {
        let is_true = |c: &Condition| c.type_ == type_ && c.status == ConditionStatus::True;
        self.pool.status.conditions.iter().any(is_true)
    }
}

/// The name of an IPAddressClaim in the map when an IPClaim has the same name.
pub(super) fn second_name(name: &str) -> String {
    format!("ipaddressclaim/{name}")
}
