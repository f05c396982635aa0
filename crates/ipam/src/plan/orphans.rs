//! Address objects that no claim owns up to.
//!
//! They come from a create that arrived after its claim was gone. They are deleted when a live read of the claim proves
//! it. A restore that gave all objects new UIDs looks the same, only everywhere at once: then nothing is deleted until
//! somebody says so.

use super::{Decisions, Pass, claims::removal};
use crate::action::{Action, Chain};
use crate::claim::Named;
use crate::documents;
use crate::facts::Seen;
use crate::held::Held;
use crate::names::RELEASE_ORPHANS_ANNOTATION;

/// As many creates are under way at once, so an accident leaves no more.
const BY_ACCIDENT: usize = 16;
/// Most orphans that one pass looks at: a live read each.
const AT_ONCE: usize = 100;

impl Pass<'_> {
    /// Deletes the orphans, or notes that they are kept.
    pub(super) fn sweep(&self, decided: &mut Decisions) {
        if !self.rules.sweep_orphans {
            return;
        }
        let (suspects, strangers) = self.suspects();
        let count = suspects.len() + strangers.len();
        let confirmed = self.confirmed() >= count;
        let many = count > BY_ACCIDENT && count * 10 > self.account.addresses().len();
        let hold = self.rules.hold_many_orphans && !confirmed;
        let held: Vec<&Held> = match (hold, many) {
            (true, true) => suspects.iter().chain(&strangers).copied().collect(),
            (true, false) => strangers.clone(),
            (false, _) => Vec::new(),
        };
        decided.held_orphans = held.first().map(|first| (held.len(), first.id.name.clone()));
        let free = suspects
            .iter()
            .filter(|_| !(hold && many))
            .chain(strangers.iter().filter(|_| !hold));
        for held in free.take(AT_ONCE) {
            if self.is_orphan(held, decided) {
                decided.chains.extend(swept(held));
            }
        }
    }

    /// Those that this pool granted, and those that say another pool did, or none: a restored pool has a new UID.
    fn suspects(&self) -> (Vec<&Held>, Vec<&Held>) {
        let all = self.account.suspects().filter_map(|id| self.account.address(id));
        let unnamed = all.filter(|held| !self.is_being_replaced(held));
        unnamed.partition(|held| held.pool.as_deref() == Some(self.uid))
    }

    /// Whether its claim names an object that has vanished: then this is what it will name next.
    fn is_being_replaced(&self, held: &Held) -> bool {
        let claim = self
            .account
            .claim(&held.claim())
            .filter(|claim| held.owner.as_ref() == Some(&claim.uid));
        let named = claim.and_then(|claim| claim.names.as_deref());
        named.is_some_and(|name| self.account.address(&Named::new(held.id.kind, name)).is_none())
    }

    fn is_orphan(&self, held: &Held, decided: &mut Decisions) -> bool {
        if !self.rules.orphan_by_read {
            return true;
        }
        match self.facts.evidence.claims.get(&held.claim()) {
            Some(seen) => is_orphan(held, seen),
            None => {
                decided.reads.claims.push(held.claim());
                false
            }
        }
    }

    /// How many orphans somebody has allowed to go.
    fn confirmed(&self) -> usize {
        let annotations = self.pool.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(RELEASE_ORPHANS_ANNOTATION));
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

/// Whether an address object belongs to nobody, given what a live read said of its claim.
pub(super) fn is_orphan(held: &Held, seen: &Seen) -> bool {
    match seen {
        Seen::Absent => true,
        Seen::Unreadable => false,
        Seen::Live { uid, names } => {
            let names_it = names.as_deref().map(|name| name == held.id.name);
            match &held.owner {
                Some(owner) => owner != uid || names_it == Some(false),
                None => names_it != Some(true),
            }
        }
    }
}

/// Deletes an orphan; one that is on its way out already only loses our finalizer.
pub(super) fn swept(held: &Held) -> Option<Chain> {
    if !held.deleting {
        return Some(Chain::of(vec![removal(held)]));
    }
    let patch = documents::stripped(held)?;
    Some(Chain::of(vec![Action::PatchAddress(held.id.clone(), patch)]))
}
