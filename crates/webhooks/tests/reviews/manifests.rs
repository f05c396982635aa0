//! The webhook configurations, compared with the routes and with those of the Go managers.

use std::path::Path;

use axum::http::StatusCode;
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::related_objects::NoRelatedObjects;
use metal3_webhooks::table::SUITES;
use serde_json::Value;

use crate::api_server::post;

#[tokio::test]
async fn each_configured_path_is_served() {
    let mut served = 0;
    for configuration in SUITES.iter().flat_map(configurations) {
        for webhook in configuration["webhooks"].as_array().unwrap() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let (status, _) = post(NoRelatedObjects, path, b"{}".to_vec()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} is not served");
            served += 1;
        }
    }
    assert_eq!(served, 25);
}

/// Configuration, name and path of each webhook in the manifests of the Go managers of 1.12, whose names 1.9 and 1.10 have too.
const OF_1_12: &str = include_str!("webhooks-of-1.12.txt");

/// `kubectl apply` of our configurations replaces the webhooks of the same name, and leaves the others.
#[tokio::test]
async fn each_webhook_that_release_1_12_leaves_is_served() {
    let ours: Vec<Value> = SUITES.iter().flat_map(configurations).collect();
    let is_replaced = |configuration: &str, name: &str| {
        let mut same = ours.iter().filter(|one| one["metadata"]["name"] == configuration);
        same.any(|one| {
            one["webhooks"]
                .as_array()
                .unwrap()
                .iter()
                .any(|webhook| webhook["name"] == name)
        })
    };
    let mut left = Vec::new();
    for line in OF_1_12.lines() {
        let [configuration, name, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            unreachable!("{line}");
        };
        if !is_replaced(configuration, name) {
            let (status, _) = post(NoRelatedObjects, path, b"{}".to_vec()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} is not served");
            left.push(name.split('.').nth(1).unwrap());
        }
    }
    let kinds = [
        "clustertemplate",
        "data",
        "dataclaim",
        "datatemplate",
        "machine",
        "machinetemplate",
        "remediation",
    ];
    assert_eq!(left, kinds.map(|kind| format!("metal3{kind}")));
}

/// A configuration without intended differences that have no effect: the older review version, which no server prefers,
/// and the default of `matchPolicy`, which some manifests leave out. Webhooks that only warn (`kind-unserved`) are left
/// out.
fn comparable(mut configuration: Value) -> Value {
    let webhooks = configuration["webhooks"].as_array_mut().unwrap();
    webhooks.retain(|webhook| webhook["failurePolicy"] != "Ignore");
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        let versions = webhook["admissionReviewVersions"].as_array().unwrap();
        assert_eq!(versions.first(), Some(&Value::from("v1")));
        webhook["admissionReviewVersions"] = Value::Null;
        let policy = webhook["matchPolicy"].take();
        assert!(policy.is_null() || policy == "Equivalent", "{policy}");
    }
    configuration
}

#[test]
fn request_is_accepted_without_a_webhook_that_could_only_warn() {
    let configurations: Vec<Value> = SUITES.iter().flat_map(configurations).collect();
    let webhooks = configurations.iter().flat_map(|it| it["webhooks"].as_array().unwrap());
    let ignored: Vec<&str> = webhooks
        .filter(|webhook| webhook["failurePolicy"] == "Ignore")
        .map(|webhook| webhook["rules"][0]["resources"][0].as_str().unwrap())
        .collect();
    assert_eq!(ignored, ["baremetalswitches", "hostdeploypolicies"]);
}

#[test]
fn configurations_are_those_of_the_go_managers() {
    #[expect(
        clippy::disallowed_methods,
        reason = "an environment variable names the folder of recorded manifests"
    )]
    let Ok(fixtures) = std::env::var("FIXTURES") else {
        eprintln!("set FIXTURES to the folder that holds upstream/ to compare with the Go managers' manifests");
        return;
    };
    let mut expected = Vec::new();
    for file in ["capm3", "ipam", "baremetal-operator"] {
        let path = Path::new(&fixtures).join(format!("upstream/{file}-components.yaml"));
        let text = std::fs::read_to_string(path).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let found = documents
            .into_iter()
            .filter(|it| it["apiVersion"] == "admissionregistration.k8s.io/v1");
        expected.extend(found.map(comparable));
    }
    let configurations: Vec<Value> = SUITES.iter().flat_map(configurations).map(comparable).collect();
    assert_eq!(configurations.len(), 5);
    assert_eq!(configurations, expected);
}
