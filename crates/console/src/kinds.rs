//! The kinds that are watched.

use metal3_explain::{KINDS, ObjectId, SECRET};

/// Kinds of other providers that are watched because a page needs them. A fleet has a few.
pub(crate) const MOST_FOREIGN: usize = 32;

/// Events of the core API: of any kind.
pub(crate) fn events() -> ObjectId {
    ObjectId::foreign("", "Event", "")
}

/// The kinds that are watched from the start.
pub(crate) fn first() -> Vec<ObjectId> {
    let kinds = KINDS.iter().map(|known| ObjectId::foreign(known.group, known.kind, ""));
    kinds.chain([events()]).collect()
}

/// The kind of an object.
pub(crate) fn of(object: &ObjectId) -> ObjectId {
    ObjectId::foreign(&object.group, &object.kind, "")
}

/// Whether it is a Secret: none is read.
pub(crate) fn is_secret(object: &ObjectId) -> bool {
    object.kind == SECRET.kind && object.group == SECRET.group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_watched() {
        assert!(first().iter().all(|kind| !is_secret(kind)));
        assert!(is_secret(&ObjectId::secret("bmc")));
    }
}
