//! IPClaim: one immutable pool.

use super::{check_requested_address, check_same_target, name_of};
use crate::ipam::v1alpha1::IPClaim;
use crate::rules::{AdmissionRules, Findings, On, Rule};

impl AdmissionRules for IPClaim {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "pool-named",
            description: "`spec.pool.name` names a pool.",
            on: On::Create(names_a_pool),
            differs: None,
        },
        Rule {
            name: "pool-in-own-namespace",
            description: "A claim is served only from a pool of its own namespace; a warning is returned when it names \
                another.",
            on: On::Create(pool_is_near),
            differs: Some("claim-namespace-warning"),
        },
        Rule {
            name: "requested-address-is-one",
            description: "The annotation `ipAddress`, if present, holds an address.",
            on: On::Create(|claim, findings| check_requested_address(&claim.metadata, findings)),
            differs: None,
        },
        Rule {
            name: "pool-kept",
            description: "The pool of a claim cannot be changed, nor its namespace or kind.",
            on: On::Update(|old, new, findings| {
                check_same_target("spec.pool", &old.spec.pool, &new.spec.pool, findings)
            }),
            differs: None,
        },
    ];
}

fn names_a_pool(claim: &IPClaim, findings: &mut Findings) {
    if name_of(&claim.spec.pool).is_empty() {
        findings.invalid(
            "spec.pool.name",
            "",
            "cannot be empty",
            "name an IPPool of this namespace",
        );
    }
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
