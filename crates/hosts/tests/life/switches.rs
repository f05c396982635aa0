//! Switches, as Ironic's networking service reads them: two Secrets of their namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch};
use metal3_hosts::switches::Outputs;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, NAMESPACE, PASSWORD, Setup, TestEnv};
use crate::faults::FAULTS;
use crate::unserved::delete;
use crate::waits::Writes;

pub(crate) const CONFIG: &str = "switch-configs.conf";
pub(crate) const HEADER: &str = "# This file is managed by the Baremetal Operator\n\n";
/// More than a back-off after one fault.
pub(crate) const REST: Duration = Duration::from_mins(5);
pub(crate) const DAY: Duration = Duration::from_hours(24);
const RESOURCES: [&str; 2] = ["secrets", "baremetalswitches/status"];

pub(crate) fn outputs() -> Outputs {
    Outputs {
        configs: "configs".to_owned(),
        keys: "keys".to_owned(),
        folder: "/etc/ironic/keys".to_owned(),
    }
}

pub(crate) fn env() -> TestEnv {
    TestEnv::new(Setup {
        switches: Some(outputs()),
        ..Setup::default()
    })
}

pub(crate) async fn secret(env: &TestEnv, name: &str, labels: Value, values: Value) {
    env.make::<Secret>(json!({ "metadata": { "name": name, "labels": labels }, "stringData": values }))
        .await;
}

pub(crate) async fn login(env: &TestEnv, name: &str, values: Value) {
    secret(env, name, json!({ "environment.metal3.io": "baremetal" }), values).await;
}

pub(crate) async fn switch(env: &TestEnv, name: &str, last: u8) {
    let spec = json!({ "address": format!("192.0.2.{last}"), "macAddress": format!("aa:bb:cc:dd:ee:{last:02x}"),
        "deviceType": "netmiko_cisco_ios", "credentials": { "name": format!("{name}-login") } });
    env.make::<BareMetalSwitch>(json!({ "metadata": { "name": name }, "spec": spec }))
        .await;
}

/// A switch with its login.
pub(crate) async fn switch_with_password(env: &TestEnv, name: &str, last: u8) {
    let values = json!({ "username": "admin", "password": PASSWORD });
    login(env, &format!("{name}-login"), values).await;
    switch(env, name, last).await;
}

pub(crate) async fn values(env: &TestEnv, name: &str) -> BTreeMap<String, String> {
    let secret = env.api::<Secret>().get(name).await.unwrap();
    let text = |(name, value): (String, k8s_openapi::ByteString)| (name, String::from_utf8(value.0).unwrap());
    secret.data.unwrap_or_default().into_iter().map(text).collect()
}

pub(crate) async fn file(env: &TestEnv) -> String {
    values(env, "configs").await.get(CONFIG).cloned().unwrap_or_default()
}

pub(crate) async fn valid(env: &TestEnv, name: &str) -> String {
    let switch = env.api::<BareMetalSwitch>().get(name).await.unwrap();
    let conditions = switch.status.conditions;
    conditions.first().map_or_else(String::new, |one| {
        format!("{:?} {} {}", one.status, one.reason, one.message)
    })
}

pub(crate) async fn change(env: &TestEnv, name: &str, data: Value) {
    let patch = Patch::Merge(data);
    env.api::<Secret>()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// What is read at any time names no key that does not exist.
async fn check(env: &TestEnv, case: &dyn std::fmt::Debug) {
    let (file, keys) = (file(env).await, values(env, "keys").await);
    for line in file
        .lines()
        .filter_map(|line| line.strip_prefix("key_file=/etc/ironic/keys/"))
    {
        assert!(keys.contains_key(line), "{case:?}: {line} does not exist");
    }
}

async fn rest(env: &TestEnv, case: &dyn std::fmt::Debug) {
    let step = Duration::from_secs(1);
    let (mut waited, mut writes) = (Duration::ZERO, Writes::default());
    while waited < REST {
        if writes.are_new(env) {
            check(env, case).await;
        }
        sleep(step).await;
        waited += step;
    }
}

pub(crate) fn counts(env: &TestEnv) -> [u64; 2] {
    RESOURCES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource))
}

