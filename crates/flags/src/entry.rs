//! Constructors of rows of the table, and texts that several rows share.

use super::flag::{Flag, Handling, Owner, Shape};

pub(super) const ALL: &[Owner] = &[Owner::Capm3, Owner::Ipam, Owner::Hosts];
pub(super) const TWO: &[Owner] = &[Owner::Capm3, Owner::Ipam];
pub(super) const CAPM3: &[Owner] = &[Owner::Capm3];
pub(super) const IPAM: &[Owner] = &[Owner::Ipam];
pub(super) const HOSTS: &[Owner] = &[Owner::Hosts];
pub(super) const NO_GO_MANAGER: &[Owner] = &[];

pub(super) const WITH_MACHINES: Handling =
    Handling::Ignored("this is done by the workers of --metal3machine-concurrency");
pub(super) const NO_PLUGINS: Handling = Handling::Refused("Ironic is the only provisioner, and there are no plugins");
pub(super) const BUFFERS: Handling = Handling::Ignored("log lines are not buffered");

type Owners = &'static [Owner];

pub(super) const fn switch(owners: Owners, name: &'static str, description: &'static str) -> Flag {
    flag(owners, (name, Shape::Switch), "false", description)
}

pub(super) const fn text(owners: Owners, name: &'static str, default: &'static str, description: &'static str) -> Flag {
    flag(owners, (name, Shape::Text), default, description)
}

pub(super) const fn list(owners: Owners, name: &'static str, description: &'static str) -> Flag {
    flag(owners, (name, Shape::List), "", description)
}

pub(super) const fn number(
    owners: Owners,
    name: &'static str,
    default: &'static str,
    description: &'static str,
) -> Flag {
    flag(owners, (name, Shape::Number), default, description)
}

pub(super) const fn span(owners: Owners, name: &'static str, default: &'static str, description: &'static str) -> Flag {
    flag(owners, (name, Shape::Span), default, description)
}

const fn flag(
    owners: Owners,
    (name, shape): (&'static str, Shape),
    default: &'static str,
    description: &'static str,
) -> Flag {
    Flag {
        name,
        shape,
        default,
        owners,
        handling: Handling::Supported,
        description,
    }
}

impl Flag {
    /// The same flag, with this handling.
    pub(super) const fn handled(self, handling: Handling) -> Self {
        Self { handling, ..self }
    }
}
