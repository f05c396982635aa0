//! The decisions as tables.

mod contract;
mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalSwitch;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::apply;
use serde_json::{Value, json};

use super::file::{HEADER, key_file, stored};
use super::plan::{Facts, Login, Output, Plan, Switch, Which, plan};
use super::{CONFIG_KEY, Outputs};

const MAC: &str = "aa:bb:cc:dd:ee:01";

fn outputs() -> Outputs {
    Outputs {
        configs: "configs".to_owned(),
        keys: "keys".to_owned(),
        folder: "/etc/ironic/keys/".to_owned(),
    }
}

fn secret(values: &[(&str, &[u8])]) -> Arc<Erased<Secret>> {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ByteString(value.to_vec())));
    Arc::new(Erased::new(Secret {
        data: Some(values.collect()),
        ..Secret::default()
    }))
}

fn password() -> Login {
    Login::Known(secret(&[("username", b"admin"), ("password", b"canary-1")]))
}

fn private_key() -> Login {
    Login::Known(secret(&[("username", b"admin"), ("ssh-privatekey", b"canary\nkey\n")]))
}

fn switch(name: &str, change: &Value, login: Login) -> Switch {
    let spec = json!({ "address": "192.0.2.1", "macAddress": MAC, "deviceType": "netmiko_cisco_ios",
        "credentials": { "name": format!("{name}-login") } });
    let mut document = json!({ "metadata": { "name": name, "namespace": "metal", "generation": 3 }, "spec": spec });
    apply(change, &mut document);
    let object: BareMetalSwitch = serde_json::from_value(document).unwrap();
    Switch {
        object: Arc::new(object),
        login,
    }
}

fn plain(name: &str, login: Login) -> Switch {
    switch(name, &json!({}), login)
}

fn facts(outputs: &Outputs, switches: Vec<Switch>) -> Facts<'_> {
    Facts {
        outputs,
        switches,
        unreadable: Vec::new(),
        configs: Output::Known(secret(&[])),
        keys: Output::Known(secret(&[])),
        refused: BTreeSet::new(),
        now: Time::new(chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap()),
    }
}

/// What the two Secrets contain after the first writes.
fn contents(facts: &Facts<'_>, planned: &Plan, number: usize) -> [BTreeMap<String, String>; 2] {
    let data = |output: &Output| match output {
        Output::Known(secret) => secret.data.clone().unwrap_or_default(),
        Output::Absent | Output::Unknown(_) => BTreeMap::new(),
    };
    let mut both = [data(&facts.configs), data(&facts.keys)];
    for write in planned.writes.iter().take(number) {
        let place = &mut both[usize::from(write.which == Which::Keys)];
        for (name, value) in &write.values {
            match value {
                Some(value) => drop(place.insert(name.clone(), value.clone())),
                None => assert!(place.remove(name).is_some(), "{name} is not there"),
            }
        }
    }
    both.map(|data| {
        let text = |value: ByteString| String::from_utf8(value.0).unwrap();
        data.into_iter().map(|(name, value)| (name, text(value))).collect()
    })
}

fn file(facts: &Facts<'_>) -> String {
    let planned = plan(facts);
    let [configs, _] = contents(facts, &planned, usize::MAX);
    configs.get(CONFIG_KEY).cloned().unwrap_or_default()
}

fn report(planned: &Plan, name: &str) -> String {
    let found = planned
        .reports
        .iter()
        .find(|(one, _)| one.metadata.name.as_deref() == Some(name));
    let (_, reported) = found.unwrap();
    let condition = &reported.status.conditions[0];
    assert_eq!(
        (condition.type_.as_str(), condition.observed_generation),
        ("Valid", Some(3))
    );
    format!("{:?} {} {}", condition.status, condition.reason, condition.message)
}

