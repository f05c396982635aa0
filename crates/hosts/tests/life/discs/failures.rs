//! Images that cannot be inserted: the host starts without them.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as Lost, Plan, Rule};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    HOUR, MINUTES, URL, disc, error, insert, last_start, network_with_disc, of_drive, recorded, restart, running,
    running_with, starts, status, switch, with_disc,
};
use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::unserved::delete;

fn is_on(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.powered_on)
}

fn insertions(asked: &[String]) -> usize {
    asked.iter().filter(|asked| asked.starts_with("POST")).count()
}

#[tokio::test(start_paused = true)]
async fn image_that_the_bmc_does_not_load_delays_the_start_by_a_few_attempts() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    for round in 1..=2 {
        env.machine(1, |machine| machine.discs_refused = 9);
        let asked = of_drive(&env).len();
        let begin = Instant::now();
        restart(&env).await;
        assert!(begin.elapsed() < 2 * MINUTES, "{:?}", begin.elapsed());
        assert_eq!(last_start(&env), None);
        assert_eq!(insertions(&of_drive(&env).split_off(asked)), 3);
        sleep(HOUR).await;
        let status = status(&env).await;
        assert!(status.attached_image.is_none());
        let shown = status.error.unwrap();
        assert!(
            shown.message.contains("Virtual media mount failed")
                && shown.message.contains("; the host starts all the same"),
            "{}",
            shown.message
        );
        assert!(shown.count >= 3 * round, "{}", shown.count);
    }
    env.machine(1, |machine| machine.discs_refused = 2);
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL), "it is tried again");
    sleep(MINUTES).await;
    assert!(status(&env).await.error.is_none());
    let host = env.get(1).await.unwrap().status;
    assert_eq!(
        (host.error_count, host.error_message.as_str()),
        (0, ""),
        "the host has no error"
    );
}

