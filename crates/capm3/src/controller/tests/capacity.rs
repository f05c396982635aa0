//! The status of templates that autoscaled MachineDeployments use.

use std::time::Duration;

use metal3_api::cluster::{Cluster, MachineDeployment};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3MachineTemplate};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use super::steps::Step::{self, Deployment, Host, Machine, MachineTemplate};
use super::steps::{CLUSTER, edit, edit_status, get, make, owned};
use super::without_faults::{PROGRAM, Run};

const ANNOTATION: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
const STATUS: &str = "metal3machinetemplates/status";

impl Run {
    async fn autoscaled(&self, is_autoscaled: bool) {
        let value = is_autoscaled.then_some("3");
        let annotations = json!({ "metadata": { "annotations": { ANNOTATION: value } } });
        edit::<MachineDeployment>(&self.user, "workers", annotations).await;
    }

    async fn hardware(&self, host: &str, processors: u32) {
        let hardware = json!({ "cpu": { "arch": "x86_64", "count": processors }, "ramMebibytes": 4096 });
        edit_status::<BareMetalHost>(&self.user, host, json!({ "status": { "hardware": hardware } })).await;
    }

    /// Another template, with an autoscaled MachineDeployment of its own.
    async fn second_template(&self) {
        let first: Metal3MachineTemplate = get(&self.user, "workers").await;
        make::<Metal3MachineTemplate>(&self.user, "others", json!({ "spec": first.spec })).await;
        let first: MachineDeployment = get(&self.user, "workers").await;
        let mut second = json!({ "metadata": { "annotations": { ANNOTATION: "3" } }, "spec": first.spec });
        second["spec"]["template"]["spec"]["infrastructureRef"]["name"] = json!("others");
        make::<MachineDeployment>(&self.user, "others", second).await;
    }

    async fn template(&self) -> Metal3MachineTemplate {
        self.take(&[]).await;
        get(&self.user, "workers").await
    }

    /// The processors in the status, and how often it was written.
    async fn processors(&self) -> (Option<String>, u64) {
        let template = self.template().await;
        (template.status.capacity.get("cpu").cloned(), self.writes())
    }

    fn writes(&self) -> u64 {
        let audit = self.cluster.audit();
        let of = |resource| audit.of(PROGRAM, "patch", resource);
        of("metal3machinetemplates") + of(STATUS)
    }

    /// The value of a metric.
    fn value(&self, series: &str) -> Option<String> {
        let text = self.metrics.render();
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(series)?.trim().to_owned()))
    }

    /// The hosts that are available.
    fn shown(&self) -> Option<String> {
        self.value("metal3_template_available_hosts{namespace=\"default\",template=\"workers\"}")
    }

    /// The keys whose last reconcile failed.
    fn failing(&self) -> f64 {
        let name = "metal3machinetemplate";
        let series = format!("metal3_workqueue_failing_keys{{name=\"{name}\",controller=\"{name}\"}}");
        self.value(&series).unwrap().parse().unwrap()
    }
}

/// A template whose status says what its host has.
async fn reported() -> Run {
    let run = Run::start();
    run.take(&[Step::Cluster, Host("h0"), MachineTemplate, Deployment])
        .await;
    run.hardware("h0", 8).await;
    run.autoscaled(true).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1));
    run
}

fn selector(value: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "hostSelector": { "matchLabels": { "size": value } } } } } })
}

fn labelled(value: &str) -> Value {
    json!({ "metadata": { "labels": { "size": value } } })
}

