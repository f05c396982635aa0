//! Workload clusters that answer reads and refuse changes, on the simulated API server.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::write::Mode;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::lab::{Step, kinds, start};
use crate::data::reconciler::tests::lab::{HOSTS, INFRASTRUCTURE, User};
use crate::tests::Log;

const STORAGE: &str = "/apis/storage.k8s.io/v1";
/// The time of an attempt, in seconds.
const TIME: i32 = 600;

pub(super) struct Site {
    pub(super) server: Cluster,
    pub(super) user: User,
    program: JoinSet<()>,
}

impl Site {
    /// A remediation whose host is still on.
    pub(super) async fn new(kubelet: &'static str) -> Self {
        let server = Cluster::start(&Options::seeded(1));
        server.install(&kinds()).unwrap();
        let mut site = Self {
            user: User(server.client("user")),
            program: JoinSet::new(),
            server,
        };
        site.start(Mode::Perform);
        site.take(&[Step::Begin(kubelet), Step::Unhealthy(TIME)], 5).await;
        site
    }

    /// Starts the program, or another one in its place.
    pub(super) fn start(&mut self, mode: Mode) {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        self.program = start(&self.server.client("manager"), &clock, mode);
    }

    pub(super) fn stop(&mut self) {
        self.program = JoinSet::new();
    }

