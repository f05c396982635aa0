//! Event subscriptions of a BMC.

mod generated;
mod left;
mod sweep;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BMCEventSubscription, BareMetalHost, BareMetalSwitch};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_ironic::Subscription;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::unserved::{delete, is_gone, pause, until_gone};

const DESTINATION: &str = "https://events.example/";
const HEADER: &str = "canary-bearer-7";
const HOUR: Duration = Duration::from_hours(1);
const MINUTES: Duration = Duration::from_mins(3);

async fn env() -> TestEnv {
    TestEnv::new(Setup {
        subscriptions: true,
        ..Setup::default()
    })
}

async fn env_with_host() -> TestEnv {
    let env = env().await;
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    // The host is done with the node.
    sleep(MINUTES).await;
    env
}

async fn env_of_switches() -> TestEnv {
    let env = TestEnv::new(Setup {
        subscriptions: true,
        switches: Some(crate::switches::outputs()),
        ..Setup::default()
    });
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    sleep(MINUTES).await;
    env
}

fn switch(login: &str) -> Value {
    json!({ "metadata": { "name": "one" }, "spec": { "address": "192.0.2.1", "macAddress": "aa:bb:cc:dd:ee:01",
        "deviceType": "x", "credentials": { "name": login } } })
}

fn document(name: &str, destination: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "hostName": "host-1", "destination": destination, "context": "rack 4" } })
}

async fn subscribe(env: &TestEnv, name: &str) {
    env.make::<BMCEventSubscription>(document(name, DESTINATION)).await;
}

async fn subscribe_with_headers(env: &TestEnv, secret: &str, namespace: &str) {
    let mut document = document("events", DESTINATION);
    document["spec"]["httpHeadersRef"] = json!({ "name": secret, "namespace": namespace });
    env.make::<BMCEventSubscription>(document).await;
}

async fn get(env: &TestEnv, name: &str) -> BMCEventSubscription {
    env.api::<BMCEventSubscription>().get(name).await.unwrap()
}

async fn error(env: &TestEnv) -> String {
    get(env, "events").await.status.error.unwrap_or_default()
}

/// The subscriptions of the BMC.
fn in_bmc(env: &TestEnv) -> Vec<Subscription> {
    env.machine(1, |machine| machine.subscriptions.clone())
}

async fn until_created(env: &TestEnv, name: &str) -> String {
    let mut waited = Duration::ZERO;
    loop {
        let status = get(env, name).await.status;
        if let Some(id) = status.subscription_id {
            return id;
        }
        assert!(waited < 4 * HOUR, "{:?}", status.error);
        sleep(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
    }
}

async fn secret(env: &TestEnv, name: &str, labels: Value, values: Value) {
    env.make::<Secret>(json!({ "metadata": { "name": name, "labels": labels }, "stringData": values }))
        .await;
}

fn labelled() -> Value {
    json!({ "environment.metal3.io": "baremetal" })
}

#[tokio::test(start_paused = true)]
async fn subscription_is_created_once_with_its_headers_and_costs_nothing_afterwards() {
    let env = env_with_host().await;
    secret(
        &env,
        "headers",
        labelled(),
        json!({ "Authorization": HEADER, "X-Rack": "4" }),
    )
    .await;
    env.cluster.reset_audit();
    let asked = env.interceptor.log().asked.len();
    subscribe_with_headers(&env, "headers", "default").await;
    let id = until_created(&env, "events").await;
    let log = env.interceptor.log().asked.split_off(asked);
    let requests = [
        "GET nodes/_",
        "GET nodes/_/vendor_passthru",
        "POST nodes/_/vendor_passthru",
    ];
    assert_eq!(log, requests, "and no other");
    let writes = |resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource);
    let counts = [writes("bmceventsubscriptions"), writes("bmceventsubscriptions/status")];
    assert_eq!(counts, [1, 1]);
    let created = in_bmc(&env);
    let headers = json!([{ "Authorization": HEADER }, { "X-Rack": "4" }]);
    let expected = Subscription {
        id,
        destination: DESTINATION.to_owned(),
        context: "rack 4".to_owned(),
        headers,
    };
    assert_eq!(created, [expected]);
    let object = get(&env, "events").await;
    let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(
        (finalizers.as_slice(), object.status.error.as_deref()),
        (&["bmceventsubscription.metal3.io".to_owned()][..], None)
    );
    let asked = env.interceptor.log().asked.len();
    // Changes of its host and its object wake it.
    env.edit(1, json!({ "metadata": { "labels": { "a": "b" } } })).await;
    env.interceptor.kill();
    sleep(24 * HOUR).await;
    let log = env.interceptor.log().asked.split_off(asked);
    assert!(
        !log.iter().any(|request| request.contains("vendor_passthru")),
        "{log:?}"
    );
    assert_eq!(
        [writes("bmceventsubscriptions"), writes("bmceventsubscriptions/status")],
        [1, 1]
    );
    let shown = format!("{object:?} {}", env.events());
    assert!(
        shown.contains("SubscriptionCreated") && !shown.contains(HEADER),
        "{shown}"
    );
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    assert_eq!(in_bmc(&env), []);
}

