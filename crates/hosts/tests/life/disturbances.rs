//! Life cycles with disturbances: Ironic loses its database, machines fail, the controller crashes.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_sim_bmc::fault::Fault;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::env::{Setup, TestEnv, bmc};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, SOURCE, image, runs};

pub(crate) async fn provisioned(env: &TestEnv, number: u32) {
    env.host(number, json!({})).await;
    env.until_state(number, "available").await;
    Phase::Provision.begin(env, number).await;
    env.until(number, "provisioned host that runs", runs).await;
}

async fn fails(env: &TestEnv, number: u32, with: ErrorType) {
    let failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type == Some(with));
    env.until(number, &format!("{with:?}"), failed).await;
    let host = env.get(number).await.unwrap();
    assert!(!host.status.error_message.is_empty() && host.status.error_count > 0);
}

#[tokio::test(start_paused = true)]
async fn running_host_is_adopted_without_changes_after_ironic_lost_its_database() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let (before, counts) = (
        env.node(1).await.unwrap().uuid,
        env.machine(1, |machine| machine.counts),
    );
    env.ironic.lose_database();
    env.until(1, "adopted host", |host| {
        host.is_some_and(|host| {
            let status = &host.status;
            let is_new = !status.provisioning.id.is_empty() && status.provisioning.id != before.as_str();
            is_new && status.error_type.is_none() && runs(Some(host))
        })
    })
    .await;
    // The machine is not touched.
    sleep(Duration::from_hours(24)).await;
    assert_eq!(env.node(1).await.unwrap().provision_state, ProvisionState::Active);
    env.machine(1, |machine| {
        assert_eq!(machine.counts, counts);
        assert_eq!(
            (machine.power.clone(), machine.disk.as_ref().unwrap().source.as_str()),
            (PowerState::On, SOURCE)
        );
    });
}

#[tokio::test(start_paused = true)]
async fn machine_fault_has_its_error_type_and_the_host_recovers() {
    let env = TestEnv::new(Setup::default());
    env.set_faults(1, &[Fault::WrongPassword]);
    env.host(1, json!({})).await;
    fails(&env, 1, ErrorType::Registration).await;
    env.set_faults(1, &[Fault::InspectionError]);
    fails(&env, 1, ErrorType::Inspection).await;
    env.set_faults(1, &[]);
    env.until_state(1, "available").await;
    env.set_faults(1, &[Fault::ChecksumMismatch]);
    Phase::Provision.begin(&env, 1).await;
    fails(&env, 1, ErrorType::Provisioning).await;
    env.set_faults(1, &[]);
    env.until(1, "provisioned host that runs", runs).await;
    env.set_faults(1, &[Fault::CleanStepFails]);
    env.edit(1, json!({ "spec": { "image": null } })).await;
    fails(&env, 1, ErrorType::Provisioning).await;
    env.set_faults(1, &[]);
    env.until_state(1, "available").await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
}

/// Ironic shows a failed node before its reason, and erases the reason with the next power synchronisation.
#[tokio::test(start_paused = true)]
async fn failure_with_late_and_erased_reason_counts_once_and_keeps_the_reason() {
    let mut setup = Setup::default();
    setup.pace.power_sync = Duration::from_secs(3);
    let env = TestEnv::new(setup);
    env.set_faults(1, &[Fault::InspectionError]);
    env.host(1, json!({})).await;
    for attempt in 1..=2 {
        let counts = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count >= attempt);
        env.until(1, "failed attempt", counts).await;
        while env.node(1).await.unwrap().last_error.is_some() {
            sleep(Duration::from_secs(1)).await;
        }
        // Long enough for the feed, too short for a retry.
        sleep(Duration::from_secs(15)).await;
        let (host, node) = (env.get(1).await.unwrap(), env.node(1).await.unwrap());
        assert_eq!(node.provision_state, ProvisionState::InspectFailed);
        assert_eq!(host.status.error_count, attempt);
        assert!(
            host.status
                .error_message
                .contains("the collector of the default inventory failed"),
            "{}",
            host.status.error_message
        );
    }
}

