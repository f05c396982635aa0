//! Conversion between `v1beta1` and `v1beta2` of the nine kinds.
//!
//! For whom: the conversion webhook, and tests that hold it to what the Go manager answers.
//!
//! `v1beta2` is the hub: it is stored, and says more. An object shown as `v1beta1` carries in an annotation what is
//! stored. On the way back, what the older client left alone is as it was stored, and what it changed wins; see
//! `merge`. The Go manager writes the same annotation for four of the kinds and reads ours.
//!
//! What it does not do: default, validate, or look at other objects. It never panics, and refuses only what has no
//! meaning in the other version: an integer that is too large, a duration that is none, an annotation that is not
//! what it should be.
//!
//! Invariants, for every kind:
//! - from the hub to the spoke and back gives an equal object;
//! - from the spoke to the hub and back gives an equal object after this: members without a value are left
//!   out, `ready` and `nodeReuse` are stated, `noCloudProvider` is stated beside `cloudProviderEnabled`, references
//!   keep name and namespace, durations are in the form `1h2m3s`;
//! - members of `v1beta2` that must be unique in a list (the tag of a VLAN, the destination of a route) are kept even
//!   if they are not, since two of them may be what the hosts need; [`repeated`] finds them.

mod annotation;
mod cluster;
mod data;
mod data_template;
mod document;
mod duration;
mod error;
mod machine;
mod merge;
mod pair;
mod remediation;
mod repeated;
mod value;

pub use document::{Version, convert};
pub use error::ConversionError;
pub use pair::{Hub, down, up};
pub use repeated::repeated;