#[tokio::test(start_paused = true)]
async fn bmc_without_a_drive_delays_no_start_and_is_reported_once() {
    let env = running().await;
    env.machine(1, |machine| machine.has_drive = false);
    insert(&env, URL).await;
    for _ in 0..2 {
        let asked = of_drive(&env).len();
        restart(&env).await;
        assert_eq!(of_drive(&env).split_off(asked), ["GET nodes/_/vmedia"]);
        sleep(HOUR).await;
    }
    let shown = status(&env).await.error.unwrap();
    assert!(shown.message.contains("; use a Redfish BMC"), "{}", shown.message);
    assert_eq!(shown.count, 1);
    assert_eq!(env.events().matches("DataImageFailed").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn rejected_requests_about_the_drive_keep_no_host_off() {
    for rejected in [
        ("GET nodes/_/vmedia", 400),
        ("GET nodes/_/vmedia", 403),
        ("GET nodes/_/vmedia", 500),
        ("POST nodes/_/vmedia", 400),
        ("POST nodes/_/vmedia", 500),
    ] {
        let env = running().await;
        insert(&env, URL).await;
        env.interceptor.log().rejected = Some(rejected);
        let begin = Instant::now();
        restart(&env).await;
        assert!(begin.elapsed() < 5 * MINUTES, "{rejected:?}: {:?}", begin.elapsed());
        assert_eq!(last_start(&env), None, "{rejected:?}");
        sleep(MINUTES).await;
        assert!(error(&env).await.contains("; "), "{rejected:?}: {}", error(&env).await);
        env.interceptor.log().rejected = None;
        restart(&env).await;
        assert_eq!(last_start(&env).as_deref(), Some(URL), "{rejected:?}");
    }
}

/// A drive that does not eject keeps the old image.
#[tokio::test(start_paused = true)]
async fn disc_that_the_bmc_does_not_eject_keeps_no_host_off() {
    let env = with_disc().await;
    env.machine(1, |machine| machine.ejects = false);
    delete::<DataImage>(&env, "host-1").await;
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    sleep(HOUR).await;
    let shown = error(&env).await;
    assert!(shown.contains("it is ejected when the host starts next"), "{shown}");
    env.machine(1, |machine| machine.ejects = true);
    restart(&env).await;
    assert_eq!(last_start(&env), None);
}

/// None of it is about the image.
#[tokio::test(start_paused = true)]
async fn outage_and_lock_use_up_no_attempts() {
    for rejected in [("", 503), ("GET nodes/_", 503), ("POST nodes/_/vmedia", 503)] {
        let env = running().await;
        insert(&env, URL).await;
        switch(&env, false).await;
        env.interceptor.log().rejected = Some(rejected);
        env.edit(1, json!({ "spec": { "online": true } })).await;
        sleep(10 * MINUTES).await;
        assert!(status(&env).await.error.is_none(), "{rejected:?}");
        env.interceptor.log().rejected = None;
        env.until(1, "host that runs", is_on).await;
        assert_eq!(last_start(&env).as_deref(), Some(URL), "{rejected:?}");
    }
}

/// Each answer is a lock, and each of these requests is sent several times.
#[tokio::test(start_paused = true)]
async fn node_that_others_lock_now_and_then_gets_its_image() {
    let env = running().await;
    insert(&env, URL).await;
    switch(&env, false).await;
    let mut locks = Plan::none();
    for at in 1..=5 {
        locks = locks.with(Rule::at(at, Lost::Conflict));
    }
    env.ironic.inject(locks);
    switch(&env, true).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    assert!(status(&env).await.error.is_none());
}

/// The API server rejects each write of the status of a DataImage.
fn refuse_records(env: &TestEnv, code: u16) {
    let refused = Lost::Refused {
        code,
        retry_after: None,
    };
    let mut refusals = Plan::none();
    for at in 1..=50 {
        let rule = Rule::at(at, refused).verb("patch").resource("dataimages/status");
        refusals = refusals.with(rule);
    }
    env.cluster.inject_for(&[CONTROLLER_USER], refusals);
}

#[tokio::test(start_paused = true)]
async fn image_that_may_not_be_recorded_keeps_no_host_off() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    refuse_records(&env, 403);
    restart(&env).await;
    assert_eq!(
        (last_start(&env), disc(&env)),
        (None, None),
        "what is not recorded is not inserted"
    );
}

/// It was removed after it was read. Nothing would eject its image later.
#[tokio::test(start_paused = true)]
async fn object_that_is_gone_when_its_image_is_recorded_is_not_inserted() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    switch(&env, false).await;
    refuse_records(&env, 404);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    sleep(MINUTES).await;
    assert!(env.cluster.injected() > 0);
    delete::<DataImage>(&env, "host-1").await;
    env.until(1, "host that runs", is_on).await;
    assert_eq!((last_start(&env), insertions(&of_drive(&env))), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn image_in_the_drive_waits_for_a_machine_that_does_not_start_and_is_announced_once() {
    let env = running().await;
    insert(&env, URL).await;
    switch(&env, false).await;
    let before = starts(&env).len();
    env.set_faults(1, &[Fault::PowerStuck]);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    sleep(HOUR).await;
    assert_eq!(disc(&env).as_deref(), Some(URL), "it waits for the start");
    env.set_faults(1, &[]);
    env.until(1, "host that runs", is_on).await;
    assert_eq!(starts(&env).len(), before + 1);
    sleep(MINUTES).await;
    assert_eq!(recorded(&env).await.as_deref(), Some(URL));
    assert_eq!(env.events().matches("DataImageAttached").count(), 1);
}

/// Ironic rejects the deletion of the node, which is tried again.
#[tokio::test(start_paused = true)]
async fn drive_of_a_deleted_host_is_recorded_as_empty_once() {
    let env = network_with_disc().await;
    env.cluster.reset_audit();
    drop(env.events());
    env.delete(1).await;
    let is_ejected = |asked: &String| asked == "DELETE nodes/_/vmedia";
    let begin = Instant::now();
    while !of_drive(&env).iter().any(is_ejected) {
        assert!(begin.elapsed() < MINUTES, "{:?}", of_drive(&env));
        sleep(Duration::from_millis(100)).await;
    }
    // Not before: the name of this request begins like that of the ejection.
    env.interceptor.log().rejected = Some(("DELETE nodes/_", 409));
    sleep(HOUR).await;
    let deletions = |log: &[String]| log.iter().filter(|asked| *asked == "DELETE nodes/_").count();
    assert!(deletions(&env.interceptor.log().asked) > 1);
    let written = env.cluster.audit().of(CONTROLLER_USER, "patch", "dataimages/status");
    assert_eq!((disc(&env), written), (None, 1));
    assert_eq!(env.events().matches("DataImageDetached").count(), 1);
}

/// A read of the drive takes longer than views of the object and the node count as live.
#[tokio::test(start_paused = true)]
async fn slow_bmc_delays_the_start_by_its_own_time() {
    let env = running().await;
    insert(&env, URL).await;
    switch(&env, false).await;
    env.set_faults(1, &[Fault::SlowBmc(1)]);
    let begin = Instant::now();
    env.edit(1, json!({ "spec": { "online": true } })).await;
    env.until(1, "host that runs", is_on).await;
    assert!(begin.elapsed() < 2 * MINUTES, "{:?}", begin.elapsed());
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    let asked = of_drive(&env);
    assert!(asked.len() <= 5, "{asked:?}");
}

/// Its drive is read three times, and then once for each attempt to switch it on: the start that succeeds is one with the image.
#[tokio::test(start_paused = true)]
async fn dead_bmc_is_asked_for_its_drive_at_each_attempt_to_start() {
    let env = running().await;
    insert(&env, URL).await;
    switch(&env, false).await;
    let powers = {
        let log = env.interceptor.log();
        log.asked.iter().filter(|asked| asked.contains("power on")).count()
    };
    env.set_faults(1, &[Fault::DeadBmc]);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    sleep(HOUR).await;
    let (asked, log) = (of_drive(&env), env.interceptor.log().asked.clone());
    let attempts = log.iter().filter(|asked| asked.contains("power on")).count() - powers;
    assert!(attempts > 1, "{log:?}");
    assert_eq!(asked, vec!["GET nodes/_/vmedia"; 2 + attempts]);
    assert!(error(&env).await.contains("the virtual drive cannot be read: "));
    assert_eq!(env.events().matches("DataImageFailed").count(), 3);
    env.set_faults(1, &[]);
    env.until(1, "host that runs", is_on).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    sleep(MINUTES).await;
    assert_eq!(error(&env).await, "");
}

/// The plan that first sees the machine off does not know it as off from its status.
#[tokio::test(start_paused = true)]
async fn attempts_of_a_machine_that_has_just_gone_off_are_counted() {
    let reboot = json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } });
    for rejected in [
        ("POST nodes/_/vmedia", 400),
        ("POST nodes/_/vmedia", 403),
        ("POST nodes/_/vmedia", 500),
    ] {
        let env = running().await;
        insert(&env, URL).await;
        sleep(MINUTES).await;
        let before = starts(&env).len();
        env.interceptor.log().rejected = Some(rejected);
        env.edit(1, reboot.clone()).await;
        sleep(HOUR).await;
        assert_eq!(starts(&env).len(), before + 1, "{rejected:?}");
        let asked = insertions(&of_drive(&env));
        assert!((1..=3).contains(&asked), "{rejected:?}: {asked}");
        let shown = error(&env).await;
        assert!(
            shown.contains("; the host starts all the same"),
            "{rejected:?}: {shown}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn image_that_may_not_be_recorded_delays_no_reboot() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    let before = starts(&env).len();
    refuse_records(&env, 403);
    let reboot = json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } });
    env.edit(1, reboot).await;
    sleep(HOUR).await;
    assert_eq!(starts(&env).split_off(before), [None]);
}

