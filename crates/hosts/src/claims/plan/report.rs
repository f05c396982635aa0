//! The status of a claim.
//!
//! A tenant reads it, so it contains texts of this program only: of the host nothing but its name, its power state and what follows
//! from its state. Errors of a host name its BMC.

use metal3_api::meta::{Condition, Time};
use metal3_api::metal3::names::claim_condition::{
    ASSOCIATED, AVAILABLE_FOR_PROVISIONING, PROVISIONED, READY, SYNCHRONIZED,
};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, ClaimedObject, HostClaim, HostClaimStatus, ProvisioningState as State,
};
use metal3_runtime::cache::Key;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;

use super::super::choice::is_empty;
use super::super::facts::Facts;
use super::apply::is_provisioned;
use crate::names::claim_reason as reason;

/// What a reconcile found.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Report {
    associated: ConditionBuilder,
    synchronized: ConditionBuilder,
    provisioned: ConditionBuilder,
    available: ConditionBuilder,
    host: Option<ClaimedObject>,
    hardware: Option<ClaimedObject>,
    powered_on: Option<bool>,
}

fn no(type_: &'static str, reason: Reason, message: &str) -> ConditionBuilder {
    ConditionBuilder::mark_false(type_, reason, Severity::Info, message)
}

fn object(key: &Key) -> ClaimedObject {
    ClaimedObject {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

impl Report {
    /// No host is bound.
    pub(super) fn unbound(reason: Reason, why: &str) -> Self {
        let none = "no host is bound; see the condition Associated";
        Self {
            associated: no(ASSOCIATED, reason, why),
            synchronized: no(SYNCHRONIZED, reason, none),
            provisioned: no(PROVISIONED, reason::NOT_PROVISIONED, none),
            available: no(AVAILABLE_FOR_PROVISIONING, reason::NOT_AVAILABLE, none),
            host: None,
            hardware: None,
            powered_on: None,
        }
    }

    /// The host of the claim.
    pub(super) fn of_host(facts: &Facts, key: &Key, host: &BareMetalHost) -> Self {
        let available = match host.status.provisioning.state {
            State::Available | State::Ready => {
                ConditionBuilder::mark_true(AVAILABLE_FOR_PROVISIONING, reason::AVAILABLE)
            }
            _ => no(
                AVAILABLE_FOR_PROVISIONING,
                reason::NOT_AVAILABLE,
                "the host is in use, or is prepared for it",
            ),
        };
        Self {
            associated: ConditionBuilder::mark_true(ASSOCIATED, reason::ASSOCIATED),
            synchronized: ConditionBuilder::mark_true(SYNCHRONIZED, reason::SYNCED),
            provisioned: provisioned(&facts.claim, host),
            available,
            host: Some(object(key)),
            hardware: facts.hardware.contains_key(key).then(|| object(key)),
            powered_on: Some(host.status.powered_on),
        }
    }

    /// The host of a deleted claim.
    pub(super) fn releasing(facts: &Facts, key: &Key, host: &BareMetalHost, reason: Reason, why: &str) -> Self {
        let of_host = Self::of_host(facts, key, host);
        Self {
            associated: no(ASSOCIATED, reason, why),
            synchronized: no(
                SYNCHRONIZED,
                reason,
                "the claim is deleted; see the condition Associated",
            ),
            ..of_host
        }
    }

    /// The same; the host does not have the spec.
    pub(super) fn unsynced(self, reason: Reason, why: &str) -> Self {
        Self {
            synchronized: no(SYNCHRONIZED, reason, why),
            ..self
        }
    }

    /// The same; the host has the spec.
    pub(super) const fn synced(self) -> Self {
        self
    }

    /// The same, with the names of objects that the status has.
    pub(super) fn keeping(self, claim: &HostClaim) -> Self {
        Self {
            host: claim.status.bare_metal_host.clone(),
            hardware: claim.status.hardware_data.clone(),
            ..self
        }
    }

    /// The API server refuses a change of the metadata of the claim.
    pub(in super::super) fn stuck(facts: &Facts) -> Self {
        let why = "the API server refuses a change of the annotations or finalizers of the claim; see the webhooks and policies of its cluster";
        let reason = match facts.claim.metadata.deletion_timestamp.is_some() {
            true => reason::DELETION_FAILED,
            false => reason::NOT_SYNCED,
        };
        Self::unbound(reason, why).keeping(&facts.claim)
    }

    /// The API server refuses what the host would get.
    pub(in super::super) fn refused(facts: &Facts, key: &Key, host: &BareMetalHost) -> Self {
        let why = "the API server refuses the spec of the claim for the host; correct the claim, or ask the administrators of the \
                   hosts";
        match facts.claim.metadata.deletion_timestamp.is_some() {
            true => Self::releasing(facts, key, host, reason::DELETION_FAILED, why),
            false => Self::of_host(facts, key, host).unsynced(reason::NOT_SYNCED, why),
        }
    }

    /// Something changes the host back.
    pub(in super::super) fn changed_back(facts: &Facts, key: &Key, host: &BareMetalHost) -> Self {
        let why = "the cluster of the hosts changes what the host gets for this claim; ask the administrators of the hosts to look at their \
                   admission policies, and at the version of the definition of BareMetalHosts";
        match facts.claim.metadata.deletion_timestamp.is_some() {
            true => Self::releasing(facts, key, host, reason::DELETION_FAILED, why),
            false => Self::of_host(facts, key, host).unsynced(reason::NOT_SYNCED, why),
        }
    }

    fn ready(&self) -> ConditionBuilder {
        let all = [&self.associated, &self.synchronized, &self.provisioned];
        let first = all.into_iter().find_map(ConditionBuilder::not_true);
        first.map_or_else(
            || ConditionBuilder::mark_true(READY, reason::READY),
            |(type_, reason, why)| no(READY, reason, &format!("{type_}: {why}")),
        )
    }

    /// The status with this report; equal to the former one if it says the same.
    pub(in super::super) fn status(&self, claim: &HostClaim, now: Time) -> HostClaimStatus {
        let generation = claim.metadata.generation;
        let mut status = HostClaimStatus {
            bare_metal_host: self.host.clone(),
            hardware_data: self.hardware.clone(),
            powered_on: self.powered_on.filter(|on| *on),
            ..claim.status.clone()
        };
        let ready = self.ready();
        let all = [
            &self.associated,
            &self.synchronized,
            &self.provisioned,
            &self.available,
            &ready,
        ];
        for condition in all {
            let condition: Condition = condition.standard(generation, now);
            set_condition(&mut status.conditions, condition);
        }
        if status != claim.status {
            status.last_updated = Some(now);
        }
        status
    }
}

fn provisioned(claim: &HostClaim, host: &BareMetalHost) -> ConditionBuilder {
    let not = |reason, why| no(PROVISIONED, reason, why);
    if is_provisioned(claim, host) {
        return ConditionBuilder::mark_true(PROVISIONED, reason::PROVISIONED);
    }
    if !host.status.error_message.is_empty() {
        return not(
            reason::HOST_FAILED,
            "the host has an error, and the operation is tried again; if it lasts, ask the administrators of the hosts",
        );
    }
    match host.status.provisioning.state {
        State::Deprovisioning => not(reason::DEPROVISIONING, "what was deployed on the host is removed"),
        State::Provisioning => not(reason::PROVISIONING, "the host is provisioned"),
        _ if claim.spec.image.is_none() && claim.spec.custom_deploy.is_none() => not(
            reason::NOT_PROVISIONED,
            "the claim asks for no deployment; set spec.image or spec.customDeploy",
        ),
        _ if is_empty(host) => not(reason::PROVISIONING, "the host is about to be provisioned"),
        _ => not(
            reason::PROVISIONING,
            "the host does not run what the claim asks for yet",
        ),
    }
}