#[tokio::test(start_paused = true)]
async fn host_deleted_during_power_on_ends_powered_off() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "online": false })).await;
    env.until_state(1, "available").await;
    env.set_faults(1, &[Fault::SlowBmc(10)]);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    while !env
        .interceptor
        .log()
        .asked
        .iter()
        .any(|asked| asked.ends_with("power on"))
    {
        sleep(Duration::from_millis(10)).await;
    }
    // The feed polls while the machine is still off.
    sleep(Duration::from_secs(3)).await;
    assert!(env.node(1).await.unwrap().target_power_state.is_some());
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    env.machine(1, |machine| assert_eq!(machine.power, PowerState::Off));
}

/// Nothing else tells why the deletion does not go on.
#[tokio::test(start_paused = true)]
async fn node_that_stays_locked_is_reported_while_its_host_is_deleted() {
    const SECONDS: u16 = 900;
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "online": false })).await;
    env.until_state(1, "available").await;
    env.set_faults(1, &[Fault::SlowBmc(SECONDS)]);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    let is_locked = async || env.node(1).await.is_some_and(|node| node.reservation.is_some());
    while !is_locked().await {
        sleep(Duration::from_secs(1)).await;
    }
    env.set_faults(1, &[]);
    env.delete(1).await;
    let is_reported =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains("locked"));
    env.until(1, "report of the lock", is_reported).await;
    assert!(is_locked().await);
    env.until(1, "end", |host| host.is_none()).await;
    env.machine(1, |machine| assert_eq!(machine.power, PowerState::Off));
}

#[tokio::test(start_paused = true)]
async fn busy_hosts_stay_within_the_limit_across_crashes() {
    const HOSTS: u32 = 5;
    let env = TestEnv::new(Setup {
        slots: 2,
        ..Setup::default()
    });
    for number in 1..=HOSTS {
        let address = format!("redfish://{}/redfish/v1/Systems/1", bmc(number));
        let credentials = format!("bmc-{number}");
        env.host(
            number,
            json!({ "bmc": { "address": address, "credentialsName": credentials } }),
        )
        .await;
    }
    let (mut seconds, mut busiest, mut available) = (0_u64, 0, 0);
    while available < HOSTS {
        let (mut busy, mut ready) = (0, 0);
        for number in 1..=HOSTS {
            let node = env.node(number).await;
            busy += u32::from(node.is_some_and(|node| node.provision_state.is_busy()));
            let host = env.get(number).await.unwrap();
            ready += u32::from(host.status.provisioning.state == ProvisioningState::Available);
        }
        assert!(busy <= 2, "{busy} hosts at once after {seconds} s");
        (busiest, available) = (busy.max(busiest), ready);
        if seconds % 37 == 36 {
            env.interceptor.kill();
        }
        assert!(seconds < 4 * 3_600, "{available} of {HOSTS} hosts are available");
        sleep(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert_eq!(busiest, 2);
}

#[tokio::test(start_paused = true)]
async fn hanging_bmc_delays_no_other_host() {
    let mut durations = Vec::new();
    for faults in [&[][..], &[Fault::SlowBmc(30)]] {
        let env = TestEnv::new(Setup::default());
        env.set_faults(1, faults);
        let began = Instant::now();
        for number in 1..=3 {
            env.host(number, json!({})).await;
        }
        env.until_state(2, "available").await;
        env.until_state(3, "available").await;
        durations.push(began.elapsed());
        env.until_state(1, "available").await;
    }
    let (healthy, with_hanging_bmc) = (durations[0], durations[1]);
    assert!(
        with_hanging_bmc <= healthy + Duration::from_secs(2),
        "{with_hanging_bmc:?} with a hanging BMC, {healthy:?} without"
    );
}

/// Ironic adopts only a manageable node, and a host that ran once has an available one.
#[tokio::test(start_paused = true)]
async fn host_that_ran_once_becomes_externally_provisioned_without_changes_of_its_machine() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    Phase::Deprovision.begin(&env, 1).await;
    Phase::Deprovision.end(&env, 1).await;
    let counts = env.machine(1, |machine| machine.counts);
    env.edit(1, json!({ "spec": { "externallyProvisioned": true } })).await;
    let is_adopted = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status.provisioning.state == ProvisioningState::ExternallyProvisioned && host.status.powered_on
        })
    };
    env.until(1, "externally provisioned host that runs", is_adopted).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(env.node(1).await.unwrap().provision_state, ProvisionState::Active);
    assert_eq!(env.get(1).await.unwrap().status.error_type, None);
    env.machine(1, |machine| assert_eq!(machine.counts, counts));
}

