//! Conversion between `v1beta1` and `v1beta2` of the nine kinds.
//!
//! Used by the conversion webhook, and by tests that compare it with the Go manager.
//!
//! `v1beta2` is the hub: it is the stored version and has more members. An object served as `v1beta1` carries the
//! stored object in an annotation. On the way back, members that the older client did not change keep their stored
//! value, and its changes win; see `merge`. The Go manager writes the same annotation for four of the kinds and reads
//! the one written here.
//!
//! It does not set defaults, validate, or read other objects. It never panics, and rejects only what the other version
//! cannot express: an integer that is too large, an invalid duration, an invalid annotation.
//!
//! Invariants, for every kind:
//! - from the hub to the spoke and back gives an equal object;
//! - from the spoke to the hub and back gives an equal object after this: empty members are left out, `ready` and
//!   `nodeReuse` are always set, `noCloudProvider` is set together with `cloudProviderEnabled`, references keep name
//!   and namespace, durations are in the form `1h2m3s`;
//! - members of `v1beta2` that must be unique in a list (the tag of a VLAN, the destination of a route) are kept even
//!   if they are not, because the hosts may need both; [`repeated`] finds them.

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
pub use pair::{Hub, hub_from_spoke, spoke_from_hub};
pub use repeated::repeated;
