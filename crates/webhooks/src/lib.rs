//! Admission and conversion: what the API server asks before it stores or shows an object.
//!
//! The answers are the pure functions of `metal3-api`. Here they get an address: [`table`] says which question is asked
//! under which name and path, and both the [`router`] and the [`manifests`](manifest) of the webhook configurations are
//! made from it, so the two cannot drift apart.
//!
//! What it does not do: decide from anything but the request and what [`neighbours`] have seen, write anything but its
//! own [`certificates`], or treat a dry run otherwise than a real one.
//!
//! Invariants:
//! - it fails closed: what cannot be read, is not expected, or panics is refused;
//! - a refusal says which member is wrong and what to do about it;
//! - an object whose spec stays as it is can be relabelled, moved and let go.
#![warn(missing_docs)]

pub mod certificates;
pub mod manifest;
pub mod neighbours;
mod review;
pub mod router;
pub mod table;