#[tokio::test(start_paused = true)]
async fn template_of_an_autoscaled_deployment_reports_the_least_of_its_hosts() {
    let run = Run::start();
    run.take(&[Step::Cluster, Host("h0"), Host("h1"), MachineTemplate, Deployment])
        .await;
    run.hardware("h0", 8).await;
    run.hardware("h1", 4).await;
    assert_eq!(
        run.processors().await,
        (None, 0),
        "without an autoscaler nothing is written"
    );
    run.autoscaled(true).await;
    assert_eq!(run.processors().await, (Some("4".into()), 1));
    edit::<BareMetalHost>(&run.user, "h0", labelled("large")).await;
    assert_eq!(
        run.processors().await,
        (Some("4".into()), 1),
        "equal figures are not written"
    );
    edit::<Metal3MachineTemplate>(&run.user, "workers", selector("large")).await;
    assert_eq!(run.processors().await, (Some("8".into()), 2));
    run.hardware("h0", 16).await;
    assert_eq!(run.processors().await, (Some("16".into()), 3));
    edit::<BareMetalHost>(&run.user, "h0", labelled("small")).await;
    assert_eq!(run.processors().await, (None, 4), "no host is selected");
    edit::<BareMetalHost>(&run.user, "h1", labelled("large")).await;
    let status = run.template().await.status;
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({
            "capacity": { "cpu": "4", "memory": "4096Mi" },
            "nodeInfo": { "architecture": "amd64", "operatingSystem": "linux" },
        })
    );
    run.autoscaled(false).await;
    run.hardware("h1", 2).await;
    assert_eq!(run.processors().await, (Some("4".into()), 5), "no autoscaler reads it");
}

/// As Cluster API leaves a template that a user applies: with an owner, and without a label of its Cluster.
#[tokio::test(start_paused = true)]
async fn template_of_a_paused_cluster_is_reported_when_the_pause_ends() {
    let run = Run::start();
    run.take(&[
        Step::Cluster,
        Host("h0"),
        MachineTemplate,
        Deployment,
        Step::Pause(true),
    ])
    .await;
    let paused: Cluster = get(&run.user, CLUSTER).await;
    assert_eq!(paused.spec.paused, Some(true));
    let owner = json!({ "metadata": { "ownerReferences": owned(&paused) } });
    edit::<Metal3MachineTemplate>(&run.user, "workers", owner).await;
    run.hardware("h0", 8).await;
    run.autoscaled(true).await;
    assert_eq!(run.processors().await, (None, 0));
    run.take(&[Step::Pause(false)]).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1));
    run.take(&[Step::Pause(true)]).await;
    run.hardware("h0", 4).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1), "paused again");
}

/// A move creates the Cluster first, paused; the program may see its MachineDeployment before it.
#[tokio::test(start_paused = true)]
async fn template_is_not_reported_before_its_cluster_is_seen() {
    let run = Run::start();
    run.take(&[Host("h0"), MachineTemplate, Deployment]).await;
    run.hardware("h0", 8).await;
    run.autoscaled(true).await;
    assert_eq!(run.processors().await, (None, 0));
    run.take(&[Step::Cluster]).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1));
}

#[tokio::test(start_paused = true)]
async fn status_of_a_template_is_written_after_each_fault() {
    for fault in [Fault::Conflict, Fault::ReplyLost, Fault::refused(503)] {
        let run = Run::start();
        run.take(&[Step::Cluster, Host("h0"), MachineTemplate, Deployment])
            .await;
        run.hardware("h0", 8).await;
        let rule = Rule::at(1, fault).verb("patch").resource(STATUS);
        run.cluster.inject(Plan::seeded(1).with(rule));
        run.autoscaled(true).await;
        let (processors, writes) = run.processors().await;
        assert_eq!(processors.as_deref(), Some("8"), "{fault:?}");
        assert!(writes > u64::from(fault != Fault::ReplyLost), "{fault:?} {writes}");
    }
}

