//! Config drives.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::super::config_drive::{Parts, References, build, references};
use super::super::secret::Values;
use super::super::{AgentNetwork, InvalidHost};
use super::{UID, host, values};

fn own() -> Value {
    json!({"uuid": UID, "metal3-namespace": "metal", "metal3-name": "host-0", "local-hostname": "host-0",
           "local_hostname": "host-0", "name": "host-0"})
}

fn drive(parts: &Parts<'_>) -> Result<Value, InvalidHost> {
    build(&host(json!({})), parts, false).map(|drive| Value::Object(drive.0))
}

fn with_user(values: &Values) -> Parts<'_> {
    Parts {
        user_data: Some(values),
        ..Parts::default()
    }
}

fn with_meta(values: &Values) -> Parts<'_> {
    Parts {
        meta_data: Some(values),
        ..Parts::default()
    }
}

fn with_network(values: &Values) -> Parts<'_> {
    Parts {
        network_data: Some(values),
        ..Parts::default()
    }
}

fn with_agent(values: &Values) -> Parts<'_> {
    Parts {
        agent_network: Some(values),
        ..Parts::default()
    }
}

#[test]
fn config_drive_without_secrets_contains_the_host_name() {
    assert_eq!(drive(&Parts::default()), Ok(json!({"meta_data": own()})));
}

#[test]
fn live_iso_gets_an_empty_config_drive() {
    let user = values(&[("userData", "#cloud-config\n")]);
    let parts = with_user(&user);
    assert_eq!(build(&host(json!({})), &parts, true).unwrap().0.len(), 0);
}

