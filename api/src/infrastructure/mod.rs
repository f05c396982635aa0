//! `infrastructure.cluster.x-k8s.io`: clusters and machines on bare metal, the data their hosts are given, and how a
//! machine is remediated.
//!
//! Objects are stored as `v1beta2`. `v1beta1` is served for older clients.

mod capacity;
pub mod conditions;
pub mod conversion;
mod definitions;
mod label_prefixes;
pub mod names;
mod rules;
mod shared;
pub mod v1beta1;
pub mod v1beta2;

pub use capacity::{Metal3MachineTemplateStatus, NodeInfo};
pub use definitions::definitions;
pub use label_prefixes::{LabelPrefixError, label_prefixes};
pub use rules::reviewers;
pub use shared::{
    AddressType, BondHashPolicy, BondMode, ChecksumType, CleaningMode, DiskFormat, EthernetType, MachineAddress,
    SourceObject,
};
