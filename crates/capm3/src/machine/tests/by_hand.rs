//! Objects of a machine that users change or delete by hand.

use serde_json::{Value, json};

use super::case::{Case, condition_of, writes};

const HOST: &str = "AssociateBareMetalHost";

#[test]
fn recorded_host_that_serves_something_else_is_not_claimed_again() {
    let spec = |change: Value| {
        let mut spec = json!({ "consumerRef": null, "image": null, "userData": null, "metaData": null });
        spec.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        json!({ "spec": spec })
    };
    let other = json!({ "url": "http://192.0.2.9/other.raw" });
    let given_away = [
        (
            spec(json!({ "image": other })),
            "has an image that is not of the machine",
        ),
        (
            spec(json!({ "image": { "url": "http://192.0.2.9/os.raw" }, "userData": { "name": "another" } })),
            "has an image",
        ),
        (spec(json!({ "customDeploy": { "method": "install" } })), "has an image"),
        (
            spec(json!({ "externallyProvisioned": true })),
            "is externally provisioned",
        ),
        (
            json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "kcp-other" } }, "spec": spec(json!({}))["spec"] }),
            "is kept for kcp-other",
        ),
    ];
    for (host, why) in given_away {
        let case = Case::running().host(host).with(|case| case.confirmed = true);
        let plan = case.decide();
        assert_eq!(writes(&plan), [""; 0]);
        let message = condition_of(&plan, HOST).1;
        assert!(
            message.contains(why) && message.contains("delete the Machine"),
            "{message}"
        );
    }
    let own = [
        json!({ "spec": { "consumerRef": null } }),
        spec(json!({ "image": { "url": "http://192.0.2.9/os.raw" } })),
        spec(json!({})),
    ];
    for host in own {
        let case = Case::running().host(host).with(|case| case.confirmed = true);
        assert!(writes(&case.decide()).contains(&"Claim h0".to_owned()));
    }
}
