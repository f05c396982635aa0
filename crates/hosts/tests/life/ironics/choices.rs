//! Which Ironic serves a host.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::node;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    A, B, LABEL, configure, counts, detach, held, host_in, ironic, label, labels, node_in, nodes, provisioned,
    recorded, state, two, until_held,
};
use crate::env::{CONTROLLER_USER, TestEnv};
use crate::phases::runs;

#[tokio::test(start_paused = true)]
async fn host_is_registered_where_its_label_says_and_recorded_before() {
    let env = TestEnv::new(two());
    for (number, wanted, found) in [(1, "", A), (2, A, A), (3, B, B)] {
        host_in(&env, number, wanted).await;
        env.until_state(number, "available").await;
        assert_eq!(nodes(&env, number).await, [found], "{wanted:?}");
        let host = env.get(number).await;
        assert_eq!(recorded(host.as_ref()).as_deref(), Some(found), "{wanted:?}");
        assert_eq!(held(host.as_ref()), None);
    }
    env.delete(3).await;
    env.until(3, "end", |host| host.is_none()).await;
    assert!(nodes(&env, 3).await.is_empty());
}

/// A record in the request that adds the finalizer.
#[tokio::test(start_paused = true)]
async fn record_costs_no_request_of_its_own() {
    let mut writes = Vec::new();
    for setup in [crate::env::Setup::default(), two()] {
        let env = TestEnv::new(setup);
        env.host(1, json!({})).await;
        env.until_state(1, "available").await;
        sleep(Duration::from_mins(1)).await;
        let audit = env.cluster.audit();
        let of = |resource: &str| audit.of(CONTROLLER_USER, "patch", resource);
        let asked = env.interceptor.log().asked.len();
        writes.push((of("baremetalhosts"), of("baremetalhosts/status"), asked));
    }
    assert_eq!(writes[0], writes[1]);
}

#[tokio::test(start_paused = true)]
async fn unknown_name_is_reported_and_gets_no_order_until_it_is_corrected() {
    let env = TestEnv::new(two());
    host_in(&env, 1, "site-c").await;
    until_held(&env, 1, "IronicUnknown").await;
    sleep(Duration::from_hours(2)).await;
    let (_, message) = held(env.get(1).await.as_ref()).unwrap();
    assert!(
        message.contains(LABEL) && message.contains("\"site-c\"") && !message.contains(B),
        "{message}"
    );
    let asked = |env: &TestEnv| {
        (
            env.interceptor.log().asked.len(),
            env.others[0].interceptor.log().asked.len(),
        )
    };
    assert_eq!(asked(&env), (0, 0));
    label(&env, 1, B).await;
    env.until_state(1, "available").await;
    assert_eq!((nodes(&env, 1).await, held(env.get(1).await.as_ref())), (vec![B], None));

    // A deletion does not wait for a name.
    host_in(&env, 2, "site-c").await;
    until_held(&env, 2, "IronicUnknown").await;
    env.delete(2).await;
    env.until(2, "end", |host| host.is_none()).await;
}

/// Two hosts of one name are two machines, whatever serves them.
#[tokio::test(start_paused = true)]
async fn hosts_of_the_same_name_in_two_namespaces_have_nodes_of_their_own() {
    use k8s_openapi::api::core::v1::{Namespace, Secret};
    use kube::Api;
    use kube::api::{DeleteParams, PostParams};

    let env = TestEnv::new(two());
    host_in(&env, 1, A).await;
    env.until_state(1, "available").await;
    let client = env.cluster.client("tenant");
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let (secrets, hosts): (Api<Secret>, Api<BareMetalHost>) = (
        Api::namespaced(client.clone(), "other"),
        Api::namespaced(client, "other"),
    );
    let login = json!({ "metadata": { "name": "bmc-2", "labels": { "environment.metal3.io": "baremetal" } },
        "stringData": { "username": "admin", "password": crate::env::PASSWORD } });
    secrets
        .create(&PostParams::default(), &serde_json::from_value(login).unwrap())
        .await
        .unwrap();
    let mut document = env.document(2, &json!({}));
    document["metadata"] = json!({ "name": "host-1", "labels": { LABEL: B } });
    hosts
        .create(&PostParams::default(), &serde_json::from_value(document).unwrap())
        .await
        .unwrap();
    sleep(Duration::from_hours(1)).await;
    let other = hosts.get("host-1").await.unwrap();
    assert_eq!(other.status.provisioning.state.to_string(), "available");
    assert_eq!(
        (nodes(&env, 1).await, recorded(Some(&other)).as_deref()),
        (vec![A], Some(B))
    );
    let before = node_in(&env, A, 1).await.unwrap().uuid;
    hosts.delete("host-1", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_hours(1)).await;
    assert!(hosts.get_opt("host-1").await.unwrap().is_none());
    assert_eq!(node_in(&env, A, 1).await.unwrap().uuid, before);
    assert_eq!(
        env.get(1).await.unwrap().status.provisioning.state.to_string(),
        "available"
    );
}

