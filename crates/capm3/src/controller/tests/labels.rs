//! Labels of hosts on Nodes of a simulated workload cluster: edits, restarts, outages, and a fault in every request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::cluster::Machine as Owner;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{ConnectFn, Remote, Workloads};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::program::standalone;
use super::steps::Step::{Data, Delete, Host, Machine, Pause, State};
use super::steps::{CLUSTER, Step, edit, kinds};
use super::without_faults::{PROGRAM, SETTLED};
use crate::controller::standalone::Standalone;
use crate::needs::Machines;

const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

/// A management cluster, a workload cluster, and the program.
struct Lab {
    management: Cluster,
    workload: Cluster,
    user: kube::Client,
    clock: Arc<dyn Clock>,
    program: JoinSet<()>,
}

impl Lab {
    /// The machine `m0` runs on the host `h0` as the Node `node-0`.
    async fn start() -> Self {
        let (management, workload) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
        management.install(&kinds()).unwrap();
        let mut lab = Self {
            user: management.client("user"),
            clock: Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)),
            program: JoinSet::new(),
            management,
            workload,
        };
        lab.restart();
        lab.take(&[Step::Cluster, Host("h0"), Machine("m0")]).await;
        lab.kubeconfig().await;
        lab.run_as(["m0", "h0", "node-0"]).await;
        lab
    }

    /// The next machine runs on the next host as this Node.
    async fn add(&self, names: [&'static str; 3]) {
        let [machine, host, _] = names;
        self.take(&[Host(host), Machine(machine)]).await;
        self.run_as(names).await;
    }

    async fn run_as(&self, [machine, host, name]: [&'static str; 3]) {
        let labels = json!({ "kubernetes.io/hostname": name, "a.io/stale": "yes", "b.io/own": "yes" });
        let spec = json!({ "providerID": format!("metal3://default/{host}/{machine}") });
        let node = json!({ "metadata": { "name": name, "labels": labels }, "spec": spec });
        let node: Node = serde_json::from_value(node).unwrap();
        self.nodes().create(&PostParams::default(), &node).await.unwrap();
        self.take(&[Data(machine)]).await;
        self.take(&[State(host, "provisioned")]).await;
        let api: Api<Owner> = Api::default_namespaced(self.user.clone());
        let status = Patch::Merge(json!({ "status": { "nodeRef": { "name": name } } }));
        api.patch_status(machine, &PatchParams::default(), &status)
            .await
            .unwrap();
        self.settle().await;
    }

    /// Starts the program again, without what it had in memory.
    fn restart(&mut self) -> Arc<Remote<Machines>> {
        let client = self.management.client(PROGRAM);
        let workload = self.workload.client(PROGRAM);
        let open: ConnectFn = Box::new(move |_| {
            let client = workload.clone();
            Box::pin(async move { Ok(client) })
        });
        let reader: Writer<Machines> = Writer::new(client.clone(), Mode::Perform);
        let remote = Arc::new(Remote::new(reader, open, Arc::clone(&self.clock)));
        let workloads: Arc<dyn Workloads> = Arc::<Remote<Machines>>::clone(&remote);
        let alone = Standalone {
            workloads,
            ..standalone(&client, &self.clock)
        };
        self.program = alone.tasks().into_iter().collect();
        let running = Arc::clone(&remote);
        self.program
            .spawn(async move { running.run(CancellationToken::new()).await });
        remote
    }

    async fn take(&self, steps: &[Step]) {
        for step in steps {
            step.take(&self.user).await;
        }
        self.settle().await;
    }

    async fn settle(&self) {
        tokio::time::sleep(SETTLED).await;
    }

    async fn kubeconfig(&self) {
        let data = [("value".to_owned(), ByteString(KUBECONFIG.as_bytes().to_vec()))];
        let mut secret = Secret {
            data: Some(data.into()),
            ..Secret::default()
        };
        secret.metadata.name = Some(format!("{CLUSTER}-kubeconfig"));
        let secrets: Api<Secret> = Api::default_namespaced(self.user.clone());
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.workload.client("user"))
    }

    async fn select(&self, prefixes: Option<&str>) {
        let annotations = json!({ "metal3.io/metal3-label-sync-prefixes": prefixes });
        edit::<Metal3Cluster>(
            &self.user,
            CLUSTER,
            json!({ "metadata": { "annotations": annotations } }),
        )
        .await;
    }

    async fn label_host(&self, labels: Value) {
        edit::<BareMetalHost>(&self.user, "h0", json!({ "metadata": { "labels": labels } })).await;
    }

    async fn label_node(&self, labels: Value) {
        let change = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        self.nodes()
            .patch("node-0", &PatchParams::default(), &change)
            .await
            .unwrap();
    }

    /// The labels of the Node below `a.io`.
    async fn found(&self) -> BTreeMap<String, String> {
        let labels = self
            .nodes()
            .get("node-0")
            .await
            .unwrap()
            .metadata
            .labels
            .unwrap_or_default();
        assert_eq!(
            labels.get("b.io/own").map(String::as_str),
            Some("yes"),
            "the label of another user"
        );
        labels.into_iter().filter(|(key, _)| key.starts_with("a.io/")).collect()
    }

    /// Status and message of the condition.
    async fn reported(&self) -> Option<(String, String)> {
        let machines: Api<Metal3Machine> = Api::default_namespaced(self.user.clone());
        let conditions = machines.get("m0").await.unwrap().status.conditions;
        let found = conditions
            .into_iter()
            .find(|condition| condition.type_ == "NodeLabelsSynced")?;
        Some((format!("{:?}", found.status), found.message))
    }

    /// Requests of the program to the workload cluster, by verb. Watches are counted with lists.
    fn requests(&self, verb: &'static str) -> u64 {
        self.workload.audit().of(PROGRAM, verb, "nodes")
    }
}