/// As the API server answers when the CustomResourceDefinition is that of the Go manager: for all templates alike.
#[tokio::test(start_paused = true)]
async fn status_that_the_server_does_not_serve_is_tried_now_and_then() {
    let run = Run::start();
    run.take(&[Step::Cluster, Host("h0"), MachineTemplate, Deployment])
        .await;
    run.hardware("h0", 8).await;
    let missing = Rule::random(1000, Fault::refused(404)).verb("patch").resource(STATUS);
    run.cluster.inject(Plan::seeded(1).with(missing));
    run.autoscaled(true).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(run.writes(), 1);
    run.second_template().await;
    let listed = || run.cluster.audit().of(PROGRAM, "list", "metal3machinetemplates");
    let before = listed();
    for processors in 0..100 {
        run.hardware("h0", 8 + processors % 2).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(
        (run.writes(), listed() - before),
        (1, 0),
        "of two templates, within the recheck"
    );
    assert!(run.failing() < 1.0, "a wait is no failure");
    run.cluster.inject(Plan::none());
    run.take(&[]).await;
    assert_eq!(run.processors().await, (Some("9".into()), 3));
}

/// Only its user may write a template that is paused or in deletion.
#[tokio::test(start_paused = true)]
async fn paused_template_and_one_in_deletion_are_not_reported() {
    for left_alone in [
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }),
        json!({ "metadata": { "finalizers": ["example.org/kept"] } }),
    ] {
        let run = reported().await;
        edit::<Metal3MachineTemplate>(&run.user, "workers", left_alone.clone()).await;
        if left_alone["metadata"]["finalizers"].is_array() {
            let templates: kube::Api<Metal3MachineTemplate> = kube::Api::default_namespaced(run.user.clone());
            templates
                .delete("workers", &kube::api::DeleteParams::default())
                .await
                .unwrap();
        }
        run.hardware("h0", 4).await;
        assert_eq!(run.processors().await, (Some("8".into()), 1), "{left_alone}");
    }
}

/// What was listed before says nothing about the MachineDeployments that there are now.
#[tokio::test(start_paused = true)]
async fn template_is_not_reported_once_deployments_may_not_be_listed() {
    let run = reported().await;
    let refused = ["list", "watch"].map(|verb| {
        Rule::random(1000, Fault::refused(403))
            .verb(verb)
            .resource("machinedeployments")
    });
    run.cluster
        .inject_for(&[PROGRAM], refused.into_iter().fold(Plan::seeded(1), Plan::with));
    tokio::time::sleep(Duration::from_hours(1)).await;
    run.hardware("h0", 4).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1));
}

#[tokio::test(start_paused = true)]
async fn figures_that_change_many_times_in_a_second_are_written_once() {
    let run = reported().await;
    for processors in 0..50 {
        run.hardware("h0", 10 + processors).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(run.processors().await, (Some("59".into()), 2));
}

#[tokio::test(start_paused = true)]
async fn template_whose_selector_became_invalid_reports_no_host() {
    let run = reported().await;
    edit::<Metal3MachineTemplate>(&run.user, "workers", selector("no label value!")).await;
    assert_eq!((run.processors().await, run.shown()), ((None, 2), Some("0".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn available_hosts_of_an_autoscaled_template_are_counted() {
    let run = Run::start();
    run.take(&[Step::Cluster, Host("h0"), Host("h1"), MachineTemplate, Deployment])
        .await;
    assert_eq!(run.shown(), None);
    run.autoscaled(true).await;
    run.take(&[]).await;
    assert_eq!(run.shown().as_deref(), Some("2"));
    run.take(&[Machine("m0")]).await;
    assert_eq!(run.shown().as_deref(), Some("1"));
    run.take(&[Step::Kept("h2")]).await;
    assert_eq!(run.shown().as_deref(), Some("2"), "kept for the same MachineDeployment");
    let unnamed = json!({ "spec": { "consumerRef": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "namespace": "default" } } });
    edit::<BareMetalHost>(&run.user, "h2", unnamed).await;
    run.take(&[]).await;
    assert_eq!(
        run.shown().as_deref(),
        Some("1"),
        "of another machine, whatever its name"
    );
    run.autoscaled(false).await;
    run.take(&[]).await;
    assert_eq!(run.shown(), None);
}

#[tokio::test(start_paused = true)]
async fn hosts_outside_of_a_required_failure_domain_are_not_available() {
    let run = Run::start();
    run.take(&[
        Step::Cluster,
        Host("h0"),
        Host("h1"),
        Step::Spare("h2"),
        MachineTemplate,
        Deployment,
    ])
    .await;
    run.autoscaled(true).await;
    let domain = json!({ "spec": { "template": { "spec": { "failureDomain": "b" } } } });
    edit::<MachineDeployment>(&run.user, "workers", domain).await;
    run.take(&[]).await;
    assert_eq!(run.shown().as_deref(), Some("3"), "it is preferred");
    let policy = json!({ "spec": { "failureDomainPolicy": "Required" } });
    edit::<Metal3Cluster>(&run.user, CLUSTER, policy).await;
    run.take(&[]).await;
    assert_eq!(run.shown().as_deref(), Some("1"));
}
