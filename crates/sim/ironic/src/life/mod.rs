//! The provision state machine of a node: a table of transitions and their effect on state and target.
//!
//! Pure. The table equals Ironic's own; `make ironic-contract` compares them. Invariant: a node in a stable state has
//! no target.

mod table;

use metal3_ironic::model::state::ProvisionState;

pub use table::{TRANSITIONS, Transition};

/// An event of the state machine: a client's request, or progress of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Abort the work.
    Abort,
    /// Adopt a running machine.
    Adopt,
    /// Clean the node.
    Clean,
    /// Tear the instance down.
    Delete,
    /// Deploy an instance.
    Deploy,
    /// The work is done.
    Done,
    /// The work failed.
    Fail,
    /// A step requests a hold.
    Hold,
    /// Inspect the hardware.
    Inspect,
    /// Manage the node.
    Manage,
    /// Make the node available.
    Provide,
    /// Rebuild the instance.
    Rebuild,
    /// Start the rescue ramdisk.
    Rescue,
    /// The ramdisk answered.
    Resume,
    /// Run service steps on an active node.
    Service,
    /// Continue after a hold.
    Unhold,
    /// Leave the rescue ramdisk.
    Unrescue,
    /// The work waits for the ramdisk.
    Wait,
}

impl Event {
    /// The event of a client's verb. Events of the work have no verb.
    #[must_use]
    pub fn of_verb(verb: &str) -> Option<Self> {
        Some(match verb {
            "active" | "deploy" => Self::Deploy,
            "deleted" | "undeploy" => Self::Delete,
            "manage" => Self::Manage,
            "provide" => Self::Provide,
            "inspect" => Self::Inspect,
            "abort" => Self::Abort,
            "clean" => Self::Clean,
            "adopt" => Self::Adopt,
            "rescue" => Self::Rescue,
            "unrescue" => Self::Unrescue,
            "unhold" => Self::Unhold,
            "service" => Self::Service,
            "rebuild" => Self::Rebuild,
            _ => return None,
        })
    }

    /// Ironic's name of the event.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Adopt => "adopt",
            Self::Clean => "clean",
            Self::Delete => "delete",
            Self::Deploy => "deploy",
            Self::Done => "done",
            Self::Fail => "fail",
            Self::Hold => "hold",
            Self::Inspect => "inspect",
            Self::Manage => "manage",
            Self::Provide => "provide",
            Self::Rebuild => "rebuild",
            Self::Rescue => "rescue",
            Self::Resume => "resume",
            Self::Service => "service",
            Self::Unhold => "unhold",
            Self::Unrescue => "unrescue",
            Self::Wait => "wait",
        }
    }
}

/// The provision state of a node and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provision {
    /// `provision_state`.
    pub state: ProvisionState,
    /// `target_provision_state`; `None` in a stable state.
    pub target: Option<ProvisionState>,
}

impl Provision {
    /// A stable state without target.
    #[must_use]
    pub const fn stable(state: ProvisionState) -> Self {
        Self { state, target: None }
    }
}

/// The result of an event. `None` when the table has no such transition; then a client's request is rejected.
#[must_use]
pub fn step(at: &Provision, event: Event) -> Option<Provision> {
    let (_, _, to) = TRANSITIONS
        .iter()
        .find(|(from, by, _)| *from == at.state && *by == event)?;
    let target = match target_of(to) {
        None => None,
        // Manual cleaning keeps its target in intermediate states.
        Some(ProvisionState::Available) if keeps_target(at, event) => at.target.clone(),
        Some(target) => Some(target),
    };
    Some(Provision {
        state: to.clone(),
        target,
    })
}

fn keeps_target(at: &Provision, event: Event) -> bool {
    at.target == Some(ProvisionState::Manageable)
        && matches!(
            event,
            Event::Wait | Event::Resume | Event::Fail | Event::Abort | Event::Hold | Event::Unhold
        )
}

/// The target of a state in Ironic's state machine. `None` for a stable state.
#[must_use]
pub const fn target_of(state: &ProvisionState) -> Option<ProvisionState> {
    use ProvisionState as S;
    match state {
        S::Enroll | S::Manageable | S::Available | S::Active | S::Error | S::Rescue | S::Other(_) => None,
        S::Verifying | S::Inspecting | S::InspectWait | S::InspectFailed => Some(S::Manageable),
        S::Cleaning | S::CleanWait | S::CleanHold | S::CleanFailed | S::Deleting => Some(S::Available),
        S::Rescuing | S::RescueWait | S::RescueFailed => Some(S::Rescue),
        S::Deploying
        | S::WaitCallBack
        | S::DeployHold
        | S::DeployFailed
        | S::Adopting
        | S::AdoptFailed
        | S::Servicing
        | S::ServiceWait
        | S::ServiceHold
        | S::ServiceFailed
        | S::Unrescuing
        | S::UnrescueFailed => Some(S::Active),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProvisionState as S;

    fn run_events(from: Provision, events: &[Event]) -> Vec<(S, Option<S>)> {
        let mut at = from;
        events
            .iter()
            .map(|event| {
                at = step(&at, *event).unwrap();
                (at.state.clone(), at.target.clone())
            })
            .collect()
    }

    #[test]
    fn every_state_has_at_most_one_transition_for_an_event() {
        for (index, (from, by, _)) in TRANSITIONS.iter().enumerate() {
            let same = |(other, event, _): &&Transition| other == from && event == by;
            assert_eq!(
                TRANSITIONS.iter().filter(same).count(),
                1,
                "{index}: {from} by {}",
                by.as_str()
            );
        }
    }

    #[test]
    fn stable_states_have_no_target_and_all_others_have_one() {
        for (from, by, to) in TRANSITIONS {
            let reached = step(
                &Provision {
                    state: from.clone(),
                    target: target_of(from),
                },
                *by,
            )
            .unwrap();
            assert_eq!(reached.state, *to);
            assert_eq!(
                reached.target.is_none(),
                target_of(to).is_none(),
                "{from} by {}",
                by.as_str()
            );
        }
    }

    #[test]
    fn automated_cleaning_targets_available_and_manual_cleaning_manageable() {
        let states = |target: S, events: &[Event]| {
            let mut at = step(&Provision::stable(S::Manageable), Event::Clean).unwrap();
            at.target = Some(target);
            run_events(at, events)
        };
        let (available, manageable) = (Some(S::Available), Some(S::Manageable));
        assert_eq!(
            states(S::Available, &[Event::Wait, Event::Resume, Event::Done]),
            [
                (S::CleanWait, available.clone()),
                (S::Cleaning, available),
                (S::Available, None)
            ]
        );
        assert_eq!(
            states(S::Manageable, &[Event::Wait, Event::Resume, Event::Fail, Event::Manage]),
            [
                (S::CleanWait, manageable.clone()),
                (S::Cleaning, manageable.clone()),
                (S::CleanFailed, manageable),
                (S::Manageable, None)
            ]
        );
    }

    #[test]
    fn step_returns_none_for_a_transition_outside_of_the_table() {
        assert_eq!(step(&Provision::stable(S::Enroll), Event::Provide), None);
        assert_eq!(step(&Provision::stable(S::Manageable), Event::Manage), None);
        assert_eq!(
            step(&Provision::stable(S::Other("polishing".into())), Event::Manage),
            None
        );
        assert_eq!(Event::of_verb("done"), None);
    }
}
