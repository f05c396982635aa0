use chrono::DateTime;
use proptest::prelude::*;

use super::summary::SUMMARIZED;
use super::*;

fn at(seconds: i64) -> Time {
    Time::new(DateTime::from_timestamp(seconds, 0).unwrap())
}

fn hosted(request: Request, data: Data, node: Node) -> Stage {
    Stage::Hosted {
        is_reused: false,
        request,
        data,
        node,
        labels: Labels::NotAsked,
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

/// Type, status and reason of the standard conditions, without `Paused`; the summary last.
fn standard(conditions: &Conditions) -> Vec<String> {
    let row = |condition: &Condition| format!("{} {:?} {}", condition.type_, condition.status, condition.reason);
    let mut rows: Vec<String> = conditions
        .standard
        .iter()
        .filter(|c| c.type_ != machine::PAUSED)
        .map(row)
        .collect();
    rows.sort_by_key(|row| row.starts_with("Ready"));
    rows
}

/// Type, status, severity and reason of the legacy conditions; the summary last.
fn legacy(conditions: &Conditions) -> Vec<String> {
    let row = |condition: &LegacyCondition| {
        let words = [
            &condition.type_,
            &condition.status,
            &condition.severity,
            &condition.reason,
        ];
        words.map(String::as_str).join(" ").trim_end().to_owned()
    };
    let mut rows: Vec<String> = conditions.legacy.iter().map(row).collect();
    rows.sort_by_key(|row| row.starts_with("Ready"));
    rows
}

fn after(stages: &[Stage]) -> Conditions {
    stages.iter().fold(Conditions::default(), |conditions, stage| {
        conditions.at(stage, Some(1), at(0))
    })
}

#[test]
fn each_prerequisite_has_its_own_reason_in_both_generations() {
    let without_cluster = Stage::WithoutCluster {
        message: text("there is none"),
    };
    let before = [
        (
            Prerequisite::Owner,
            "WaitingForMetal3MachineOwnerRef",
            "WaitingForM3MachineOwnerRef",
        ),
        (
            Prerequisite::Cluster,
            "WaitingForClusterInfrastructureReady",
            "WaitingForClusterInfrastructure",
        ),
        (
            Prerequisite::Infrastructure,
            "WaitingForClusterInfrastructureReady",
            "WaitingForClusterInfrastructure",
        ),
        (
            Prerequisite::Bootstrap,
            "WaitingForBootstrapData",
            "WaitingForBootstrapReady",
        ),
    ];
    let before = before.map(|(one, reason, older)| (Stage::Before(one), reason, older));
    let named = (without_cluster, "WaitingforMetal3Cluster", "WaitingforMetal3Cluster");
    for (stage, reason, older) in before.into_iter().chain([named]) {
        let conditions = after(&[stage]);
        assert_eq!(
            standard(&conditions),
            [
                format!("AssociateBareMetalHost False {reason}"),
                text("Ready False NotReady")
            ]
        );
        assert_eq!(
            legacy(&conditions),
            [
                format!("AssociateBMH False Info {older}"),
                format!("Ready False Info {older}")
            ]
        );
        let expected = conditions
            .standard
            .iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap();
        let lines: Vec<&str> = expected.message.lines().collect();
        assert!(lines[0].starts_with("* AssociateBareMetalHost: "), "{lines:?}");
        assert_eq!(
            lines[1..],
            [
                "* AssociateMetal3MachineMetaData: NotYetReported",
                "* Metal3DataReady: NotYetReported"
            ]
        );
    }
}

#[test]
fn machine_without_host_has_a_reason_and_a_complete_one_is_ready() {
    let without = after(&[Stage::WithoutHost {
        message: text("no host can be claimed: each is paused"),
        is_rechecked: false,
    }]);
    assert_eq!(
        standard(&without)[0],
        "AssociateBareMetalHost False AssociateBareMetalHostFailed"
    );
    assert_eq!(
        legacy(&without),
        [
            "AssociateBMH False Error AssociateBMHFailed",
            "Ready False Error AssociateBMHFailed"
        ]
    );

    let ready = after(&[hosted(Request::Made, Data::Rendered, Node::Known)]);
    assert_eq!(
        standard(&ready),
        [
            "AssociateBareMetalHost True AssociateBareMetalHostSuccess",
            "AssociateMetal3MachineMetaData True AssociateMetal3MachineMetaDataSuccess",
            "Metal3DataReady True Metal3DataSecretsReady",
            "Ready True Ready",
        ]
    );
    assert_eq!(
        legacy(&ready),
        [
            "AssociateBMH True",
            "Metal3DataReady True",
            "KubernetesNodeReady True",
            "Ready True"
        ]
    );
}

/// A stage with a host, and the expected row of each generation.
fn expected_rows() -> Vec<(Stage, &'static str, &'static str)> {
    let m = || text("m");
    let failing = |request| hosted(request, Data::External, Node::NotExpected);
    let about_node = |node| hosted(Request::Made, Data::Rendered, node);
    vec![
        (
            failing(Request::Failed(m())),
            "AssociateMetal3MachineMetaData False AssociateMetal3MachineMetaDataFailed",
            "KubernetesNodeReady False Warning AssociateM3MetaDataFailed",
        ),
        (
            failing(Request::HostNotWritten(m())),
            "AssociateMetal3MachineMetaData False CreateError",
            "Metal3DataReady True",
        ),
        (
            hosted(Request::HostNotUpdated(m()), Data::External, Node::Known),
            "AssociateMetal3MachineMetaData False UpdateError",
            "KubernetesNodeReady True",
        ),
        (
            hosted(Request::Made, Data::Waiting(m()), Node::NotExpected),
            "Metal3DataReady False WaitingForMetal3Data",
            "Metal3DataReady False Info WaitingForMetal3Data",
        ),
        (
            failing(Request::Made),
            "Metal3DataReady True SecretsSetExternally",
            "Metal3DataReady True",
        ),
        (
            about_node(Node::Waiting(m())),
            "AssociateMetal3MachineMetaData False CreateError",
            "KubernetesNodeReady False Info SettingProviderIDOnNodeFailed",
        ),
        (
            about_node(Node::Failed(m())),
            "AssociateMetal3MachineMetaData False CreateError",
            "KubernetesNodeReady False Warning SettingProviderIDOnNodeFailed",
        ),
    ]
}

#[test]
fn each_wait_and_failure_with_a_host_is_reported_where_the_go_manager_reports_it() {
    for (stage, expected, older) in expected_rows() {
        let conditions = after(&[stage]);
        let (rows, older_rows) = (standard(&conditions), legacy(&conditions));
        assert!(rows.contains(&text(expected)), "{expected}: {rows:?}");
        assert!(older_rows.contains(&text(older)), "{older}: {older_rows:?}");
        assert_eq!(
            rows.last().unwrap() == "Ready True Ready",
            !expected.contains("False"),
            "{rows:?}"
        );
    }
}

#[test]
fn reason_of_a_reused_host_stays_until_the_host_is_released() {
    let kept = Stage::Hosted {
        is_reused: true,
        request: Request::Made,
        data: Data::Rendered,
        node: Node::NotExpected,
        labels: Labels::NotAsked,
    };
    let later = hosted(Request::Made, Data::Rendered, Node::Known);
    let row = "AssociateBareMetalHost True AssociateBareMetalHostViaNodeReuseSuccess";
    assert_eq!(standard(&after(&[kept.clone(), later.clone()]))[0], row);
    let paused = Stage::Paused {
        message: text("the Cluster is paused"),
    };
    let resumed = after(&[kept, paused, later]);
    assert_eq!(
        standard(&resumed)[0],
        "AssociateBareMetalHost True AssociateBareMetalHostSuccess"
    );
}

#[test]
fn pause_does_not_change_data_conditions_and_a_failed_pause_has_its_reason() {
    let paused = Stage::Paused {
        message: text("the Cluster is paused"),
    };
    let conditions = after(&[hosted(Request::Made, Data::Rendered, Node::Known), paused]);
    assert_eq!(
        standard(&conditions),
        [
            "AssociateBareMetalHost False Paused",
            "AssociateMetal3MachineMetaData True AssociateMetal3MachineMetaDataSuccess",
            "Metal3DataReady True Metal3DataSecretsReady",
            "Ready False NotReady",
        ]
    );
    assert!(legacy(&conditions).contains(&text("AssociateBMH False Info Metal3MachinePaused")));
    let of = |conditions: &Conditions| {
        let paused = conditions
            .standard
            .iter()
            .find(|condition| condition.type_ == "Paused")
            .unwrap();
        format!("{:?} {} {}", paused.status, paused.reason, paused.message)
    };
    assert_eq!(of(&conditions), "True Paused the Cluster is paused");
    assert_eq!(of(&after(&[Stage::Before(Prerequisite::Owner)])), "False NotPaused ");
    for (pausing, reason, older) in [
        (
            true,
            "BareMetalHostPauseAnnotationSetFailed",
            "PauseAnnotationSetFailedReason",
        ),
        (
            false,
            "BareMetalHostPauseAnnotationRemoveFailed",
            "PauseAnnotationRemoveFailed",
        ),
    ] {
        let conditions = after(&[Stage::HostPauseFailed {
            pausing,
            message: text("m"),
        }]);
        assert_eq!(of(&conditions), format!("False {reason} m"));
        assert_eq!(
            standard(&conditions)[0],
            format!("AssociateBareMetalHost False {reason}")
        );
        assert_eq!(legacy(&conditions)[0], format!("AssociateBMH False Info {older}"));
    }
}

#[test]
fn deletion_reports_what_blocks_it() {
    for (deletion, reason, older) in [
        (Deletion::UnderWay(text("m")), "Deleting", "Info Deleting"),
        (
            Deletion::DataNotReleased(text("m")),
            "DisassociateM3MetaDataFailed",
            "Warning DisassociateM3MetaDataFailed",
        ),
        (
            Deletion::HostNotReleased(text("m")),
            "DeletionFailed",
            "Warning DeletionFailed",
        ),
        (
            Deletion::ReuseUndecided(text("m")),
            "NodeReuseUndecided",
            "Warning NodeReuseUndecided",
        ),
    ] {
        let conditions = after(&[Stage::Deleting(deletion)]);
        assert_eq!(
            standard(&conditions)[0],
            format!("AssociateMetal3MachineMetaData False {reason}")
        );
        assert_eq!(
            legacy(&conditions),
            [
                format!("KubernetesNodeReady False {older}"),
                format!("Ready False {older}")
            ]
        );
    }
}

#[test]
fn resolved_failure_is_not_reported() {
    let failed = hosted(
        Request::Failed(text("conflict")),
        Data::Waiting(text("m")),
        Node::NotExpected,
    );
    let went_on = hosted(Request::Made, Data::Rendered, Node::NotExpected);
    let conditions = after(&[failed, went_on]);
    assert_eq!(
        legacy(&conditions),
        ["AssociateBMH True", "Metal3DataReady True", "Ready True"]
    );
    assert_eq!(standard(&conditions).last().unwrap(), "Ready True Ready");
}

#[test]
fn machine_waits_for_what_its_first_condition_that_is_not_true_states() {
    let wait = |stage: &Stage| match wait_at(stage, at(1)) {
        Next::Waiting(on) => Some((on.reason.as_str(), on.message)),
        _ => None,
    };
    let hosted = |data: Data, node: Node| Stage::Hosted {
        is_reused: false,
        request: Request::Made,
        data,
        node,
        labels: Labels::NotAsked,
    };
    let message = || "no host".to_owned();
    let (without, owner) = (
        Stage::WithoutHost {
            message: message(),
            is_rechecked: false,
        },
        Stage::Before(Prerequisite::Owner),
    );
    assert_eq!(wait(&without), Some((machine::REASON_HOST_FAILED.as_str(), message())));
    assert_eq!(
        wait(&owner).map(|(reason, _)| reason),
        Some(machine::REASON_WAITING_FOR_OWNER.as_str())
    );
    let data = wait(&hosted(Data::Waiting(message()), Node::NotExpected));
    assert_eq!(data.map(|(_, stated)| stated), Some(message()));
    let node = wait(&hosted(Data::Rendered, Node::Waiting(message())));
    assert_eq!(node.map(|(_, stated)| stated), Some(message()));
    assert_eq!(wait(&hosted(Data::Rendered, Node::Known)), None);
    let paused = wait(&Stage::Paused { message: message() });
    assert_eq!(paused.map(|(_, stated)| stated), Some(message()));
}

fn stages() -> impl Strategy<Value = Stage> {
    let message = || "[a-c]{0,2}".prop_map(|text| text);
    let request = prop_oneof![
        3 => Just(Request::Made),
        1 => message().prop_map(Request::Failed),
        1 => message().prop_map(Request::HostNotWritten),
        1 => message().prop_map(Request::HostNotUpdated),
    ];
    let data = prop_oneof![
        Just(Data::Rendered),
        Just(Data::External),
        message().prop_map(Data::Waiting)
    ];
    let node = prop_oneof![
        Just(Node::NotExpected),
        Just(Node::Known),
        message().prop_map(Node::Waiting),
        message().prop_map(Node::Failed),
    ];
    let labels = prop_oneof![
        Just(Labels::NotAsked),
        Just(Labels::Unchanged),
        Just(Labels::Copied),
        Just(Labels::Busy),
        message().prop_map(|why| Labels::Waiting(why.into())),
        message().prop_map(|why| Labels::Failed(why.into())),
    ];
    let all = (any::<bool>(), request, data, node, labels);
    let hosted = all.prop_map(|(is_reused, request, data, node, labels)| Stage::Hosted {
        is_reused,
        request,
        data,
        node,
        labels,
    });
    prop_oneof![
        1 => Just(Stage::Before(Prerequisite::Bootstrap)),
        1 => message().prop_map(|message| Stage::Paused { message }),
        1 => (any::<bool>(), message()).prop_map(|(pausing, message)| Stage::HostPauseFailed { pausing, message }),
        1 => message().prop_map(|message| Stage::WithoutHost { message, is_rechecked: false }),
        4 => hosted,
        1 => message().prop_map(|message| Stage::Deleting(Deletion::UnderWay(message))),
    ]
}

proptest! {
    #[test]
    fn repeated_stage_changes_nothing_and_times_change_only_with_the_status(
        stages in proptest::collection::vec(stages(), 1..8),
    ) {
        let mut conditions = Conditions::default();
        for (stage, time) in stages.iter().zip(1..) {
            let before = conditions.clone();
            conditions = conditions.at(stage, Some(1), at(time));
            prop_assert_eq!(&conditions.clone().at(stage, Some(1), at(time + 100)), &conditions);
            for condition in &conditions.standard {
                let old = before.standard.iter().find(|old| old.type_ == condition.type_);
                let moved = old.is_none_or(|old| old.status != condition.status);
                let expected = if moved { at(time) } else { old.map_or(at(time), |old| old.last_transition_time) };
                prop_assert_eq!(condition.last_transition_time, expected);
                prop_assert!(!condition.reason.is_empty());
            }
            let ready = |status| conditions.standard.iter().any(|c| c.type_ == "Ready" && c.status == status);
            let all_hold = SUMMARIZED.iter().all(|condition_type| {
                conditions.standard.iter().any(|c| c.type_ == *condition_type && c.status == ConditionStatus::True)
            });
            prop_assert_eq!(ready(ConditionStatus::True), all_hold);
            prop_assert!(conditions.standard.len() <= 32 && conditions.legacy.len() <= 32);
        }
    }
}

#[test]
fn labels_of_the_node_are_reported_apart_from_the_summary_and_no_more_when_none_are_asked_for() {
    let with = |labels| Stage::Hosted {
        is_reused: false,
        request: Request::Made,
        data: Data::Rendered,
        node: Node::Known,
        labels,
    };
    let reported = |labels: &[Labels]| {
        let stages: Vec<Stage> = labels.iter().cloned().map(with).collect();
        let rows = standard(&after(&stages));
        assert_eq!(rows.last().unwrap(), "Ready True Ready", "{labels:?}");
        rows.into_iter().find(|row| row.starts_with("NodeLabelsSynced"))
    };
    let (waiting, failed) = (Labels::Waiting("away".into()), Labels::Failed("bad".into()));
    let is = |row: &str| Some(row.to_owned());
    assert_eq!(
        reported(&[Labels::Copied]),
        is("NodeLabelsSynced True NodeLabelsSynced")
    );
    assert_eq!(
        reported(std::slice::from_ref(&waiting)),
        is("NodeLabelsSynced False WaitingForNode")
    );
    assert_eq!(reported(&[failed]), is("NodeLabelsSynced False NodeLabelsFailed"));
    assert_eq!(
        reported(&[waiting, Labels::Unchanged]),
        is("NodeLabelsSynced False WaitingForNode")
    );
    assert_eq!(reported(&[Labels::Copied, Labels::NotAsked]), None);
}
