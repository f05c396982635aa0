//! Hosts in the whole process, on a simulated API server and a simulated Ironic.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use metal3_api::catalog;
use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage};
use metal3_flags::Owner;
use metal3_manager::error::RunError;
use metal3_manager::hosts_config::HostsConfig;
use metal3_manager::product::{Product, find};
use metal3_manager::run::Ended;
use metal3_runtime::guard;
use metal3_sim_ironic::{Ironic, Login, Options, Pace};
use serde_json::{Value, json};

use crate::environment::{TestCluster, assert_no_writes, options, until};
use crate::life::named;

pub(crate) const CONTROLLERS: &str = "--controllers=hosts --lab-fake-hardware";

pub(crate) async fn world() -> TestCluster {
    let world = TestCluster::empty().await;
    let kinds = catalog::definitions()
        .into_iter()
        .filter(|kind| kind.group == "metal3.io");
    world.cluster.install(&kinds.collect::<Vec<_>>()).unwrap();
    world
}

pub(crate) fn products() -> Vec<Product> {
    vec![find(Owner::Hosts)]
}

/// Ironic without sockets.
pub(crate) async fn wired(world: &TestCluster, ironic: &Ironic, flags: &str) -> HostsConfig {
    let variable = |name: &str| (name == "IRONIC_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned());
    let metal = HostsConfig::of(&options(flags), variable, Arc::clone(&world.clock)).await;
    HostsConfig {
        ironics: ironic.client().unwrap().into(),
        ..metal.unwrap()
    }
}

/// A host without inspection, and its BMC Secret.
pub(crate) async fn enrol(world: &TestCluster) {
    let secret = json!({
        "metadata": { "name": "bmc", "labels": { "environment.metal3.io": "baremetal" } }, "data": { "username": "YWRtaW4=", "password": "aHVudGVyMg==" },
    });
    world.create::<Secret>(secret).await;
    let host = json!({
        "metadata": { "name": "one", "annotations": { "inspect.metal3.io": "disabled" } },
        "spec": {
            "online": false, "bootMACAddress": "52:54:00:00:00:01",
            "bmc": { "address": "fake://one", "credentialsName": "bmc" },
        },
    });
    world.create::<BareMetalHost>(host).await;
}

pub(crate) async fn state(world: &TestCluster) -> String {
    let host = world.api::<BareMetalHost>().get("one").await.unwrap();
    let host = serde_json::to_value(host).unwrap();
    let state = host.pointer("/status/provisioning/state");
    state.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn install_tls() {
    // Another test of this process may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
}

#[tokio::test(start_paused = true)]
async fn the_leader_enrols_a_host_and_releases_the_lease() {
    install_tls();
    let world = world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    enrol(&world).await;
    let flags = format!("{CONTROLLERS} --leader-elect");
    let metal = wired(&world, &ironic, &flags).await;
    let one = world.start_options("a", options(&flags), Some(metal.clone()), products());
    until("ready", async || one.ready().await).await;
    until("available", async || state(&world).await == "available").await;
    assert_eq!(ironic.audit().of("POST", "nodes"), 1);
    assert_eq!(one.end().await, Ended::Stopped);
    assert_eq!(world.holder("baremetal-operator").await, "");
}

#[tokio::test(start_paused = true)]
async fn observe_only_writes_nothing_and_only_reads_from_ironic() {
    install_tls();
    let world = world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    enrol(&world).await;
    let flags = format!("{CONTROLLERS} --observe-only");
    let metal = wired(&world, &ironic, &flags).await;
    let replica = world.start_options("a", options(&flags), Some(metal), products());
    until("ready", async || replica.ready().await).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    assert_no_writes(&world.cluster);
    let requests = ironic.audit();
    assert!(requests.total() > 0, "it reads the change feed");
    let changes: Vec<_> = requests.counts().filter(|((method, ..), _)| *method != "GET").collect();
    assert!(changes.is_empty(), "{changes:?}");
}

/// The flag overrides the guard, not the look before a finalizer is removed.
#[tokio::test(start_paused = true)]
async fn forced_leader_removes_no_finalizer_while_the_go_manager_runs() {
    install_tls();
    let world = world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let (namespace, name) = guard::HOSTS;
    let admin = world.cluster.client("admin");
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let new = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
    namespaces.create(&PostParams::default(), &new).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(admin, namespace);
    deployments
        .create(&PostParams::default(), &named(name, 1))
        .await
        .unwrap();
    let image = json!({
        "metadata": { "name": "one", "finalizers": ["dataimage.metal3.io"] },
        "spec": { "url": "http://images.example/data.iso" },
    });
    world.create::<DataImage>(image).await;
    world
        .api::<DataImage>()
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    let flags = format!("{CONTROLLERS} --force-controllers");
    let metal = wired(&world, &ironic, &flags).await;
    let replica = world.start_options("a", options(&flags), Some(metal), products());
    until("ready", async || replica.ready().await).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(world.api::<DataImage>().get_opt("one").await.unwrap().is_some());
    deployments.delete(name, &DeleteParams::default()).await.unwrap();
    until("the image is gone", async || {
        world.api::<DataImage>().get_opt("one").await.unwrap().is_none()
    })
    .await;
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn hosts_do_not_start_without_ironic() {
    let world = world().await;
    let replica = world.start_options("a", options(CONTROLLERS), None, products());
    let ended = replica.ended.await.unwrap();
    assert!(matches!(ended, Err(RunError::NoIronic)), "{ended:?}");
}

/// Over HTTPS, with credentials and CA in files, as in a Pod. With sockets, time is real.
#[tokio::test]
async fn a_host_becomes_available_over_https_with_a_login() {
    install_tls();
    let world = world().await;
    let mut simulated = Options::new(1, Arc::clone(&world.clock));
    simulated.pace = Pace {
        bmc: Duration::from_millis(5),
        ..Pace::default()
    };
    let ironic = Ironic::start(simulated);
    let login = Login {
        username: "admin".to_owned(),
        password: "hunter2".to_owned(),
    };
    let serving = ironic.serve(0, &login).await.unwrap();
    let folder = files(&login, serving.ca());
    let variable = |name: &str| {
        Some(match name {
            "IRONIC_ENDPOINT" => format!("{}/v1/", serving.url()),
            "METAL3_AUTH_ROOT_DIR" => folder.display().to_string(),
            "IRONIC_CACERT_FILE" => folder.join("ca.crt").display().to_string(),
            _ => return None,
        })
    };
    let metal = HostsConfig::of(&options(CONTROLLERS), variable, Arc::clone(&world.clock)).await;
    enrol(&world).await;
    let replica = world.start_options("a", options(CONTROLLERS), Some(metal.unwrap()), products());
    until("available", async || state(&world).await == "available").await;
    assert_eq!(replica.end().await, Ended::Stopped);
    serving.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn login_of_ironic_is_not_sent_over_http_without_the_flag() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = std::env::temp_dir().join(format!("capm3-http-login-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("ironic")).unwrap();
    std::fs::create_dir_all(folder.join("none")).unwrap();
    for (name, text) in [("username", "admin"), ("password", "hunter2")] {
        std::fs::write(folder.join("ironic").join(name), text).unwrap();
    }
    let login = folder.display().to_string();
    let open = folder.join("none").display().to_string();
    let allowed = format!("{CONTROLLERS} --allow-insecure-ironic");
    let clock = world().await.clock;
    for (endpoint, root, flags, starts) in [
        ("http://ironic.example.org:6385", &login, CONTROLLERS, false),
        ("http://192.0.2.1:6385", &login, CONTROLLERS, false),
        ("http://192.0.2.1:6385", &login, allowed.as_str(), true),
        ("http://192.0.2.1:6385", &open, CONTROLLERS, true),
        ("https://192.0.2.1:6385", &login, CONTROLLERS, true),
        ("http://127.0.0.1:6385", &login, CONTROLLERS, true),
        ("http://[::1]:6385", &login, CONTROLLERS, true),
        ("http://localhost:6385", &login, CONTROLLERS, true),
    ] {
        let variable = |name: &str| {
            let found = [("IRONIC_ENDPOINT", endpoint), ("METAL3_AUTH_ROOT_DIR", root.as_str())];
            let found = found.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let config = HostsConfig::of(&options(flags), variable, Arc::clone(&clock)).await;
        let text = config.as_ref().map_or_else(ToString::to_string, |_| String::new());
        assert_eq!(config.is_ok(), starts, "{endpoint} {flags}: {text}");
        assert!(starts || text.contains("--allow-insecure-ironic"), "{text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// With one Ironic the start fails.
#[tokio::test]
async fn wrong_file_of_one_ironic_of_several_stops_its_hosts_alone() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = std::env::temp_dir().join(format!("capm3-wrong-ca-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("site-b")).unwrap();
    std::fs::write(folder.join("site-b/ca.crt"), "none").unwrap();
    let (root, clock) = (folder.display().to_string(), world().await.clock);
    let config = async |endpoints: &str| {
        let variable = |name: &str| match name {
            "IRONIC_ENDPOINTS" => Some(endpoints.to_owned()),
            "METAL3_AUTH_ROOT_DIR" => Some(root.clone()),
            _ => None,
        };
        HostsConfig::of(&options(CONTROLLERS), variable, Arc::clone(&clock)).await
    };
    let both = config("site-a=https://192.0.2.1:6385,site-b=https://192.0.2.2:6385")
        .await
        .unwrap();
    let leads = |name: &str| both.ironics.client(name).unwrap().endpoint().is_some();
    assert_eq!((leads("site-a"), leads("site-b")), (true, false));
    let drivers = metal3_ironic::calls::service::drivers();
    let error = both.ironics.client("site-b").unwrap().send(&drivers).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the files of Ironic \"site-b\" cannot be used"),
        "{error}"
    );
    let alone = config("site-b=https://192.0.2.2:6385").await.map(|_| ()).unwrap_err();
    assert!(alone.to_string().contains("client of Ironic \"site-b\""), "{alone}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A directory with credentials and CA.
fn files(login: &Login, ca: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("capm3-hosts-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("ironic")).unwrap();
    std::fs::write(folder.join("ironic/username"), &login.username).unwrap();
    std::fs::write(folder.join("ironic/password"), &login.password).unwrap();
    std::fs::write(folder.join("ca.crt"), ca).unwrap();
    folder
}