#[tokio::test(start_paused = true)]
async fn waiting_subscription_says_why_and_is_created_when_its_host_is_registered() {
    let env = env().await;
    subscribe(&env, "events").await;
    sleep(MINUTES).await;
    let absent = error(&env).await;
    assert!(absent.contains("its host does not exist in this namespace"), "{absent}");
    assert!(env.events().contains("HostAbsent"));
    env.host(1, json!({})).await;
    sleep(Duration::from_secs(2)).await;
    let unregistered = error(&env).await;
    assert!(unregistered.contains("not registered in Ironic yet"), "{unregistered}");
    until_created(&env, "events").await;
    assert_eq!((error(&env).await.as_str(), in_bmc(&env).len()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_for_a_paused_or_detached_host_until_it_is_neither() {
    let env = env_with_host().await;
    pause(&env).await;
    subscribe(&env, "events").await;
    sleep(MINUTES).await;
    assert_eq!(
        (error(&env).await.as_str(), in_bmc(&env).len()),
        ("", 0),
        "a pause may be short"
    );
    sleep(HOUR).await;
    let paused = error(&env).await;
    assert!(paused.contains("its host is paused; "), "{paused}");
    let detached = json!({ "baremetalhost.metal3.io/paused": null, "baremetalhost.metal3.io/detached": "" });
    env.edit(1, json!({ "metadata": { "annotations": detached } })).await;
    sleep(HOUR).await;
    let detached = error(&env).await;
    assert!(
        detached.contains("detached from Ironic; remove the annotation"),
        "{detached}"
    );
    assert_eq!(in_bmc(&env), []);
    env.edit(
        1,
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/detached": null } } }),
    )
    .await;
    until_created(&env, "events").await;
    assert_eq!((error(&env).await.as_str(), in_bmc(&env).len()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn bmc_without_subscriptions_is_reported_and_rarely_asked() {
    let env = env_with_host().await;
    env.interceptor.log().rejected = Some(("GET nodes/_/vendor_passthru", 400));
    let asked = env.interceptor.log().asked.len();
    subscribe(&env, "events").await;
    sleep(24 * HOUR).await;
    let unsupported = error(&env).await;
    assert!(
        unsupported.starts_with("failed to create a subscription: ")
            && unsupported.contains("has no event subscriptions"),
        "{unsupported}"
    );
    let requests = env.interceptor.log().asked.len() - asked;
    assert!(requests < 2 * 40, "{requests} requests in a day");
    assert_eq!(env.events().matches("SubscriptionsUnsupported").count(), 1);
    assert_eq!(
        get(&env, "events").await.metadata.finalizers,
        None,
        "nothing was requested"
    );
    env.interceptor.log().rejected = None;
    until_created(&env, "events").await;
    assert_eq!(error(&env).await, "");
}

#[tokio::test(start_paused = true)]
async fn bmc_that_does_not_respond_is_asked_again_until_it_does() {
    let env = env_with_host().await;
    env.set_faults(1, &[Fault::DeadBmc]);
    subscribe(&env, "events").await;
    sleep(HOUR).await;
    let dead = error(&env).await;
    assert!(dead.contains("failed to create a subscription: "), "{dead}");
    env.set_faults(1, &[]);
    until_created(&env, "events").await;
    assert_eq!((error(&env).await.as_str(), in_bmc(&env).len()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn slow_bmc_with_many_subscriptions_delays_no_other_host() {
    let env = env_with_host().await;
    env.host(2, json!({})).await;
    env.until_state(2, "available").await;
    sleep(MINUTES).await;
    env.interceptor.log().late = Some("GET nodes/_/vendor_passthru");
    for index in 0..8 {
        subscribe(&env, &format!("events-{index}")).await;
    }
    sleep(Duration::from_secs(5)).await;
    let mut of_other = document("other", DESTINATION);
    of_other["spec"]["hostName"] = "host-2".into();
    env.make::<BMCEventSubscription>(of_other).await;
    sleep(Duration::from_secs(40)).await;
    assert!(get(&env, "other").await.status.subscription_id.is_some());
    assert!(in_bmc(&env).len() < 8, "the BMC is slow");
    for index in 0..8 {
        until_created(&env, &format!("events-{index}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_of_a_host_with_another_node_is_kept_or_created_again() {
    for is_reset in [false, true] {
        let env = env_with_host().await;
        subscribe(&env, "events").await;
        let first = until_created(&env, "events").await;
        let node = env.node(1).await.unwrap().uuid;
        env.ironic.lose_database();
        if is_reset {
            env.machine(1, |machine| machine.subscriptions.clear());
        }
        env.until(1, "another node", |host| {
            host.is_some_and(|host| {
                !host.status.provisioning.id.is_empty() && host.status.provisioning.id != node.as_str()
            })
        })
        .await;
        sleep(4 * HOUR).await;
        let id = until_created(&env, "events").await;
        let ids: Vec<String> = in_bmc(&env).into_iter().map(|one| one.id).collect();
        assert_eq!(ids, std::slice::from_ref(&id));
        assert_eq!((id == first, error(&env).await.as_str()), (!is_reset, ""));
        let events = env.events();
        assert_eq!(events.contains("SubscriptionLost"), is_reset, "{events}");
        delete::<BMCEventSubscription>(&env, "events").await;
        until_gone::<BMCEventSubscription>(&env, "events").await;
        assert_eq!(in_bmc(&env), []);
    }
}

#[tokio::test(start_paused = true)]
async fn headers_come_from_a_labelled_secret_of_the_namespace_that_is_no_login() {
    let env = env_of_switches().await;
    let value = || json!({ "password": HEADER });
    for used in ["switch", "configs", "keys"] {
        secret(&env, used, labelled(), value()).await;
    }
    env.make::<BareMetalSwitch>(switch("switch")).await;
    secret(&env, "plain", json!({}), value()).await;
    secret(&env, "lines", labelled(), json!({ "a": format!("{HEADER}\n") })).await;
    // The Go manager labels what a host names, and the data of its machine are one line of text.
    for used in ["user", "meta", "network", "registry"] {
        secret(&env, used, labelled(), value()).await;
    }
    let named = |name: &str| json!({ "name": name });
    let image = json!({ "url": "oci://registry.example/os", "ociAuthSecretName": "registry" });
    let used = json!({ "userData": named("user"), "metaData": named("meta"), "networkData": named("network"), "image": image,
        "online": false });
    env.edit(1, json!({ "spec": used })).await;
    let config = json!({ "metadata": { "name": "typed", "labels": labelled() }, "type": "kubernetes.io/basic-auth",
        "stringData": { "password": HEADER } });
    env.make::<Secret>(config).await;
    for (name, namespace, text) in [
        ("user", "default", "the data of a machine"),
        ("meta", "default", "the data of a machine"),
        ("network", "default", "the data of a machine"),
        ("registry", "default", "the data of a machine"),
        ("typed", "default", "the data of a machine"),
        ("absent", "default", "does not exist"),
        ("plain", "default", "not labelled"),
        ("bmc-1", "default", "is a login or the data of a machine"),
        ("switch", "default", "is a login or the data of a machine"),
        ("configs", "default", "is a login or the data of a machine"),
        ("keys", "default", "is a login or the data of a machine"),
        ("lines", "default", "no text of one line"),
        ("plain", "elsewhere", "spec.httpHeadersRef.namespace"),
    ] {
        subscribe_with_headers(&env, name, namespace).await;
        sleep(MINUTES).await;
        let error = error(&env).await;
        assert!(error.contains(text) && !error.contains(HEADER), "{name}: {error}");
        let object = get(&env, "events").await;
        assert_eq!(object.metadata.finalizers, None, "{name}: nothing was requested");
        delete::<BMCEventSubscription>(&env, "events").await;
        until_gone::<BMCEventSubscription>(&env, "events").await;
    }
    assert_eq!(in_bmc(&env), []);
    subscribe_with_headers(&env, "plain", "default").await;
    sleep(MINUTES).await;
    let labels = Patch::Merge(json!({ "metadata": { "labels": labelled() } }));
    env.api::<Secret>()
        .patch("plain", &PatchParams::default(), &labels)
        .await
        .unwrap();
    until_created(&env, "events").await;
    assert_eq!((error(&env).await.as_str(), in_bmc(&env).len()), ("", 1));
    assert!(!env.events().contains(HEADER));
}

/// Tried again with a delay that grows to an hour, as for a Secret that a host named.
#[tokio::test(start_paused = true)]
async fn secret_that_no_switch_names_any_more_may_have_headers() {
    let env = env_of_switches().await;
    secret(&env, "switch", labelled(), json!({ "password": HEADER })).await;
    env.make::<BareMetalSwitch>(switch("switch")).await;
    subscribe_with_headers(&env, "switch", "default").await;
    sleep(HOUR).await;
    assert_eq!(in_bmc(&env), []);
    let other = Patch::Merge(json!({ "spec": { "credentials": { "name": "other" } } }));
    let api = env.api::<BareMetalSwitch>();
    api.patch("one", &PatchParams::default(), &other).await.unwrap();
    sleep(HOUR * 2).await;
    assert_eq!((error(&env).await.as_str(), in_bmc(&env).len()), ("", 1));
}

/// Ironic repeats the request in its message, in the notation of Python.
#[tokio::test(start_paused = true)]
async fn rejected_headers_are_shown_nowhere() {
    let env = env_with_host().await;
    secret(
        &env,
        "headers",
        labelled(),
        json!({ "Authorization": format!("{HEADER} 'x'") }),
    )
    .await;
    env.interceptor.log().rejected = Some(("POST nodes/_/vendor_passthru", 400));
    subscribe_with_headers(&env, "headers", "default").await;
    sleep(HOUR).await;
    let rejected = error(&env).await;
    assert!(rejected.contains("its message is not shown"), "{rejected}");
    let shown = format!("{:?} {}", get(&env, "events").await, env.events());
    assert!(!shown.contains(HEADER), "{shown}");
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
}

#[tokio::test(start_paused = true)]
async fn equal_subscriptions_of_one_host_are_two_and_that_of_another_program_is_left_alone() {
    let env = env_with_host().await;
    let of_another = Subscription {
        id: "9".to_owned(),
        destination: DESTINATION.to_owned(),
        context: "rack 4".to_owned(),
        headers: json!([]),
    };
    env.machine(1, |machine| machine.subscriptions.push(of_another.clone()));
    subscribe(&env, "a").await;
    subscribe(&env, "b").await;
    let ids = [until_created(&env, "a").await, until_created(&env, "b").await];
    assert!(ids[0] != ids[1] && !ids.contains(&of_another.id), "{ids:?}");
    delete::<BMCEventSubscription>(&env, "a").await;
    until_gone::<BMCEventSubscription>(&env, "a").await;
    assert!(in_bmc(&env).iter().any(|one| one.id == ids[1]));
    delete::<BMCEventSubscription>(&env, "b").await;
    until_gone::<BMCEventSubscription>(&env, "b").await;
    assert_eq!(in_bmc(&env), [of_another]);
}

#[tokio::test(start_paused = true)]
async fn subscription_of_another_namespace_does_not_reach_the_host() {
    let env = env_with_host().await;
    let client = env.cluster.client("tenant");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "tenant" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let api: Api<BMCEventSubscription> = Api::namespaced(client, "tenant");
    let object = serde_json::from_value(document("events", DESTINATION)).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    sleep(HOUR).await;
    let status = api.get("events").await.unwrap().status;
    assert!(
        status
            .error
            .unwrap_or_default()
            .contains("does not exist in this namespace")
    );
    assert_eq!(in_bmc(&env), []);
}

/// The status of a host may be written by a user.
#[tokio::test(start_paused = true)]
async fn bmc_of_a_node_of_another_name_is_left_alone() {
    let env = env_with_host().await;
    let id = "33dbabe0-2000-41a3-95f0-22e2c1ccb0b7";
    let of_another = Subscription {
        id: id.to_owned(),
        destination: DESTINATION.to_owned(),
        context: "rack 4".to_owned(),
        headers: json!([]),
    };
    env.machine(1, |machine| machine.subscriptions.push(of_another));
    let status = env.get(1).await.unwrap().status;
    env.login(2).await;
    let copied = serde_json::to_string(&status).unwrap();
    let host = json!({
        "metadata": { "name": "copy", "annotations": { "baremetalhost.metal3.io/status": copied } },
        "spec": { "online": true, "bootMACAddress": "52:54:00:66:66:66", "bmc": { "credentialsName": "bmc-2",
            "address": "redfish-virtualmedia://198.51.100.66/redfish/v1/Systems/1" } },
    });
    env.make::<BareMetalHost>(host).await;
    sleep(MINUTES).await;
    let mut created = document("events", DESTINATION);
    created["spec"]["hostName"] = json!("copy");
    env.make::<BMCEventSubscription>(created).await;
    let mut left = document("left", DESTINATION);
    left["spec"]["hostName"] = json!("copy");
    left["metadata"]["finalizers"] = json!(["bmceventsubscription.metal3.io"]);
    env.make::<BMCEventSubscription>(left).await;
    let status = Patch::Merge(json!({ "status": { "subscriptionID": id } }));
    let api = env.api::<BMCEventSubscription>();
    api.patch_status("left", &PatchParams::default(), &status)
        .await
        .unwrap();
    sleep(HOUR).await;
    delete::<BMCEventSubscription>(&env, "left").await;
    sleep(HOUR).await;
    assert!(!is_gone::<BMCEventSubscription>(&env, "left").await);
    assert_eq!(in_bmc(&env).len(), 1);
}

/// A BMC that reports another context would not be searched for with success.
#[tokio::test(start_paused = true)]
async fn identifier_is_recorded_although_the_object_changed_during_the_request() {
    let env = env_with_host().await;
    let asked = env.interceptor.log().asked.len();
    env.interceptor.log().late = Some("POST nodes/_/vendor_passthru");
    subscribe(&env, "events").await;
    let is_creation = |request: &String| request.starts_with("POST nodes/_/vendor_passthru");
    while !env.interceptor.log().asked[asked..].iter().any(is_creation) {
        sleep(Duration::from_millis(100)).await;
    }
    let label = Patch::Merge(json!({ "metadata": { "labels": { "rack": "7" } } }));
    let api = env.api::<BMCEventSubscription>();
    api.patch("events", &PatchParams::default(), &label).await.unwrap();
    until_created(&env, "events").await;
    assert_eq!(in_bmc(&env).len(), 1);
    let events = env.events();
    assert!(
        events.contains("(created)") && !events.contains("lost response"),
        "{events}"
    );
}
