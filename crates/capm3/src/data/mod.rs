//! Metadata and network data of a machine, rendered from a template.
//!
//! | Module | Content |
//! |---|---|
//! | [`subject`] | the objects that a rendering reads |
//! | [`pools`] | the pools that a template takes addresses from |
//! | [`claims`] | names, content and state of the claims on pools |
//! | [`meta_data`], [`network_data`] | the content of the two Secrets |
//! | [`secrets`] | their names, and the rule that they are written once |
//! | [`step`] | the next step for one Metal3Data |
//! | [`request`] | the Metal3DataClaim of a machine |
//! | [`index`] | the index, and so the Metal3Data, of a Metal3DataClaim |
//! | [`template_plan`] | the plan for one Metal3DataTemplate and its claims |
//! | [`release`] | the release of claims on pools, and of a Metal3Data |
//! | [`reconciler`] | the controllers, which observe and write |
//!
//! Except for [`reconciler`], no function reads or writes a cluster. Rendering is total and deterministic: equal facts
//! give equal bytes, and every template gives either text or an error with the field and the remedy. The namespace of a
//! reference is never followed.

pub mod claims;
mod error;
pub mod index;
pub mod meta_data;
pub mod network_data;
pub mod pools;
pub mod reconciler;
pub mod release;
pub mod request;
pub mod secrets;
pub mod step;
pub mod subject;
pub mod template_plan;
mod waiting;
mod yaml;

pub use error::{DataError, Problem};

#[cfg(test)]
mod tests;
