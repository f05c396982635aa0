//! The status of templates that autoscaled MachineDeployments use.

use metal3_api::cluster::{Cluster, MachineDeployment};
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use super::steps::Step::{self, Deployment, Host, Machine, MachineTemplate};
use super::steps::{CLUSTER, edit, edit_status, get};
use super::without_faults::{PROGRAM, Run};

const ANNOTATION: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";

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
        of("metal3machinetemplates") + of("metal3machinetemplates/status")
    }
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
    let of_cluster = json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": CLUSTER } } });
    edit::<Metal3MachineTemplate>(&run.user, "workers", of_cluster).await;
    run.hardware("h0", 8).await;
    run.autoscaled(true).await;
    let paused: Cluster = get(&run.user, CLUSTER).await;
    assert_eq!(paused.spec.paused, Some(true));
    assert_eq!(run.processors().await, (None, 0));
    run.take(&[Step::Pause(false)]).await;
    assert_eq!(run.processors().await, (Some("8".into()), 1));
}

#[tokio::test(start_paused = true)]
async fn status_of_a_template_is_written_after_each_fault() {
    for fault in [Fault::Conflict, Fault::ReplyLost, Fault::refused(503)] {
        let run = Run::start();
        run.take(&[Step::Cluster, Host("h0"), MachineTemplate, Deployment])
            .await;
        run.hardware("h0", 8).await;
        let rule = Rule::at(1, fault).verb("patch").resource("metal3machinetemplates");
        run.cluster.inject(Plan::seeded(1).with(rule));
        run.autoscaled(true).await;
        assert_eq!(run.processors().await.0.as_deref(), Some("8"), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn available_hosts_of_an_autoscaled_template_are_counted() {
    let run = Run::start();
    run.take(&[Step::Cluster, Host("h0"), Host("h1"), MachineTemplate, Deployment])
        .await;
    let series = "metal3_template_available_hosts{namespace=\"default\",template=\"workers\"}";
    let shown = || {
        let text = run.metrics.render();
        let line = text.lines().find(|line| line.starts_with(series));
        line.map(|line| line.trim_start_matches(series).trim().to_owned())
    };
    assert_eq!(shown(), None);
    run.autoscaled(true).await;
    run.take(&[]).await;
    assert_eq!(shown().as_deref(), Some("2"));
    run.take(&[Machine("m0")]).await;
    assert_eq!(shown().as_deref(), Some("1"));
    run.autoscaled(false).await;
    run.take(&[]).await;
    assert_eq!(shown(), None);
}
