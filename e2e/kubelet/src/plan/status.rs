//! The status of a Pod, computed from the states of its containers.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, HostIP,
    Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::fields::Placement;
use super::restart::Policy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) started: Timestamp,
    pub(crate) finished: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting {
        reason: String,
        message: String,
    },
    Running {
        since: Timestamp,
        started: bool,
        ready: bool,
    },
    Ended(End),
}

/// The state of a container and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerView {
    pub(crate) phase: Phase,
    pub(crate) last: Option<End>,
    pub(crate) restarts: i32,
    /// Process id of the container's outer process.
    pub(crate) process: Option<u32>,
}

impl ContainerView {
    pub(crate) fn waiting(reason: &str, message: &str) -> Self {
        let phase = Phase::Waiting {
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        Self {
            phase,
            last: None,
            restarts: 0,
            process: None,
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Running { ready: true, .. })
    }
}

/// The status of the Pod. `views` are in the order of the Pod's containers.
pub(crate) fn status(
    pod: &Pod,
    views: &[ContainerView],
    placement: Option<&Placement>,
    since: Timestamp,
    now: Timestamp,
) -> PodStatus {
    let policy = Policy::of(pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()));
    let phase = pod_phase(views, policy);
    let ready = phase == "Running" && views.iter().all(ContainerView::is_ready);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses = containers.clone().zip(views).map(|(container, view)| {
        let image = container.image.as_deref().unwrap_or_default();
        container_status(&container.name, image, view)
    });
    let unready: Vec<&str> = containers
        .zip(views)
        .filter(|(_, view)| !view.is_ready())
        .map(|(container, _)| container.name.as_str())
        .collect();
    let unready_message = format!("containers with unready status: [{}]", unready.join(" "));
    let of_containers = |kind: &str| {
        let (reason, message) = match (ready, phase) {
            (true, _) => (None, None),
            (false, "Succeeded") => (Some("PodCompleted"), None),
            (false, _) => (Some("ContainersNotReady"), Some(unready_message.clone())),
        };
        condition(pod, kind, ready, reason, message, now)
    };
    PodStatus {
        phase: Some(phase.to_owned()),
        start_time: Some(Time(since)),
        host_ip: placement.map(|placement| placement.node_address.clone()),
        host_ips: placement.map(|placement| {
            vec![HostIP {
                ip: placement.node_address.clone(),
            }]
        }),
        pod_ip: placement.map(|placement| placement.pod_address.clone()),
        pod_ips: placement.map(|placement| {
            vec![PodIP {
                ip: placement.pod_address.clone(),
            }]
        }),
        container_statuses: Some(statuses.collect()),
        conditions: Some(vec![
            condition(pod, "PodReadyToStartContainers", placement.is_some(), None, None, now),
            condition(pod, "Initialized", true, None, None, now),
            of_containers("Ready"),
            of_containers("ContainersReady"),
        ]),
        ..PodStatus::default()
    }
}

pub(crate) fn pod_phase(views: &[ContainerView], policy: Policy) -> &'static str {
    let last_end = |view: &ContainerView| match &view.phase {
        Phase::Ended(end) => Some(end.code),
        Phase::Waiting { .. } | Phase::Running { .. } => None,
    };
    let ends: Vec<i32> = views.iter().filter_map(last_end).collect();
    let finished = !views.is_empty() && ends.len() == views.len() && !ends.iter().any(|code| policy.restarts(*code));
    let has_run = |view: &ContainerView| view.last.is_some() || !matches!(view.phase, Phase::Waiting { .. });
    match finished {
        true if ends.iter().all(|code| *code == 0) => "Succeeded",
        true => "Failed",
        false if views.iter().any(has_run) => "Running",
        false => "Pending",
    }
}

fn container_status(name: &str, image: &str, view: &ContainerView) -> ContainerStatus {
    let (state, ready, started) = match &view.phase {
        Phase::Waiting { reason, message } => {
            let message = Some(message.clone()).filter(|message| !message.is_empty());
            let waiting = ContainerStateWaiting {
                reason: Some(reason.clone()),
                message,
            };
            (
                ContainerState {
                    waiting: Some(waiting),
                    ..ContainerState::default()
                },
                false,
                false,
            )
        }
        Phase::Running { since, started, ready } => {
            let running = ContainerStateRunning {
                started_at: Some(Time(*since)),
            };
            (
                ContainerState {
                    running: Some(running),
                    ..ContainerState::default()
                },
                *ready,
                *started,
            )
        }
        Phase::Ended(end) => (terminated(end), false, false),
    };
    ContainerStatus {
        name: name.to_owned(),
        image: image.to_owned(),
        image_id: image.to_owned(),
        container_id: view.process.map(|process| format!("process://{process}")),
        last_state: view.last.as_ref().map(terminated),
        ready,
        restart_count: view.restarts,
        started: Some(started),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn terminated(end: &End) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code: end.code,
        reason: Some(end.reason.clone()),
        message: Some(end.message.clone()).filter(|message| !message.is_empty()),
        started_at: Some(Time(end.started)),
        finished_at: Some(Time(end.finished)),
        ..ContainerStateTerminated::default()
    };
    ContainerState {
        terminated: Some(terminated),
        ..ContainerState::default()
    }
}

