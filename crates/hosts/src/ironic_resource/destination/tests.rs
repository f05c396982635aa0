use std::time::Duration;

use metal3_ironic::endpoint::Trust;
use metal3_runtime::plan::UnknownReason;
use serde_json::{Value, json};

use super::*;

fn key(name: &str) -> Key {
    Key {
        namespace: "metal3".to_owned(),
        name: name.to_owned(),
    }
}

fn followed() -> Followed {
    Followed {
        resource: key("ironic"),
        trust: Trust {
            ca: Some(Ca::File("/ca".into())),
            ..Trust::default()
        },
        time_limit: Duration::from_secs(7),
        login_in_clear: false,
    }
}

/// A ready resource with TLS, with this merged in.
fn ironic(change: Value) -> Ironic {
    let mut whole = json!({
        "metadata": { "name": "ironic", "namespace": "metal3", "generation": 3 },
        "spec": { "apiCredentialsName": "login", "tls": { "certificateName": "tls" }, "version": "38.0" },
        "status": { "installedVersion": "38.0", "conditions": [{
            "type": "Ready", "status": "True", "observedGeneration": 3, "reason": "Available", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    json_patch_merge(&mut whole, change);
    serde_json::from_value(whole).unwrap()
}

fn json_patch_merge(whole: &mut Value, change: Value) {
    match (whole, change) {
        (Value::Object(whole), Value::Object(change)) => {
            for (name, value) in change {
                json_patch_merge(whole.entry(name).or_insert(Value::Null), value);
            }
        }
        (whole, change) => *whole = change,
    }
}

fn condition(status: &str, generation: i64, message: &str) -> Value {
    json!({ "status": { "conditions": [{
        "type": "Ready", "status": status, "observedGeneration": generation, "reason": "Any", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } })
}

fn secret(data: Value) -> Secret {
    serde_json::from_value(json!({ "data": data })).unwrap()
}

#[test]
fn a_resource_that_is_not_ready_says_why_and_nothing_is_sent() {
    for (change, why) in [
        (condition("True", 2, ""), "did not reconcile it yet"),
        (json!({ "status": { "conditions": [] } }), "did not reconcile it yet"),
        (
            condition("False", 3, "deployment has 0 of 1 replicas"),
            "0 of 1 replicas",
        ),
        (condition("Unknown", 3, "a\nb"), "is not ready: ab"),
        (
            json!({ "spec": { "apiCredentialsName": "" } }),
            "spec.apiCredentialsName",
        ),
        (
            json!({ "spec": { "tls": { "certificateName": "" } } }),
            "--allow-insecure-ironic",
        ),
    ] {
        let found = secrets(&followed(), Observed::Present(&ironic(change.clone())));
        let Err(Missing::NotReady(text)) = found else {
            unreachable!("{change}: {found:?}")
        };
        assert!(text.contains(why) && text.contains("metal3/ironic"), "{change}: {text}");
    }
    let long = ironic(condition("False", 3, &"x".repeat(5_000)));
    let Err(Missing::NotReady(text)) = secrets(&followed(), Observed::Present(&long)) else {
        unreachable!("not ready")
    };
    assert!(text.len() < 400, "{}", text.len());
}

#[test]
fn an_absent_resource_is_not_an_unknown_one() {
    let absent = secrets(&followed(), Observed::Absent);
    assert!(
        matches!(&absent, Err(Missing::NotReady(why)) if why.contains("does not exist")),
        "{absent:?}"
    );
    for reason in [UnknownReason::NotListed, UnknownReason::NotPermitted] {
        let unknown = secrets(&followed(), Observed::Unknown(reason));
        assert!(matches!(&unknown, Err(Missing::Unknown(_))), "{unknown:?}");
    }
}

#[test]
fn secrets_are_those_next_to_the_resource() {
    let found = secrets(&followed(), Observed::Present(&ironic(json!({})))).unwrap();
    assert_eq!((found.login, found.certificate), (key("login"), Some(key("tls"))));
    let in_clear = Followed {
        login_in_clear: true,
        ..followed()
    };
    let found = secrets(
        &in_clear,
        Observed::Present(&ironic(json!({ "spec": { "tls": { "certificateName": "" } } }))),
    )
    .unwrap();
    assert_eq!(found.certificate, None);
}

#[test]
fn endpoint_login_and_ca_follow_from_resource_and_secrets() {
    let login = secret(json!({ "username": "YWRtaW4=", "password": "aHVudGVyMgo=" }));
    let (with_tls, without) = (
        Secrets {
            login: key("login"),
            certificate: Some(key("tls")),
        },
        Secrets {
            login: key("login"),
            certificate: None,
        },
    );
    let certificate = secret(json!({ "tls.crt": "UEVN", "tls.key": "a2V5" }));
    let found = settings(
        &followed(),
        &with_tls,
        Observed::Present(&login),
        Some(Observed::Present(&certificate)),
    )
    .unwrap();
    assert_eq!(
        Ok(&found.endpoint),
        Endpoint::parse("https://ironic.metal3.svc").as_ref()
    );
    assert_eq!(found.time_limit, Duration::from_secs(7));
    let expected = Login::Basic {
        username: "admin".to_owned(),
        password: "hunter2".into(),
    };
    assert!(found.login == expected);
    assert!(
        matches!(&found.trust.ca, Some(Ca::Pem { pem, .. }) if pem == "PEM"),
        "{:?}",
        found.trust
    );

    // The CA of the environment stays where the resource names none.
    let only_key = secret(json!({ "tls.key": "a2V5" }));
    for (secrets, certificate, url) in [
        (
            &with_tls,
            Some(Observed::Present(&only_key)),
            "https://ironic.metal3.svc",
        ),
        (&without, None, "http://ironic.metal3.svc"),
    ] {
        let found = settings(&followed(), secrets, Observed::Present(&login), certificate).unwrap();
        assert_eq!(Ok(&found.endpoint), Endpoint::parse(url).as_ref());
        assert_eq!(found.trust.ca, Some(Ca::File("/ca".into())));
    }
}

#[test]
fn a_secret_that_cannot_be_used_is_named_without_its_content() {
    let named = Secrets {
        login: key("login"),
        certificate: Some(key("tls")),
    };
    let login = secret(json!({ "username": "YWRtaW4=", "password": "aHVudGVyMg==" }));
    let pem = secret(json!({ "tls.crt": "UEVN" }));
    let no_password = secret(json!({ "username": "aHVudGVyMg==" }));
    let empty = secret(json!({ "username": "aHVudGVyMg==", "password": "Cg==" }));
    let no_text = secret(json!({ "username": "aHVudGVyMg==", "password": "//8=" }));
    for (login, certificate, why) in [
        (Observed::Absent, Observed::Present(&pem), "Secret metal3/login"),
        (Observed::Present(&no_password), Observed::Present(&pem), "password"),
        (Observed::Present(&empty), Observed::Present(&pem), "password"),
        (Observed::Present(&no_text), Observed::Present(&pem), "password"),
        (Observed::Present(&login), Observed::Absent, "Secret metal3/tls"),
    ] {
        let found = settings(&followed(), &named, login, Some(certificate));
        let Err(Missing::NotReady(text)) = found else {
            unreachable!("{why}: {found:?}")
        };
        assert!(text.contains(why) && !text.contains("hunter2"), "{text}");
    }
    let unknown = Observed::Unknown(UnknownReason::NotPermitted);
    let found = settings(&followed(), &named, Observed::Present(&login), Some(unknown));
    assert!(matches!(found, Err(Missing::Unknown(_))));
}
