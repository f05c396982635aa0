//! What a release of one API group consists of. Names are those of the Go manager's release, so that an upgrade replaces
//! its objects and leaves none behind.

use metal3_api::catalog;
use metal3_manager::flags::Owner;
use metal3_manager::product;
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::table::Suite;
use serde_json::{Map, Value, json};

use super::{deployment, roles};

/// A product with a manifest of its own.
pub(super) struct Release {
    /// In file names.
    pub(super) name: &'static str,
    /// Beginning of the names of variables that installers replace.
    pub(super) variables: &'static str,
    owner: Owner,
}

pub(super) const IPAM: Release = Release {
    name: "ipam",
    variables: "IPAM",
    owner: Owner::Ipam,
};

impl Release {
    /// All objects, in the order in which they can be created.
    pub(super) fn documents(&self, image: &str) -> Vec<Value> {
        let Some(product) = product::find(self.owner) else {
            return Vec::new();
        };
        let suite = product.suite;
        let mut documents = vec![namespace(&suite)];
        let kinds = catalog::definitions().into_iter();
        let kinds = kinds.filter(|kind| kind.group == suite.group);
        documents.extend(kinds.map(|kind| kind.manifest()));
        documents.push(account(&suite));
        documents.extend(roles::documents(&suite, &product));
        documents.push(service(&suite));
        documents.extend(deployment::documents(self, &suite, image));
        documents.extend(certificate(&suite));
        documents.extend(configurations(&suite));
        documents
    }
}

/// Labels of every object.
pub(super) fn labels(suite: &Suite) -> Map<String, Value> {
    let provider = suite.provider.map(|name| ("cluster.x-k8s.io/provider".to_owned(), json!(name)));
    provider.into_iter().collect()
}

/// Metadata of an object in the namespace of the suite.
pub(super) fn named(suite: &Suite, name: &str) -> Value {
    json!({ "name": suite.named(name), "namespace": suite.namespace, "labels": labels(suite) })
}

/// The namespace asks the API server to refuse every Pod that is not restricted: ours must be.
fn namespace(suite: &Suite) -> Value {
    let mut labels = labels(suite);
    labels.insert("pod-security.kubernetes.io/enforce".into(), json!("restricted"));
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": suite.namespace, "labels": labels } })
}

fn account(suite: &Suite) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": named(suite, "manager") })
}

fn service(suite: &Suite) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": named(suite, "webhook-service"),
        "spec": {
            "ports": [{ "port": 443, "targetPort": deployment::WEBHOOK_PORT_NAME }],
            "selector": deployment::selector(suite),
        },
    })
}

/// The certificate of the webhook server, and its issuer: cert-manager makes and renews it.
fn certificate(suite: &Suite) -> [Value; 2] {
    let host = format!("{}.{}.svc", suite.service(), suite.namespace);
    let issuer = suite.named("selfsigned-issuer");
    [
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": named(suite, "serving-cert"),
            "spec": {
                "dnsNames": [host, format!("{host}.cluster.local")],
                "issuerRef": { "kind": "Issuer", "name": issuer },
                "secretName": deployment::certificate_secret(suite),
            },
        }),
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": named(suite, "selfsigned-issuer"),
            "spec": { "selfSigned": {} },
        }),
    ]
}
