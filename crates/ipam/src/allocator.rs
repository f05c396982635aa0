//! Selects the address of a claim, or the reason for a refusal.
//!
//! An [`Allocator`] serves one reconcile of a pool and allocates each address once. It writes nothing; an allocation is
//! effective once it is recorded in the pool.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use metal3_domain::derived::address_object;
use metal3_domain::ip::{IntervalSet, Range, address_text, parse_address};
use metal3_runtime::cache::Key;
use metal3_runtime::reason::Reason;

use crate::claim::{Claim, ClaimKind, ObjectId};
use crate::index::{IndexEntry, PoolIndex};
use crate::names::{message, reason};
use crate::ranges::{Ranges, Taken, position};

/// An address for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The claim.
    pub claim: ObjectId,
    /// UID of the claim.
    pub uid: String,
    /// The address.
    pub address: IpAddr,
    /// Name of the address object.
    pub object: String,
}

impl Allocation {
    /// ID of the address object.
    #[must_use]
    pub fn object(&self) -> ObjectId {
        ObjectId::new(self.claim.kind, &self.object)
    }
}

/// Allocations in the pool record, in order and by claim.
#[derive(Default)]
pub(crate) struct PendingAllocations {
    allocations: Vec<Allocation>,
    /// Positions: several claims of one name may follow each other. Never iterated.
    by_claim: HashMap<ObjectId, Vec<usize>>,
}

impl PendingAllocations {
    /// Appends an allocation.
    pub(crate) fn push(&mut self, allocation: Allocation) {
        self.by_claim
            .entry(allocation.claim.clone())
            .or_default()
            .push(self.allocations.len());
        self.allocations.push(allocation);
    }

    /// All allocations, oldest first.
    pub(crate) fn all(&self) -> &[Allocation] {
        &self.allocations
    }

    pub(crate) fn of<'a>(&'a self, claim: &'a Claim) -> impl Iterator<Item = &'a Allocation> {
        let positions = self.by_claim.get(&claim.id).into_iter().flatten();
        positions
            .filter_map(|position| self.allocations.get(*position))
            .filter(|allocation| allocation.uid == claim.uid)
    }
}

impl FromIterator<Allocation> for PendingAllocations {
    fn from_iter<I: IntoIterator<Item = Allocation>>(allocations: I) -> Self {
        let mut pending = Self::default();
        pending.extend(allocations);
        pending
    }
}

impl Extend<Allocation> for PendingAllocations {
    fn extend<I: IntoIterator<Item = Allocation>>(&mut self, allocations: I) {
        allocations.into_iter().for_each(|allocation| self.push(allocation));
    }
}

/// The reason why a claim has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason of the condition.
    pub reason: Reason,
    /// Message of the condition, with the remedy.
    pub message: String,
    /// Whether to set the error message too. Consumers may treat an error as final.
    pub is_error: bool,
}

impl Refusal {
    /// An allocation failure.
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

    fn name_collision(message: impl Into<String>) -> Self {
        Self {
            reason: reason::NAME_COLLISION,
            ..Self::failed(message)
        }
    }

    /// A wait that ends without a change of the claim.
    #[must_use]
    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            is_error: false,
        }
    }
}

/// Allocates addresses during one reconcile of one pool.
#[derive(Debug)]
pub struct Allocator<'a> {
    key: &'a Key,
    prefix: &'a str,
    ranges: &'a Ranges,
    index: &'a PoolIndex,
    used: &'a IntervalSet<Ipv6Addr>,
    /// Allocated without an address object.
    pending: IntervalSet<Ipv6Addr>,
    /// Named by a claim, without an address object: for that claim alone.
    held: IntervalSet<Ipv6Addr>,
    /// In use, pending, held, pre-allocated, or with an object name in use.
    taken: Taken<'a>,
    names: BTreeSet<ObjectId>,
    name_collision: Option<ObjectId>,
}

impl<'a> Allocator<'a> {
    /// Creates an allocator. `pending` is already allocated.
    #[must_use]
    pub fn new(
        (key, prefix): (&'a Key, &'a str),
        ranges: &'a Ranges,
        (index, pool): (&'a PoolIndex, &'a IndexEntry),
        pending: &[Allocation],
    ) -> Self {
        let reserved = ranges.reserved().map(Range::single).collect();
        let mut allocator = Self {
            key,
            prefix,
            ranges,
            index,
            used: pool.used(),
            pending: IntervalSet::new(),
            held: IntervalSet::new(),
            taken: Taken::by(pool.used(), reserved),
            names: BTreeSet::new(),
            name_collision: None,
        };
        for allocation in pending {
            allocator.mark_allocated(allocation);
        }
        allocator
    }

    /// Allocates the address to no claim, unless [`reallocate`](Self::reallocate) returns it to one that names it.
    pub fn hold(&mut self, address: IpAddr) {
        self.held.insert(Range::single(position(address)));
        self.taken.add(address);
    }

