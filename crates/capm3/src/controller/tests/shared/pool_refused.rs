//! Rejected writes and reads of an endpoint that is rendered into a Secret.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::fixture::{Fixture, HOST, MANAGER, wait};
use super::pool::{PoolFixture, SECRET, cluster_with, pooled, template, vips};
use crate::data::reconciler::tests::lab::User;

/// Rejects each request of this verb for this resource.
fn refused(code: u16, verb: &'static str, resource: &'static str) -> Plan {
    let refusal = Fault::Refused {
        code,
        retry_after: None,
    };
    Plan::none().with(Rule::random(1000, refusal).verb(verb).resource(resource))
}

#[tokio::test(start_paused = true)]
async fn rejected_secret_is_reported_with_the_remedy_until_accepted() {
    for (code, touch) in [(403, "grant it"), (422, "spec.controlPlaneEndpointSource.render")] {
        let fixture = PoolFixture::start();
        fixture.server.inject(refused(code, "create", "secrets"));
        let _program = fixture.program();
        vips(&fixture.user, 3).await;
        template(&fixture.user, "one ${HOST}").await;
        cluster_with(&fixture.user, pooled()).await;
        wait().await;
        let (_, reason, message) = fixture.condition("ControlPlaneEndpointRendered").await;
        assert_eq!(reason, "SecretRefused");
        assert!(message.contains(touch), "{message}");
        fixture.server.inject(Plan::none());
        tokio::time::sleep(Duration::from_secs(62)).await;
        assert_eq!(fixture.secret().await, "one 192.0.2.50");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_control_plane_is_touched_although_the_secret_is_rejected() {
    let fixture = Fixture::start();
    fixture.server.inject(refused(403, "create", "secrets"));
    let _program = fixture.program_with(true);
    template(&User(fixture.user.clone()), "one ${HOST}").await;
    for number in 0..3 {
        fixture.make(number).await;
    }
    let render = json!({ "configMapName": "vip", "key": "vip.yaml", "secretName": SECRET });
    let spec = json!({ "spec": { "controlPlaneEndpointSource": { "render": render } } });
    let patch = Patch::Merge(spec);
    fixture
        .metal3_clusters()
        .patch("edge", &PatchParams::default(), &patch)
        .await
        .unwrap();
    fixture.publish(HOST).await;
    let touches = || fixture.server.audit().of(MANAGER, "patch", "kamajicontrolplanes");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(touches(), 1);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(touches(), 1);
}

#[tokio::test(start_paused = true)]
async fn template_with_an_invalid_name_is_reported_and_never_requested() {
    let fixture = PoolFixture::start();
    let _program = fixture.program();
    vips(&fixture.user, 3).await;
    let mut source = pooled();
    source["render"]["configMapName"] = json!("vip,extra");
    cluster_with(&fixture.user, source).await;
    wait().await;
    let (_, reason, message) = fixture.condition("ControlPlaneEndpointRendered").await;
    assert_eq!(reason, "TemplateInvalid", "{message}");
    assert!(message.contains("render.configMapName"), "{message}");
    let requests = fixture.requests();
    assert!(!requests.keys().any(|what| what.contains("configmaps")), "{requests:?}");
}