/// Without admission.
#[tokio::test(start_paused = true)]
async fn url_that_cannot_be_sent_delays_no_start() {
    for url in [
        "http://images.example/data.iso\u{1}",
        "ftp://images.example/data.iso",
        "nfs://images.example/data.iso",
    ] {
        let env = running().await;
        insert(&env, url).await;
        sleep(MINUTES).await;
        let begin = Instant::now();
        restart(&env).await;
        assert!(begin.elapsed() < MINUTES, "{:?}", begin.elapsed());
        sleep(HOUR).await;
        assert!(error(&env).await.contains("spec.url"), "{}", error(&env).await);
        assert_eq!((recorded(&env).await, insertions(&of_drive(&env))), (None, 0));
    }
}

/// Both controllers know the reason, and one of them says it.
#[tokio::test(start_paused = true)]
async fn rejected_login_of_the_bmc_is_not_reported_for_ever() {
    for is_inserted in [true, false] {
        let env = running().await;
        insert(&env, URL).await;
        sleep(MINUTES).await;
        if is_inserted {
            restart(&env).await;
            sleep(MINUTES).await;
        }
        switch(&env, false).await;
        // What was never inserted would go while the drive can be read.
        let faults = [Fault::WrongPassword];
        env.set_faults(1, if is_inserted { &[] } else { &faults });
        delete::<DataImage>(&env, "host-1").await;
        sleep(MINUTES).await;
        env.set_faults(1, &faults);
        env.edit(1, json!({ "spec": { "online": true } })).await;
        sleep(6 * HOUR).await;
        let count = status(&env).await.error.unwrap().count;
        drop(env.events());
        sleep(6 * HOUR).await;
        assert_eq!(status(&env).await.error.unwrap().count, count, "{is_inserted}");
        assert!(!env.events().contains("DataImage"), "{is_inserted}");
    }
}

/// An order of Ironic, which loads the image first, takes that long.
#[tokio::test(start_paused = true)]
async fn bmc_that_shows_its_drive_late_gets_one_order_each() {
    for seconds in [1, 40] {
        let mut setup = Setup::default();
        setup.pace.bmc = Duration::from_secs(seconds);
        let env = running_with(setup).await;
        insert(&env, URL).await;
        sleep(MINUTES).await;
        env.machine(1, |machine| machine.late_views = 3);
        restart(&env).await;
        sleep(MINUTES).await;
        assert_eq!(
            (last_start(&env).as_deref(), insertions(&of_drive(&env))),
            (Some(URL), 1),
            "{seconds}"
        );
        switch(&env, false).await;
        delete::<DataImage>(&env, "host-1").await;
        switch(&env, true).await;
        assert_eq!(last_start(&env), None);
        let asked = of_drive(&env);
        let ejections = asked.iter().filter(|asked| asked.starts_with("DELETE"));
        assert_eq!(ejections.count(), 1, "{seconds}: {asked:?}");
        assert!(!env.events().contains("DataImageFailed"));
    }
}