/// Runs a host, and shows that it was not touched since.
async fn require_untouched(env: &TestEnv, of: &str, before: &Value) {
    sleep(Duration::from_hours(2)).await;
    let now = json!({ "counts": format!("{:?}", counts(env, of, 1)), "node": node_in(env, of, 1).await.unwrap().uuid.to_string() });
    assert_eq!(now, *before);
    assert_eq!(nodes(env, 1).await, [of]);
    assert!(runs(env.get(1).await.as_ref()));
}

#[tokio::test(start_paused = true)]
async fn host_of_before_there_were_several_is_recorded_where_its_node_is() {
    for names in [[A, B], [B, A]] {
        let env = TestEnv::new(two());
        configure(&env, &[A]);
        provisioned(&env, "").await;
        assert_eq!(
            recorded(env.get(1).await.as_ref()),
            None,
            "the only one is not recorded"
        );
        let before = state(&env, A).await;
        configure(&env, &names);
        let is_recorded = |host: Option<&BareMetalHost>| recorded(host).as_deref() == Some(A);
        env.until(1, "record", is_recorded).await;
        require_untouched(&env, A, &before).await;
        assert_eq!(held(env.get(1).await.as_ref()), None);
    }
}

/// What cannot be asked may have the node: a host that is new to it would be a second one of the machine.
#[tokio::test(start_paused = true)]
async fn node_of_before_is_not_registered_again_while_one_of_several_is_away() {
    let env = TestEnv::new(two());
    configure(&env, &[A]);
    provisioned(&env, "").await;
    let before = state(&env, A).await;
    env.ironic.restart(Duration::from_hours(2));
    configure(&env, &[B, A]);
    until_held(&env, 1, "NodeNotLocated").await;
    sleep(Duration::from_hours(1)).await;
    let (_, message) = held(env.get(1).await.as_ref()).unwrap();
    assert!(
        message.contains("one of them does not respond") && !message.contains(B),
        "{message}"
    );
    assert!(node_in(&env, B, 1).await.is_none());
    assert!(
        env.others[0].interceptor.log().asked.is_empty(),
        "nothing that it answers decides"
    );
    sleep(Duration::from_hours(1)).await;
    let is_recorded = |host: Option<&BareMetalHost>| recorded(host).as_deref() == Some(A) && held(host).is_none();
    env.until(1, "record", is_recorded).await;
    require_untouched(&env, A, &before).await;
}

#[tokio::test(start_paused = true)]
async fn host_waits_while_its_ironic_is_not_configured_also_when_it_is_deleted() {
    let env = TestEnv::new(two());
    provisioned(&env, B).await;
    let before = state(&env, B).await;
    configure(&env, &[A]);
    label(&env, 1, A).await;
    until_held(&env, 1, "IronicNotConfigured").await;
    require_untouched(&env, B, &before).await;
    env.delete(1).await;
    sleep(Duration::from_hours(2)).await;
    let (reason, message) = held(env.get(1).await.as_ref()).unwrap();
    assert_eq!(reason, "IronicNotConfigured");
    assert!(
        message.contains("\"site-b\"") && message.contains("finalizer"),
        "{message}"
    );
    assert_eq!(state(&env, B).await, before);
    configure(&env, &[A, B]);
    env.until(1, "end", |host| host.is_none()).await;
    assert!(nodes(&env, 1).await.is_empty());
    assert_eq!(ironic(&env, A).audit().of("POST", "/v1/nodes"), 0);
}

