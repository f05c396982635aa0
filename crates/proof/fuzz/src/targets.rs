//! All targets.

mod api_server;
mod foreign;
mod hosts;
mod ironic;
mod kinds;
mod lab;
mod machines;
mod sets;
mod vocabulary;

use crate::target::Target;

/// All targets, in the order in which they run.
#[must_use]
pub fn all() -> Vec<Target> {
    [
        vocabulary::targets(),
        hosts::targets(),
        ironic::targets(),
        kinds::targets(),
        machines::targets(),
        api_server::targets(),
        foreign::targets(),
        lab::targets(),
    ]
    .concat()
}
