//! Chance that is none: numbers that follow from who asks and what is looked at (differs: `host-choice-seeded`).
//!
//! Each host is weighed by itself, so that the choice does not depend on the order of the hosts, and a host that comes or
//! goes changes nothing between the others. The numbers need to be spread well, not to be secret.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// What follows from a machine as it is now. A machine whose spec changes draws again.
pub(super) fn of(machine: &ObjectMeta) -> u64 {
    let uid = absorb(START, machine.uid.as_deref().unwrap_or_default().as_bytes());
    absorb(uid, &machine.generation.unwrap_or_default().to_be_bytes())
}

/// The weight of a host for who has a seed.
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

/// Lets every bit depend on every other one, which FNV alone does not for the highest.
const fn scatter(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
