//! Errors of rendering (differs: `data-words`).

use metal3_domain::names::NameError;
use metal3_domain::network_data::BondParameterError;
use metal3_runtime::cache::Key;
use thiserror::Error;

use crate::node::NodeError;

/// An error with its field. The text is written to the status of the Metal3Data or the claim.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct DataError {
    /// The field with its object, such as `Metal3DataTemplate workers spec.metaData.indexes[0]`.
    pub field: String,
    /// The problem and its remedy.
    pub(super) problem: Problem,
}

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Problem {
    /// The host is not inspected, or inspection found no network interface.
    #[error("host {0} has no list of network interfaces; let it be inspected, or write the address itself")]
    NotInspected(String),
    /// The host has no interface of that name.
    #[error("host {host} has no network interface {interface:?}; write one of {known}")]
    NoInterface {
        host: String,
        interface: String,
        known: String,
    },
    /// Inspection listed the interface without an address.
    #[error(
        "network interface {interface:?} of host {host} has no MAC address; write another interface or the address"
    )]
    NoInterfaceMac { host: String, interface: String },
    /// The entry names no interface.
    #[error("it names no interface; set interface, or fromBootMAC to true")]
    InterfaceUnnamed,
    /// The host has no boot MAC address.
    #[error("host {0} has no spec.bootMACAddress; set it")]
    NoBootMac(String),
    /// The text is not an Ethernet address.
    #[error("{0:?} is not a MAC address; write six pairs of hexadecimal digits joined by ':'")]
    NoMac(String),
    /// A link without a source for its MAC address.
    #[error("it is empty; set one of string, fromHostInterface and fromAnnotation")]
    MacUnset,
    /// The annotation is missing or empty.
    #[error("{object} has no annotation {annotation:?} with a value; set it")]
    NoAnnotation { object: String, annotation: String },
    /// Bond parameters that duplicate fields of the bond.
    #[error("{0}")]
    BondParameters(BondParameterError),
    /// A static network without a pool.
    #[error("it names no pool; set one of ipAddressFromIPPool, fromPoolRef and fromPoolAnnotation")]
    PoolUnset,
    /// A pool name that is not an object name.
    #[error("{name:?} is not a pool name: {error}")]
    PoolName { name: String, error: NameError },
    /// A kind of pool that the group does not define.
    #[error("the group {group} has no pools of kind {kind}; set apiGroup to the group of {kind}")]
    PoolKind { group: String, kind: String },
    /// The pool has granted no address yet.
    #[error("there is no address from pool {0} yet; its claim is pending")]
    NotGranted(String),
    /// The pool's provider reports an error.
    #[error("pool {pool} grants no address: {message}; extend the pool, or release addresses that are not needed")]
    Refused { pool: String, message: String },
    /// The granted text is not an address.
    #[error("pool {pool} granted {text:?}, which is not an IP address; correct the pool")]
    NoAddress { pool: String, text: String },
    /// The granted address has the other family.
    #[error(
        "pool {pool} granted {text}, which is not {family}; name a pool of {family} addresses, or move the network"
    )]
    Family {
        pool: String,
        text: String,
        family: &'static str,
    },
    /// The prefix length exceeds that of the family.
    #[error("the prefix length {length} is outside of 0 to {longest}; correct it")]
    Prefix { length: i64, longest: u8 },
    /// A grant without the prefix that metadata needs.
    #[error("pool {0} has no prefix; set it in the pool, or remove the key")]
    NoPrefix(String),
    /// A missing reference.
    #[error("it is not set; delete the Metal3DataClaim that owns the object, and its machine makes both again")]
    Unset,
    /// The claim has no owning machine.
    #[error("no Metal3Machine owns it; delete it, the controller of its machine creates another")]
    NoOwner,
    /// The machine names another template.
    #[error("it names {found:?}, the Metal3Data was made from {wanted:?}; set it back, or replace the machine")]
    OtherTemplate { found: String, wanted: String },
    /// A derived object name is invalid.
    #[error("the name {name:?} derived from it is invalid: {error}")]
    MadeName { name: String, error: NameError },
    /// A reference to another namespace.
    #[error("it names namespace {found:?}; omit it, only objects in {own:?} are used")]
    ForeignNamespace { found: String, own: String },
    /// The machine's annotation names no host.
    #[error("{0}")]
    Host(NodeError),
    /// The template cannot be decoded.
    #[error("it cannot be read: {0}; correct it")]
    Unreadable(String),
    /// An object that may use an index of the template, or be a claim on it, cannot be decoded.
    #[error(
        "it cannot be read, and may belong to the template; correct it, or delete it and its finalizers if nothing uses it"
    )]
    UnreadableObject,
    /// Every index is in use.
    #[error("all of its numbers are in use; delete machines, or make another template")]
    Exhausted,
    /// The value cannot be serialized, which is a bug.
    #[error("it cannot be written: {0}; report this")]
    Unwritable(String),
}

impl DataError {
    /// The error of a name that is derived from a field.
    pub(super) fn made_name(name: impl Into<String>, error: NameError, field: impl Into<String>) -> Self {
        let name = name.into();
        Problem::MadeName { name, error }.of(field)
    }

    /// Whether a reference names another namespace.
    pub(super) const fn is_about_namespace(&self) -> bool {
        matches!(self.problem, Problem::ForeignNamespace { .. })
    }

    /// The error of a template that cannot be decoded.
    pub(super) fn unreadable(template: &Key, why: &str) -> Self {
        Problem::Unreadable(why.to_owned()).of(format!("Metal3DataTemplate {}", template.name))
    }

    /// The error of another object that cannot be decoded.
    pub(super) fn unreadable_object(kind: &str, name: &str) -> Self {
        Problem::UnreadableObject.of(format!("{kind} {name}"))
    }
}

impl Problem {
    /// The error for a field.
    pub(super) fn of(self, field: impl Into<String>) -> DataError {
        DataError {
            field: field.into(),
            problem: self,
        }
    }
}

/// Truncates a message to the limit of every API version.
pub(super) fn truncated(message: &str) -> String {
    const LONGEST: usize = 512;
    message.chars().take(LONGEST).collect()
}
