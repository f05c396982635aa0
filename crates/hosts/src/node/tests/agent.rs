//! The agent that is built for a host, in the record of its node.

use serde_json::json;

use super::super::agent::accepted;
use super::super::{Agent, AgentFiles, BmcEndpoint, NodeRecord, NodeSettings, Passwords, Ramdisk, Ramdisks};
use super::record::{Record, lines};
use super::registration::wanted;
use super::{VIRTUAL_MEDIA, bmc, host, settings};

fn record(agent: &Agent) -> NodeRecord {
    configured("http://192.0.2.9/usual.iso", agent)
}

/// With this ISO in the configuration.
fn configured(iso: &str, agent: &Agent) -> NodeRecord {
    let usual = Ramdisk {
        iso: Some(iso.to_owned()),
        ..Ramdisk::default()
    };
    let ramdisks = Ramdisks {
        usual,
        ..Ramdisks::default()
    };
    let settings = NodeSettings { ramdisks, ..settings() };
    let host = host(json!({ "bmc": bmc(VIRTUAL_MEDIA) }));
    wanted(&host, &settings).with_agent(agent.clone()).unwrap()
}

fn iso(token: &str) -> Agent {
    Agent::Built(AgentFiles::Iso(format!("http://192.0.2.9/h?token={token}")))
}

fn initrd(parameters: Option<&str>) -> Agent {
    Agent::Built(AgentFiles::Initrd {
        kernel: "http://192.0.2.9/k".to_owned(),
        initramfs: "http://192.0.2.9/r".to_owned(),
        parameters: parameters.map(str::to_owned),
    })
}

#[test]
fn agent_is_sent_once_and_again_when_it_changes_however_ironic_masks_it() {
    let all = [
        Agent::Kept,
        iso("one"),
        iso("two"),
        initrd(None),
        initrd(Some("token=one")),
        initrd(Some("token=two")),
    ];
    for first in &all {
        let created = Record::created(record(first).creation());
        for second in &all {
            let changes = record(second).changes(&created.shown(), Passwords::AsSent).unwrap();
            let is_kept = first == second || *second == Agent::Kept;
            assert_eq!(changes.patch.is_empty(), is_kept, "{first:?} {second:?}");
            let patched = created.clone().patched(changes.patch);
            let again = record(second).changes(&patched.shown(), Passwords::AsSent).unwrap();
            assert!(
                again.patch.is_empty(),
                "{first:?} {second:?}: {:?}",
                lines(&again.patch)
            );
        }
    }
}

#[test]
fn configured_agent_with_another_secret_in_its_url_is_sent_once() {
    let all = [
        "http://192.0.2.9/a?token=one",
        "http://192.0.2.9/a?token=two",
        "http://192.0.2.9/a",
    ];
    for first in all {
        let created = Record::created(configured(first, &Agent::Configured).creation());
        for second in all {
            let record = configured(second, &Agent::Configured);
            let changes = record.changes(&created.shown(), Passwords::AsSent).unwrap();
            assert_eq!(changes.patch.is_empty(), first == second, "{first} {second}");
            let patched = created.clone().patched(changes.patch);
            assert_eq!(patched.0["driver_info"]["deploy_iso"], second);
            let again = record.changes(&patched.shown(), Passwords::AsSent).unwrap();
            assert!(again.patch.is_empty(), "{first} {second}: {:?}", lines(&again.patch));
        }
    }
}

#[test]
fn parameters_of_a_ramdisk_are_added_to_those_of_ironic() {
    let new = record(&initrd(Some("ip=dhcp"))).creation();
    assert_eq!(new.driver_info["kernel_append_params"], "%default% ip=dhcp");
    assert!(!new.driver_info.contains_key("deploy_iso"));
    let changes = record(&iso("one")).changes(&Record::created(new).shown(), Passwords::AsSent);
    let lines = lines(&changes.unwrap().patch);
    for removed in ["deploy_kernel", "deploy_ramdisk", "kernel_append_params"] {
        assert!(lines.contains(&format!("/driver_info/{removed}")), "{lines:?}");
    }
}

#[test]
fn node_without_an_agent_gets_the_configured_one() {
    let new = record(&Agent::Kept).creation();
    assert_eq!(new.driver_info["deploy_iso"], "http://192.0.2.9/usual.iso");
}

/// The BMC has another address scheme than at the deployment.
#[test]
fn agent_that_the_bmc_cannot_boot_is_not_kept() {
    let created = Record::created(record(&iso("one")).creation());
    let usual = Ramdisk {
        kernel: Some("http://192.0.2.9/k".to_owned()),
        initramfs: Some("http://192.0.2.9/r".to_owned()),
        iso: None,
    };
    let ramdisks = Ramdisks {
        usual,
        ..Ramdisks::default()
    };
    let settings = NodeSettings { ramdisks, ..settings() };
    let keeps_iso = |address: &str| {
        let host = host(json!({ "bmc": bmc(address) }));
        let record = wanted(&host, &settings).with_agent(Agent::Kept).unwrap();
        let changes = record.changes(&created.shown(), Passwords::AsSent).unwrap();
        !lines(&changes.patch).contains(&"/driver_info/deploy_iso".to_owned())
    };
    assert!(keeps_iso(VIRTUAL_MEDIA));
    assert!(!keeps_iso("redfish://192.0.2.1/redfish/v1/Systems/1"));
}

#[test]
fn agent_with_a_control_character_is_invalid_and_none_is_shown() {
    let host = host(json!({ "bmc": bmc(VIRTUAL_MEDIA) }));
    let invalid = wanted(&host, &settings()).with_agent(initrd(Some("a\nb")));
    assert!(invalid.is_err());
    assert!(!format!("{:?} {:?}", iso("hunter2"), initrd(Some("hunter2"))).contains("hunter2"));
}

#[test]
fn formats_are_those_that_the_bmc_boots() {
    for (address, number) in [
        (VIRTUAL_MEDIA, 2),
        ("redfish://192.0.2.1/x", 1),
        ("ipmi://192.0.2.1", 1),
    ] {
        let profile = BmcEndpoint::of(address, &settings()).unwrap().profile();
        assert_eq!(accepted(&profile).len(), number, "{address}");
    }
}
