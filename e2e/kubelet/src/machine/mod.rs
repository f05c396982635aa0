//! What the kubelet does to the machine: network cables, processes, files. No decisions are taken here.

pub(crate) mod addresses;
pub(crate) mod files;
pub(crate) mod network;
pub(crate) mod process;