#[test]
fn file_has_a_section_for_each_switch_as_the_go_manager_writes_it() {
    let outputs = outputs();
    let more =
        json!({ "spec": { "port": 8443, "disableCertificateVerification": true, "macAddress": "AA:bb:cc:dd:ee:02" } });
    let admin = secret(&[
        ("username", b"u\n"),
        ("password", b"p$:= \"x\r\n"),
        ("admin-password", b"e;#"),
    ]);
    let facts = facts(
        &outputs,
        vec![
            plain("a", private_key()),
            switch("b", &more, Login::Known(admin)),
            plain("c", password()),
        ],
    );
    let a = "[switch:a]\naddress=192.0.2.1\nmac_address=aa:bb:cc:dd:ee:01\ndriver_type=generic-switch\n\
             device_type=netmiko_cisco_ios\nusername=admin\nkey_file=/etc/ironic/keys/aa-bb-cc-dd-ee-01.key\n\n";
    let b = "[switch:b]\naddress=192.0.2.1\nmac_address=AA:bb:cc:dd:ee:02\nport=8443\ndriver_type=generic-switch\n\
             device_type=netmiko_cisco_ios\ninsecure=true\nusername=u\npassword=p$:= \"x\nenable_secret=e;#\n\n";
    let c = "[switch:c]\naddress=192.0.2.1\nmac_address=aa:bb:cc:dd:ee:01\ndriver_type=generic-switch\n\
             device_type=netmiko_cisco_ios\nusername=admin\npassword=canary-1\n\n";
    let text = file(&facts);
    assert_eq!(
        text,
        format!("# This file is managed by the Baremetal Operator\n\n{a}{b}{c}")
    );
    let sections = stored(&text).unwrap();
    let read: Vec<(&str, &str)> = sections
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(read, [("a", a), ("b", b), ("c", c)]);
    assert_eq!((key_file(a), key_file(c)), (Some("aa-bb-cc-dd-ee-01.key"), None));
    let planned = plan(&facts);
    assert_eq!(
        report(&planned, "a"),
        "True Reconciled Switch configuration has been successfully reconciled into the config secret"
    );
    assert!(planned.wait.is_none());
    let [_, keys] = contents(&facts, &planned, usize::MAX);
    assert_eq!(
        keys,
        BTreeMap::from([("aa-bb-cc-dd-ee-01.key".to_owned(), "canary\nkey\n".to_owned())])
    );
}

/// One odd value would make the file unreadable for all, or say something else than it seems to.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn switch_that_cannot_be_in_the_file_says_so_and_no_other_is_left_out() {
    let login = |values: &[(&str, &[u8])]| Login::Known(secret(values));
    let user: (&str, &[u8]) = ("username", b"admin");
    let long = [b'x'; 1025];
    let none = json!({});
    for (change, login, expected) in [
        (
            &none,
            Login::NotNamed,
            "CredentialError credentials secret reference is not set",
        ),
        (
            &none,
            Login::OtherNamespace,
            "CredentialError spec.credentials.namespace is another one",
        ),
        (
            &none,
            Login::Absent,
            "CredentialError credentials secret odd-login not found",
        ),
        (
            &none,
            Login::Unlabelled,
            "CredentialError credentials secret odd-login has no label",
        ),
        (
            &none,
            Login::OtherUse,
            "CredentialError credentials secret odd-login has another use",
        ),
        (
            &none,
            Login::NotRead,
            "TooManySwitches the namespace has too many switches",
        ),
        (
            &none,
            login(&[]),
            "CredentialError credentials secret odd-login missing 'username' key",
        ),
        (
            &none,
            login(&[user]),
            "CredentialError credentials secret odd-login missing 'password' or 'ssh-privatekey' key",
        ),
        (
            &none,
            login(&[user, ("password", b"")]),
            "CredentialError credentials secret odd-login: password is empty",
        ),
        (
            &none,
            login(&[user, ("password", b"\xffcanary")]),
            "CredentialError credentials secret odd-login: password is no text",
        ),
        (
            &none,
            login(&[user, ("password", b"canary\n[switch:a]")]),
            "CredentialError credentials secret odd-login: password has a line break",
        ),
        (
            &none,
            login(&[user, ("password", b"canary%")]),
            "CredentialError credentials secret odd-login: password has the character %",
        ),
        (
            &none,
            login(&[user, ("password", b" canary")]),
            "CredentialError credentials secret odd-login: password has white space",
        ),
        (
            &none,
            login(&[user, ("password", b"'canary'")]),
            "CredentialError credentials secret odd-login: password has white space",
        ),
        (
            &none,
            login(&[user, ("password", &long)]),
            "CredentialError credentials secret odd-login: password is longer than 1024",
        ),
        (
            &none,
            login(&[user, ("ssh-privatekey", b"")]),
            "CredentialError credentials secret odd-login: ssh-privatekey is empty or",
        ),
        (
            &none,
            login(&[user, ("ssh-privatekey", &[b'x'; 16_385])]),
            "CredentialError credentials secret odd-login: ssh-privatekey is empty or",
        ),
        (
            &none,
            login(&[user, ("password", b"p"), ("admin-password", b"canary\n\n")]),
            "CredentialError credentials secret odd-login: admin-password has a line break",
        ),
        (
            &json!({ "spec": { "address": "" } }),
            password(),
            "SwitchInvalid spec.address is empty",
        ),
        (
            &json!({ "spec": { "address": "fe80::1%eth0" } }),
            password(),
            "SwitchInvalid spec.address has the character %",
        ),
        (
            &json!({ "spec": { "deviceType": "x\npassword=y" } }),
            password(),
            "SwitchInvalid spec.deviceType has a line break",
        ),
        (
            &json!({ "spec": { "macAddress": "../../../etc/key" } }),
            password(),
            "SwitchInvalid spec.macAddress is no MAC address",
        ),
    ] {
        let outputs = outputs();
        let facts = facts(
            &outputs,
            vec![
                plain("a", password()),
                switch("odd", change, login),
                plain("z", password()),
            ],
        );
        let planned = plan(&facts);
        let said = report(&planned, "odd");
        assert!(
            said.starts_with(&format!("False {expected}")),
            "{said} is not {expected}"
        );
        assert!(!said.contains("canary") && said.contains("; "), "{said}");
        assert_eq!(
            planned.wait.map(|wait| wait.reason.to_string()).as_deref(),
            expected.split(' ').next()
        );
        let text = file(&facts);
        let sections = stored(&text).unwrap();
        assert_eq!(sections.keys().collect::<Vec<_>>(), ["a", "z"], "{expected}");
    }
}