    /// Takes steps, and waits that many seconds.
    pub(super) async fn take(&self, steps: &[Step], seconds: u64) {
        for step in steps {
            step.take(&self.user).await;
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// From now on changes of Nodes fail.
    fn refuse(&self, fault: Fault) {
        let rule = |verb| Rule::random(1000, fault).verb(verb).resource("nodes");
        let plan = Plan::none().with(rule("patch")).with(rule("delete"));
        self.server.inject_for(&["manager"], plan);
    }

    pub(super) async fn remediation(&self) -> Value {
        self.user.get(INFRASTRUCTURE, "metal3remediations/w-0").await
    }

    pub(super) async fn is_held(&self) -> bool {
        let host = self.user.get(HOSTS, "baremetalhosts/h0").await;
        let annotations = host["metadata"]["annotations"].as_object();
        annotations.is_some_and(|all| all.keys().any(|key| key.starts_with("reboot.metal3.io/")))
    }
}

/// The condition `Remediated`: reason and message.
pub(super) fn remediated(remediation: &Value) -> (String, String) {
    let all = remediation["status"]["conditions"].as_array().unwrap();
    let one = all.iter().find(|one| one["type"] == "Remediated").unwrap();
    let text = |member: &str| one[member].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

const FAILURES: [Fault; 3] = [
    Fault::refused(500),
    Fault::Refused {
        code: 429,
        retry_after: None,
    },
    Fault::Conflict,
];

#[tokio::test(start_paused = true)]
async fn host_is_on_again_after_half_of_the_time_when_no_change_of_its_node_succeeds() {
    for kubelet in ["v1.31.0", "v1.27.3"] {
        for failure in FAILURES {
            let site = Site::new(kubelet).await;
            site.refuse(failure);
            site.take(&[Step::Power], 250).await;
            assert!(
                site.server.injected() > 0 && site.is_held().await,
                "{kubelet} {failure:?}"
            );
            if failure != Fault::Conflict {
                let (reason, message) = remediated(&site.remediation().await);
                assert_eq!(reason, "WorkloadClusterUnreachable", "{kubelet} {failure:?}");
                assert!(message.contains("read or changed"), "{message}");
            }
            site.take(&[], 60).await;
            assert!(!site.is_held().await, "{kubelet} {failure:?}");
            assert_eq!(site.remediation().await["status"]["phase"], "Waiting");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_remediation_ends_after_twice_its_time_when_its_node_cannot_be_restored() {
    for failure in FAILURES {
        let site = Site::new("v1.31.0").await;
        site.take(&[Step::Power], 20).await;
        site.refuse(failure);
        site.take(&[Step::Power, Step::Delete], 1150).await;
        assert!(site.server.injected() > 0, "{failure:?}");
        assert!(site.remediation().await["metadata"]["deletionTimestamp"].is_string());
        site.take(&[], 100).await;
        let left = site.user.list(INFRASTRUCTURE, "metal3remediations").await;
        assert!(left.is_empty(), "{failure:?}: {left:#?}");
    }
}

/// Attempts and what follows them outlive their time.
#[tokio::test(start_paused = true)]
async fn failure_after_the_time_of_the_attempt_leaves_no_taint() {
    let site = Site::new("v1.31.0").await;
    site.take(&[Step::Power], 20).await;
    site.refuse(Fault::refused(500));
    site.take(&[Step::Power], 1300).await;
    site.take(&[Step::Delete], 60).await;
    site.server.inject_for(&["manager"], Plan::none());
    site.take(&[], 60).await;
    let node = site.user.get("/api/v1", "nodes/n0").await;
    assert_eq!(node["spec"]["taints"].as_array().map_or(0, Vec::len), 0, "{node:#}");
    assert!(site.user.list(INFRASTRUCTURE, "metal3remediations").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_step_that_cannot_be_undone_is_in_the_audit_log() {
    let (log, _guard) = Log::of_this_thread();
    let site = Site::new("v1.27.3").await;
    site.take(&[Step::Power], 20).await;
    for _ in 0..4 {
        site.take(&[Step::Power], 310).await;
    }
    let lines: Vec<String> = log.on_record().into_iter().map(|(message, _)| message).collect();
    let expected = [
        "powering off the host, for a Metal3Remediation",
        "deleting the Node, for a Metal3Remediation",
        "powering on the host, for a Metal3Remediation",
        "powering off the host, for a Metal3Remediation",
        "powering on the host, for a Metal3Remediation",
        "excluding the host, because its machine did not come back, for a Metal3Remediation",
        "giving the Machine up: its owner replaces it",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_node_without_an_answer_is_in_the_audit_log() {
    let (log, _guard) = Log::of_this_thread();
    let site = Site::new("v1.27.3").await;
    site.refuse(Fault::refused(500));
    site.take(&[Step::Power], 20).await;
    let lines = log.on_record();
    assert!(
        lines
            .iter()
            .any(|(line, _)| line.starts_with("perhaps deleting the Node")),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn host_is_off_until_pods_and_volumes_have_left_its_node() {
    let site = Site::new("v1.31.0").await;
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": "disk" },
        "spec": { "attacher": "example.org", "nodeName": "n0", "source": { "persistentVolumeName": "disk" } },
    });
    site.user.make(STORAGE, "volumeattachments", attachment).await;
    site.take(&[Step::Terminating(true), Step::Power], 60).await;
    assert!(site.is_held().await);
    assert!(remediated(&site.remediation().await).1.contains("Pods are terminating"));
    site.take(&[Step::Terminating(false)], 60).await;
    assert!(site.is_held().await);
    assert!(remediated(&site.remediation().await).1.contains("volumes are attached"));
    site.user.delete(STORAGE, "volumeattachments/disk").await;
    site.take(&[], 10).await;
    assert!(!site.is_held().await);
}

#[tokio::test(start_paused = true)]
async fn program_that_only_observes_neither_repeats_its_plan_nor_records_it_in_the_audit_log() {
    for kubelet in ["v1.31.0", "v1.27.3"] {
        let mut site = Site::new(kubelet).await;
        site.stop();
        site.take(&[Step::Power], 5).await;
        let (log, _guard) = Log::of_this_thread();
        site.start(Mode::ObserveOnly);
        site.take(&[], 60).await;
        site.server.reset_audit();
        site.take(&[], 3600).await;
        let audit = site.server.audit();
        let own = audit
            .counts()
            .filter(|((user, verb, _), _)| user == "manager" && *verb != "watch");
        let requests: u64 = own.map(|(_, count)| count).sum();
        assert!(requests < 10, "{kubelet}: {audit:?}");
        assert!(site.is_held().await);
        assert_eq!(log.on_record(), []);
    }
}
