//! Limits of what a watch reads.
//!
//! The API server of a tenant may send anything. Names, UIDs and versions are kept even of objects that cannot be
//! decoded, so they have limits of their own.

use kube_core::Resource;

use super::decode::{DecodeError, Event, Page};
use crate::cache::{Identity, Item};
use crate::version::ResourceVersion;

/// The longest event. etcd stores no larger object than a few megabytes.
const LONGEST_LINE: u64 = 16 << 20;
/// The longest event of a tenant's API server: each watch may keep one in memory for as long as the server likes.
const LONGEST_LINE_OF_TENANT: u64 = 4 << 20;
/// The longest name of an object, and more than any UID and version has.
const LONGEST_NAME: usize = 253;

/// The longest line of a watch.
pub(super) const fn longest_line(is_of_tenant: bool) -> u64 {
    if is_of_tenant {
        LONGEST_LINE_OF_TENANT
    } else {
        LONGEST_LINE
    }
}

/// Checks the number of pages, each of this size, for a list of at most this number of objects.
pub(super) fn check_pages(read: usize, most: usize, size: u32) -> Result<(), DecodeError> {
    let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
    if read > most.div_ceil(size) {
        return Err(DecodeError::TooLarge("the list"));
    }
    Ok(())
}

/// Checks what is kept of a page.
pub(super) fn check_page<K: Resource>(page: &Page<K>) -> Result<(), DecodeError> {
    check_version(&page.at)?;
    page.items.iter().try_for_each(check_item)
}

/// Checks what is kept of an event.
pub(super) fn check_event<K: Resource>(event: &Event<K>) -> Result<(), DecodeError> {
    match event {
        Event::Applied(item) => check_item(item),
        Event::Deleted(last) => check_identity(last),
        Event::Bookmark(version) => check_version(version),
        Event::Ended { .. } => Ok(()),
    }
}

fn check_item<K: Resource>(item: &Item<K>) -> Result<(), DecodeError> {
    check_identity(&item.identity()?)
}

fn check_identity(identity: &Identity) -> Result<(), DecodeError> {
    let texts = [&identity.key.namespace, &identity.key.name, &identity.uid];
    if texts.into_iter().any(|text| text.len() > LONGEST_NAME) {
        return Err(DecodeError::TooLarge("a name"));
    }
    check_version(&identity.version)
}

fn check_version(version: &ResourceVersion) -> Result<(), DecodeError> {
    if version.as_str().len() > LONGEST_NAME {
        return Err(DecodeError::TooLarge("a version"));
    }
    Ok(())
}