fn is(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

#[tokio::test(start_paused = true)]
async fn labels_follow_the_host_with_one_read_and_one_write_for_each_change() {
    let mut lab = Lab::start().await;
    assert_eq!(
        (lab.reported().await, lab.requests("get")),
        (None, 0),
        "nothing is asked for"
    );
    lab.label_host(json!({ "a.io/rack": "1", "b.io/own": "no", "plain": "x" }))
        .await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "1")]));
    assert_eq!(lab.reported().await.unwrap().0, "True");
    assert_eq!([lab.requests("get"), lab.requests("patch")], [1, 1]);
    // A day without changes.
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert_eq!([lab.requests("get"), lab.requests("patch")], [1, 1]);
    // The host changes, and then a user changes the Node.
    lab.label_host(json!({ "a.io/rack": "2", "a.io/row": "7" })).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "2"), ("a.io/row", "7")]));
    lab.label_node(json!({ "a.io/rack": null, "a.io/mine": "1" })).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "2"), ("a.io/row", "7")]));
    assert_eq!([lab.requests("get"), lab.requests("patch")], [3, 3]);
    // A restart reads the Node once.
    lab.restart();
    lab.settle().await;
    assert_eq!([lab.requests("get"), lab.requests("patch")], [4, 3]);
    // Labels stay when none are asked for any more.
    lab.select(None).await;
    lab.label_host(json!({ "a.io/rack": "3" })).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "2"), ("a.io/row", "7")]));
    assert_eq!(lab.reported().await, None);
}

#[tokio::test(start_paused = true)]
async fn host_is_not_copied_while_its_cluster_is_paused_or_the_machine_in_deletion() {
    let lab = Lab::start().await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    lab.take(&[Pause(true)]).await;
    lab.label_host(json!({ "a.io/rack": "1" })).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[]), "paused");
    lab.take(&[Pause(false)]).await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "1")]));
    lab.take(&[Delete("m0")]).await;
    lab.label_host(json!({ "a.io/rack": "2" })).await;
    lab.settle().await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "1")]), "in deletion");
}

#[tokio::test(start_paused = true)]
async fn labels_reach_the_node_after_every_fault_in_every_request_and_every_wait_is_reported() {
    let lab = Lab::start().await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    let (mut round, mut injected) = (0, 0);
    for fault in [
        Fault::refused(503),
        Fault::refused(403),
        Fault::refused(429),
        Fault::Conflict,
        Fault::ReplyLost,
    ] {
        for verb in ["get", "patch"] {
            for nth in 1..=2 {
                round += 1;
                lab.workload.inject_for(
                    &[PROGRAM],
                    Plan::seeded(1).with(Rule::at(nth, fault).verb(verb).resource("nodes")),
                );
                lab.label_host(json!({ "a.io/rack": round.to_string() })).await;
                tokio::time::sleep(Duration::from_mins(2)).await;
                // The second request exists only after a failure of the first one, or after another change.
                lab.label_node(json!({ "a.io/rack": "wrong" })).await;
                lab.settle().await;
                assert_eq!(
                    lab.found().await,
                    is(&[("a.io/rack", &round.to_string())]),
                    "{fault:?} {verb} {nth}"
                );
                assert_eq!(lab.reported().await.unwrap().0, "True", "{fault:?} {verb} {nth}");
                injected += lab.workload.injected();
                lab.workload.inject(Plan::none());
            }
        }
    }
    assert_eq!(injected, round, "each fault was met");
}

