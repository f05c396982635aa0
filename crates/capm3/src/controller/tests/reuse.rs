//! Node reuse: machines whose hosts come back to their sets.

use kube::Api;
use metal3_api::cluster::{Cluster as Owner, KubeadmControlPlane, Machine, MachineDeployment};
use metal3_api::infrastructure::conditions::machine::ASSOCIATE_META_DATA;
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3MachineTemplate};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::faults::{Others, Scenario};
use super::sets;
use super::steps::Step::{
    Cleaning, Cluster, ControlPlane, Data, DataGoes, Delete, Deployment, Host, Kept, MachineTemplate, Master, Reuse,
    Spare, State, Worker,
};
use super::steps::{CLUSTER, Step, delete, edit, get};
use super::without_faults::{PROGRAM, Run};
use crate::tests::sweep;

#[tokio::test(start_paused = true)]
async fn host_comes_back_to_its_deployment_with_every_fault_in_every_write() {
    let report = sweep(Scenario {
        name: "the worker of a MachineDeployment is replaced, and a spare host is preferred",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                Deployment,
                Host("h0"),
                Worker("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Spare("h1"), Delete("m0")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
            &[Worker("m1")],
            &[Data("m1")],
            &[State("h0", "provisioned")],
        ],
        end: &[
            "h0 runs for m1, disks kept",
            "h1 idle for no machine",
            "m1 metal3://default/h0/m1",
            "claim m1",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
    assert!(report.effects.len() > 20, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn host_of_a_control_plane_is_kept_with_every_fault_in_every_write() {
    sweep(Scenario {
        name: "the machine of a control plane is deleted",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                ControlPlane,
                Host("h0"),
                Master("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned"), Delete("m0")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for edge and cp-plane, disks kept", "cluster edge"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn disks_are_not_cleaned_before_the_user_decides_with_every_fault() {
    sweep(Scenario {
        name: "a machine waits, and its template then forbids the cleaning",
        stages: &[
            &[Cluster, MachineTemplate, Reuse, Deployment, Host("h0"), Worker("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned"), Delete("m0")],
            &[Cleaning("disabled")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for edge and md-workers, disks kept", "cluster edge"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn roll_of_a_go_manager_is_continued_with_every_fault() {
    sweep(Scenario {
        name: "a Go manager kept a host, and was replaced",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                Deployment,
                Kept("h0"),
                Spare("h1"),
                Worker("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned")],
        ],
        end: &[
            "h0 runs for m0, disks kept",
            "h1 idle for no machine",
            "m0 metal3://default/h0/m0",
            "claim m0",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
}

/// A worker with a provisioned host, in a set with node reuse whose hosts are cleaned.
async fn reusing() -> Run {
    let run = Run::start();
    let steps = [Cluster, MachineTemplate, Reuse, Deployment, ControlPlane, Host("h0")];
    run.take(&steps).await;
    run
}

async fn provision(run: &Run, machine: Step) {
    run.take(&[machine]).await;
    run.take(&[Data("m0")]).await;
    run.take(&[State("h0", "provisioned")]).await;
}

async fn release(run: &Run) {
    run.take(&[Delete("m0")]).await;
    run.take(&[State("h0", "deprovisioning")]).await;
    run.take(&[State("h0", "available"), DataGoes("m0")]).await;
}

/// The label of the host, whether it has its image, and the reason of the machine's wait.
async fn seen(run: &Run) -> (Option<String>, bool, Option<String>) {
    let host: BareMetalHost = get(&run.user, "h0").await;
    let machines: Api<Metal3Machine> = Api::default_namespaced(run.user.clone());
    let machine = machines.get_opt("m0").await.unwrap();
    let conditions = machine.map(|machine| machine.status.conditions).unwrap_or_default();
    let waits = conditions.into_iter().find(|one| one.type_ == ASSOCIATE_META_DATA);
    let labels = host.metadata.labels.unwrap_or_default();
    (
        labels.get(NODE_REUSE_LABEL).cloned(),
        host.spec.image.is_some(),
        waits.map(|condition| condition.reason),
    )
}

/// The requests of the program for owners of Machines.
fn reads(run: &Run) -> [u64; 2] {
    let audit = run.cluster.audit();
    let of = |verb, resource| audit.of(PROGRAM, verb, resource);
    [
        of("get", "machinesets") + of("get", "machinedeployments"),
        of("list", "kubeadmcontrolplanes"),
    ]
}

#[tokio::test(start_paused = true)]
async fn owners_are_read_twice_for_a_deleted_machine_and_never_without_node_reuse() {
    for (reuses, machine, expected) in [
        (false, Worker("m0"), [0, 0]),
        (true, Worker("m0"), [4, 0]),
        (true, Master("m0"), [0, 2]),
    ] {
        let run = reusing().await;
        let change =
            json!({ "spec": { "nodeReuse": reuses, "template": { "spec": { "automatedCleaningMode": "disabled" } } } });
        edit::<Metal3MachineTemplate>(&run.user, "workers", change).await;
        provision(&run, machine).await;
        assert_eq!(reads(&run), [0, 0], "the machine lives");
        release(&run).await;
        assert_eq!(reads(&run), expected, "{machine:?}, node reuse {reuses}");
        assert_eq!(seen(&run).await.0.is_some(), reuses);
    }
}

#[tokio::test(start_paused = true)]
async fn set_that_becomes_smaller_or_is_deleted_does_not_wait_although_its_disks_are_cleaned() {
    // Its deployment wants fewer machines: the host stays kept, as with the Go manager.
    let run = reusing().await;
    provision(&run, Worker("m0")).await;
    edit::<MachineDeployment>(&run.user, "workers", json!({ "spec": { "replicas": 0 } })).await;
    release(&run).await;
    assert_eq!(seen(&run).await, (Some("md-workers".to_owned()), false, None));
    // It is deleted, and stays until its machines are gone.
    let run = reusing().await;
    provision(&run, Worker("m0")).await;
    edit::<MachineDeployment>(
        &run.user,
        "workers",
        json!({ "metadata": { "finalizers": ["example.com/x"] } }),
    )
    .await;
    delete::<MachineDeployment>(&run.user, "workers").await;
    release(&run).await;
    assert_eq!(seen(&run).await, (None, false, None));
    // The control plane does not exist any more.
    let run = reusing().await;
    provision(&run, Master("m0")).await;
    delete::<KubeadmControlPlane>(&run.user, "plane").await;
    release(&run).await;
    assert_eq!(seen(&run).await, (None, false, None));
}

#[tokio::test(start_paused = true)]
async fn wait_ends_by_each_decision_of_the_user() {
    let waits = || (None, true, Some("NodeReuseUndecided".to_owned()));
    let mark = json!({ "infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning": "" });
    for (change, is_kept) in [
        (json!({ "metadata": { "annotations": mark } }), true),
        (
            json!({ "spec": { "template": { "spec": { "automatedCleaningMode": "disabled" } } } }),
            true,
        ),
        (json!({ "spec": { "nodeReuse": false } }), false),
    ] {
        let run = reusing().await;
        provision(&run, Worker("m0")).await;
        run.take(&[Delete("m0")]).await;
        assert_eq!(seen(&run).await, waits());
        edit::<Metal3MachineTemplate>(&run.user, "workers", change.clone()).await;
        run.take(&[]).await;
        assert!(!seen(&run).await.1, "{change}");
        run.take(&[State("h0", "deprovisioning")]).await;
        run.take(&[State("h0", "available"), DataGoes("m0")]).await;
        assert_eq!(seen(&run).await.0.is_some(), is_kept, "{change}");
    }
    // The set is not watched: its change is found by the next check.
    let run = reusing().await;
    provision(&run, Worker("m0")).await;
    run.take(&[Delete("m0")]).await;
    assert_eq!(seen(&run).await, waits());
    edit::<MachineDeployment>(&run.user, "workers", json!({ "spec": { "replicas": 0 } })).await;
    run.take(&[]).await;
    assert!(!seen(&run).await.1);
    // The Cluster is deleted.
    let run = reusing().await;
    edit::<Owner>(
        &run.user,
        CLUSTER,
        json!({ "metadata": { "finalizers": ["example.com/x"] } }),
    )
    .await;
    provision(&run, Worker("m0")).await;
    run.take(&[Delete("m0")]).await;
    assert_eq!(seen(&run).await, waits());
    delete::<Owner>(&run.user, CLUSTER).await;
    run.take(&[]).await;
    assert!(!seen(&run).await.1);
}

#[tokio::test(start_paused = true)]
async fn machine_waits_for_a_host_of_one_of_two_sets_until_the_other_one_is_gone() {
    let run = Run::start();
    run.take(&[Cluster, MachineTemplate, Cleaning("disabled"), Reuse, Deployment])
        .await;
    sets::namesake(&run.user, "other").await;
    run.take(&[Kept("h0"), Spare("h1"), Worker("m0")]).await;
    let consumers = async || {
        let hosts = ["h0", "h1"].map(async |host| get::<BareMetalHost>(&run.user, host).await.spec.consumer_ref);
        let mut names = Vec::new();
        for host in hosts {
            names.push(host.await.and_then(|consumer| consumer.name));
        }
        names
    };
    assert_eq!(consumers().await, [None, None]);
    let machine: Metal3Machine = get(&run.user, "m0").await;
    let text = serde_json::to_string(&machine.status.conditions).unwrap();
    assert!(text.contains("BareMetalHost h0 is awaited"), "{text}");
    // No object of this machine changes.
    delete::<Machine>(&run.user, "other").await;
    run.take(&[]).await;
    assert_eq!(consumers().await, [Some("m0".to_owned()), None]);
}

#[tokio::test(start_paused = true)]
async fn what_decides_about_the_disks_is_named_when_it_may_not_be_read() {
    for resource in ["metal3machinetemplates", "machinesets", "machinedeployments"] {
        let run = reusing().await;
        provision(&run, Worker("m0")).await;
        let refused = Rule::random(1000, Fault::refused(403)).verb("get").resource(resource);
        run.cluster.inject_for(&[PROGRAM], Plan::seeded(1).with(refused));
        let text = async || {
            let machine: Metal3Machine = get(&run.user, "m0").await;
            serde_json::to_string(&machine.status.conditions).unwrap()
        };
        run.take(&[Delete("m0")]).await;
        assert_eq!(
            seen(&run).await,
            (None, true, Some("NodeReuseUndecided".to_owned())),
            "{resource}"
        );
        let message = text().await;
        assert!(message.contains(&format!("watch on {resource}")), "{message}");
        run.cluster.inject(Plan::none());
        run.take(&[]).await;
        let message = text().await;
        assert!(message.contains("automated cleaning would erase"), "{message}");
    }
}

/// An upgrade or a roll-back of Cluster API replaces its definitions one by one.
#[tokio::test(start_paused = true)]
async fn set_of_a_kind_that_is_not_served_counts_as_unknown_and_its_disks_are_kept() {
    for resource in ["machinesets", "machinedeployments"] {
        let run = reusing().await;
        provision(&run, Worker("m0")).await;
        let unserved = Rule::random(1000, Fault::refused(404)).verb("get").resource(resource);
        run.cluster.inject_for(&[PROGRAM], Plan::seeded(1).with(unserved));
        run.take(&[Delete("m0")]).await;
        assert_eq!(
            seen(&run).await,
            (None, true, Some("NodeReuseUndecided".to_owned())),
            "{resource}"
        );
        let machine: Metal3Machine = get(&run.user, "m0").await;
        let text = serde_json::to_string(&machine.status.conditions).unwrap();
        assert!(text.contains("is not served; install it"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn control_plane_that_cannot_be_read_is_named_and_its_host_is_not_touched() {
    let run = reusing().await;
    provision(&run, Master("m0")).await;
    let owner = json!([{
        "apiVersion": "controlplane.cluster.x-k8s.io/v9", "kind": "KubeadmControlPlane", "name": "plane", "uid": "u",
    }]);
    edit::<Machine>(&run.user, "m0", json!({ "metadata": { "ownerReferences": owner } })).await;
    run.take(&[Delete("m0")]).await;
    assert_eq!(seen(&run).await, (None, true, Some("NodeReuseUndecided".to_owned())));
    let machine: Metal3Machine = get(&run.user, "m0").await;
    let text = serde_json::to_string(&machine.status.conditions).unwrap();
    assert!(
        text.contains("KubeadmControlPlane default/plane is not served"),
        "{text}"
    );
}