/// A condition keeps its transition time while its status is the same.
fn condition(
    pod: &Pod,
    kind: &str,
    holds: bool,
    reason: Option<&str>,
    message: Option<String>,
    now: Timestamp,
) -> PodCondition {
    let status = if holds { "True" } else { "False" };
    let known = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let before = known
        .into_iter()
        .flatten()
        .find(|before| before.type_ == kind && before.status == status);
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message,
        last_transition_time: before
            .and_then(|before| before.last_transition_time.clone())
            .or(Some(Time(now))),
        ..PodCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{placement, pod};
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn end(code: i32) -> End {
        End {
            code,
            reason: "Error".into(),
            message: String::new(),
            started: at(1),
            finished: at(2),
        }
    }

    fn view(phase: Phase) -> ContainerView {
        ContainerView {
            phase,
            last: None,
            restarts: 0,
            process: Some(7),
        }
    }

    fn running(ready: bool) -> ContainerView {
        view(Phase::Running {
            since: at(1),
            started: true,
            ready,
        })
    }

    #[test]
    fn phase_follows_from_containers_and_policy() {
        use Policy::{Always, Never, OnFailure};
        let waiting = || ContainerView::waiting("ContainerCreating", "");
        let again = || ContainerView {
            last: Some(end(1)),
            ..waiting()
        };
        let ended = |code| view(Phase::Ended(end(code)));
        let table = [
            (vec![waiting()], Always, "Pending"),
            (vec![running(false)], Always, "Running"),
            (vec![running(true), waiting()], Always, "Running"),
            (vec![again()], Always, "Running"),
            (vec![ended(0)], Always, "Running"),
            (vec![ended(0)], Never, "Succeeded"),
            (vec![ended(1)], Never, "Failed"),
            (vec![ended(0), ended(1)], Never, "Failed"),
            (vec![ended(0)], OnFailure, "Succeeded"),
            (vec![ended(1)], OnFailure, "Running"),
            (vec![ended(0), running(true)], Never, "Running"),
            (vec![], Always, "Pending"),
        ];
        for (views, policy, phase) in table {
            assert_eq!(pod_phase(&views, policy), phase, "{views:?} {policy:?}");
        }
    }

    #[test]
    fn pod_is_ready_when_all_its_containers_are() {
        let pod = pod(json!({"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}));
        for (views, ready) in [
            ([running(true), running(true)], "True"),
            ([running(true), running(false)], "False"),
        ] {
            let status = status(&pod, &views, Some(&placement()), at(1), at(9));
            let conditions = status.conditions.unwrap();
            let found = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
            assert_eq!(found.status, ready);
            assert_eq!(
                found.message.as_deref(),
                (ready == "False").then_some("containers with unready status: [b]")
            );
        }
    }

    #[test]
    fn condition_keeps_its_time_until_it_changes() {
        let mut pod = pod(json!({"containers": [{"name": "a"}]}));
        let first = status(&pod, &[running(true)], Some(&placement()), at(1), at(5));
        pod.status = Some(first.clone());
        assert_eq!(
            status(&pod, &[running(true)], Some(&placement()), at(1), at(9)),
            first,
            "nothing changed, nothing to write"
        );
        let time = |status: &PodStatus, kind: &str| {
            let conditions = status.conditions.as_ref().unwrap();
            conditions
                .iter()
                .find(|condition| condition.type_ == kind)
                .unwrap()
                .last_transition_time
                .clone()
        };
        let later = status(&pod, &[running(false)], Some(&placement()), at(1), at(9));
        assert_eq!(time(&later, "Ready"), Some(Time(at(9))));
        assert_eq!(time(&later, "Initialized"), Some(Time(at(5))));
    }

    #[test]
    fn last_termination_is_shown_after_a_restart() {
        let pod = pod(json!({"containers": [{"name": "a", "image": "i"}]}));
        let view = ContainerView {
            last: Some(end(137)),
            restarts: 1,
            ..running(true)
        };
        let status = status(&pod, &[view], Some(&placement()), at(1), at(9))
            .container_statuses
            .unwrap()
            .remove(0);
        assert_eq!(status.restart_count, 1);
        assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 137);
        assert!(status.state.unwrap().running.is_some());
    }
}
