use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ResourceExt as _;
use serde_json::json;

use super::{created, key, patch};
use crate::plan::Observed;
use crate::version::ResourceVersion;
use crate::write::WriteErrorKind;

fn version(object: &ConfigMap) -> ResourceVersion {
    ResourceVersion::parse(&object.resource_version().unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn applied_fields_belong_to_the_manager_and_are_cached() {
    let (_cluster, writer, cache, made) = created().await;
    let members = json!({ "data": { "host": "192.0.2.1" } });
    let applied = writer.apply(&cache, &key("a"), &version(&made), ("us", &members)).await;
    let applied = applied.unwrap().object().unwrap();
    assert_eq!(applied.data.unwrap()["host"], "192.0.2.1");
    let Observed::Present(known) = cache.find(&key("a")) else {
        panic!("the object is not cached")
    };
    assert_eq!(known.data.as_ref().unwrap()["host"], "192.0.2.1");
}

#[tokio::test(start_paused = true)]
async fn field_of_another_field_manager_is_not_taken() {
    let (_cluster, writer, cache, made) = created().await;
    // A patch without apply; the API server names the client as field manager.
    let typed = patch(&json!({ "data": { "host": "192.0.2.9" } }));
    let typed = writer.patch(&cache, &key("a"), typed).await.unwrap().object().unwrap();
    let members = json!({ "data": { "host": "192.0.2.1" } });
    let stale = writer.apply(&cache, &key("a"), &version(&made), ("us", &members)).await;
    assert!(matches!(
        stale.unwrap_err().kind,
        WriteErrorKind::Conflict | WriteErrorKind::Contested
    ));
    let refused = writer
        .apply(&cache, &key("a"), &version(&typed), ("us", &members))
        .await;
    assert_eq!(refused.unwrap_err().kind, WriteErrorKind::Contested);
    let same = json!({ "data": { "host": "192.0.2.9" } });
    assert!(
        writer
            .apply(&cache, &key("a"), &version(&typed), ("us", &same))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn apply_to_an_object_of_another_version_is_rejected() {
    let (_cluster, writer, cache, made) = created().await;
    let elsewhere = patch(&json!({ "data": { "k": "v" } }));
    writer.patch(&cache, &key("a"), elsewhere).await.unwrap();
    let members = json!({ "data": { "host": "192.0.2.1" } });
    let stale = writer.apply(&cache, &key("a"), &version(&made), ("us", &members)).await;
    assert_eq!(stale.unwrap_err().kind, WriteErrorKind::Conflict);
}
