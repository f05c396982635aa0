//! What the API server does not let us write, or read, for an endpoint that is filled into a Secret.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::pool::{SECRET, Site, cluster_with, pooled, template, vips};
use super::scene::{HOST, MANAGER, World, settle};
use crate::controller::data::tests::lab::User;

/// Each request of this verb for this resource is refused.
fn refused(code: u16, verb: &'static str, resource: &'static str) -> Plan {
    let refusal = Fault::Refused {
        code,
        retry_after: None,
    };
    Plan::none().with(Rule::random(1000, refusal).verb(verb).resource(resource))
}

#[tokio::test(start_paused = true)]
async fn secret_that_is_refused_is_said_with_the_cure_until_it_is_taken() {
    for (code, cure) in [(403, "grant it"), (422, "spec.controlPlaneEndpointSource.render")] {
        let site = Site::start();
        site.server.inject(refused(code, "create", "secrets"));
        let _program = site.program();
        vips(&site.user, 3).await;
        template(&site.user, "one ${HOST}").await;
        cluster_with(&site.user, pooled()).await;
        settle().await;
        let (_, reason, message) = site.said("ControlPlaneEndpointRendered").await;
        assert_eq!(reason, "SecretRefused");
        assert!(message.contains(cure), "{message}");
        site.server.inject(Plan::none());
        tokio::time::sleep(Duration::from_secs(62)).await;
        assert_eq!(site.secret().await, "one 192.0.2.50");
    }
}

#[tokio::test(start_paused = true)]
async fn control_plane_that_sleeps_is_woken_although_the_secret_is_refused() {
    let world = World::start();
    world.server.inject(refused(403, "create", "secrets"));
    let _program = world.program_that(true);
    template(&User(world.user.clone()), "one ${HOST}").await;
    for which in 0..3 {
        world.make(which).await;
    }
    let render = json!({ "configMapName": "vip", "key": "vip.yaml", "secretName": SECRET });
    let spec = json!({ "spec": { "controlPlaneEndpointSource": { "render": render } } });
    let patch = Patch::Merge(spec);
    world
        .metal3_clusters()
        .patch("edge", &PatchParams::default(), &patch)
        .await
        .unwrap();
    world.publish(HOST).await;
    let woken = || world.server.audit().of(MANAGER, "patch", "kamajicontrolplanes");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(woken(), 1);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(woken(), 1);
}

#[tokio::test(start_paused = true)]
async fn template_whose_name_can_be_none_is_said_at_once_and_never_asked_for() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 3).await;
    let mut source = pooled();
    source["render"]["configMapName"] = json!("vip,extra");
    cluster_with(&site.user, source).await;
    settle().await;
    let (_, reason, message) = site.said("ControlPlaneEndpointRendered").await;
    assert_eq!(reason, "TemplateInvalid", "{message}");
    assert!(message.contains("render.configMapName"), "{message}");
    let asked = site.requests();
    assert!(!asked.keys().any(|what| what.contains("configmaps")), "{asked:?}");
}
