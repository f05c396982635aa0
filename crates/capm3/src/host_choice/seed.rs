//! A deterministic pseudo-random order of hosts per machine (differs: `host-choice-seeded`).
//!
//! Each host has a weight of its own, so the choice does not depend on the order of hosts, and a new or deleted host
//! does not change the order of the rest. The numbers must be well distributed, not secret.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The seed of a machine. A changed spec gives a new seed.
pub(super) fn of(machine: &ObjectMeta) -> u64 {
    let uid = absorb(START, machine.uid.as_deref().unwrap_or_default().as_bytes());
    absorb(uid, &machine.generation.unwrap_or_default().to_be_bytes())
}

/// The weight of a host for a seed.
pub(super) fn weight(seed: u64, host: &ObjectMeta) -> u64 {
    let name = host.uid.as_deref().or(host.name.as_deref()).unwrap_or_default();
    scatter(absorb(scatter(seed), name.as_bytes()))
}

/// FNV-1a.
fn absorb(state: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(state, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// Mixes all bits, which FNV alone does not do for the highest.
const fn scatter(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
