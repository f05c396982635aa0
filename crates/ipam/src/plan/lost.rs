//! Claims whose address object does not exist, as after a forced deletion or an incomplete restore.
//!
//! Such a claim gets the same address again, but not at once when it is paused or something else prevents it. A machine
//! may use the address all the time, so until then no other claim gets it.
//!
//! differs (`ipam-lost-address-kept`): the Go manager grants it to the next claim.

use std::net::IpAddr;

use metal3_domain::derived::address_object;
use metal3_domain::ip::parse_address;

use super::Planner;
use super::status::second_name;
use crate::allocator::Allocator;
use crate::claim::{Claim, ObjectId};

impl Planner<'_> {
    /// Keeps the addresses of these claims from all others.
    pub(super) fn hold_lost(&self, allocator: &mut Allocator<'_>) {
        let lost = self.entry.unsettled().filter(|claim| self.is_lost(claim));
        lost.filter_map(|claim| self.lost_address(claim))
            .for_each(|address| allocator.hold(address));
    }

    /// Whether a claim is in use and names an object that does not exist.
    fn is_lost(&self, claim: &Claim) -> bool {
        let object = claim
            .address_name
            .as_deref()
            .map(|name| ObjectId::new(claim.id.kind, name));
        !claim.is_releasable() && object.is_some_and(|object| self.entry.address(&object).is_none())
    }

    /// The address of the object that a claim names: as the pool recorded it, or else as the name itself shows. The
    /// record alone is not enough: it shows existing objects, and a restore may leave it out.
    pub(super) fn lost_address(&self, claim: &Claim) -> Option<IpAddr> {
        let object = claim.address_name.as_deref()?;
        let is_named = |address: &IpAddr| {
            address_object(&self.pool.spec.name_prefix, *address).is_ok_and(|name| name.as_str() == object)
        };
        let indexes = &self.pool.status.indexes;
        let names = [claim.id.name.clone(), second_name(&claim.id.name)];
        let recorded = names.iter().filter_map(|name| indexes.get(name));
        let mut recorded = recorded.filter_map(|text| parse_address(text.as_str()).ok());
        recorded.find(is_named).or_else(|| {
            let text = object
                .strip_prefix(self.pool.spec.name_prefix.as_str())?
                .strip_prefix('-')?;
            let mut shown = addresses(text).filter(|address| self.ranges.contains(*address));
            shown.find(is_named)
        })
    }
}

/// The addresses that the end of an object's name may stand for: it has a hyphen for every dot and colon, and none at
/// its end.
fn addresses(text: &str) -> impl Iterator<Item = IpAddr> {
    let v6 = text.replace('-', ":");
    let texts = [text.replace('-', "."), format!("{v6}::"), v6];
    texts.into_iter().filter_map(|text| parse_address(&text).ok())
}

#[cfg(test)]
mod tests {
    use metal3_domain::ip::address_text;

    use super::*;

    #[test]
    fn every_address_is_found_in_the_name_of_its_object() {
        for text in [
            "10.0.0.10",
            "fd00::",
            "fd00::1",
            "fd00:0:0:1::",
            "::1",
            "2001:db8:1:2:3:4:5:6",
        ] {
            let address: IpAddr = text.parse().unwrap();
            let name = address_object("p", address).unwrap();
            let shown = name.as_str().strip_prefix("p-").unwrap();
            assert!(
                addresses(shown).any(|found| found == address),
                "{shown}: {}",
                address_text(address)
            );
        }
        assert_eq!(addresses("no-address").count(), 0);
    }
}
