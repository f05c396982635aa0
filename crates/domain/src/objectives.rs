//! The states of hosts and machines that metrics count, and the objective of each: how long an object stays in it at most
//! while all is well. An administrator replaces objectives with `--state-objectives`.
//!
//! Each default is at least three times the longest stay in a run of the simulated world without faults, whose hardware
//! boots in 40 seconds (`make alerts-check` measures and compares), and long enough for hardware that needs ten minutes to
//! boot: one boot for an inspection, two for a deployment or a cleaning. Ironic itself gives up an operation after half an
//! hour without news. What waits for another object has more time than that one.

use std::collections::BTreeMap;
use std::time::Duration;

/// What has states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A `BareMetalHost`.
    Host,
    /// A `Metal3Machine`.
    Machine,
}

impl Subject {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Host, Self::Machine];

    /// Its name in the flag.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Machine => "machine",
        }
    }

    /// Its states, with the default objective of each in minutes; `None` for a state that may last. An object in any other
    /// state counts as [`OTHER`].
    #[must_use]
    pub const fn states(self) -> &'static [(&'static str, Option<u64>)] {
        match self {
            Self::Host => &HOST_STATES,
            Self::Machine => &MACHINE_STATES,
        }
    }

    /// The state of the table with this text.
    #[must_use]
    pub fn state(self, text: &str) -> &'static str {
        let mut known = self.states().iter().map(|(state, _)| *state);
        known.find(|state| *state == text).unwrap_or(OTHER)
    }
}

/// The state of an object whose state is none of the table: the text of an object is never a label.
pub const OTHER: &str = "other";
/// The state of a host that was not processed yet, which is the empty text in the object.
pub const NEW: &str = "none";
/// A machine without a host.
pub const MACHINE_PENDING: &str = "pending";
/// A machine whose host is not provisioned.
pub const MACHINE_PROVISIONING: &str = "provisioning";
/// A machine whose host is provisioned.
pub const MACHINE_PROVISIONED: &str = "provisioned";
/// A machine that is being deleted.
pub const MACHINE_DELETING: &str = "deleting";

/// The spelling is that of `status.provisioning.state`.
const HOST_STATES: [(&str, Option<u64>); 15] = [
    (NEW, Some(10)),
    ("unmanaged", None),
    ("registering", Some(10)),
    ("match profile", Some(10)),
    ("inspecting", Some(30)),
    // Updates of the firmware are given up after 130 minutes.
    ("preparing", Some(150)),
    ("available", None),
    ("ready", None),
    ("provisioning", Some(60)),
    ("provisioned", None),
    ("externally provisioned", None),
    ("deprovisioning", Some(60)),
    ("powering off before delete", Some(15)),
    ("deleting", Some(15)),
    (OTHER, None),
];

const MACHINE_STATES: [(&str, Option<u64>); 5] = [
    // It waits for the first machine of the control plane to be provisioned, or for a host to be deprovisioned.
    (MACHINE_PENDING, Some(120)),
    (MACHINE_PROVISIONING, Some(90)),
    (MACHINE_PROVISIONED, None),
    (MACHINE_DELETING, Some(90)),
    (OTHER, None),
];

/// The objective of each state that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objectives(BTreeMap<(Subject, &'static str), Duration>);

impl Default for Objectives {
    fn default() -> Self {
        let of = |subject: Subject| {
            let states = subject.states().iter();
            states.filter_map(move |(state, minutes)| {
                Some((
                    (subject, *state),
                    Duration::from_secs(minutes.as_ref()?.saturating_mul(60)),
                ))
            })
        };
        Self(Subject::ALL.into_iter().flat_map(of).collect())
    }
}

impl Objectives {
    /// The objective of a state, if it has one.
    #[must_use]
    pub fn of(&self, subject: Subject, state: &str) -> Option<Duration> {
        self.0.get(&(subject, subject.state(state))).copied()
    }

    /// Replaces the objective of `host/STATE` or `machine/STATE`; zero removes it. Returns whether there is such a state.
    pub fn replace(&mut self, name: &str, objective: Duration) -> bool {
        let Some((subject, state)) = name.split_once('/') else {
            return false;
        };
        let subject = Subject::ALL.into_iter().find(|known| known.name() == subject);
        let Some(subject) = subject else { return false };
        let states = subject.states().iter().map(|(state, _)| *state);
        let Some(state) = states.filter(|known| *known != OTHER).find(|known| *known == state) else {
            return false;
        };
        if objective.is_zero() {
            self.0.remove(&(subject, state));
        } else {
            self.0.insert((subject, state), objective);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_state_counts_as_other() {
        assert_eq!(Subject::Host.state("inspecting"), "inspecting");
        assert_eq!(Subject::Host.state("text of a tenant"), OTHER);
        assert_eq!(Subject::Machine.state("inspecting"), OTHER);
    }

    #[test]
    fn objectives_are_replaced_by_subject_and_state() {
        let mut objectives = Objectives::default();
        assert_eq!(
            objectives.of(Subject::Host, "registering"),
            Some(Duration::from_mins(10))
        );
        assert_eq!(objectives.of(Subject::Host, "provisioned"), None);
        assert!(objectives.replace("host/registering", Duration::from_mins(3)));
        assert!(objectives.replace("host/inspecting", Duration::ZERO));
        assert!(objectives.replace("machine/provisioned", Duration::from_mins(5)));
        assert_eq!(
            objectives.of(Subject::Host, "registering"),
            Some(Duration::from_mins(3))
        );
        assert_eq!(objectives.of(Subject::Host, "inspecting"), None);
        assert_eq!(
            objectives.of(Subject::Machine, "provisioned"),
            Some(Duration::from_mins(5))
        );
        for unknown in [
            "host",
            "host/",
            "host/other",
            "host/x",
            "pool/registering",
            "machine/registering",
        ] {
            assert!(!objectives.replace(unknown, Duration::from_mins(1)), "{unknown}");
        }
    }

    #[test]
    fn what_waits_for_another_object_has_more_time_than_that_one() {
        let objectives = Objectives::default();
        let of = |subject: Subject, state: &str| objectives.of(subject, state).unwrap();
        let pending = of(Subject::Machine, MACHINE_PENDING);
        assert!(pending > of(Subject::Machine, MACHINE_PROVISIONING));
        assert!(pending > of(Subject::Host, "deprovisioning"));
        assert!(of(Subject::Machine, MACHINE_PROVISIONING) > of(Subject::Host, "provisioning"));
        assert!(of(Subject::Machine, MACHINE_DELETING) > of(Subject::Host, "deprovisioning"));
        // The updates of the firmware that Ironic gives up.
        assert!(of(Subject::Host, "preparing") > Duration::from_mins(130));
    }

    #[test]
    fn each_state_is_in_its_table_once() {
        for subject in Subject::ALL {
            for (state, _) in subject.states() {
                assert_eq!(subject.states().iter().filter(|(other, _)| other == state).count(), 1);
                assert_eq!(subject.state(state), *state);
            }
        }
    }
}
