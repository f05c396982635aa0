//! The condition about what workers need to join.

use std::collections::BTreeMap;

use metal3_capi::workload::join::{Endpoint, JoinReport, Requisite, Server};

use super::*;
use crate::cluster::join::{Answer, Bootstraps, JoinState, has_foreign_control_plane, is_final};

const TYPE: &str = "WorkerJoinPreflight";

/// All of what kubeadm needs, at an endpoint that sends it.
fn complete() -> JoinReport {
    JoinReport {
        server: Server::Answers,
        endpoint: Some(Endpoint::SendsInfo),
        requisites: Requisite::OF_KUBEADM.map(|one| (one, Observed::Present(()))).into(),
    }
}

fn with(requisites: &[Requisite], state: &Observed<()>) -> JoinReport {
    let mut report = complete();
    report
        .requisites
        .extend(requisites.iter().map(|one| (*one, state.clone())));
    report
}

fn at_endpoint(endpoint: Endpoint) -> JoinReport {
    JoinReport {
        endpoint: Some(endpoint),
        ..complete()
    }
}

fn kubeadm() -> Bootstraps {
    Bootstraps {
        has_kubeadm: true,
        ..Bootstraps::default()
    }
}

fn answer(report: JoinReport, bootstraps: Bootstraps) -> Answer {
    Answer {
        report,
        endpoint: Some(("192.0.2.1".to_owned(), 6443)),
        bootstraps,
    }
}

fn decide_with(object: &Metal3Cluster, state: JoinState) -> Plan {
    let join = JoinFacts { state, recheck: None };
    plan(&Facts {
        join,
        ..facts(object, Observed::Present(&cluster(json!({}))))
    })
}

/// Status, reason and message of the condition.
fn said(report: JoinReport, bootstraps: Bootstraps) -> (ConditionStatus, String, String) {
    let plan = decide_with(
        &object(json!({})),
        JoinState::Known(Arc::new(answer(report, bootstraps))),
    );
    assert_eq!(
        state(&plan, "Ready"),
        (ConditionStatus::True, "Ready"),
        "it holds nothing back"
    );
    let found = condition(&plan, TYPE);
    (found.status, found.reason.clone(), found.message.clone())
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each answer")]
fn each_answer_has_its_reason_and_a_message_that_names_what_is_missing_and_the_cure() {
    let (absent, refused) = (Observed::Absent, Observed::Unknown(UnknownReason::NotPermitted));
    let failed = Observed::Unknown(UnknownReason::Unreadable("server_failed".to_owned()));
    let (missing, unreachable) = (
        (ConditionStatus::False, "JoinRequisitesMissing"),
        "WorkloadClusterUnreachable",
    );
    let no_access = JoinReport::of(Server::NoAccess("Secret edge-kubeconfig does not exist; x".to_owned()));
    let rows: &[(JoinReport, (ConditionStatus, &str), &[&str])] = &[
        (complete(), (ConditionStatus::True, "JoinRequisitesFound"), &[]),
        (
            no_access,
            (ConditionStatus::Unknown, "KubeconfigUnusable"),
            &["Secret edge-kubeconfig does not exist"],
        ),
        (
            JoinReport::of(Server::Silent),
            (ConditionStatus::Unknown, unreachable),
            &["does not answer", "check its address"],
        ),
        (
            with(&[Requisite::ClusterInfo, Requisite::GetNodes], &absent),
            missing,
            &[
                "ConfigMap kube-public/cluster-info, ClusterRoleBinding kubeadm:get-nodes; ",
                "kubeadm init phase bootstrap-token",
            ],
        ),
        (
            with(&[Requisite::KubeadmConfig, Requisite::ReadKubeletConfig], &absent),
            missing,
            &[
                "ConfigMap kube-system/kubeadm-config, RoleBinding kube-system/kubeadm:kubelet-config; ",
                "upload-config all",
            ],
        ),
        (
            with(&[Requisite::Scheduler], &absent),
            missing,
            &["Lease kube-system/kube-scheduler", "no Pod starts"],
        ),
        (
            at_endpoint(Endpoint::Refuses),
            missing,
            &["192.0.2.1:6443 refuses", "kubeadm:bootstrap-signer-clusterinfo"],
        ),
        (at_endpoint(Endpoint::HasNoInfo), missing, &["leads to another cluster"]),
        (
            with(&[Requisite::KubeletConfig], &refused),
            (ConditionStatus::Unknown, "WorkloadClusterForbidden"),
            &["may not get ConfigMap kube-system/kubelet-config; permit it"],
        ),
        (
            with(&[Requisite::KubeletConfig], &failed),
            (ConditionStatus::Unknown, unreachable),
            &["kubelet-config"],
        ),
        (
            at_endpoint(Endpoint::Silent),
            (ConditionStatus::Unknown, unreachable),
            &["machines may still reach it"],
        ),
        (
            at_endpoint(Endpoint::Fails),
            (ConditionStatus::Unknown, unreachable),
            &["192.0.2.1:6443 answers"],
        ),
    ];
    for (report, (status, reason), texts) in rows {
        let (found, why, message) = said(report.clone(), kubeadm());
        assert_eq!((found, why.as_str()), (*status, *reason), "{report:?}");
        assert!(texts.iter().all(|text| message.contains(text)), "{message}");
        assert!(message.len() < 1_500, "{message}");
        assert_eq!(
            is_final(&answer(report.clone(), kubeadm())),
            *status == ConditionStatus::True
        );
    }
}

#[test]
fn what_is_missing_counts_before_what_is_not_known_and_neither_hides_the_other() {
    let mut report = with(&[Requisite::KubeadmConfig], &Observed::Absent);
    let refused = Observed::Unknown(UnknownReason::NotPermitted);
    report.requisites.extend([(Requisite::GetNodes, refused)]);
    report.endpoint = Some(Endpoint::Silent);
    let (status, reason, message) = said(report, kubeadm());
    assert_eq!(
        (status, reason.as_str()),
        (ConditionStatus::False, "JoinRequisitesMissing")
    );
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3, "{message}");
    assert!(lines[0].contains("kubeadm-config") && lines[1].contains("get-nodes") && lines[2].contains("certificate"));
    // Without the ConfigMap, a refusal at the endpoint says nothing more.
    let mut report = with(&[Requisite::ClusterInfo], &Observed::Absent);
    report.endpoint = Some(Endpoint::Refuses);
    assert_eq!(said(report, kubeadm()).2.lines().count(), 1);
}