/// A search without a result was taken for the end, though Ironic had not begun with the creation.
#[tokio::test(start_paused = true)]
async fn node_that_ironic_creates_after_the_deletion_of_its_host_is_deleted() {
    // The program that sent it may be replaced before or after the host is deleted.
    for (seconds, restarts) in [
        (10, ""),
        (31, ""),
        (10, "before"),
        (31, "before"),
        (10, "after"),
        (31, "after"),
    ] {
        let env = TestEnv::new(Setup::default());
        sleep(Duration::from_mins(5)).await;
        // The third request, after the searches by name and by address.
        env.interceptor.log().fault = Some((3, IronicFault::Queued));
        env.host(1, json!({})).await;
        while !env.interceptor.log().injected {
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(env.interceptor.log().asked[2], "POST nodes");
        sleep(Duration::from_secs(seconds)).await;
        if restarts == "before" {
            env.interceptor.kill();
            sleep(Duration::from_secs(4)).await;
        }
        env.delete(1).await;
        if restarts == "after" {
            sleep(Duration::from_secs(1)).await;
            env.interceptor.kill();
        }
        env.until(1, "end", |host| host.is_none()).await;
        sleep(Duration::from_mins(10)).await;
        assert!(
            env.node(1).await.is_none(),
            "a node is left after {seconds} s, restarted {restarts}"
        );
    }
}

/// Ironic is down, so the removal of the image is recorded and not ordered; the user takes it back; Ironic returns empty.
#[tokio::test(start_paused = true)]
async fn wanted_image_is_not_erased_when_ironic_loses_its_database_before_the_deprovisioning_begins() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let before = env.machine(1, |machine| machine.counts);
    env.ironic.restart(Duration::from_mins(10));
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until_state(1, "deprovisioning").await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.ironic.lose_database();
    sleep(Duration::from_hours(3)).await;
    env.machine(1, |machine| {
        assert_eq!(machine.counts, before);
        assert_eq!(machine.disk.as_ref().unwrap().source, SOURCE);
    });
}

/// Ironic adds its fault to the maintenance, and keeps the reason.
#[tokio::test(start_paused = true)]
async fn maintenance_that_began_during_a_cleaning_lasts_until_its_operator_ends_it() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    env.set_faults(1, &[Fault::CleanStepFails]);
    env.edit(1, json!({ "spec": { "image": null } })).await;
    let (node, client) = (
        NodeRef::Uuid(env.node(1).await.unwrap().uuid),
        env.ironic.client().unwrap(),
    );
    while env.node(1).await.unwrap().provision_state != ProvisionState::CleanWait {
        sleep(Duration::from_millis(100)).await;
    }
    client
        .send(&calls::node::set_maintenance(&node, "disk swap"))
        .await
        .unwrap();
    let is_reported = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_message.contains("in maintenance (disk swap)"))
    };
    env.until(1, "report of the maintenance", is_reported).await;
    env.set_faults(1, &[]);
    sleep(Duration::from_hours(24)).await;
    let node_now = env.node(1).await.unwrap();
    assert_eq!(node_now.provision_state, ProvisionState::CleanWait);
    assert!(is_reported(env.get(1).await.as_ref()));
    assert!(node_now.maintenance && node_now.maintenance_reason.as_deref() == Some("disk swap"));
    client.send(&calls::node::clear_maintenance(&node)).await.unwrap();
    env.until_state(1, "available").await;
}
