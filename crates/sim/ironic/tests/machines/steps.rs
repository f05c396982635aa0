//! Deployments by steps of the agent.

use super::*;

fn by_step(name: &str) -> Transition {
    Transition::Deploy {
        config_drive: drive(),
        steps: vec![Step {
            priority: Some(80),
            ..step("deploy", name, json!({}))
        }],
    }
}

/// A node that is available, with this interface.
async fn available(fixture: &Fixture, interface: &str, info: Value) -> NodeUuid {
    let node = fixture
        .register(json!({"instance_info": info, "automated_clean": false, "deploy_interface": interface}))
        .await;
    fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
    node
}

#[tokio::test(start_paused = true)]
async fn deploy_step_of_the_agent_installs_with_and_without_an_image() {
    let redirected = "http://images/b.raw";
    for (info, source) in [(json!({}), ""), (image("b"), redirected)] {
        let fixture = Fixture::new();
        fixture.ironic.redirect_image(redirected, "http://mirror/b.raw");
        let node = available(&fixture, "custom-agent", info).await;
        fixture.learn("install");
        let active = fixture.go(&node, by_step("install"), ProvisionState::Active).await;
        let disk = fixture.machine().disk.unwrap();
        assert_eq!((disk.source.as_str(), disk.step.as_deref()), (source, Some("install")));
        assert!(disk.config_drive.is_some());
        // This interface does not look at the image.
        assert_eq!(active.instance_info.text("image_source").unwrap_or_default(), source);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_agent_without_a_step_installs_nothing() {
    let fixture = Fixture::new();
    let node = available(&fixture, "custom-agent", image("a")).await;
    fixture.go(&node, deploy(), ProvisionState::Active).await;
    assert!(fixture.machine().disk.is_none());
}

#[tokio::test(start_paused = true)]
async fn direct_writes_the_image_before_the_deploy_step_runs() {
    let fixture = Fixture::new();
    let node = available(&fixture, "direct", image("a")).await;
    fixture.learn("install");
    fixture.go(&node, by_step("install"), ProvisionState::Active).await;
    let machine = fixture.machine();
    assert_eq!(machine.disk.unwrap().step.as_deref(), Some("install"));
    assert_eq!(machine.counts.written, 2);
}

#[tokio::test(start_paused = true)]
async fn deploy_step_that_the_agent_does_not_know_fails_once_it_has_booted() {
    for interface in ["custom-agent", "direct"] {
        let fixture = Fixture::new();
        let node = available(&fixture, interface, image("a")).await;
        fixture.ask(&node, by_step("install")).await.unwrap();
        // The next power synchronisation erases it.
        let error = loop {
            sleep(Duration::from_secs(1)).await;
            let node = fixture.read(&node).await;
            if let (ProvisionState::DeployFailed, Some(error)) = (node.provision_state, node.last_error) {
                break error;
            }
        };
        assert!(
            error.contains("node does not support this deploy step") && error.contains("install"),
            "{error}"
        );
        let machine = fixture.machine();
        assert!(machine.disk.is_none() && machine.counts.started > 0, "{interface}");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_and_misplaced_deploy_steps_are_rejected() {
    let fixture = Fixture::new();
    let node = available(&fixture, "custom-agent", json!({})).await;
    for wrong in [
        step("deploy", "install", json!({})),
        Step {
            priority: Some(80),
            ..step("deploy", "", json!({}))
        },
        Step {
            priority: Some(80),
            ..step("deploy", "deploy", json!({}))
        },
    ] {
        let order = Transition::Deploy {
            config_drive: drive(),
            steps: vec![wrong.clone()],
        };
        let refused = fixture.ask(&node, order).await.unwrap_err();
        assert_eq!(refused.category(), "invalid", "{wrong:?}");
        assert_eq!(fixture.read(&node).await.provision_state, ProvisionState::Available);
    }
}