#[tokio::test(start_paused = true)]
async fn restart_with_many_machines_writes_no_status() {
    let mut lab = Lab::start().await;
    lab.add(["m1", "h1", "node-1"]).await;
    lab.add(["m2", "h2", "node-2"]).await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    assert_eq!(lab.reported().await.unwrap().0, "True");
    // Only one of them reads its Node at a time, which takes a while.
    let slow = Fault::Delay(Duration::from_secs(3));
    lab.workload.inject_for(
        &[PROGRAM],
        Plan::seeded(1).with(Rule::random(1000, slow).verb("get").resource("nodes")),
    );
    lab.management.reset_audit();
    let before = lab.requests("get");
    lab.restart();
    lab.settle().await;
    assert!(lab.workload.injected() > 0, "no read was slow");
    assert_eq!(lab.requests("get") - before, 3, "each Node is read once more");
    let audit = lab.management.audit();
    let writes = audit
        .counts()
        .filter(|((user, verb, _), _)| user == PROGRAM && *verb == "patch");
    assert_eq!(writes.collect::<Vec<_>>(), []);
}

#[tokio::test(start_paused = true)]
async fn machine_whose_request_waits_for_others_for_a_minute_reports_it_until_it_is_sent() {
    let mut lab = Lab::start().await;
    let remote = lab.restart();
    lab.label_host(json!({ "a.io/rack": "1" })).await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    let [cluster, neighbour] = [CLUSTER, "m9"].map(|name| Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    });
    let requests = remote.reconciled(&neighbour);
    remote.read_labels(&cluster, "node-0", &neighbour).await.unwrap();
    lab.label_node(json!({ "a.io/rack": "theirs" })).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(lab.reported().await.unwrap().0, "True");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (status, message) = lab.reported().await.unwrap();
    assert_eq!(status, "False");
    assert!(message.contains("other requests"), "{message}");
    drop(requests);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "1")]));
    assert_eq!(lab.reported().await.unwrap().0, "True");
}

#[tokio::test(start_paused = true)]
async fn writer_that_undoes_each_change_is_answered_twice_a_minute() {
    let lab = Lab::start().await;
    lab.label_host(json!({ "a.io/rack": "1" })).await;
    lab.select(Some("a.io")).await;
    lab.settle().await;
    let nodes: Api<Node> = Api::all(lab.workload.client("rival"));
    let rival = async {
        loop {
            let labels = nodes.get("node-0").await.unwrap().metadata.labels.unwrap();
            if labels["a.io/rack"] != "theirs" {
                let change = Patch::Merge(json!({ "metadata": { "labels": { "a.io/rack": "theirs" } } }));
                nodes.patch("node-0", &PatchParams::default(), &change).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let requests = || [lab.requests("get"), lab.requests("patch")];
    let before = requests();
    let ended = tokio::time::timeout(Duration::from_mins(5), rival).await;
    assert!(ended.is_err());
    let made = [requests()[0] - before[0], requests()[1] - before[1]];
    assert!(made.iter().all(|number| (5..=11).contains(number)), "{made:?}");
    // A change of the host does not wait.
    lab.label_host(json!({ "a.io/rack": "2" })).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "2")]));
    // Neither does a label that is changed once, for long.
    lab.settle().await;
    lab.label_node(json!({ "a.io/rack": "theirs" })).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(lab.found().await, is(&[("a.io/rack", "2")]));
}

#[tokio::test(start_paused = true)]
async fn server_that_refuses_labels_is_reported_without_its_words() {
    let lab = Lab::start().await;
    let refuse =
        |verb: &str| Plan::seeded(1).with(Rule::random(1000, Fault::refused(403)).verb(verb).resource("nodes"));
    for (verb, part) in [
        ("patch", "change the labels of Node node-0"),
        ("get", "read the labels of Node node-0"),
    ] {
        lab.workload.inject_for(&[PROGRAM], refuse(verb));
        lab.select(Some("a.io")).await;
        lab.label_host(json!({ "a.io/rack": verb })).await;
        lab.settle().await;
        let (status, message) = lab.reported().await.unwrap();
        assert_eq!(status, "False");
        assert!(
            message.contains(part) && message.contains("did not accept it"),
            "{message}"
        );
        lab.workload.inject(Plan::none());
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(lab.reported().await.unwrap().0, "True");
        assert_eq!(lab.found().await, is(&[("a.io/rack", verb)]));
    }
}
