use std::sync::Arc;

use super::*;
use crate::hints::Purpose;
use crate::profile::{BUILT_IN, parse};

const T0: At = Duration::from_secs(100);
const BEAT: Duration = Duration::from_secs(5);
const TOKEN: Option<&str> = Some("T");

fn machine() -> Machine {
    Machine::new(
        Number(7),
        "small",
        Arc::new(parse(BUILT_IN).unwrap().remove("small").unwrap()),
    )
}

fn agent_on(machine: &Machine, inspects: bool) -> Agent {
    let parameters = Parameters {
        inspection_url: inspects.then(|| "https://i/v1/continue_inspection".into()),
        api_url: Some("https://i".into()),
        token: TOKEN.map(str::to_owned),
    };
    Agent::new(machine, parameters, "https://me/agents/7".into(), "PEM".into(), T0)
}

fn beating() -> Agent {
    let mut agent = agent_on(&machine(), false);
    let found = json!({ "node": { "uuid": "N" }, "config": { "agent_token": "******" } });
    agent.answered(Some(200), &found, T0, BEAT);
    agent
}

fn next_action(agent: &Agent, now: At) -> Action {
    agent.next_action(now, &Faults::default())
}

#[test]
fn inspection_is_repeated_while_the_node_is_not_waiting_for_it() {
    let mut agent = agent_on(&machine(), true);
    for status in [Some(404), Some(409), Some(503), None] {
        agent.answered(status, &Value::Null, T0, BEAT);
        assert!(matches!(next_action(&agent, T0), Action::Until(_)), "{status:?}");
    }
    assert!(matches!(
        next_action(&agent, T0 + LONGEST_PAUSE),
        Action::Send(Request::Inspection { .. })
    ));
    agent.answered(Some(202), &json!({ "uuid": "N" }), T0, BEAT);
    let lookup = format!(
        "https://i/v1/lookup?addresses={},{}&node_uuid=N",
        Number(7).mac(0),
        Number(7).mac(1)
    );
    assert_eq!(next_action(&agent, T0), Action::Send(Request::Lookup { url: lookup }));
}

#[test]
fn pre_generated_token_survives_the_stars_of_lookup() {
    let Action::Send(Request::Heartbeat { body, url }) = next_action(&beating(), T0) else {
        panic!("no heartbeat")
    };
    assert_eq!(body["agent_token"], "T");
    assert_eq!(url, "https://i/v1/heartbeat/N");
}

#[test]
fn ironic_decides_whether_md5_is_accepted() {
    assert!(!beating().accepts_md5());
    for allowed in [true, false] {
        let mut agent = agent_on(&machine(), false);
        let found = json!({ "node": { "uuid": "N" }, "config": { "agent_md5_checksum_enable": allowed } });
        agent.answered(Some(200), &found, T0, BEAT);
        assert_eq!(agent.accepts_md5(), allowed);
    }
}

#[test]
fn agent_without_heartbeat_sends_only_the_lookup() {
    let faults: Faults = [Fault::NoHeartbeat].into_iter().collect();
    assert!(matches!(
        agent_on(&machine(), false).next_action(T0, &faults),
        Action::Send(Request::Lookup { .. })
    ));
    assert_eq!(beating().next_action(T0, &faults), Action::Idle);
}

#[test]
fn end_of_work_advances_the_next_heartbeat() {
    let mut agent = beating();
    agent.answered(Some(202), &Value::Null, T0, BEAT);
    assert_eq!(next_action(&agent, T0), Action::Until(T0 + BEAT));
    let step = json!({ "step": "erase_devices_metadata", "interface": "deploy", "priority": 10 });
    let kept = json!({ "serial": "s== D1" });
    let node = json!({ "properties": { "skip_block_devices": [kept] } });
    let body = json!({ "name": "clean.execute_clean_step", "params": { "step": step, "node": node } });
    let (status, view, work) = agent.command(TOKEN, &body, &Faults::default());
    let work = work.unwrap();
    let erases = WorkKind::Erase(Purpose::EraseMetadata, vec![kept]);
    assert_eq!(
        (status, &view["command_status"], work.kind),
        (200, &json!("RUNNING"), erases)
    );
    agent.finished(&work.id, Ok(work.result), T0);
    assert_eq!(next_action(&agent, T0), Action::Until(T0 + AFTER_COMMAND));
    let (_, list) = agent.results(TOKEN, None);
    assert_eq!(list["commands"][0]["command_result"]["clean_step"], step);
}

#[test]
fn busy_agent_rejects_a_second_command() {
    let mut agent = beating();
    let body = json!({ "name": "image.install_bootloader", "params": {} });
    assert_eq!(agent.command(TOKEN, &body, &Faults::default()).0, 200);
    assert_eq!(agent.command(TOKEN, &body, &Faults::default()).0, 409);
}

#[test]
fn wrong_token_is_rejected_for_commands_and_results() {
    let mut agent = beating();
    let body = json!({ "name": "standby.sync", "params": {} });
    for token in [None, Some(""), Some("t")] {
        assert_eq!(agent.command(token, &body, &Faults::default()).0, 401);
        assert_eq!(agent.results(token, None).0, 401);
    }
}

#[test]
fn unknown_command_is_rejected_with_a_faultstring() {
    let (status, body, _) = beating().command(TOKEN, &json!({ "name": "x.y" }), &Faults::default());
    assert_eq!(status, 404);
    assert!(body["faultstring"].is_string());
}

#[test]
fn foreign_mac_is_in_inventory_and_lookup() {
    let mut machine = machine();
    machine.faults = [Fault::ForeignMac].into_iter().collect();
    let agent = agent_on(&machine, true);
    let Action::Send(Request::Inspection { body, .. }) = next_action(&agent, T0) else {
        panic!("no inspection")
    };
    assert_eq!(body["inventory"]["interfaces"][0]["mac_address"], "52:54:ee:00:07:00");
    assert!(agent.macs.iter().all(|mac| mac.starts_with("52:54:ee")));
}

#[test]
fn each_deploy_step_that_is_listed_has_its_work() {
    let mut agent = beating();
    let list = json!({ "name": "deploy.get_deploy_steps", "params": {} });
    let (_, listed, _) = agent.command(TOKEN, &list, &Faults::default());
    let steps = &listed["command_result"]["deploy_steps"]["GenericHardwareManager"];
    let work = steps.as_array().unwrap().iter().map(|step| {
        let body = json!({ "name": "deploy.execute_deploy_step", "params": { "step": step } });
        let work = agent.command(TOKEN, &body, &Faults::default()).2.unwrap();
        agent.finished(&work.id, Ok(work.result), T0);
        work.kind
    });
    let work: Vec<_> = work.collect();
    // An image is written with arguments only.
    assert!(
        matches!(
            work.as_slice(),
            [WorkKind::Fail(_), WorkKind::Erase(..), WorkKind::Install]
        ),
        "{work:?}"
    );
}
