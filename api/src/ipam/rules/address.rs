//! IPAddress: an immutable grant.

use super::{check_address, check_requested_address, check_same_target, name_of};
use crate::ipam::v1alpha1::IPAddress;
use crate::rules::{AdmissionRules, Findings, On, Rule};

impl AdmissionRules for IPAddress {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "pool-named",
            description: "`spec.pool.name` names the pool the address comes from.",
            on: On::Create(|address, findings| {
                require(
                    "spec.pool.name",
                    name_of(&address.spec.pool),
                    "name the IPPool it comes from",
                    findings,
                );
            }),
            differs: None,
        },
        Rule {
            name: "claim-named",
            description: "`spec.claim.name` names the claim that holds the address.",
            on: On::Create(|address, findings| {
                require(
                    "spec.claim.name",
                    name_of(&address.spec.claim),
                    "name the IPClaim that holds it",
                    findings,
                );
            }),
            differs: None,
        },
        Rule {
            name: "address-is-one",
            description: "`spec.address` is an address.",
            on: On::Create(|address, findings| match address.spec.address.as_str() {
                "" => require("spec.address", "", "write the address granted", findings),
                text => check_address("spec.address", text, findings),
            }),
            differs: None,
        },
        Rule {
            name: "requested-address-is-one",
            description: "The annotation `ipAddress`, copied from the claim, holds an address if present.",
            on: On::Create(|address, findings| check_requested_address(&address.metadata, findings)),
            differs: None,
        },
        Rule {
            name: "address-kept",
            description: "The address cannot be changed.",
            on: On::Update(address_is_kept),
            differs: None,
        },
        Rule {
            name: "pool-kept",
            description: "The pool of an address cannot be changed, nor its namespace or kind.",
            on: On::Update(|old, new, findings| {
                check_same_target("spec.pool", &old.spec.pool, &new.spec.pool, findings)
            }),
            differs: None,
        },
        Rule {
            name: "claim-kept",
            description: "The claim of an address cannot be changed, nor its namespace or kind.",
            on: On::Update(|old, new, findings| {
                check_same_target("spec.claim", &old.spec.claim, &new.spec.claim, findings);
            }),
            differs: None,
        },
    ];
}

fn require(path: &str, text: &str, cure: &str, findings: &mut Findings) {
    if text.is_empty() {
        findings.invalid(path, "", "cannot be empty", cure);
    }
}

fn address_is_kept(old: &IPAddress, new: &IPAddress, findings: &mut Findings) {
    if old.spec.address != new.spec.address {
        let address = &new.spec.address;
        findings.invalid(
            "spec.address",
            address,
            "cannot be modified",
            "release the claim and make another one",
        );
    }
}
