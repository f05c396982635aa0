//! What a machine is told about itself: metadata and network data, rendered from a template for one machine.
//!
//! | Module | Decides |
//! |---|---|
//! | [`subject`] | what a rendering may know of the machine, and what it is to be called |
//! | [`pools`] | which pools a template takes addresses from |
//! | [`claims`] | names and content of the claims on them, and what a claim has come to |
//! | [`meta_data`], [`network_data`] | the text of the two Secrets |
//! | [`secrets`] | their names, and that what is written is never written again |
//! | [`step`] | what is to be done next for one Metal3Data |
//! | [`request`] | the Metal3DataClaim that a machine makes |
//! | [`index`] | which number, and so which Metal3Data, a Metal3DataClaim gets |
//! | [`allot`] | what is to be done next for one Metal3DataTemplate and the claims on it |
//! | [`release`] | what of the claims on pools is to go, and when a Metal3Data may |
//!
//! Nothing here reads or writes a cluster. Rendering is total and deterministic: the same facts give the same bytes, and
//! whatever a template says gives either text or an error that names the field and the cure. The namespace of a
//! reference is never followed.

pub mod allot;
pub mod claims;
mod error;
pub mod index;
pub mod meta_data;
pub mod network_data;
pub mod pools;
pub mod release;
pub mod request;
pub mod secrets;
pub mod step;
pub mod subject;
mod waiting;
mod yaml;

pub use error::{DataError, Problem};

#[cfg(test)]
mod tests;
