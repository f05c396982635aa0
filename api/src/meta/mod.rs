//! Types that many kinds share: time, conditions, references, selectors.
//!
//! They replace `k8s-openapi`'s types where the schema has patterns, bounds, list keys or atomic maps.

mod condition;
mod int_or_string;
mod ip_text;
mod reference;
mod template_metadata;
mod time;

pub use condition::{Condition, ConditionStatus, LegacyCondition};
pub use int_or_string::IntOrString;
pub use ip_text::{FamilyText, IpText, Ipv4Text, Ipv6Text, SubnetText};
pub use reference::{ObjectReference, SecretReference};
pub use template_metadata::TemplateMetadata;
pub use time::{Time, moment};
