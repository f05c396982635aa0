//! The login of a BMC changes while its host is in use: it is good once the BMC has accepted it, and a wrong one stops nothing.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalHostStatus, ErrorType, ProvisioningState};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_ironic::{BmcAccount, MachineCounts};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cases::Case;
use crate::disturbances::provisioned;
use crate::env::{PASSWORD, Setup, TestEnv, address, name};
use crate::phases::{Phase, SOURCE, runs};

/// The next passwords. No message may contain one.
const SECOND: &str = "canary-hunter2-second";
const THIRD: &str = "canary-hunter2-third";
const TRY: &str = "GET nodes/_/management/boot_device";

async fn running() -> TestEnv {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    require(&env, PASSWORD);
    // Whatever follows the deployment is over.
    sleep(Duration::from_mins(5)).await;
    env
}

/// The BMC accepts this password only.
fn require(env: &TestEnv, password: &str) {
    let (username, password) = ("admin".to_owned(), password.to_owned());
    env.machine(1, |machine| machine.account = Some(BmcAccount { username, password }));
}

async fn change_secret(env: &TestEnv, change: Value) {
    let (secrets, change) = (env.api::<Secret>(), Patch::Merge(change));
    secrets.patch("bmc-1", &PatchParams::default(), &change).await.unwrap();
}

async fn rotate(env: &TestEnv, password: &str) {
    change_secret(env, json!({ "stringData": { "password": password } })).await;
}

async fn version(env: &TestEnv) -> String {
    let secret = env.api::<Secret>().get("bmc-1").await.unwrap();
    secret.metadata.resource_version.unwrap()
}

async fn status(env: &TestEnv) -> BareMetalHostStatus {
    env.get(1).await.unwrap().status
}

fn good(status: &BareMetalHostStatus) -> &str {
    status
        .good_credentials
        .credentials_version
        .as_deref()
        .unwrap_or_default()
}

fn tried(status: &BareMetalHostStatus) -> &str {
    status
        .tried_credentials
        .credentials_version
        .as_deref()
        .unwrap_or_default()
}

fn is_refused(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.error_message.starts_with("the BMC refuses the login"))
}

/// Waits until this version of the Secret is good.
async fn until_good(env: &TestEnv, version: &str) {
    let is_good = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            let status = &host.status;
            good(status) == version && tried(status) == version && status.error_message.is_empty()
        })
    };
    env.until(1, "good login", is_good).await;
}

fn counts(env: &TestEnv) -> MachineCounts {
    env.machine(1, |machine| machine.counts)
}

fn asked_since(env: &TestEnv, before: usize) -> Vec<String> {
    env.interceptor.log().asked[before..].to_vec()
}

fn orders(asked: &[String]) -> Vec<&String> {
    asked
        .iter()
        .filter(|what| what.starts_with("PUT ") || what.starts_with("DELETE "))
        .collect()
}

/// Waits for the report that the BMC is silent, which names both versions of the Secret.
async fn until_silence_names(env: &TestEnv, versions: [&str; 2]) -> BareMetalHostStatus {
    let is_silent = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_message.starts_with("Ironic cannot reach the BMC"))
    };
    env.until(1, "power failure", is_silent).await;
    let shown = status(env).await;
    let message = &shown.error_message;
    assert!(versions.iter().all(|version| message.contains(version)), "{message}");
    shown
}

