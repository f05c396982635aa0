//! Why data cannot be rendered, in words of our own (differs: `data-words`).

use metal3_domain::names::NameError;
use metal3_domain::network_data::BondParameterError;
use thiserror::Error;

/// What is wrong, and in which field. The text goes into the status of the Metal3Data or the claim as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct DataError {
    /// The field, from its object on, such as `Metal3DataTemplate workers spec.metaData.indexes[0]`.
    pub field: String,
    /// What is wrong with it and what to do about it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The host was not inspected, or inspection found no cards.
    #[error("host {host} has no list of network interfaces; let it be inspected, or write the address itself")]
    NotInspected {
        /// The host.
        host: String,
    },
    /// No card of that name.
    #[error("host {host} has no network interface {interface:?}; write one of {known}")]
    NoInterface {
        /// The host.
        host: String,
        /// The name.
        interface: String,
        /// The names there are.
        known: String,
    },
    /// The entry names no interface.
    #[error("it names no interface; set interface, or fromBootMAC to true")]
    InterfaceUnnamed,
    /// The host has no boot MAC address.
    #[error("host {host} has no spec.bootMACAddress; set it")]
    NoBootMac {
        /// The host.
        host: String,
    },
    /// Not an Ethernet address.
    #[error("{text:?} is no MAC address; write six pairs of hexadecimal digits joined by ':'")]
    NoMac {
        /// The text.
        text: String,
    },
    /// A link without a source for its address.
    #[error("it is empty; set one of string, fromHostInterface and fromAnnotation")]
    MacUnset,
    /// The annotation is missing or empty.
    #[error("{object} has no annotation {annotation:?} with a value; set it")]
    NoAnnotation {
        /// The object that should carry it.
        object: String,
        /// Its key.
        annotation: String,
    },
    /// Parameters that a bond has fields for.
    #[error("{0}")]
    BondParameters(BondParameterError),
    /// A network that needs an address and names no pool.
    #[error("it names no pool; set one of ipAddressFromIPPool, fromPoolRef and fromPoolAnnotation")]
    PoolUnset,
    /// A pool's name is none.
    #[error("{name:?} is no name of a pool: {error}")]
    PoolName {
        /// The text.
        name: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A kind of pool that the group does not have.
    #[error("the group {group} has no pools of kind {kind}; set apiGroup to the group of {kind}")]
    PoolKind {
        /// The group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// No address from the pool is at hand.
    #[error("there is no address from pool {pool} yet; it is claimed and waited for")]
    NotGranted {
        /// The pool.
        pool: String,
    },
    /// The pool's provider refused.
    #[error("pool {pool} grants no address: {message}; extend the pool, or release addresses that are not needed")]
    Refused {
        /// The pool.
        pool: String,
        /// What the provider says.
        message: String,
    },
    /// A grant that is no address.
    #[error("pool {pool} granted {text:?}, which is no IP address; correct the pool")]
    NoAddress {
        /// The pool.
        pool: String,
        /// The text.
        text: String,
    },
    /// A grant of the other family.
    #[error(
        "pool {pool} granted {text}, which is not {family}; name a pool of {family} addresses, or move the network"
    )]
    Family {
        /// The pool.
        pool: String,
        /// The address.
        text: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// A prefix that the family does not have.
    #[error("the prefix length {length} is outside of 0 to {longest}; correct it")]
    Prefix {
        /// The length.
        length: i64,
        /// The longest of the family.
        longest: u8,
    },
    /// A grant without prefix where metadata asks for one.
    #[error("pool {pool} states no prefix; state it in the pool, or drop the key")]
    NoPrefix {
        /// The pool.
        pool: String,
    },
    /// A reference that is missing.
    #[error("it is not set; delete the object, it is made again")]
    Unset,
    /// A claim that no machine owns.
    #[error("no Metal3Machine owns it; delete it, its machine makes another")]
    NoOwner,
    /// The machine asks for another template.
    #[error("it names {found:?}, the Metal3Data was made from {wanted:?}; set it back, or replace the machine")]
    OtherTemplate {
        /// The template the machine names.
        found: String,
        /// The template of the Metal3Data.
        wanted: String,
    },
    /// The name of an object that has to be made breaks a rule.
    #[error("the name {name:?} that follows from it cannot be used: {error}")]
    MadeName {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A reference into another namespace.
    #[error("it names namespace {found:?}; leave it out, only what is in {own:?} is used")]
    ForeignNamespace {
        /// The namespace it names.
        found: String,
        /// The namespace of the object.
        own: String,
    },
    /// Every number is in use.
    #[error("all of its numbers are in use; delete machines, or make another template")]
    Exhausted,
    /// The value cannot be written, which no value should cause.
    #[error("it cannot be written: {0}; report this")]
    Unwritable(String),
}

impl Problem {
    /// The problem in a field.
    #[must_use]
    pub fn of(self, field: impl Into<String>) -> DataError {
        DataError {
            field: field.into(),
            problem: self,
        }
    }
}