pub(crate) fn reads(env: &TestEnv) -> u64 {
    env.cluster.audit().of(CONTROLLER_USER, "get", "secrets")
}

/// Two switches: one with a private key. Then a key is replaced, then both are deleted.
async fn run(case: Option<(&'static str, &'static str, u64, Fault)>) -> [u64; 2] {
    let env = env();
    secret(&env, "configs", json!({}), json!({})).await;
    secret(&env, "keys", json!({}), json!({ "other": "kept" })).await;
    sleep(REST).await;
    env.cluster.reset_audit();
    if let Some((verb, resource, at, fault)) = case {
        let rule = Rule::at(at, fault).verb(verb).resource(resource);
        env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    }
    login(
        &env,
        "a-login",
        json!({ "username": "admin", "ssh-privatekey": "canary-a" }),
    )
    .await;
    switch(&env, "a", 1).await;
    switch_with_password(&env, "b", 2).await;
    rest(&env, &case).await;
    assert!(
        file(&env)
            .await
            .contains("[switch:b]\naddress=192.0.2.2\nmac_address=aa:bb:cc:dd:ee:02\n"),
        "{case:?}"
    );
    for name in ["a", "b"] {
        assert!(valid(&env, name).await.starts_with("True Reconciled "), "{case:?}");
    }
    change(
        &env,
        "a-login",
        json!({ "stringData": { "ssh-privatekey": "canary-b" } }),
    )
    .await;
    rest(&env, &case).await;
    let keys = values(&env, "keys").await;
    let expected = [("aa-bb-cc-dd-ee-01.key", "canary-b"), ("other", "kept")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(keys, BTreeMap::from(expected), "{case:?}");
    for name in ["a", "b"] {
        let shown = format!("{:?}", env.api::<BareMetalSwitch>().get(name).await.unwrap());
        let shows_login = ["canary", PASSWORD].iter().any(|login| shown.contains(login));
        assert!(!shows_login, "{case:?}: {shown}");
        delete::<BareMetalSwitch>(&env, name).await;
    }
    rest(&env, &case).await;
    assert_eq!(file(&env).await, HEADER, "{case:?}");
    assert_eq!(values(&env, "keys").await.len(), 1, "{case:?}: no login is left");
    assert_eq!(
        env.cluster.injected() > 0,
        case.is_some(),
        "{case:?} at a request that was not made"
    );
    counts(&env)
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_leaves_the_switches_that_exist_and_no_login_of_a_deleted_one() {
    let writes = run(None).await;
    assert!(writes.iter().all(|count| (2..=9).contains(count)), "{writes:?}");
    for (resource, count) in RESOURCES.into_iter().zip(writes) {
        for at in 1..=count {
            for fault in FAULTS {
                run(Some(("patch", resource, at, fault))).await;
            }
        }
    }
    for at in 1..=4 {
        for fault in [Fault::CrashBefore, FAULTS[4]] {
            run(Some(("get", "secrets", at, fault))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn switch_says_what_it_waits_for_and_is_written_when_that_comes() {
    let env = env();
    switch(&env, "a", 1).await;
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("CredentialError credentials secret a-login not found")
    );
    secret(&env, "a-login", json!({}), json!({ "username": "admin" })).await;
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("has no label environment.metal3.io: baremetal")
    );
    change(
        &env,
        "a-login",
        json!({ "metadata": { "labels": { "environment.metal3.io": "baremetal" } } }),
    )
    .await;
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("missing 'password' or 'ssh-privatekey' key")
    );
    change(&env, "a-login", json!({ "stringData": { "password": PASSWORD } })).await;
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("SwitchSecretMissing Secret configs not found")
    );
    secret(&env, "configs", json!({}), json!({})).await;
    secret(&env, "keys", json!({}), json!({})).await;
    sleep(REST).await;
    assert!(
        valid(&env, "a").await.starts_with("True "),
        "{}",
        valid(&env, "a").await
    );
    assert!(file(&env).await.contains(&format!("password={PASSWORD}\n")));
    // Another change of the file is undone.
    change(&env, "configs", json!({ "data": { CONFIG: null } })).await;
    sleep(REST).await;
    assert!(file(&env).await.contains("[switch:a]"));
    let (writes, reads) = (counts(&env), reads(&env));
    sleep(DAY).await;
    assert_eq!((counts(&env), self::reads(&env)), (writes, reads), "nothing is polled");
}

/// A user who may create a switch must not have the login of a BMC sent to an address of his choice.
#[tokio::test(start_paused = true)]
async fn login_of_a_bmc_is_sent_to_no_switch() {
    let env = env();
    secret(&env, "configs", json!({}), json!({})).await;
    secret(&env, "keys", json!({}), json!({})).await;
    let spec = json!({ "address": "192.0.2.66", "macAddress": "aa:bb:cc:dd:ee:01", "deviceType": "x",
        "credentials": { "name": "bmc-1" } });
    env.login(1).await;
    env.make::<BareMetalHost>(env.document(1, &json!({}))).await;
    sleep(REST).await;
    env.make::<BareMetalSwitch>(json!({ "metadata": { "name": "a" }, "spec": spec }))
        .await;
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("CredentialError credentials secret bmc-1 has another use")
    );
    assert_eq!(file(&env).await, HEADER);
    // A Secret with data of the machine is free once no host names it.
    login(&env, "data", json!({ "username": "admin", "password": PASSWORD })).await;
    env.edit(1, json!({ "spec": { "userData": { "name": "data" } } })).await;
    let named = Patch::Merge(json!({ "spec": { "credentials": { "name": "data" } } }));
    let api = env.api::<BareMetalSwitch>();
    api.patch("a", &PatchParams::default(), &named).await.unwrap();
    sleep(REST).await;
    assert!(
        valid(&env, "a")
            .await
            .contains("CredentialError credentials secret data has another use")
    );
    env.edit(1, json!({ "spec": { "userData": null } })).await;
    sleep(REST).await;
    assert!(
        valid(&env, "a").await.starts_with("True "),
        "{}",
        valid(&env, "a").await
    );
}

#[tokio::test(start_paused = true)]
async fn login_of_another_namespace_is_not_used() {
    let env = env();
    secret(&env, "configs", json!({}), json!({})).await;
    secret(&env, "keys", json!({}), json!({})).await;
    switch_with_password(&env, "a", 1).await;
    let api = env.api::<BareMetalSwitch>();
    let name = async |namespace: &str| {
        let named = Patch::Merge(json!({ "spec": { "credentials": { "namespace": namespace } } }));
        api.patch("a", &PatchParams::default(), &named).await.unwrap();
        sleep(REST).await;
        valid(&env, "a").await
    };
    assert!(
        name("other")
            .await
            .contains("CredentialError spec.credentials.namespace is another one")
    );
    assert_eq!(file(&env).await, HEADER);
    let own = name(NAMESPACE).await;
    assert!(own.starts_with("True "), "{own}");
}

#[tokio::test(start_paused = true)]
async fn switches_cost_nothing_when_they_are_not_configured() {
    let env = TestEnv::new(Setup::default());
    secret(&env, "configs", json!({}), json!({})).await;
    switch_with_password(&env, "a", 1).await;
    sleep(REST).await;
    for verb in ["list", "watch", "get", "patch"] {
        for resource in ["baremetalswitches", "baremetalswitches/status"] {
            assert_eq!(
                env.cluster.audit().of(CONTROLLER_USER, verb, resource),
                0,
                "{verb} {resource}"
            );
        }
    }
    assert_eq!(valid(&env, "a").await, "");
}
