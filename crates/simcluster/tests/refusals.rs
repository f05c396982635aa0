//! What the simulator does not do as the real server does, and therefore refuses.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Error};
use metal3_simcluster::{Cluster, Options};
use serde_json::json;

fn client() -> Client {
    Cluster::start(&Options::seeded(1)).client("tester")
}

fn refused(answer: Result<(), Error>) -> (u16, String) {
    match answer {
        Err(Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn server_side_apply_of_a_secret_with_string_data_is_refused() {
    let api: Api<Secret> = Api::namespaced(client(), "default");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}});
    let applied = api.patch("a", &PatchParams::apply("m"), &Patch::Apply(&secret)).await;
    let (code, message) = refused(applied.map(drop));
    assert_eq!(code, 501);
    assert!(message.contains("stringData"), "{message}");
}
