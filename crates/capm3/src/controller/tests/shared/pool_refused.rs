//! Rejected writes and reads of an endpoint that is rendered into a Secret.

use std::time::Duration;

use metal3_sim_faults::Plan;
use serde_json::json;

use super::fixture::{Fixture, HOST, MANAGER, rejecting, wait};
use super::pool::{PoolFixture, SECRET, cluster_with, pooled, template, vips};
use crate::data::reconciler::tests::lab::INFRASTRUCTURE;

/// Rejects the creation of Secrets.
fn without_secrets(code: u16) -> Plan {
    Plan::none().with(rejecting(code, "secrets").verb("create"))
}

#[tokio::test(start_paused = true)]
async fn rejected_secret_is_reported_with_the_remedy_until_accepted() {
    for (code, touch) in [(403, "grant it"), (422, "spec.controlPlaneEndpointSource.render")] {
        let fixture = PoolFixture::start();
        fixture.server.inject(without_secrets(code));
        let _program = fixture.program();
        vips(&fixture.user, 3).await;
        template(&fixture.user, "one ${HOST}").await;
        cluster_with(&fixture.user, pooled()).await;
        wait().await;
        fixture
            .assert_condition("ControlPlaneEndpointRendered", ("False", "SecretRefused"), touch)
            .await;
        fixture.server.inject(Plan::none());
        tokio::time::sleep(Duration::from_secs(62)).await;
        assert_eq!(fixture.secret().await, "one 192.0.2.50");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_control_plane_is_touched_although_the_secret_is_rejected() {
    let fixture = Fixture::start();
    fixture.server.inject(without_secrets(403));
    let _program = fixture.program_with(true);
    template(&fixture.user, "one ${HOST}").await;
    fixture.make_all().await;
    let render = json!({ "configMapName": "vip", "key": "vip.yaml", "secretName": SECRET });
    let spec = json!({ "spec": { "controlPlaneEndpointSource": { "render": render } } });
    fixture.user.change(INFRASTRUCTURE, "metal3clusters/edge", spec).await;
    fixture.publish(HOST).await;
    let touches = || fixture.server.audit().of(MANAGER, "patch", "kamajicontrolplanes");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(touches(), 1);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(touches(), 1);
}

#[tokio::test(start_paused = true)]
async fn template_with_an_invalid_name_is_reported_and_never_requested() {
    let (fixture, _program) = PoolFixture::running(3).await;
    let mut source = pooled();
    source["render"]["configMapName"] = json!("vip,extra");
    cluster_with(&fixture.user, source).await;
    wait().await;
    let (invalid, part) = (("False", "TemplateInvalid"), "render.configMapName");
    fixture
        .assert_condition("ControlPlaneEndpointRendered", invalid, part)
        .await;
    let requests = fixture.requests();
    assert!(!requests.keys().any(|what| what.contains("configmaps")), "{requests:?}");
}
