//! Switches when a request is refused, a host names their login, or their kind cannot be listed.

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, TestEnv};
use crate::switches::{
    CONFIG, DAY, HEADER, REST, change, counts, env, file, login, reads, secret, switch, switch_with_password, valid,
    values,
};
use crate::unserved::delete;

const fn refused(code: u16) -> Fault {
    Fault::Refused {
        code,
        retry_after: None,
    }
}

async fn empty_secrets(env: &TestEnv) {
    secret(env, "configs", json!({}), json!({})).await;
    secret(env, "keys", json!({}), json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_tried_again_and_then_nothing_is_polled() {
    for (verb, resource, at, code) in [
        ("patch", "secrets", 1, 403),
        ("patch", "secrets", 2, 422),
        ("patch", "secrets", 3, 403),
        ("patch", "baremetalswitches/status", 1, 403),
        ("patch", "baremetalswitches/status", 2, 422),
        ("get", "secrets", 1, 403),
        ("get", "secrets", 2, 403),
        ("get", "secrets", 3, 403),
    ] {
        let case = format!("{verb} {resource} {at} {code}");
        let env = env();
        empty_secrets(&env).await;
        sleep(REST).await;
        let rule = Rule::at(at, refused(code)).verb(verb).resource(resource);
        env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        let values = json!({ "username": "admin", "ssh-privatekey": "canary-a" });
        login(&env, "a-login", values).await;
        switch(&env, "a", 1).await;
        switch_with_password(&env, "b", 2).await;
        sleep(DAY).await;
        assert_eq!(env.cluster.injected(), 1, "{case}");
        for name in ["a", "b"] {
            let said = valid(&env, name).await;
            assert!(said.starts_with("True "), "{case}: {said}");
        }
        assert!(file(&env).await.contains("[switch:a]"), "{case}");
        let (writes, read) = (counts(&env), reads(&env));
        sleep(DAY).await;
        assert_eq!((counts(&env), reads(&env)), (writes, read), "{case}: nothing is polled");
    }
}

/// A Secret of keys that cannot be changed, such as an immutable one.
#[tokio::test(start_paused = true)]
async fn refused_change_of_the_keys_stops_no_password_and_no_removal() {
    let env = env();
    empty_secrets(&env).await;
    login(
        &env,
        "a-login",
        json!({ "username": "admin", "ssh-privatekey": "canary-a" }),
    )
    .await;
    for (name, last) in [("b", 2), ("c", 3)] {
        switch_with_password(&env, name, last).await;
    }
    sleep(REST).await;
    let merge = Patch::Merge(json!({ "immutable": true }));
    let secrets = env.api::<k8s_openapi::api::core::v1::Secret>();
    secrets.patch("keys", &PatchParams::default(), &merge).await.unwrap();
    switch(&env, "a", 1).await;
    change(&env, "b-login", json!({ "stringData": { "password": "rotated" } })).await;
    delete::<BareMetalSwitch>(&env, "c").await;
    sleep(REST).await;
    let text = file(&env).await;
    assert!(
        text.contains("password=rotated\n") && !text.contains("[switch:c]"),
        "{text}"
    );
    assert!(!text.contains("[switch:a]"), "its key does not exist");
    let said = valid(&env, "a").await;
    assert!(
        said.contains("SwitchSecretRefused the API server refuses to change Secret keys"),
        "{said}"
    );
    assert!(
        valid(&env, "b").await.starts_with("True "),
        "{}",
        valid(&env, "b").await
    );
    let writes = counts(&env);
    sleep(REST * 10).await;
    let more: u64 = counts(&env).iter().zip(writes).map(|(now, then)| now - then).sum();
    assert!(
        (1..=20).contains(&more),
        "{more}: it is tried again, and not without a pause"
    );
}

/// A user who may write hosts must not take a switch from Ironic.
#[tokio::test(start_paused = true)]
async fn host_that_names_the_login_of_a_switch_takes_no_switch_out_of_the_file() {
    for field in ["userData", "metaData", "networkData"] {
        let env = env();
        empty_secrets(&env).await;
        env.login(1).await;
        env.make::<BareMetalHost>(env.document(1, &json!({}))).await;
        let values_of_login = json!({ "username": "admin", "ssh-privatekey": "canary-a" });
        login(&env, "a-login", values_of_login).await;
        switch(&env, "a", 1).await;
        sleep(REST).await;
        let before = (file(&env).await, values(&env, "keys").await);
        assert!(before.0.contains("[switch:a]"));
        env.edit(1, json!({ "spec": { field: { "name": "a-login" } } })).await;
        sleep(REST).await;
        assert_eq!((file(&env).await, values(&env, "keys").await), before, "{field}");
        assert!(valid(&env, "a").await.contains("has another use"));
        delete::<BareMetalSwitch>(&env, "a").await;
        sleep(REST).await;
        assert_eq!(
            (file(&env).await.as_str(), values(&env, "keys").await.len()),
            (HEADER, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn login_of_a_former_switch_goes_once_switches_may_be_listed() {
    let env = env();
    let rule = Rule::random(1000, refused(403))
        .verb("list")
        .resource("baremetalswitches");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    let former = format!("{HEADER}[switch:a]\naddress=192.0.2.1\nusername=admin\npassword=canary\n\n");
    secret(&env, "configs", json!({}), json!({ CONFIG: former })).await;
    secret(&env, "keys", json!({}), json!({})).await;
    sleep(REST).await;
    assert!(env.cluster.injected() > 0);
    assert!(file(&env).await.contains("canary"), "it may exist");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
    sleep(DAY).await;
    assert_eq!(file(&env).await, HEADER);
    let read = reads(&env);
    sleep(DAY).await;
    assert_eq!(reads(&env), read, "nothing is polled");
}

#[tokio::test(start_paused = true)]
async fn label_of_a_switch_costs_no_read() {
    let env = env();
    empty_secrets(&env).await;
    for (name, last) in [("a", 1), ("b", 2), ("c", 3)] {
        switch_with_password(&env, name, last).await;
    }
    sleep(REST).await;
    let before = reads(&env);
    let api = env.api::<BareMetalSwitch>();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "rack": "4" } } }));
    api.patch("a", &PatchParams::default(), &label).await.unwrap();
    sleep(REST).await;
    assert_eq!(reads(&env), before);
    // What another writer did to the status is still repaired.
    let status = Patch::Merge(json!({ "status": { "conditions": [] } }));
    api.patch_status("a", &PatchParams::default(), &status).await.unwrap();
    sleep(REST).await;
    assert!(
        valid(&env, "a").await.starts_with("True "),
        "{}",
        valid(&env, "a").await
    );
}

/// Machines are rolled in a namespace with many switches: each host gets and loses data that no switch uses.
#[tokio::test(start_paused = true)]
async fn host_with_other_secrets_costs_switches_no_read() {
    let env = env();
    empty_secrets(&env).await;
    switch_with_password(&env, "a", 1).await;
    sleep(REST).await;
    assert!(valid(&env, "a").await.starts_with("True "));
    let before = reads(&env);
    // Without a BMC, a host reads no Secret itself.
    let host = json!({ "metadata": { "name": "host-1" }, "spec": { "online": true, "userData": { "name": "data" } } });
    env.make::<BareMetalHost>(host).await;
    sleep(REST).await;
    for network_data in [json!({ "name": "network" }), json!(null)] {
        env.edit(1, json!({ "spec": { "networkData": network_data } })).await;
        sleep(REST).await;
    }
    delete::<BareMetalHost>(&env, "host-1").await;
    sleep(REST).await;
    assert!(env.get(1).await.is_none());
    assert_eq!(reads(&env), before);
}
