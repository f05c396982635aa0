//! Admission and conversion webhooks.
//!
//! The reviews are pure functions of `metal3-api`. [`table`] defines the names and paths of the webhooks; the
//! [`router`] and the [`manifests`](manifest) of the webhook configurations are built from it, so they always match.
//!
//! Decisions depend only on the request and on [`related_objects`]. The crate writes only its own [`certificates`]. A
//! dry run is handled as any other request.
//!
//! Invariants:
//! - memory and time of a review are limited before its body is parsed;
//! - it fails closed: a request that cannot be decoded, is unexpected, or causes a panic is rejected;
//! - a rejection names the field and the cure;
//! - an object with an unchanged spec can be relabelled, moved and deleted.
#![warn(missing_docs)]

pub mod certificates;
pub mod destinations;
pub mod guarded;
pub mod in_process;
mod limits;
pub mod manifest;
pub mod related_objects;
mod review;
pub mod router;
pub mod table;