/// `clusterctl move` copies annotations and labels, and drops the status.
#[tokio::test(start_paused = true)]
async fn moved_host_stays_in_the_ironic_that_its_annotation_records() {
    const PAUSED: &str = "baremetalhost.metal3.io/paused";
    let env = TestEnv::new(two());
    provisioned(&env, B).await;
    let before = state(&env, B).await;
    // Refused, and kept in the copy.
    label(&env, 1, A).await;
    until_held(&env, 1, "IronicChangeRefused").await;
    let mut moved = env.get(1).await.unwrap();
    env.edit(
        1,
        json!({ "metadata": { "annotations": { PAUSED: "metal3.io/capm3" } } }),
    )
    .await;
    env.delete(1).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    env.until(1, "end", |host| host.is_none()).await;
    let status = serde_json::to_string(&moved.status).unwrap();
    let annotations = moved.metadata.annotations.get_or_insert_default();
    annotations.insert("baremetalhost.metal3.io/status".to_owned(), status);
    let copy = json!({ "metadata": { "name": moved.metadata.name, "annotations": moved.metadata.annotations,
        "labels": moved.metadata.labels }, "spec": moved.spec });
    env.make::<BareMetalHost>(copy).await;
    env.until(1, "host that runs here", runs).await;
    require_untouched(&env, B, &before).await;
    assert_eq!(recorded(env.get(1).await.as_ref()).as_deref(), Some(B));
    until_held(&env, 1, "IronicChangeRefused").await;
}

/// With one Ironic such a host is in error, and its machine is safe.
#[tokio::test(start_paused = true)]
async fn recorded_node_of_another_name_sends_the_machine_to_no_other_ironic() {
    for detaches in [false, true] {
        let env = TestEnv::new(two());
        if !detaches {
            configure(&env, &[A]);
        }
        provisioned(&env, "").await;
        let uuid = node_in(&env, A, 1).await.unwrap().uuid;
        let rename = metal3_ironic::calls::patch::Patch::new().set(&["name"], "old");
        let rename = node::patch(&(&uuid).into(), rename).unwrap();
        env.ironic.client().unwrap().send(&rename).await.unwrap();
        if detaches {
            detach(&env, Some("")).await;
            sleep(Duration::from_mins(10)).await;
            label(&env, 1, B).await;
            sleep(Duration::from_mins(10)).await;
            detach(&env, None).await;
        } else {
            configure(&env, &[B, A]);
        }
        sleep(Duration::from_hours(2)).await;
        assert!(node_in(&env, B, 1).await.is_none(), "{detaches}");
        assert_eq!(recorded(env.get(1).await.as_ref()).as_deref(), Some(A), "{detaches}");
        let message = env.get(1).await.unwrap().status.error_message;
        assert!(
            message.contains("has not the name of this host"),
            "{detaches}: {message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn host_whose_node_is_listed_does_not_wait_for_another_ironic_at_the_start() {
    let env = TestEnv::new(two());
    configure(&env, &[A]);
    provisioned(&env, "").await;
    env.others[0].ironic.restart(Duration::from_hours(1));
    configure(&env, &[A, B]);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(recorded(env.get(1).await.as_ref()).as_deref(), Some(A));
}

/// It was made again from a manifest: without status and annotations.
#[tokio::test(start_paused = true)]
async fn host_that_lost_status_and_record_is_not_registered_a_second_time() {
    let env = TestEnv::new(two());
    provisioned(&env, A).await;
    let before = state(&env, A).await;
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3" } } });
    env.edit(1, paused).await;
    env.delete(1).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    env.until(1, "end", |host| host.is_none()).await;
    let mut document = env.document(1, &json!({}));
    metal3_runtime::patch::apply(&labels(B), &mut document);
    // Also right after a start, before the nodes are listed.
    env.interceptor.kill();
    env.make::<BareMetalHost>(document).await;
    sleep(Duration::from_hours(2)).await;
    assert_eq!((nodes(&env, 1).await, state(&env, A).await), (vec![A], before));
    assert_eq!(recorded(env.get(1).await.as_ref()).as_deref(), Some(A));
}

/// A dry run writes no record, and shows what would follow.
#[tokio::test(start_paused = true)]
async fn dry_run_does_not_end_at_the_record() {
    let env = TestEnv::new(two());
    configure(&env, &[A]);
    provisioned(&env, "").await;
    let before = state(&env, A).await;
    *env.observes.lock() = true;
    configure(&env, &[A, B]);
    env.edit(1, json!({ "spec": { "online": false } })).await;
    let asked = env.interceptor.log().asked.len();
    sleep(Duration::from_mins(10)).await;
    assert!(
        env.interceptor.log().asked.len() > asked,
        "the node is read before an order"
    );
    assert_eq!(
        (recorded(env.get(1).await.as_ref()), state(&env, A).await),
        (None, before)
    );
}
