//! IPAddress: an immutable grant.

use super::{check_address, check_requested_address, check_same_target, name_of, require};
use crate::ipam::v1alpha1::IPAddress;
use crate::rules::{AdmissionRules, Findings, Rule};

impl AdmissionRules for IPAddress {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_create(
            "pool-named",
            "`spec.pool.name` names the pool the address comes from.",
            |address, findings| {
                require(
                    "spec.pool.name",
                    name_of(&address.spec.pool),
                    "name the IPPool it comes from",
                    findings,
                );
            },
        ),
        Rule::on_create(
            "claim-named",
            "`spec.claim.name` names the claim that holds the address.",
            |address, findings| {
                require(
                    "spec.claim.name",
                    name_of(&address.spec.claim),
                    "name the IPClaim that holds it",
                    findings,
                );
            },
        ),
        Rule::on_create(
            "address-is-one",
            "`spec.address` is an address.",
            |address, findings| match address.spec.address.as_str() {
                "" => require("spec.address", "", "write the address granted", findings),
                text => check_address("spec.address", text, findings),
            },
        ),
        Rule::on_create(
            "requested-address-is-one",
            "The annotation `ipAddress`, copied from the claim, holds an address if present.",
            |address, findings| check_requested_address(&address.metadata, findings),
        ),
        Rule::on_update("address-kept", "The address cannot be changed.", address_is_kept),
        Rule::on_update(
            "pool-kept",
            "The pool of an address cannot be changed, nor its namespace or kind.",
            |old, new, findings| check_same_target("spec.pool", &old.spec.pool, &new.spec.pool, findings),
        ),
        Rule::on_update(
            "claim-kept",
            "The claim of an address cannot be changed, nor its namespace or kind.",
            |old, new, findings| {
                check_same_target("spec.claim", &old.spec.claim, &new.spec.claim, findings);
            },
        ),
    ];
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
