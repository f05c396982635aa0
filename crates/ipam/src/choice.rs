//! Which address a claim gets, or why it gets none.
//!
//! One [`Allotment`] serves one pass over a pool: what it grants to one claim it does not grant to the next. It writes
//! nothing; a grant counts once the pool has recorded it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use metal3_domain::derived::address_object;
use metal3_domain::ip::{IntervalSet, Range, address_text, parse_address};
use metal3_runtime::cache::Key;
use metal3_runtime::reason::Reason;

use crate::accounts::{Account, Accounts};
use crate::claim::{Claim, ClaimKind, Named};
use crate::names::{message, reason};
use crate::ranges::{Ranges, Taken, place};

/// An address for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The claim.
    pub claim: Named,
    /// Which claim of that name.
    pub uid: String,
    /// The address.
    pub address: IpAddr,
    /// Name of the address object.
    pub object: String,
}

impl Grant {
    /// The address object.
    #[must_use]
    pub fn object(&self) -> Named {
        Named::new(self.claim.kind, &self.object)
    }
}

/// Why a claim gets no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// For the condition.
    pub reason: Reason,
    /// For people, with what to do.
    pub message: String,
    /// Whether consumers that read errors alone are to see it. They may take an error as final.
    pub is_error: bool,
}

impl Refusal {
    /// A failure to allocate.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            reason: reason::ALLOCATION_FAILED,
            message: message.into(),
            is_error: true,
        }
    }

    fn exhausted(message: impl Into<String>) -> Self {
        Self {
            reason: reason::POOL_EXHAUSTED,
            ..Self::failed(message)
        }
    }

    fn collision(message: impl Into<String>) -> Self {
        Self {
            reason: reason::NAME_COLLISION,
            ..Self::failed(message)
        }
    }

    /// A wait that is no error: it ends without anybody changing the claim.
    #[must_use]
    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            is_error: false,
        }
    }
}

/// One pass of granting over one pool.
#[derive(Debug)]
pub struct Allotment<'a> {
    key: &'a Key,
    prefix: &'a str,
    ranges: &'a Ranges,
    accounts: &'a Accounts,
    held: &'a IntervalSet<Ipv6Addr>,
    /// Promised to a claim and not held by an object yet.
    promised: IntervalSet<Ipv6Addr>,
    /// Held, promised, reserved, or of a name that is taken.
    taken: Taken<'a>,
    names: BTreeSet<Named>,
    collided: Option<Named>,
}

impl<'a> Allotment<'a> {
    /// Begins a pass: `pending` is promised already.
    #[must_use]
    pub fn new(
        (key, prefix): (&'a Key, &'a str),
        ranges: &'a Ranges,
        (accounts, pool): (&'a Accounts, &'a Account),
        pending: &[Grant],
    ) -> Self {
        let reserved = ranges.reserved().map(Range::single).collect();
        let mut allotment = Self {
            key,
            prefix,
            ranges,
            accounts,
            held: pool.used(),
            promised: IntervalSet::new(),
            taken: Taken::by(pool.used(), reserved),
            names: BTreeSet::new(),
            collided: None,
        };
        for grant in pending {
            allotment.promise(grant);
        }
        allotment
    }

