//! Hosts that a deploy step of the agent installs, alone and with an image.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_bmc::fault::Fault as MachineFault;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::faults::FAULTS;
use crate::interceptor::IronicFault;

const INSTALL: &str = "install_everything";
const OTHER: &str = "install_little";
const URL: &str = "http://192.0.2.9/os.img";

fn asked(method: &str, has_image: bool) -> Value {
    let image = json!({ "url": URL, "checksum": "0".repeat(64), "checksumType": "sha256" });
    let image = if has_image { image } else { Value::Null };
    json!({ "online": true, "customDeploy": { "method": method }, "image": image })
}

/// An available host whose agent knows both steps.
async fn available() -> TestEnv {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| {
        machine.deploy_steps.extend([INSTALL, OTHER].map(str::to_owned));
    });
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env
}

async fn ask(env: &TestEnv, spec: Value) {
    env.edit(1, json!({ "spec": spec })).await;
}

fn recorded(host: &BareMetalHost) -> (String, String) {
    let recorded = &host.status.provisioning;
    let method = recorded.custom_deploy.as_ref().map(|deploy| deploy.method.clone());
    (recorded.image.url.clone(), method.unwrap_or_default())
}

async fn until_recorded(env: &TestEnv, image: &str, method: &str) {
    let wanted = (image.to_owned(), method.to_owned());
    let runs = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status.provisioning.state.to_string() == "provisioned"
                && recorded(host) == wanted
                && host.status.error_type.is_none()
        })
    };
    env.until(1, "the record of what runs", runs).await;
}

fn on_disk(env: &TestEnv) -> Option<(String, String)> {
    let disk = env.machine(1, |machine| machine.disk.clone())?;
    Some((disk.source, disk.step.unwrap_or_default()))
}

fn installed(env: &TestEnv) -> u32 {
    env.machine(1, |machine| machine.counts.written)
}

#[tokio::test(start_paused = true)]
async fn deploy_step_installs_with_and_without_an_image_and_its_removal_cleans() {
    for has_image in [false, true] {
        let env = available().await;
        ask(&env, asked(INSTALL, has_image)).await;
        let url = if has_image { URL } else { "" };
        until_recorded(&env, url, INSTALL).await;
        assert_eq!(on_disk(&env), Some((url.to_owned(), INSTALL.to_owned())));
        let node = env.node(1).await.unwrap();
        assert_eq!(node.deploy_interface.as_deref(), Some("custom-agent"));
        let before = node.updated_at;
        sleep(Duration::from_mins(30)).await;
        assert_eq!(env.node(1).await.unwrap().updated_at, before, "it is left alone");
        ask(&env, json!({ "customDeploy": null, "image": null })).await;
        env.until_state(1, "available").await;
        assert_eq!(recorded(&env.get(1).await.unwrap()), (String::new(), String::new()));
        assert_eq!(on_disk(&env), None);
        assert_eq!(installed(&env), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn another_deploy_step_is_deployed_again_and_so_is_the_image_alone() {
    let env = available().await;
    ask(&env, asked(INSTALL, false)).await;
    until_recorded(&env, "", INSTALL).await;
    ask(&env, asked(OTHER, false)).await;
    until_recorded(&env, "", OTHER).await;
    assert_eq!(on_disk(&env), Some((String::new(), OTHER.to_owned())));
    let mut image = asked("", true);
    image["customDeploy"] = Value::Null;
    ask(&env, image).await;
    until_recorded(&env, URL, "").await;
    assert_eq!(on_disk(&env), Some((URL.to_owned(), String::new())));
    let node = env.node(1).await.unwrap();
    assert_eq!(node.deploy_interface.as_deref(), Some("direct"));
    assert_eq!(installed(&env), 3);
}

/// What runs is recorded as it was ordered, and then replaced.
#[tokio::test(start_paused = true)]
async fn deploy_step_that_changes_while_it_runs_is_replaced_afterwards() {
    let env = available().await;
    ask(&env, asked(INSTALL, false)).await;
    let deploys = async || {
        let node = env.node(1).await.unwrap();
        node.provision_state == ProvisionState::WaitCallBack
    };
    while !deploys().await {
        sleep(Duration::from_secs(1)).await;
    }
    ask(&env, asked(OTHER, false)).await;
    until_recorded(&env, "", OTHER).await;
    assert_eq!(on_disk(&env), Some((String::new(), OTHER.to_owned())));
    assert_eq!(installed(&env), 2);
}

/// The Go manager repeats such a deployment for ever, and reports nothing.
#[tokio::test(start_paused = true)]
async fn deploy_step_that_the_agent_does_not_know_is_an_error_and_is_tried_as_often_as_allowed() {
    let env = available().await;
    ask(&env, asked("unknown", false)).await;
    let is_shown = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            let message = &host.status.error_message;
            host.status.error_type == Some(ErrorType::Provisioning)
                && message.contains("customDeploy: unknown")
                && message.contains("does not support this deploy step")
        })
    };
    env.until(1, "error of the step", is_shown).await;
    assert_eq!(env.get(1).await.unwrap().status.provisioning_fail_count, 1);
    let is_given_up = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status
                .error_message
                .contains("retry limit (5) reached; change image or customDeploy")
        })
    };
    env.until(1, "end of the attempts", is_given_up).await;
    let orders = || {
        let log = env.interceptor.log();
        let orders = log.asked.iter().filter(|asked| asked.ends_with("provision active"));
        orders.count()
    };
    assert_eq!(orders(), 5);
    sleep(Duration::from_hours(6)).await;
    assert_eq!(orders(), 5);
    assert_eq!(installed(&env), 0);
    ask(&env, asked(INSTALL, false)).await;
    until_recorded(&env, "", INSTALL).await;
}

