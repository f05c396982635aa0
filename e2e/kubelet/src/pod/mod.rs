//! One Pod from its binding to its removal: `worker` holds it together, `container` runs each of its containers.

mod container;
mod fetch;
mod probing;
pub(crate) mod worker;

pub(crate) use fetch::bounded;