#[test]
fn no_unknown_answer_is_a_missing_requisite() {
    for reason in [
        UnknownReason::NotRead,
        UnknownReason::NotListed,
        UnknownReason::NotPermitted,
        UnknownReason::Unreadable("odd".to_owned()),
    ] {
        for requisite in Requisite::OF_KUBEADM {
            let report = with(&[requisite], &Observed::Unknown(reason.clone()));
            assert_eq!(
                said(report, kubeadm()).0,
                ConditionStatus::Unknown,
                "{requisite:?} {reason:?}"
            );
        }
    }
}

#[test]
fn other_bootstrap_providers_are_named_and_nothing_of_kubeadm_is_asked_for() {
    let others = Bootstraps {
        others: ["EKSConfig".to_owned()].into(),
        has_plain_data: true,
        ..Bootstraps::default()
    };
    let report = |found| JoinReport {
        server: Server::Answers,
        endpoint: Some(Endpoint::Refuses),
        requisites: BTreeMap::from([(Requisite::Namespace, found)]),
    };
    let (status, reason, message) = said(report(Observed::Present(())), others.clone());
    assert_eq!(
        (status, reason.as_str()),
        (ConditionStatus::True, "JoinRequisitesFound")
    );
    assert!(
        message.contains("EKSConfig, bootstrap data without a configuration need"),
        "{message}"
    );
    let refused = report(Observed::Unknown(UnknownReason::NotPermitted));
    assert_eq!(said(refused, others).1, "WorkloadClusterForbidden");
}

#[test]
fn condition_is_written_once_kept_while_nothing_is_new_and_removed_when_it_is_not_asked_for() {
    let plain = object(json!({}));
    let missing = || {
        JoinState::Known(Arc::new(answer(
            with(&[Requisite::Scheduler], &Observed::Absent),
            kubeadm(),
        )))
    };
    let first = decide_with(&plain, missing());
    let written = after(&plain, &first);
    assert_eq!(decide_with(&written, missing()), Plan::default());
    assert_eq!(decide_with(&written, JoinState::Unchanged), Plan::default());
    let removed = decide_with(&written, JoinState::NotAsked);
    assert!(status(&removed).conditions.iter().all(|one| one.type_ != TYPE));
    assert_eq!(
        decide_with(
            &after(&plain, &decide_with(&plain, JoinState::NotAsked)),
            JoinState::NotAsked
        ),
        Plan::default()
    );
}

#[test]
fn paused_object_keeps_the_condition() {
    let plain = object(json!({}));
    let missing = JoinState::Known(Arc::new(answer(
        with(&[Requisite::Scheduler], &Observed::Absent),
        kubeadm(),
    )));
    let written = after(&plain, &decide_with(&plain, missing));
    let paused = cluster(json!({ "spec": { "paused": true } }));
    let plan = decide_in(&written, &paused);
    assert_eq!(condition(&plan, TYPE).status, ConditionStatus::False);
}

#[test]
fn control_plane_is_foreign_unless_kubeadm_or_the_machines_of_a_primary_run_it() {
    let plane =
        |kind: &str, group: &str| json!({ "controlPlaneRef": { "apiGroup": group, "kind": kind, "name": "edge" } });
    let group = "controlplane.cluster.x-k8s.io";
    let (primary, (secondary, of_secondary)) = (object(json!({})), secondary(json!({ "clusterName": "edge" })));
    for (spec, as_primary, as_secondary) in [
        (plane("KubeadmControlPlane", group), false, false),
        (plane("KubeadmControlPlane", "example.org"), true, true),
        (plane("KamajiControlPlane", group), true, true),
        (json!({}), false, true),
    ] {
        let of_primary = cluster(json!({ "spec": spec }));
        assert_eq!(has_foreign_control_plane(&primary, &of_primary), as_primary, "{spec}");
        let mut other = of_secondary.clone();
        other
            .spec
            .control_plane_ref
            .clone_from(&of_primary.spec.control_plane_ref);
        assert_eq!(has_foreign_control_plane(&secondary, &other), as_secondary, "{spec}");
    }
}
