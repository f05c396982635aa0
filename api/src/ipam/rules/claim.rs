//! IPClaim: one immutable pool.

use super::{check_requested_address, check_same_target, name_of, require};
use crate::ipam::v1alpha1::IPClaim;
use crate::rules::{AdmissionRules, Findings, Rule};

impl AdmissionRules for IPClaim {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_create("pool-named", "`spec.pool.name` names a pool.", |claim, findings| {
            require(
                "spec.pool.name",
                name_of(&claim.spec.pool),
                "name an IPPool of this namespace",
                findings,
            );
        }),
        Rule::on_create(
            "pool-in-own-namespace",
            "A claim is served only from a pool of its own namespace; a warning is returned when it names \
                another.",
            pool_is_near,
        )
        .differing("claim-namespace-warning"),
        Rule::on_create(
            "requested-address-is-one",
            "The annotation `ipAddress`, if present, holds an address.",
            |claim, findings| check_requested_address(&claim.metadata, findings),
        ),
        Rule::on_update(
            "pool-kept",
            "The pool of a claim cannot be changed, nor its namespace or kind.",
            |old, new, findings| check_same_target("spec.pool", &old.spec.pool, &new.spec.pool, findings),
        ),
    ];
}

fn pool_is_near(claim: &IPClaim, findings: &mut Findings) {
    let own = claim.metadata.namespace.as_deref().unwrap_or_default();
    let named = claim.spec.pool.namespace.as_deref().unwrap_or_default();
    if !named.is_empty() && !own.is_empty() && named != own {
        findings.warn(
            "spec.pool.namespace",
            format!(
                "spec.pool.namespace is {named}, but claims are only served from pools of their own namespace {own}"
            ),
            "leave the namespace out, and create the pool in the namespace of the claim",
        );
    }
}
