//! Metadata and network data of a machine, rendered from a template.
//!
//! | Module | Content |
//! |---|---|
//! | [`template`] | a Metal3DataTemplate: assigns indexes to its claims |
//! | [`object`] | a Metal3Data: claims on pools, Secrets, and their release |
//! | [`reconciler`] | what both controllers share: caches, related keys, writes |
//! | [`subject`] | the objects that a rendering reads |
//! | [`pools`], [`needed`] | the pools that a template takes addresses from |
//! | [`claims`] | names, content and state of the claims on pools |
//! | [`meta_data`], [`network_data`] | the content of the two Secrets |
//! | [`secrets`] | their names, and the rule that they are written once |
//! | [`request`] | the Metal3DataClaim of a machine |
//! | [`index`] | the index, and so the Metal3Data, of a Metal3DataClaim |
//! | [`release`] | the removal of a finalizer at an observed version |
//!
//! Only reconcilers read or write a cluster. Rendering is total and deterministic: equal facts give equal bytes, and
//! every template gives either text or an error with the field and the remedy. The namespace of a reference is never
//! followed.

pub mod claims;
mod error;
pub mod index;
pub mod meta_data;
pub mod needed;
pub mod network_data;
pub mod object;
pub mod pools;
pub mod reason;
pub mod reconciler;
pub mod release;
pub mod request;
pub mod secrets;
pub mod subject;
pub mod template;
mod yaml;

pub use error::DataError;

use error::{Problem, truncated};

#[cfg(test)]
mod tests;
