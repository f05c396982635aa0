//! One Pod from binding to removal: `worker` runs the Pod, `container` each container.

mod container;
mod fetch;
mod probing;
pub(crate) mod pull;
pub(crate) mod worker;