#[tokio::test(start_paused = true)]
async fn changed_login_is_good_once_the_bmc_accepted_it() {
    let env = running().await;
    let (before, asked, writes) = (counts(&env), env.interceptor.log().asked.len(), env.status_writes());
    drop(env.events());
    require(&env, SECOND);
    rotate(&env, SECOND).await;
    let now = version(&env).await;
    until_good(&env, &now).await;
    sleep(Duration::from_hours(12)).await;
    assert_eq!(asked_since(&env, asked), ["PATCH nodes/_", TRY]);
    assert_eq!(env.status_writes() - writes, 2, "tried, and good");
    assert_eq!(counts(&env), before);
    let events = env.events();
    assert!(events.contains(&format!("version {now}")), "{events}");
    assert!(!events.contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn host_without_another_login_is_never_tried() {
    let env = running().await;
    let (asked, writes) = (env.interceptor.log().asked.len(), env.status_writes());
    sleep(Duration::from_hours(24)).await;
    assert_eq!((asked_since(&env, asked), env.status_writes()), (Vec::new(), writes));
    let log = env.interceptor.log();
    assert!(!log.asked.iter().any(|what| what == TRY), "{:?}", log.asked);
}

#[tokio::test(start_paused = true)]
async fn refused_login_is_named_and_nothing_is_done_until_it_is_corrected() {
    let env = running().await;
    let (before, former) = (counts(&env), version(&env).await);
    rotate(&env, SECOND).await;
    let wrong = version(&env).await;
    env.until(1, "refusal", is_refused).await;
    let asked = env.interceptor.log().asked.len();
    env.edit(1, json!({ "spec": { "image": null } })).await;
    sleep(Duration::from_hours(6)).await;
    let shown = status(&env).await;
    for version in [&former, &wrong] {
        let named = format!("Secret bmc-1, version {version}");
        assert!(shown.error_message.contains(&named), "{}", shown.error_message);
    }
    assert_eq!((good(&shown), tried(&shown)), (former.as_str(), wrong.as_str()));
    assert_eq!(
        (shown.error_type, shown.error_count),
        (Some(ErrorType::Registration), 0)
    );
    assert!(shown.powered_on);
    let condition = shown.conditions.iter().find(|one| one.type_ == "Manageable").unwrap();
    assert_eq!(condition.reason, "BMCLoginRefused");
    let asked = asked_since(&env, asked);
    assert!(orders(&asked).is_empty(), "{asked:?}");
    assert_eq!(counts(&env), before);
    assert!(!format!("{shown:?} {}", env.events()).contains("hunter2"));
    // The user takes both back.
    env.edit(1, json!({ "spec": { "image": crate::phases::image() } }))
        .await;
    rotate(&env, PASSWORD).await;
    until_good(&env, &version(&env).await).await;
    env.until(1, "provisioned host that runs", runs).await;
    assert_eq!(counts(&env), before);
    env.machine(1, |machine| assert_eq!(machine.disk.as_ref().unwrap().source, SOURCE));
}

/// The user changes the Secret first and then the account, or corrects the account.
#[tokio::test(start_paused = true)]
async fn login_is_tried_again_without_another_change_of_the_secret() {
    let env = running().await;
    let before = counts(&env);
    rotate(&env, SECOND).await;
    env.until(1, "refusal", is_refused).await;
    for hours in [0, 5] {
        require(&env, PASSWORD);
        sleep(Duration::from_hours(hours)).await;
        require(&env, SECOND);
        let (asked, writes) = (env.interceptor.log().asked.len(), env.status_writes());
        until_good(&env, &version(&env).await).await;
        assert!(asked_since(&env, asked).len() <= 3, "{:?}", asked_since(&env, asked));
        assert!(env.status_writes() - writes <= 3);
    }
    sleep(Duration::from_hours(1)).await;
    let status = status(&env).await;
    assert!(status.error_message.is_empty() && status.powered_on);
    assert_eq!(counts(&env), before);
}

/// A slow BMC answers after Ironic and this program gave up waiting.
#[tokio::test(start_paused = true)]
async fn slow_bmc_makes_no_login_bad() {
    let env = running().await;
    let (before, former) = (counts(&env), version(&env).await);
    env.set_faults(1, &[Fault::SlowBmc(20)]);
    require(&env, SECOND);
    rotate(&env, SECOND).await;
    let (now, asked) = (version(&env).await, env.interceptor.log().asked.len());
    for _ in 0..12 {
        sleep(Duration::from_mins(10)).await;
        let status = status(&env).await;
        assert_eq!((good(&status), tried(&status)), (former.as_str(), now.as_str()));
        assert_eq!(status.error_message, "");
        let condition = status.conditions.iter().find(|one| one.type_ == "Manageable").unwrap();
        assert!(condition.message.contains(&now), "{}", condition.message);
    }
    let tries = asked_since(&env, asked).iter().filter(|what| *what == TRY).count();
    assert!((8..=20).contains(&tries), "{tries} in two hours");
    env.set_faults(1, &[]);
    until_good(&env, &now).await;
    assert_eq!(counts(&env), before);
}

/// The host goes on, as far as Ironic and the BMC do.
#[tokio::test(start_paused = true)]
async fn silent_bmc_makes_no_login_bad_and_both_versions_are_named() {
    let env = running().await;
    let former = version(&env).await;
    env.set_faults(1, &[Fault::DeadBmc]);
    require(&env, SECOND);
    rotate(&env, SECOND).await;
    let now = version(&env).await;
    let shown = until_silence_names(&env, [&now, &former]).await;
    assert_eq!(good(&shown), former);
    let writes = env.status_writes();
    sleep(Duration::from_hours(6)).await;
    assert_eq!(env.status_writes(), writes);
    env.set_faults(1, &[]);
    until_good(&env, &now).await;
    env.until(1, "provisioned host that runs", runs).await;
}

/// `ipmitool` does not say why it failed.
#[tokio::test(start_paused = true)]
async fn ipmi_login_that_does_not_work_is_reported_by_the_power_failure() {
    const IPMI: &str = "ipmi://10.0.0.77";
    let env = TestEnv::new(Setup::default());
    let mac = env.ironic.machine_at(IPMI, |machine| machine.macs().remove(0)).unwrap();
    let bmc = json!({ "address": IPMI, "credentialsName": "bmc-1" });
    env.host(1, json!({ "bmc": bmc, "bootMACAddress": mac })).await;
    Phase::Enrol.end(&env, 1).await;
    let require = |password: &str| {
        let (username, password) = ("admin".to_owned(), password.to_owned());
        env.ironic
            .machine_at(IPMI, |machine| {
                machine.account = Some(BmcAccount { username, password })
            })
            .unwrap();
    };
    require(PASSWORD);
    let former = version(&env).await;
    rotate(&env, SECOND).await;
    let wrong = version(&env).await;
    let shown = until_silence_names(&env, [&wrong, &former]).await;
    assert_eq!(
        (good(&shown), &shown.provisioning.state),
        (former.as_str(), &ProvisioningState::Available)
    );
    require(SECOND);
    until_good(&env, &wrong).await;
}

/// The answer to the first login arrives after the second one came.
#[tokio::test(start_paused = true)]
async fn second_login_is_tried_after_a_first_one_whose_answer_is_late() {
    for (first, second) in [(SECOND, THIRD), (THIRD, SECOND)] {
        let env = running().await;
        let before = counts(&env);
        env.interceptor.log().late = Some(TRY);
        require(&env, THIRD);
        rotate(&env, first).await;
        let pending = version(&env).await;
        let is_tried = |host: Option<&BareMetalHost>| host.is_some_and(|host| tried(&host.status) == pending);
        env.until(1, "first login in the node", is_tried).await;
        sleep(Duration::from_secs(2)).await;
        rotate(&env, second).await;
        let now = version(&env).await;
        if second == SECOND {
            env.until(1, "refusal", |host| {
                is_refused(host) && host.is_some_and(|host| tried(&host.status) == now)
            })
            .await;
            let status = status(&env).await;
            assert!(good(&status) != now, "{status:?}");
            require(&env, SECOND);
        }
        env.interceptor.log().late = None;
        until_good(&env, &now).await;
        assert_eq!(counts(&env), before);
    }
}

#[tokio::test(start_paused = true)]
async fn secret_that_is_deleted_or_loses_its_label_is_waited_for() {
    for is_deleted in [true, false] {
        let env = running().await;
        let before = counts(&env);
        rotate(&env, SECOND).await;
        env.until(1, "refusal", is_refused).await;
        let marks = json!({ "metadata": { "finalizers": null, "labels": { "environment.metal3.io": null } } });
        change_secret(&env, marks).await;
        if is_deleted {
            env.api::<Secret>()
                .delete("bmc-1", &DeleteParams::default())
                .await
                .unwrap();
        }
        let says = if is_deleted {
            "secret doesn't exist"
        } else {
            "is not labelled"
        };
        env.until(1, says, |host| {
            host.is_some_and(|host| host.status.error_message.contains(says))
        })
        .await;
        sleep(Duration::from_hours(1)).await;
        if is_deleted {
            env.login(1).await;
        } else {
            change_secret(&env, json!({ "metadata": { "labels": { "environment.metal3.io": "baremetal" } }, "stringData": { "password": PASSWORD } })).await;
        }
        env.until(1, "provisioned host that runs", |host| {
            runs(host) && host.is_some_and(|host| host.status.error_message.is_empty())
        })
        .await;
        sleep(Duration::from_mins(1)).await;
        until_good(&env, &version(&env).await).await;
        assert_eq!(counts(&env), before);
    }
}

#[tokio::test(start_paused = true)]
async fn login_that_changes_during_a_deployment_is_tried_after_it() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    Phase::Provision.begin(&env, 1).await;
    env.until_state(1, "provisioning").await;
    sleep(Duration::from_secs(15)).await;
    // The BMC keeps both accounts for a while.
    rotate(&env, SECOND).await;
    Phase::Provision.end(&env, 1).await;
    require(&env, SECOND);
    until_good(&env, &version(&env).await).await;
    env.machine(1, |machine| assert_eq!(machine.counts.written, 1));
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_no_login() {
    let env = running().await;
    rotate(&env, SECOND).await;
    env.until(1, "refusal", is_refused).await;
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
}

/// A Go manager writes both versions with one write, or is replaced between the two.
#[tokio::test(start_paused = true)]
async fn login_that_another_manager_sent_and_did_not_call_good_is_tried() {
    for is_right in [true, false] {
        let env = running().await;
        let (now, asked) = (version(&env).await, env.interceptor.log().asked.len());
        if !is_right {
            require(&env, SECOND);
        }
        let left = json!({ "status": { "goodCredentials": { "credentialsVersion": "1" } } });
        env.api::<BareMetalHost>()
            .patch_status(&name(1), &PatchParams::default(), &Patch::Merge(left))
            .await
            .unwrap();
        if is_right {
            until_good(&env, &now).await;
        } else {
            env.until(1, "refusal", is_refused).await;
            assert_eq!(good(&status(&env).await), "1");
        }
        assert_eq!(asked_since(&env, asked), [TRY]);
    }
}

/// A good login, a wrong one, and the good one again. Returns the requests and the writes.
async fn story(case: Case) -> (usize, u64) {
    let env = running().await;
    let before = counts(&env);
    env.interceptor.log().asked.clear();
    env.cluster.reset_audit();
    case.inject(&env, None);
    require(&env, SECOND);
    rotate(&env, SECOND).await;
    until_good(&env, &version(&env).await).await;
    let former = version(&env).await;
    rotate(&env, THIRD).await;
    env.until(1, "refusal", is_refused).await;
    assert_eq!(good(&status(&env).await), former, "{case:?}");
    sleep(Duration::from_mins(20)).await;
    rotate(&env, SECOND).await;
    until_good(&env, &version(&env).await).await;
    sleep(Duration::from_mins(20)).await;
    let (host, log) = (env.get(1).await.unwrap(), env.interceptor.log().asked.clone());
    assert!(
        runs(Some(&host)) && host.status.error_message.is_empty(),
        "{case:?}: {:?}",
        host.status
    );
    assert!(orders(&log).is_empty(), "{case:?}: {log:?}");
    assert_eq!(counts(&env), before, "{case:?}");
    assert_eq!(
        env.ironic.machine_at(&address(1), |machine| machine
            .disk
            .as_ref()
            .map(|disk| disk.source.clone())),
        Some(Some(SOURCE.to_owned()))
    );
    assert!(
        !format!("{host:?} {}", env.events()).contains("hunter2"),
        "{case:?}: a password is shown"
    );
    (log.len(), env.status_writes())
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_or_write_leaves_the_login_that_the_bmc_accepts() {
    let counts = story(Case::NoFault).await;
    assert!(counts.0 >= 7 && counts.1 >= 6, "{counts:?}");
    let (mut cases, mut run) = (Case::all(counts, 7), 0);
    for case in &mut cases {
        story(case).await;
        run += 1;
    }
    assert!(run >= 10, "{run}");
}
