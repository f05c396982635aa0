//! Addresses and subnets as text with a schema pattern. The patterns are part of the wire contract. Text that matches
//! may still be no address or not canonical (`2001:db8::0005`), so it is parsed before use.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! quad {
    () => {
        r"((([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]))"
    };
}
macro_rules! colons {
    () => {
        concat!(
            "(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}",
            "|([0-9a-fA-F]{1,4}:){1,7}:",
            "|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}",
            "|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}",
            "|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}",
            "|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}",
            "|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}",
            "|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})",
            "|:((:[0-9a-fA-F]{1,4}){1,7}|:))"
        )
    };
}

/// An address, v4 or v6, without prefix or zone.
const ADDRESS: &str = concat!("((^", quad!(), "$)|(^", colons!(), "$))");
/// A v4 address.
const V4: &str = concat!("^", quad!(), "$");
/// A v6 address, full or compressed.
const V6: &str = concat!("^", colons!(), "$");
/// A network with its prefix length.
const SUBNET: &str = concat!(
    "((^",
    quad!(),
    "/([0-9]|[1-2][0-9]|3[0-2])$)|(^",
    colons!(),
    "/([0-9]|[0-9][0-9]|1[0-1][0-9]|12[0-8])$))"
);

macro_rules! patterned_text {
    ($(#[doc = $doc:literal])+ $name:ident, $pattern:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The text as written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

patterned_text! {
    /// The text of an address.
    IpText, ADDRESS
}
patterned_text! {
    /// The text of a network with its prefix length.
    SubnetText, SUBNET
}
patterned_text! {
    /// The text of a v4 address.
    Ipv4Text, V4
}
patterned_text! {
    /// The text of a v6 address.
    Ipv6Text, V6
}

/// The text of an address of one family.
pub trait FamilyText: Clone + fmt::Debug + fmt::Display + Default + PartialEq {
    /// Bits of an address, which is the longest prefix.
    const BITS: i32;
}

impl FamilyText for Ipv4Text {
    const BITS: i32 = 32;
}

impl FamilyText for Ipv6Text {
    const BITS: i32 = 128;
}