#[test]
fn config_drive_equals_the_recorded_one() {
    let (user, meta) = (
        values(&[("userData", "#cloud-config\n")]),
        values(&[("metaData", "rack: r1\n")]),
    );
    let network = values(&[("networkData", r#"{"links": [], "networks": [], "services": []}"#)]);
    let parts = Parts {
        user_data: Some(&user),
        meta_data: Some(&meta),
        network_data: Some(&network),
        agent_network: None,
    };
    let mut meta_data = own();
    meta_data["rack"] = "r1".into();
    let expected = json!({"meta_data": meta_data, "network_data": {"links": [], "networks": [], "services": []},
                          "user_data": "#cloud-config\n"});
    assert_eq!(drive(&parts), Ok(expected));
}

#[test]
fn user_meta_data_overrides_the_defaults() {
    let meta = values(&[(
        "metaData",
        "name: node-7\nuuid: mine\nnested: {list: [1, true, null]}\n",
    )]);
    let mut expected = own();
    super::merge(
        &mut expected,
        &json!({"name": "node-7", "uuid": "mine", "nested": {"list": [1, true, null]}}),
    );
    let parts = with_meta(&meta);
    assert_eq!(drive(&parts), Ok(json!({"meta_data": expected})));
}

#[test]
fn value_key_is_the_fallback() {
    let (value, both) = (
        values(&[("value", "a: 1")]),
        values(&[("value", "a: 1"), ("networkData", "b: 2"), ("userData", "u")]),
    );
    let parts = Parts {
        user_data: Some(&value),
        network_data: Some(&value),
        ..Parts::default()
    };
    let expected = json!({"meta_data": own(), "user_data": "a: 1", "network_data": {"a": 1}});
    assert_eq!(drive(&parts), Ok(expected));
    let parts = Parts {
        user_data: Some(&both),
        network_data: Some(&both),
        ..Parts::default()
    };
    let expected = json!({"meta_data": own(), "user_data": "u", "network_data": {"b": 2}});
    assert_eq!(drive(&parts), Ok(expected));
}

#[test]
fn agent_network_is_the_fallback_for_network_data() {
    let (agent, own_network) = (values(&[("networkData", "a: 1")]), values(&[("networkData", "b: 2")]));
    let parts = with_agent(&agent);
    assert_eq!(drive(&parts).unwrap()["network_data"], json!({"a": 1}));
    let parts = Parts {
        network_data: Some(&own_network),
        ..parts
    };
    assert_eq!(drive(&parts).unwrap()["network_data"], json!({"b": 2}));
}

#[test]
fn empty_parts_are_omitted() {
    let empty = values(&[("value", "")]);
    let nothing = values(&[]);
    let parts = Parts {
        user_data: Some(&empty),
        meta_data: Some(&empty),
        network_data: Some(&nothing),
        agent_network: None,
    };
    assert_eq!(drive(&parts), Ok(json!({"meta_data": own()})));
}

#[test]
fn yaml_is_parsed_like_in_the_go_manager() {
    let rows = [
        ("a: yes\nb: off\n", json!({"a": true, "b": false})),
        ("a: 'yes'\n", json!({"a": "yes"})),
        ("a: 010\nb: 1_000\nc: 0x1f\n", json!({"a": 8, "b": 1000, "c": 31})),
        (
            "a: 2001-01-01\nb: 52:54:00:11:22:33\n",
            json!({"a": "2001-01-01", "b": "52:54:00:11:22:33"}),
        ),
        ("a: 1\na: 2\n", json!({"a": 2})),
        (
            "x: &x {k: v}\ny: *x\nz: {<<: *x, l: w}\n",
            json!({"x": {"k": "v"}, "y": {"k": "v"}, "z": {"k": "v", "l": "w"}}),
        ),
        ("1: a\n", json!({"1": "a"})),
        (
            "a: ~\nb: 1.5\nc: |\n  two\n  lines\n",
            json!({"a": null, "b": 1.5, "c": "two\nlines\n"}),
        ),
        ("---\na: 1\n", json!({"a": 1})),
        ("null", json!({})),
        ("# nothing but words\n", json!({})),
        (r#"{"a": 18446744073709551615}"#, json!({"a": u64::MAX})),
    ];
    for (text, expected) in rows {
        let meta = values(&[("networkData", text)]);
        let parts = with_network(&meta);
        let found = drive(&parts).unwrap_or_else(|invalid| panic!("{text}: {invalid}"));
        assert_eq!(found.get("network_data").unwrap_or(&json!({})), &expected, "{text}");
    }
}

#[test]
fn unreadable_value_is_rejected_by_reference_without_its_content() {
    let bytes = |bytes: &[u8]| {
        [("value".to_owned(), k8s_openapi::ByteString(bytes.to_vec()))]
            .into_iter()
            .collect()
    };
    let list = values(&[("value", "- canary\n")]);
    let broken = values(&[("value", "ok: 1\ncanary: [1, 2\n")]);
    let scalar = values(&[("value", "canary")]);
    let none = values(&[("other", "canary")]);
    let binary = bytes(b"canary\xff");
    let rows = [
        (
            with_user(&none),
            "spec.userData",
            "neither \"userData\" nor \"value\"; set one",
        ),
        (
            with_meta(&none),
            "spec.metaData",
            "neither \"metaData\" nor \"value\"; set one",
        ),
        (with_user(&binary), "spec.userData", "store plain text"),
        (
            with_meta(&list),
            "spec.metaData",
            "contains no map in YAML or JSON; correct it",
        ),
        (with_meta(&scalar), "spec.metaData", "contains no map"),
        (with_network(&broken), "spec.networkData", "(line "),
        (
            with_agent(&list),
            "spec.preprovisioningNetworkDataName",
            "contains no map",
        ),
    ];
    for (parts, field, words) in rows {
        let invalid = drive(&parts).unwrap_err();
        assert_eq!(invalid.field(), field);
        assert!(invalid.to_string().contains(words), "{invalid}");
        assert!(
            !format!("{invalid} {invalid:?} {parts:?}").contains("canary"),
            "{invalid}"
        );
    }
}

#[test]
fn yaml_alias_bomb_is_rejected() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        let items = vec![below; 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let meta = values(&[("metaData", &text)]);
    let parts = with_meta(&meta);
    assert_eq!(drive(&parts).unwrap_err().field(), "spec.metaData");
}

#[test]
fn agent_network_is_parsed_or_none() {
    assert_eq!(AgentNetwork::of(&values(&[])), Ok(AgentNetwork::None));
    assert_eq!(
        AgentNetwork::of(&values(&[("networkData", "{}")])),
        Ok(AgentNetwork::None)
    );
    let data = AgentNetwork::of(&values(&[("value", "links: []")])).unwrap();
    assert!(matches!(&data, AgentNetwork::Data(map) if map.contains_key("links")));
    assert!(!format!("{data:?}").contains("links"));
    assert!(AgentNetwork::of(&values(&[("value", "[]")])).is_err());
}

#[test]
fn references_to_other_namespaces_are_rejected() {
    let named = |spec| host(spec);
    let full = named(
        json!({"userData": {"name": "u"}, "networkData": {"name": "n", "namespace": "metal"},
        "metaData": {"name": "m", "namespace": ""}, "preprovisioningNetworkDataName": "p"}),
    );
    let expected = References {
        user_data: Some("u"),
        network_data: Some("n"),
        meta_data: Some("m"),
        agent_network: Some("p"),
    };
    assert_eq!(references(&full), Ok(expected));
    assert_eq!(
        references(&named(json!({"preprovisioningNetworkDataName": ""}))),
        Ok(References::default())
    );
    let refused = |host: &BareMetalHost| references(host).unwrap_err();
    assert_eq!(
        refused(&named(json!({"metaData": {"name": "m", "namespace": "other"}}))),
        InvalidHost::OtherNamespace { field: "spec.metaData" }
    );
    assert_eq!(
        refused(&named(json!({"userData": {}}))),
        InvalidHost::Unnamed { field: "spec.userData" }
    );
}

/// Ignition reads JSON, in which each byte counts: a signature, or a hash of the configuration, may cover it.
#[test]
fn user_data_of_ignition_reach_the_drive_to_the_byte() {
    for text in [
        "{\"ignition\":{\"version\":\"3.4.0\"},\"storage\":{\"files\":[{\"path\":\"/a\",\"contents\":{\"source\":\"data:;base64,w7w=\"}}]}}",
        "{ \"ignition\": { \"version\": \"3.4.0\" } }\n\n",
        "\t{\"ignition\":{\"version\":\"2.3.0\"},\"passwd\":{\"users\":[{\"name\":\"\u{fc}\\u00fc\\\\\\\"\"}]}}\r\n",
        "variant: flatcar\nversion: 1.0.0\n",
    ] {
        for key in ["value", "userData"] {
            let user = values(&[(key, text), ("format", "ignition")]);
            let drive = drive(&with_user(&user)).unwrap();
            assert_eq!(
                drive["user_data"].as_str().map(str::as_bytes),
                Some(text.as_bytes()),
                "{key}"
            );
        }
    }
}
