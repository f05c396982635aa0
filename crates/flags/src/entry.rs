//! Constructors of rows of the table, and texts that several rows share.

use super::flag::{Flag, Handling, Owner, Shape};

pub(super) const ALL: &[Owner] = &[Owner::Capm3, Owner::Ipam, Owner::Hosts];
pub(super) const TWO: &[Owner] = &[Owner::Capm3, Owner::Ipam];
pub(super) const CAPM3: &[Owner] = &[Owner::Capm3];
pub(super) const IPAM: &[Owner] = &[Owner::Ipam];
pub(super) const HOSTS: &[Owner] = &[Owner::Hosts];
pub(super) const NO_GO_MANAGER: &[Owner] = &[];

pub(super) const NO_SYNC: Handling =
    Handling::Refused("this program does not copy labels of hosts to Nodes yet; remove the flag");
pub(super) const NO_TEMPLATES: Handling = Handling::Refused(
    "this program does not copy changes of a Metal3MachineTemplate to its machines yet; remove the flag",
);
pub(super) const NO_REMEDIATION: Handling =
    Handling::Refused("remediation is not in this program yet; remove the flag");
pub(super) const NO_BUILDER: Handling =
    Handling::Refused("images for the agent of each host are not built yet; remove the flag");
pub(super) const NO_CLAIMS: Handling = Handling::Refused("HostClaims are not served yet; remove the flag");
pub(super) const NO_PLUGINS: Handling = Handling::Refused("Ironic is the only provisioner, and there are no plugins");
pub(super) const BUFFERS: Handling = Handling::Ignored("log lines are not buffered");

pub(super) const fn flag(name: &'static str, shape: Shape, default: &'static str, description: &'static str) -> Flag {
    Flag {
        name,
        shape,
        default,
        owners: NO_GO_MANAGER,
        handling: Handling::Supported,
        description,
    }
}

pub(super) const fn owned_by(owners: &'static [Owner], flag: Flag) -> Flag {
    Flag { owners, ..flag }
}

pub(super) const fn handled(handling: Handling, flag: Flag) -> Flag {
    Flag { handling, ..flag }
}

/// Number of concurrent reconciles of a kind of the capm3 controllers.
pub(super) const fn at_once(name: &'static str, description: &'static str) -> Flag {
    owned_by(CAPM3, flag(name, Shape::Number, "10", description))
}

/// A flag for an unsupported feature.
pub(super) const fn refused(
    owners: &'static [Owner],
    name: &'static str,
    shape: Shape,
    default: &'static str,
    handling: Handling,
) -> Flag {
    owned_by(owners, handled(handling, flag(name, shape, default, "")))
}
