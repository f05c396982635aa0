//! What the schemas of the variables admit.

use metal3_schema::Schema;
use serde_json::{Value, json};

use super::{class_and_templates, everything};

/// The variables that the schemas of the class refuse.
pub(super) fn refused(variables: &Value) -> Vec<String> {
    let (class, _) = class_and_templates();
    let schemas: serde_json::Map<String, Value> = class["spec"]["variables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap().to_owned(),
                one["schema"]["openAPIV3Schema"].clone(),
            )
        })
        .collect();
    let unknown = variables
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !schemas.contains_key(*name));
    assert_eq!(unknown.count(), 0, "{variables}");
    let schema = Schema::parse(&json!({ "type": "object", "properties": schemas })).unwrap();
    schema
        .validate(variables)
        .iter()
        .map(|error| error.field.clone())
        .collect()
}

/// Cluster API writes keys and user without quotes into the cloud-config, and systemd reads escapes in the proxy.
#[test]
fn values_that_would_be_read_otherwise_later_are_refused() {
    let place = |pointer: &str, value: &str| {
        let mut variables = everything();
        *variables.pointer_mut(pointer).unwrap() = json!(value);
        refused(&variables)
    };
    let cases: [(&str, &str, &[&str]); 9] = [
        (
            "/sshAuthorizedKeys/1",
            "sshAuthorizedKeys[1]",
            &[
                "",
                "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two",
                "ssh-ed25519 AAAA host: laptop",
                "ssh-ed25519 AAAA host:\tlaptop",
                "ssh-ed25519 AAAA host:",
                "ssh-ed25519 AAAA host:\n",
                "ssh-ed25519 AAAA # laptop",
                "- ssh-ed25519 AAAA one",
                "\"ssh-ed25519 AAAA one\"",
                "null",
            ],
        ),
        ("/sshUser", "sshUser", &["no", "null", "on", "true", "Root", ""]),
        (
            "/proxy/http",
            "proxy.http",
            &["http://d\\user:p@proxy", "http://$HOST", "http://`id`"],
        ),
        (
            "/proxy/https",
            "proxy.https",
            &["http://d\\user:p@proxy", "ftp://proxy"],
        ),
        (
            "/proxy/noProxy/0",
            "proxy.noProxy[0]",
            &["a\\b", "$HOST", "`id`", "a,b"],
        ),
        (
            "/endpointSource/render/key",
            "endpointSource.render.key",
            &["../x", "a\"b", "a\\b", "..", "."],
        ),
        (
            "/endpointSource/render/secretName",
            "endpointSource.render.secretName",
            &["A", "a/b", "a."],
        ),
        ("/zones/0/name", "zones[0].name", &["", "a b", "-a", "rack/1"]),
        ("/zones/0/dataTemplate", "zones[0].dataTemplate", &["", "Rack", "a_b"]),
    ];
    for (pointer, field, values) in cases {
        for value in values {
            assert_eq!(place(pointer, value), [field], "{value:?}");
        }
    }
    assert_eq!(refused(&everything()), [""; 0]);
}