#[test]
fn what_is_not_known_of_a_switch_changes_nothing_of_it() {
    let outputs = outputs();
    let before = facts(
        &outputs,
        vec![
            plain("a", private_key()),
            plain("b", password()),
            plain("c", password()),
        ],
    );
    let [configs, keys] = contents(&before, &plan(&before), usize::MAX);
    let bytes = |data: &BTreeMap<String, String>| {
        let data: Vec<(&str, &[u8])> = data
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        Output::Known(secret(&data))
    };
    let unknown = || Login::Unknown("this program may not read it".to_owned());
    // One is gone, one cannot be decoded, and the login of one cannot be read.
    let mut after = facts(&outputs, vec![plain("a", unknown())]);
    after.unreadable = vec!["b".to_owned()];
    (after.configs, after.keys) = (bytes(&configs), bytes(&keys));
    let planned = plan(&after);
    let [now, keys_now] = contents(&after, &planned, usize::MAX);
    let sections = stored(&now[CONFIG_KEY]).unwrap();
    assert_eq!(sections.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(keys_now, keys);
    assert_eq!(
        report(&planned, "a"),
        "Unknown StateUnknown credentials secret a-login cannot be read: this program may not read it"
    );
    // What was never written is not invented.
    let fresh = facts(&outputs, vec![plain("a", unknown())]);
    assert_eq!(file(&fresh), HEADER);
}

#[test]
fn secret_for_ironic_that_is_missing_unread_or_refused_is_named() {
    let outputs = outputs();
    let none = || Output::Known(secret(&[]));
    let section = "[switch:a]\nkey_file=/etc/ironic/keys/aa-bb-cc-dd-ee-01.key\n\n";
    let text = format!("{HEADER}{section}");
    for (configs, keys, reason) in [
        (
            Output::Absent,
            none(),
            "False SwitchSecretMissing Secret configs not found; create it",
        ),
        (
            Output::Known(secret(&[(CONFIG_KEY, text.as_bytes())])),
            Output::Absent,
            "False SwitchSecretMissing Secret keys not found; create it",
        ),
        (
            Output::Unknown("it was not read".to_owned()),
            none(),
            "Unknown StateUnknown Secret configs cannot be read: it",
        ),
    ] {
        let blocked = Facts {
            configs,
            keys,
            ..facts(&outputs, vec![plain("a", private_key())])
        };
        let planned = plan(&blocked);
        assert!(
            planned.writes.is_empty() && report(&planned, "a").starts_with(reason),
            "{}",
            report(&planned, "a")
        );
    }
    for (which, name) in [(Which::Keys, "keys"), (Which::Configs, "configs")] {
        let refused = Facts {
            refused: BTreeSet::from([which]),
            ..facts(&outputs, vec![plain("a", private_key())])
        };
        let said = report(&plan(&refused), "a");
        let expected = format!("False SwitchSecretRefused the API server refuses to change Secret {name}");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn each_prefix_of_the_writes_is_a_file_whose_keys_exist_and_all_of_them_a_fixpoint() {
    let outputs = outputs();
    let at = |mac: &str| json!({ "spec": { "macAddress": mac } });
    let sets = [
        Vec::new(),
        vec![("a", "aa:bb:cc:dd:ee:01")],
        vec![("a", "aa:bb:cc:dd:ee:02")],
        vec![("a", "aa:bb:cc:dd:ee:01"), ("b", "aa:bb:cc:dd:ee:02")],
    ];
    for from in &sets {
        for to in &sets {
            let made = |set: &[(&str, &str)]| -> Vec<Switch> {
                set.iter()
                    .map(|(name, mac)| switch(name, &at(mac), private_key()))
                    .collect()
            };
            let mut facts = facts(&outputs, made(from));
            facts.keys = Output::Known(secret(&[("other", b"kept")]));
            for wanted in [from, to] {
                facts.switches = made(wanted);
                let planned = plan(&facts);
                for number in 0..=planned.writes.len() {
                    let [configs, keys] = contents(&facts, &planned, number);
                    assert_eq!(keys.get("other").map(String::as_str), Some("kept"));
                    for section in configs
                        .get(CONFIG_KEY)
                        .and_then(|text| stored(text))
                        .unwrap_or_default()
                        .values()
                    {
                        assert!(
                            keys.contains_key(key_file(section).unwrap()),
                            "{from:?} {to:?} {number}"
                        );
                    }
                }
                let data = contents(&facts, &planned, usize::MAX).map(|data| {
                    let data: Vec<(&str, &[u8])> =
                        data.iter().map(|(name, one)| (name.as_str(), one.as_bytes())).collect();
                    Output::Known(secret(&data))
                });
                [facts.configs, facts.keys] = data;
                assert!(plan(&facts).writes.is_empty(), "{from:?} {to:?}");
            }
            let [configs, keys] = contents(&facts, &plan(&facts), usize::MAX);
            assert_eq!(keys.len(), to.len() + 1, "no key of a former switch");
            // A namespace that never had a switch keeps its Secret as it is.
            let has_file = !(from.is_empty() && to.is_empty());
            assert_eq!(configs.contains_key(CONFIG_KEY), has_file);
        }
    }
}

#[test]
fn secrets_for_ironic_are_bounded_and_a_key_has_one_switch() {
    let outputs = outputs();
    let large = Arc::new([b'x'; 16_384]);
    let key = |last: u8| {
        let mut key = large.to_vec();
        key.push(last);
        key.remove(0);
        Login::Known(secret(&[("username", b"admin"), ("ssh-privatekey", &key)]))
    };
    let at = |number: usize| json!({ "spec": { "macAddress": format!("aa:bb:cc:dd:ee:{number:02x}") } });
    let many: Vec<Switch> = (0..80)
        .map(|number| switch(&format!("s{number:02}"), &at(number), key(b'k')))
        .collect();
    let facts_of_many = facts(&outputs, many);
    let planned = plan(&facts_of_many);
    let [configs, keys] = contents(&facts_of_many, &planned, usize::MAX);
    let size: usize = keys.values().map(String::len).sum();
    assert!(size <= 900 * 1024 && keys.len() == 56, "{size} {}", keys.len());
    assert_eq!(stored(&configs[CONFIG_KEY]).unwrap().len(), 56);
    assert!(report(&planned, "s55").starts_with("True "));
    assert!(report(&planned, "s56").starts_with("False TooManySwitches the Secrets for Ironic are full; "));

    let same = facts(
        &outputs,
        vec![switch("a", &at(1), key(b'k')), switch("b", &at(1), key(b'l'))],
    );
    let said = report(&plan(&same), "b");
    assert!(
        said.starts_with("False CredentialError a switch before it has the same spec.macAddress"),
        "{said}"
    );
    let shared = facts(
        &outputs,
        vec![switch("a", &at(1), key(b'k')), switch("b", &at(1), key(b'k'))],
    );
    assert!(
        report(&plan(&shared), "b").starts_with("True "),
        "as two entries of one switch"
    );
}

#[test]
fn deleted_switch_is_written_until_it_is_gone_and_nothing_is_written_to_its_status() {
    let outputs = outputs();
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let facts = facts(&outputs, vec![switch("a", &deleted, password())]);
    let planned = plan(&facts);
    assert!(planned.reports.is_empty() && planned.writes.len() == 1);
}
