//! Operations on the machine: network, processes, files. No decisions.

pub(crate) mod addresses;
pub(crate) mod files;
pub(crate) mod network;
pub(crate) mod process;
