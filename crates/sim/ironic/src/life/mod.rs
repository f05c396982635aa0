//! The state machine of a node's life, pure: a table of transitions, and what one of them does.
//!
//! It knows no time, no hardware and no request. The table is Ironic's own, whole: the contract with a real Ironic
//! compares the two line by line. The invariant: a node that rests has no target.

mod table;

use metal3_ironic::model::state::ProvisionState;

pub use table::{TRANSITIONS, Transition};

/// What makes a node move: a client's wish, or the course of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Give it up.
    Abort,
    /// Take it over as it runs.
    Adopt,
    /// Clean it.
    Clean,
    /// Tear it down.
    Delete,
    /// Deploy it.
    Deploy,
    /// The work is done.
    Done,
    /// The work failed.
    Fail,
    /// A step asked for a halt.
    Hold,
    /// Look at the hardware.
    Inspect,
    /// Take it under control.
    Manage,
    /// Offer it.
    Provide,
    /// Deploy it again.
    Rebuild,
    /// Start the rescue ramdisk.
    Rescue,
    /// The ramdisk answered.
    Resume,
    /// Change it in use.
    Service,
    /// Go on after a halt.
    Unhold,
    /// Leave the rescue ramdisk.
    Unrescue,
    /// The ramdisk is waited for.
    Wait,
}

impl Event {
    /// The event that a client's verb stands for. Events that only the work makes have no verb.
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

    /// Ironic's name of it.
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

/// Where a node is, and where it is heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// Where it is.
    pub state: ProvisionState,
    /// Where it is heading; nowhere when it rests.
    pub target: Option<ProvisionState>,
}

impl At {
    /// A node that rests in a state.
    #[must_use]
    pub const fn rest(state: ProvisionState) -> Self {
        Self { state, target: None }
    }
}

/// Where the event leads from here. `None`: it leads nowhere, and a client who asked for it is refused.
#[must_use]
pub fn step(at: &At, event: Event) -> Option<At> {
    let (_, _, to) = TRANSITIONS
        .iter()
        .find(|(from, by, _)| *from == at.state && *by == event)?;
    let target = match heading(to) {
        None => None,
        // Manual cleaning ends where it began, so its target outlives the states on the way.
        Some(ProvisionState::Available) if keeps_target(at, event) => at.target.clone(),
        Some(heading) => Some(heading),
    };
    Some(At {
        state: to.clone(),
        target,
    })
}

fn keeps_target(at: &At, event: Event) -> bool {
    at.target == Some(ProvisionState::Manageable)
        && matches!(
            event,
            Event::Wait | Event::Resume | Event::Fail | Event::Abort | Event::Hold | Event::Unhold
        )
}

/// Where Ironic says that a node in this state is heading. `None` for a state in which it rests.
#[must_use]
pub const fn heading(state: &ProvisionState) -> Option<ProvisionState> {
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

    fn walk(from: At, events: &[Event]) -> Vec<(S, Option<S>)> {
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
    fn no_event_leads_from_one_state_to_two() {
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
    fn a_node_that_rests_has_no_target_and_every_other_has_one() {
        for (from, by, to) in TRANSITIONS {
            let reached = step(
                &At {
                    state: from.clone(),
                    target: heading(from),
                },
                *by,
            )
            .unwrap();
            assert_eq!(reached.state, *to);
            assert_eq!(
                reached.target.is_none(),
                heading(to).is_none(),
                "{from} by {}",
                by.as_str()
            );
        }
    }

    #[test]
    fn automated_cleaning_heads_for_available_and_manual_cleaning_back_to_manageable() {
        let heads = |target: S, events: &[Event]| {
            let mut at = step(&At::rest(S::Manageable), Event::Clean).unwrap();
            at.target = Some(target);
            walk(at, events)
        };
        let (available, manageable) = (Some(S::Available), Some(S::Manageable));
        assert_eq!(
            heads(S::Available, &[Event::Wait, Event::Resume, Event::Done]),
            [
                (S::CleanWait, available.clone()),
                (S::Cleaning, available),
                (S::Available, None)
            ]
        );
        assert_eq!(
            heads(S::Manageable, &[Event::Wait, Event::Resume, Event::Fail, Event::Manage]),
            [
                (S::CleanWait, manageable.clone()),
                (S::Cleaning, manageable.clone()),
                (S::CleanFailed, manageable),
                (S::Manageable, None)
            ]
        );
    }

    #[test]
    fn what_the_table_does_not_have_leads_nowhere() {
        assert_eq!(step(&At::rest(S::Enroll), Event::Provide), None);
        assert_eq!(step(&At::rest(S::Manageable), Event::Manage), None);
        assert_eq!(step(&At::rest(S::Other("polishing".into())), Event::Manage), None);
        assert_eq!(Event::of_verb("done"), None);
    }
}