    /// Places that can still be granted to a claim without a wish.
    #[must_use]
    pub const fn taken(&self) -> &Taken<'a> {
        &self.taken
    }

    /// The address for a claim.
    ///
    /// # Errors
    /// Why there is none. Another pass may give another answer, when the pool or its grants have changed.
    pub fn grant(&mut self, claim: &Claim) -> Result<Grant, Refusal> {
        let grant = match self.wanted(claim)? {
            Some(address) => self.wished(claim, address)?,
            None => self.any(claim)?,
        };
        self.check_prefix(claim.id.kind, grant.address)?;
        self.promise(&grant);
        Ok(grant)
    }

    /// The same address again for a claim whose object has vanished; nothing when somebody else has it.
    pub fn again(&mut self, claim: &Claim, address: IpAddr) -> Option<Grant> {
        let grant = self.named(claim, address).ok()?;
        let free = !self.is_busy(address) && !self.is_taken(&grant.object());
        (free && claim.names.as_ref() == Some(&grant.object)).then(|| {
            self.promise(&grant);
            grant
        })
    }

    fn promise(&mut self, grant: &Grant) {
        self.promised.insert(Range::single(place(grant.address)));
        self.taken.add(grant.address);
        self.names.insert(grant.object());
    }

    /// The one address the claim may have, and whether it is kept for it.
    fn wanted(&self, claim: &Claim) -> Result<Option<Wanted>, Refusal> {
        let wish = match claim.wish.as_deref() {
            None => None,
            Some(text) => Some(parse_address(text).map_err(|_| {
                Refusal::failed(format!(
                    "Invalid ipAddress annotation \"{text}\": not a valid IP address"
                ))
            })?),
        };
        match (self.ranges.pre_allocated(&claim.id.name), wish) {
            (None, None) => Ok(None),
            (None, Some(wish)) => Ok(Some(Wanted::Wished(wish))),
            (Some(None), _) => Err(Refusal::failed(message::OUT_OF_BOUNDS)),
            (Some(Some(kept)), Some(wish)) if kept != wish => Err(Refusal::failed(message::CONFLICTING)),
            (Some(Some(kept)), _) => Ok(Some(Wanted::Kept(kept))),
        }
    }

    fn wished(&self, claim: &Claim, wanted: Wanted) -> Result<Grant, Refusal> {
        let address = match wanted {
            Wanted::Kept(address) if !self.ranges.contains(address) => {
                return Err(Refusal::failed(message::OUT_OF_BOUNDS));
            }
            Wanted::Kept(address) if self.is_busy(address) => {
                // differs: ipam-pre-allocation-held. The Go manager creates again and again what exists already.
                let (what, text) = (message::PRE_ALLOCATION_HELD, address_text(address));
                return Err(Refusal::failed(format!(
                    "{what}: {text} is granted to another claim; delete that claim, or change spec.preAllocations"
                )));
            }
            Wanted::Wished(address) if !self.ranges.contains(address) => {
                // differs: ipam-requested-outside. The beginning is what consumers know.
                let (what, text) = (message::EXHAUSTED, address_text(address));
                return Err(Refusal::exhausted(format!(
                    "{what}: requested address {text} is not part of any range"
                )));
            }
            Wanted::Wished(address) if self.taken.contains(address) => {
                return Err(Refusal::failed(message::NOT_AVAILABLE));
            }
            Wanted::Kept(address) | Wanted::Wished(address) => address,
        };
        let grant = self.named(claim, address)?;
        if self.is_taken(&grant.object()) {
            return Err(self.collision(&grant.object()));
        }
        Ok(grant)
    }

    fn any(&mut self, claim: &Claim) -> Result<Grant, Refusal> {
        while let Some(address) = self.ranges.next_free(&self.taken, lot(&claim.uid)) {
            let grant = self.named(claim, address)?;
            if !self.is_taken(&grant.object()) {
                return Ok(grant);
            }
            // differs: ipam-name-collision. The Go manager tries this one for ever.
            self.taken.add(address);
            self.collided = Some(grant.object());
        }
        Err(match &self.collided {
            Some(object) => self.collision(object),
            None => Refusal::exhausted(message::EXHAUSTED),
        })
    }

    fn named(&self, claim: &Claim, address: IpAddr) -> Result<Grant, Refusal> {
        let object = address_object(self.prefix, address).map_err(|error| {
            Refusal::failed(format!(
                "{}: spec.namePrefix of the pool: {error}",
                message::NOT_CREATED
            ))
        })?;
        Ok(Grant {
            claim: claim.id.clone(),
            uid: claim.uid.clone(),
            address,
            object: object.to_string(),
        })
    }

    fn collision(&self, object: &Named) -> Refusal {
        let holder = self
            .accounts
            .pool_of_address(&self.key.namespace, object)
            .unwrap_or(&self.key.name);
        Refusal::collision(format!(
            "{}: pool {holder} has an address object named {}; give each pool of the namespace a spec.namePrefix of its own",
            message::NOT_CREATED,
            object.name
        ))
    }

    fn check_prefix(&self, kind: ClaimKind, address: IpAddr) -> Result<(), Refusal> {
        let prefix = self.ranges.settings(address).prefix.unwrap_or_default();
        if kind == ClaimKind::ClusterApi && !(0..=128).contains(&prefix) {
            return Err(Refusal::failed(format!(
                "Invalid prefix {prefix}: give the pool one between 0 and 128"
            )));
        }
        Ok(())
    }

    fn is_busy(&self, address: IpAddr) -> bool {
        let at = place(address);
        self.held.contains(at) || self.promised.contains(at)
    }

    fn is_taken(&self, object: &Named) -> bool {
        self.names.contains(object) || self.accounts.pool_of_address(&self.key.namespace, object).is_some()
    }
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Kept(IpAddr),
    Wished(IpAddr),
}

/// A claim's part in a random choice. UIDs are random, so no other randomness is needed, and a pass that is run again
/// chooses again what it chose before. Only reuse soon after release is to be avoided; nothing rests on secrecy.
fn lot(uid: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    uid.bytes()
        .fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
