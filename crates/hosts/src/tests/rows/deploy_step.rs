//! Hosts that a deploy step of the agent installs, without an image unless a row says otherwise.

use serde_json::{Value, json};

use super::Row;
use super::given::{configured_for_step, failing, with, written};
use crate::tests::fixture::{Fixture, OTHER_UID, UID, at, image};

fn asking(state: &str, method: &str) -> Fixture {
    Fixture::new(state).spec(json!({ "customDeploy": { "method": method } }))
}

fn running(method: &str) -> Fixture {
    asking("provisioned", method)
        .status(json!({ "poweredOn": true, "provisioning": { "customDeploy": { "method": "install" } } }))
}

fn on(method: &str) -> Value {
    with(configured_for_step(method), json!({ "power_state": "power on" }))
}

/// A node that a Go manager configured for a deploy step, whose name it does not record.
fn of_go_manager() -> Value {
    json!({ "instance_uuid": UID, "deploy_interface": "custom-agent", "power_state": "power on" })
}

pub(super) fn life() -> Vec<Row> {
    let validated =
        |fixture: Fixture| fixture.with(|fixture| fixture.validation = serde_json::from_value(json!({})).ok());
    let ready = || asking("provisioning", "install").node_with("available", configured_for_step("install"));
    let given_up = || {
        asking("available", "install")
            .node("available")
            .status(failing("provisioning error", "x", 5))
            .status(json!({ "provisioningFailCount": 5 }))
    };
    let edited = json!({ "metadata": { "generation": 2 }, "status": { "conditions": [{ "type": "Ready", "status": "False",
        "reason": "Error", "message": "", "lastTransitionTime": at(0), "observedGeneration": 1 }] } });
    let failed = json!({ "last_error": "node does not support this deploy step: install" });
    vec![
        asking("available", "install")
            .node("available")
            .row("a deploy step asked for", "writes the status, to provisioning, replan"),
        asking("available", "")
            .node("available")
            .row("an empty deploy step", "requests power on, waits for the node"),
        asking("available", "install")
            .spec(json!({ "online": false }))
            .node("available")
            .row("a deploy step asked for, and to be off", "settled"),
        asking("available", "in\nstall").node("available").row(
            "a deploy step with a control character",
            "writes the status, provisioning error: spec.customDeploy.method has a control character (a line break, a tab or the \
             like); remove it, waits for the user",
        ),
        asking("provisioning", &"i".repeat(256)).node("available").row(
            "a deploy step with a long name",
            "writes the status, provisioning error: spec.customDeploy.method: it is 256 characters long, and at most 255 are \
             accepted; set it to the name of a deploy step of the agent, waits for the user",
        ),
        asking("provisioning", "install")
            .node("available")
            .live()
            .row("a clean node", "requests change node, replan"),
        validated(ready().live()).row(
            "a node that is configured for the deploy step",
            "requests active, waits for the node",
        ),
        asking("provisioning", "install")
            .node_with("deploying", configured_for_step("install"))
            .row("the deploy step runs", "waits for the node"),
        asking("provisioning", "install")
            .node_with("deploy failed", with(configured_for_step("install"), failed.clone()))
            .row(
                "the deploy step failed",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed (customDeploy: install): node \
                 does not support this deploy step: install, replan",
            ),
        asking("provisioning", "install")
            .spec_image("a")
            .node_with("deploy failed", with(configured_for_step("install"), failed))
            .row(
                "another deploy step failed, which the node names",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed of the formerly requested \
                 deploy step: node does not support this deploy step: install, replan",
            ),
        asking("provisioning", "install")
            .node_with("active", on("install"))
            .row("the system is installed", "writes the status, to provisioned, replan"),
        asking("provisioning", "install")
            .node_with("deploying", of_go_manager())
            .row("the deploy step that a Go manager ordered runs", "waits for the node"),
        asking("provisioning", "install")
            .node_with("active", of_go_manager())
            .row(
                "the system is installed that a Go manager ordered",
                "writes the status, to provisioned, replan",
            ),
        asking("provisioning", "other")
            .node_with("active", on("install"))
            .row(
                "the system is installed, and another deploy step is asked for",
                "writes the status, to provisioned, replan",
            ),
        asking("provisioning", "other")
            .node_with("active", on("install"))
            .with(|fixture| fixture.began_elsewhere = true)
            .row(
                "the same, and a Go manager may have deployed meanwhile, which keeps the record of the step",
                "writes the status, provisioning error: in Ironic the node is in state \"active\", which is unexpected for a host in \
                 state \"provisioning\"; the node is not changed. It runs what this host did not request. To replace it, remove \
                 spec.customDeploy and set it again, waits for the node",
            ),
        asking("provisioning", "install")
            .spec_image("a")
            .node_with("active", written("b"))
            .row(
                "the node runs another image, and no deploy step",
                "writes the status, provisioning error: in Ironic the node is in state \"active\", which is unexpected for a host in \
                 state \"provisioning\"; the node is not changed. It runs what this host did not request. To replace it, remove \
                 spec.image and spec.customDeploy and set them again, waits for the node",
            ),
        asking("provisioning", "install").node_with("active", written("a")).row(
            "the node runs an image that was not asked for",
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which is unexpected for a host in \
             state \"provisioning\"; the node is not changed. It runs what this host did not request. To replace it, remove \
             spec.customDeploy and set it again, waits for the node",
        ),
        Fixture::new("provisioning")
            .node_with("deploying", configured_for_step("install"))
            .row("the request is taken back", "writes the status, to deprovisioning, replan"),
        given_up().hours_later(24).row(
            "it failed as often as is allowed",
            "writes the status, provisioning error: provisioning failed 5 times, retry limit (5) reached; change image or \
             customDeploy or reset provisioningFailCount to retry, waits for the user",
        ),
        given_up()
            .host(edited)
            .row(
                "the same, and the host was edited",
                "writes the status, to provisioning, error cleared, replan",
            ),
        given_up().status(json!({ "lastAttemptedImage": image("a") })).row(
            "an image without a deploy step failed as often as is allowed",
            "writes the status, to provisioning, error cleared, replan",
        ),
        running("install")
            .node_with("active", on("install"))
            .row("it runs what is asked for", "settled"),
        running("other")
            .node_with("active", on("install"))
            .row("another deploy step is asked for", "writes the status, to deprovisioning, replan"),
        running("other")
            .node_with("active", on("install"))
            .with(|fixture| fixture.left = 0)
            .row(
                "another deploy step is asked for, and the budget is spent",
                "withheld: DeprovisionBudgetSpent, waits for the user",
            ),
        running("").node_with("active", on("install")).row(
            "the deploy step is removed",
            "writes the status, to deprovisioning, replan",
        ),
        running("install")
            .spec_image("a")
            .node_with("active", on("install"))
            .row("an image is named later", "settled"),
        running("install")
            .spec(json!({ "online": false }))
            .node_with("active", with(of_go_manager(), json!({ "instance_uuid": OTHER_UID })))
            .live()
            .row(
                "the node serves another instance, that some step installed",
                "writes the status, provisioned registration error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, \
                 remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from \
                 before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for the node",
            ),
        running("install").node("manageable").row(
            "Ironic lost the node and is made again",
            "requests change node, requests adopt, waits for the node",
        ),
        running("install")
            .with(|fixture| fixture.host["status"]["provisioning"]["state"] = "deprovisioning".into())
            .node_with("active", on("install"))
            .row(
                "to be removed, and asked for again before that",
                "writes the status, to provisioned, replan",
            ),
        running("install")
            .spec_image("a")
            .with(|fixture| fixture.host["status"]["provisioning"]["state"] = "deprovisioning".into())
            .node_with("active", on("install"))
            .live()
            .row(
                "to be removed, and asked for again with an image",
                "requests deleted, waits for the node",
            ),
    ]
}
