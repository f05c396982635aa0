//! How a row of the table is written, and what several rows say.

use super::flag::{Fate, Flag, Owner, Shape};

pub(super) const ALL: &[Owner] = &[Owner::Capm3, Owner::Ipam, Owner::Hosts];
pub(super) const TWO: &[Owner] = &[Owner::Capm3, Owner::Ipam];
pub(super) const CAPM3: &[Owner] = &[Owner::Capm3];
pub(super) const IPAM: &[Owner] = &[Owner::Ipam];
pub(super) const HOSTS: &[Owner] = &[Owner::Hosts];
pub(super) const OURS: &[Owner] = &[];

pub(super) const NO_SYNC: Fate =
    Fate::Refused("labels of hosts are not copied to Nodes by this program yet; leave it out");
pub(super) const NO_TEMPLATES: Fate = Fate::Refused(
    "changes of a Metal3MachineTemplate are not copied to its machines by this program yet; leave it out",
);
pub(super) const NO_REMEDIATION: Fate = Fate::Refused("remediation is not in this program yet; leave it out");
pub(super) const NO_BUILDER: Fate = Fate::Refused("images for the agent of each host are not built yet; leave it out");
pub(super) const NO_CLAIMS: Fate = Fate::Refused("HostClaims are not served yet; leave it out");
pub(super) const NO_PLUGINS: Fate = Fate::Refused("Ironic is the only provisioner, and there are no plugins");
pub(super) const BUFFERS: Fate = Fate::Ignored("lines are written as they come");

pub(super) const fn flag(name: &'static str, shape: Shape, default: &'static str, says: &'static str) -> Flag {
    Flag {
        name,
        shape,
        default,
        owners: OURS,
        fate: Fate::Taken,
        says,
    }
}

pub(super) const fn of(owners: &'static [Owner], flag: Flag) -> Flag {
    Flag { owners, ..flag }
}

pub(super) const fn but(fate: Fate, flag: Flag) -> Flag {
    Flag { fate, ..flag }
}

/// How many objects of a kind the controllers of clusters and machines work on at once.
pub(super) const fn at_once(name: &'static str, says: &'static str) -> Flag {
    of(CAPM3, flag(name, Shape::Number, "10", says))
}

/// A flag that asks for what these controllers cannot do.
pub(super) const fn refused(
    owners: &'static [Owner],
    name: &'static str,
    shape: Shape,
    default: &'static str,
    fate: Fate,
) -> Flag {
    of(owners, but(fate, flag(name, shape, default, "")))
}