    /// The positions that a claim without a requested address cannot get.
    #[must_use]
    pub const fn taken(&self) -> &Taken<'a> {
        &self.taken
    }

    /// Allocates an address.
    ///
    /// # Errors
    /// The reason why there is none. The result may change when the pool or its allocations change.
    pub fn allocate(&mut self, claim: &Claim) -> Result<Allocation, Refusal> {
        let allocation = match self.target(claim)? {
            Some(address) => self.allocate_specific(claim, address)?,
            None => self.allocate_any(claim)?,
        };
        self.check_prefix(claim.id.kind, allocation.address)?;
        self.mark_allocated(&allocation);
        Ok(allocation)
    }

    /// Allocates the previous address to a claim whose address object was deleted; `None` when it is in use.
    pub fn reallocate(&mut self, claim: &Claim, address: IpAddr) -> Option<Allocation> {
        let allocation = self.allocation_of(claim, address).ok()?;
        let free = !self.is_used(address) && !self.is_name_taken(&allocation.object());
        (free && claim.address_name.as_ref() == Some(&allocation.object)).then(|| {
            self.mark_allocated(&allocation);
            allocation
        })
    }

    fn mark_allocated(&mut self, allocation: &Allocation) {
        self.pending.insert(Range::single(position(allocation.address)));
        self.taken.add(allocation.address);
        self.names.insert(allocation.object());
    }

    /// The only address that the claim may get, and whether it is pre-allocated.
    fn target(&self, claim: &Claim) -> Result<Option<Target>, Refusal> {
        let requested = match claim.requested.as_deref() {
            None => None,
            Some(text) => Some(parse_address(text).map_err(|_| {
                Refusal::failed(format!(
                    "Invalid ipAddress annotation \"{text}\": not a valid IP address"
                ))
            })?),
        };
        match (self.ranges.pre_allocated(&claim.id.name), requested) {
            (None, None) => Ok(None),
            (None, Some(requested)) => Ok(Some(Target::Requested(requested))),
            (Some(None), _) => Err(Refusal::failed(message::OUT_OF_BOUNDS)),
            (Some(Some(pre_allocated)), Some(requested)) if pre_allocated != requested => {
                Err(Refusal::failed(message::CONFLICTING))
            }
            (Some(Some(pre_allocated)), _) => Ok(Some(Target::PreAllocated(pre_allocated))),
        }
    }

    fn allocate_specific(&self, claim: &Claim, target: Target) -> Result<Allocation, Refusal> {
        let address = match target {
            Target::PreAllocated(address) if !self.ranges.contains(address) => {
                return Err(Refusal::failed(message::OUT_OF_BOUNDS));
            }
            Target::PreAllocated(address) if self.is_used(address) || self.held.contains(position(address)) => {
                // differs: ipam-pre-allocation-held. The Go manager retries the creation of an existing object.
                let (what, text) = (message::PRE_ALLOCATION_IN_USE, address_text(address));
                return Err(Refusal::failed(format!(
                    "{what}: {text} is granted to another claim, whose machine may use it; change spec.preAllocations, or delete that machine"
                )));
            }
            Target::Requested(address) if !self.ranges.contains(address) => {
                // differs: ipam-requested-outside. Consumers match the beginning.
                let (what, text) = (message::EXHAUSTED, address_text(address));
                return Err(Refusal::exhausted(format!(
                    "{what}: requested address {text} is not part of any range"
                )));
            }
            Target::Requested(address) if self.taken.contains(address) => {
                return Err(Refusal::failed(message::NOT_AVAILABLE));
            }
            Target::PreAllocated(address) | Target::Requested(address) => address,
        };
        let allocation = self.allocation_of(claim, address)?;
        if self.is_name_taken(&allocation.object()) {
            return Err(self.name_collision_refusal(&allocation.object()));
        }
        Ok(allocation)
    }

    fn allocate_any(&mut self, claim: &Claim) -> Result<Allocation, Refusal> {
        while let Some(address) = self.ranges.next_free(&self.taken, random_offset(&claim.uid)) {
            let allocation = self.allocation_of(claim, address)?;
            if !self.is_name_taken(&allocation.object()) {
                return Ok(allocation);
            }
            // differs: ipam-name-collision. The Go manager retries this address for ever.
            self.taken.add(address);
            self.name_collision = Some(allocation.object());
        }
        Err(match &self.name_collision {
            Some(object) => self.name_collision_refusal(object),
            None => Refusal::exhausted(message::EXHAUSTED),
        })
    }

    fn allocation_of(&self, claim: &Claim, address: IpAddr) -> Result<Allocation, Refusal> {
        let object = address_object(self.prefix, address).map_err(|error| {
            Refusal::failed(format!(
                "{}: spec.namePrefix of the pool: {error}",
                message::NOT_CREATED
            ))
        })?;
        Ok(Allocation {
            claim: claim.id.clone(),
            uid: claim.uid.clone(),
            address,
            object: object.to_string(),
        })
    }

    fn name_collision_refusal(&self, object: &ObjectId) -> Refusal {
        let holder = self
            .index
            .pool_of_address(&self.key.namespace, object)
            .unwrap_or(&self.key.name);
        Refusal::name_collision(format!(
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

    fn is_used(&self, address: IpAddr) -> bool {
        let at = position(address);
        self.used.contains(at) || self.pending.contains(at)
    }

    fn is_name_taken(&self, object: &ObjectId) -> bool {
        self.names.contains(object) || self.index.pool_of_address(&self.key.namespace, object).is_some()
    }
}

#[derive(Debug, Clone, Copy)]
enum Target {
    PreAllocated(IpAddr),
    Requested(IpAddr),
}

/// Start position of a claim for the random strategy. UIDs are random and make the choice repeatable. The purpose is to
/// avoid early reuse, not secrecy.
fn random_offset(uid: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    uid.bytes()
        .fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
