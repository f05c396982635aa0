//! How many objects were looked at. Tests compare the number for few and for many objects; other builds do not count.

#[cfg(test)]
std::thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts one look at an object.
#[cfg(test)]
pub(crate) fn visit() {
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

/// Counts one look at an object.
#[cfg(not(test))]
pub(crate) const fn visit() {}

/// The looks since the last call.
#[cfg(test)]
pub(crate) fn take() -> u64 {
    VISITS.with(|visits| visits.replace(0))
}
