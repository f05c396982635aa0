//! Which Ironic serves a host.

use metal3_api::metal3::names::{IRONIC_LABEL, REGISTERED_IN_ANNOTATION};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalHostStatus, OperationalStatus, ProvisioningState as State};
use metal3_runtime::plan::{Observed, UnknownReason};

use super::{Name, Names};

/// The Ironic in which a search found the node of a host that records none. Absent: each of them was asked, and none has it.
pub type Located = Observed<Name>;

/// What a host says about its Ironic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish<'a> {
    /// What its label asks for.
    pub(crate) wanted: Option<&'a str>,
    /// What its annotation records.
    pub(crate) recorded: Option<&'a str>,
    pub(crate) registration: Registration,
    pub(crate) is_deleted: bool,
}

/// Whether an Ironic may have a node of the host, by its status or by the saved one that is not restored yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registration {
    /// The status shows none, which is written before the node is created.
    Never,
    /// Ironic confirmed the deletion of the node.
    Detached,
    Begun,
}

/// Which Ironic serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    Use {
        ironic: Name,
        /// It is to be recorded before the next request.
        is_new: bool,
        /// The label asks for another one, while this one may have the node.
        refused: Option<&'a str>,
    },
    /// Nothing records which one has the node.
    Search,
    /// No request is sent.
    Wait(Bar<'a>),
}

/// Why no request is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bar<'a> {
    /// The label names none that is configured. `recorded`: the one that may have the node, if that is configured.
    Unknown { wanted: &'a str, recorded: Option<Name> },
    /// The one that may have the node is not configured.
    NotConfigured(&'a str),
    /// One of them cannot be searched now.
    NotLocated(String),
}

impl<'a> Wish<'a> {
    pub(crate) fn of(host: &'a BareMetalHost) -> Self {
        let set = |value: Option<&'a str>| value.filter(|text| !text.is_empty());
        Self {
            wanted: set(host.label(IRONIC_LABEL)),
            recorded: set(host.annotation(REGISTERED_IN_ANNOTATION)),
            registration: registration(host),
            is_deleted: host.metadata.deletion_timestamp.is_some(),
        }
    }
}

fn registration(host: &BareMetalHost) -> Registration {
    let of_status = |status: &BareMetalHostStatus| {
        let is_begun = !matches!(status.provisioning.state, State::None | State::Unmanaged)
            || !status.provisioning.id.is_empty()
            || status.operation_history.register.start.is_some();
        match status.operational_status {
            OperationalStatus::Detached => Registration::Detached,
            _ if is_begun => Registration::Begun,
            _ => Registration::Never,
        }
    };
    let saved = host.saved_status().filter(|_| host.takes_saved_status());
    match saved.map(serde_json::from_str) {
        Some(Ok(saved)) => of_status(&saved),
        // It may be that of a machine that runs.
        Some(Err(_)) => Registration::Begun,
        None => of_status(&host.status),
    }
}

/// Decides which Ironic serves a host.
pub(crate) fn choose<'a>(names: &Names, host: &Wish<'a>, located: &Located) -> Choice<'a> {
    match host.recorded {
        Some(recorded) => recorded_in(names, host, recorded, located),
        None => unrecorded(names, host, located),
    }
}

fn recorded_in<'a>(names: &Names, host: &Wish<'a>, recorded: &'a str, located: &Located) -> Choice<'a> {
    let current = names.find(recorded);
    // The deletion asks for nothing but the end of what is recorded.
    let wanted = host.wanted.filter(|wanted| *wanted != recorded && !host.is_deleted);
    let other = match wanted.map(|wanted| (wanted, names.find(wanted))) {
        Some((wanted, None)) => {
            let recorded = current.cloned();
            return Choice::Wait(Bar::Unknown { wanted, recorded });
        }
        Some((_, other)) => other,
        None => None,
    };
    let Some(current) = current else {
        return Choice::Wait(Bar::NotConfigured(recorded));
    };
    let stay = |refused| Choice::Use {
        ironic: Name::clone(current),
        is_new: false,
        refused,
    };
    match (other, located) {
        (None, _) => stay(None),
        (Some(_), _) if host.registration == Registration::Begun => stay(wanted),
        // The status may be lost: the record changes only when a search shows that there is nothing to leave behind.
        (Some(_), Observed::Unknown(why)) => not_located(why),
        (Some(_), Observed::Present(found)) if found == current => stay(wanted),
        (Some(_), Observed::Present(found)) => new(found),
        (Some(other), Observed::Absent) => new(other),
    }
}

fn unrecorded<'a>(names: &Names, host: &Wish<'a>, located: &Located) -> Choice<'a> {
    // A deleted host that no Ironic has a node of must not wait for a name.
    let wanted = host.wanted.filter(|_| !host.is_deleted);
    let wanted = match wanted.map(|wanted| (wanted, names.find(wanted))) {
        Some((wanted, None)) => return Choice::Wait(Bar::Unknown { wanted, recorded: None }),
        Some((_, Some(known))) => known,
        None => names.first(),
    };
    let is_never = host.registration == Registration::Never;
    let first = || Choice::Use {
        ironic: Name::clone(names.first()),
        is_new: false,
        refused: None,
    };
    match located {
        // There is no other one that could have the node.
        _ if names.is_one() => first(),
        // Also of a host without a status: that may be lost.
        Observed::Present(found) => new(found),
        Observed::Absent | Observed::Unknown(UnknownReason::NotRead) if is_never && host.is_deleted => first(),
        Observed::Unknown(UnknownReason::NotRead) if is_never => new(wanted),
        Observed::Absent => new(wanted),
        Observed::Unknown(why) => not_located(why),
    }
}

fn not_located<'a>(why: &UnknownReason) -> Choice<'a> {
    match why {
        UnknownReason::NotRead => Choice::Search,
        why => Choice::Wait(Bar::NotLocated(why.to_string())),
    }
}

fn new<'a>(ironic: &Name) -> Choice<'a> {
    Choice::Use {
        ironic: Name::clone(ironic),
        is_new: true,
        refused: None,
    }
}

impl Choice<'_> {
    /// The Ironic that is asked about the host. `None`: it is not known, or not configured.
    pub(crate) const fn asked(&self) -> Option<&Name> {
        match self {
            Self::Use { ironic, .. } => Some(ironic),
            Self::Wait(Bar::Unknown { recorded, .. }) => recorded.as_ref(),
            Self::Search | Self::Wait(Bar::NotConfigured(_) | Bar::NotLocated(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests;