#[tokio::test(start_paused = true)]
async fn deploy_step_that_fails_is_repeated() {
    let env = available().await;
    env.set_faults(1, &[MachineFault::ChecksumMismatch]);
    ask(&env, asked(INSTALL, false)).await;
    let failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.provisioning_fail_count == 2);
    env.until(1, "second failure", failed).await;
    env.set_faults(1, &[]);
    until_recorded(&env, "", INSTALL).await;
    assert_eq!(env.get(1).await.unwrap().status.provisioning_fail_count, 0);
}

#[tokio::test(start_paused = true)]
async fn system_that_a_deploy_step_installed_is_adopted_without_changes_after_ironic_lost_its_database() {
    for has_image in [false, true] {
        let env = available().await;
        ask(&env, asked(INSTALL, has_image)).await;
        until_recorded(&env, if has_image { URL } else { "" }, INSTALL).await;
        sleep(Duration::from_mins(5)).await;
        let before = env.node(1).await.unwrap().uuid;
        let counts = env.machine(1, |machine| machine.counts);
        env.ironic.lose_database();
        let is_adopted = |host: Option<&BareMetalHost>| {
            host.is_some_and(|host| {
                let id = &host.status.provisioning.id;
                !id.is_empty() && id != before.as_str()
            })
        };
        env.until(1, "another node", is_adopted).await;
        sleep(Duration::from_hours(24)).await;
        let node = env.node(1).await.unwrap();
        assert_eq!(node.provision_state, ProvisionState::Active);
        assert_eq!(node.deploy_interface.as_deref(), Some("custom-agent"));
        assert_eq!(env.machine(1, |machine| machine.counts), counts);
    }
}

#[tokio::test(start_paused = true)]
async fn externally_provisioned_host_with_a_deploy_step_keeps_its_system() {
    let env = TestEnv::new(Setup::default());
    let mut spec = asked(INSTALL, false);
    spec["externallyProvisioned"] = true.into();
    env.host(1, spec).await;
    env.until_state(1, "externally provisioned").await;
    sleep(Duration::from_mins(5)).await;
    let node = env.node(1).await.unwrap();
    assert_eq!(node.provision_state, ProvisionState::Active);
    assert_eq!(node.deploy_interface.as_deref(), Some("custom-agent"));
    ask(&env, json!({ "externallyProvisioned": null })).await;
    until_recorded(&env, "", INSTALL).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(
        env.get(1).await.unwrap().status.provisioning.state.to_string(),
        "provisioned"
    );
    env.machine(1, |machine| {
        assert_eq!((machine.counts.written, machine.counts.erased), (0, 0))
    });
}

/// Every n-th case runs, so that each request and each fault has several.
const EVERY: usize = 3;
const WRITES: [&str; 2] = ["baremetalhosts", "baremetalhosts/status"];

#[derive(Debug, Clone, Copy)]
enum Case {
    NoFault,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, IronicFault),
    /// The n-th write to a resource, counted from 1.
    Write(&'static str, u64, Fault),
}

/// Deploys by a step, and removes it. Returns the requests to Ironic, and the writes to each resource.
async fn run(case: Case) -> (usize, [u64; 2]) {
    let env = available().await;
    sleep(Duration::from_mins(5)).await;
    env.cluster.reset_audit();
    let before = env.interceptor.log().asked.len();
    match case {
        Case::NoFault => {}
        Case::Ironic(at, fault) => env.interceptor.log().fault = Some((before + at, fault)),
        Case::Write(resource, at, fault) => {
            let rule = Rule::at(at, fault).verb("patch").resource(resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
    }
    ask(&env, asked(INSTALL, false)).await;
    until_recorded(&env, "", INSTALL).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(on_disk(&env), Some((String::new(), INSTALL.to_owned())), "{case:?}");
    assert_eq!(installed(&env), 1, "{case:?}");
    ask(&env, json!({ "customDeploy": null })).await;
    env.until_state(1, "available").await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!((on_disk(&env), installed(&env)), (None, 1), "{case:?}");
    assert_eq!(env.get(1).await.unwrap().status.provisioning_fail_count, 0, "{case:?}");
    let is_injected = env.interceptor.log().injected || env.cluster.injected() > 0;
    assert_eq!(is_injected, !matches!(case, Case::NoFault), "{case:?}");
    let writes = WRITES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    let asked = env.interceptor.log().asked.len() - before;
    (asked, writes)
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_installs_once_and_loses_nothing() {
    let (requests, _) = run(Case::NoFault).await;
    assert!(requests > 5, "{requests}");
    let all = (1..=requests).flat_map(|at| IronicFault::ALL.map(|fault| Case::Ironic(at, fault)));
    for case in all.step_by(EVERY) {
        run(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_installs_once_and_loses_nothing() {
    let (_, writes) = run(Case::NoFault).await;
    assert!(writes[1] > 3, "{writes:?}");
    let each = WRITES
        .into_iter()
        .zip(writes)
        .flat_map(|(resource, count)| (1..=count).map(move |at| (resource, at)));
    let all = each.flat_map(|(resource, at)| FAULTS.map(|fault| Case::Write(resource, at, fault)));
    for case in all.step_by(EVERY) {
        run(case).await;
    }
}
