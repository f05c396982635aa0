//! A cluster with webhook configurations, replicas that manage certificates, and a TLS client like the API server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use metal3_api::catalog;
use metal3_domain::clock::{Clock as _, ManualClock};
use metal3_sim_cluster::{Cluster, Options};
use metal3_webhooks::certificates::{CertificateController, CertificateScope, Pair};
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::table::IPAM;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "metal3-ipam-system";
pub(crate) const HOST: &str = "ipam-webhook-service.metal3-ipam-system.svc";

pub(crate) struct TestEnv {
    pub(crate) cluster: Cluster,
    pub(crate) clock: Arc<ManualClock>,
}

impl TestEnv {
    /// A cluster with the webhooks of IPAM installed.
    pub(crate) async fn new(seed: u64) -> Self {
        let cluster = Cluster::start(&Options::seeded(seed));
        let ipam = catalog::definitions()
            .into_iter()
            .filter(|definition| definition.group == IPAM.group);
        cluster.install(&ipam.collect::<Vec<_>>()).unwrap();
        let env = Self {
            cluster,
            clock: Arc::new(ManualClock::at(DateTime::from_timestamp(1_790_000_000, 0).unwrap())),
        };
        env.create("v1", "Namespace", None, json!({ "metadata": { "name": NAMESPACE } }))
            .await;
        for (kind, plural) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ] {
            env.create(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                None,
                cluster_scoped(kind, plural),
            )
            .await;
        }
        for configuration in configurations(&IPAM) {
            let kind = configuration["kind"].as_str().unwrap().to_owned();
            env.create("admissionregistration.k8s.io/v1", &kind, None, configuration)
                .await;
        }
        env
    }

    pub(crate) fn replica(&self) -> CertificateController {
        let clock = Arc::clone(&self.clock);
        CertificateController::new(
            self.cluster.client("replica"),
            CertificateScope::of(&[IPAM], NAMESPACE),
            clock,
        )
    }

    pub(crate) fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let client = self.cluster.client("admin");
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    async fn create(&self, api_version: &str, kind: &str, namespace: Option<&str>, mut object: Value) {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.api(api_version, kind, namespace)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(crate) async fn secret(&self) -> Value {
        let secret = self
            .api("v1", "Secret", Some(NAMESPACE))
            .get(CertificateScope::of(&[IPAM], NAMESPACE).secret())
            .await;
        serde_json::to_value(secret.unwrap()).unwrap()
    }

    /// All injected bundles: those of the webhooks, then those of the definitions.
    pub(crate) async fn bundles(&self) -> Vec<String> {
        let mut bundles = Vec::new();
        let mut places = vec![];
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            places.push(("admissionregistration.k8s.io/v1", kind));
        }
        places.push(("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
        for (api_version, kind) in places {
            for object in self
                .api(api_version, kind, None)
                .list(&Default::default())
                .await
                .unwrap()
            {
                let object = serde_json::to_value(object).unwrap();
                let webhooks = object["webhooks"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|webhook| &webhook["clientConfig"]);
                let conversion = object.pointer("/spec/conversion/webhook/clientConfig");
                bundles.extend(webhooks.chain(conversion).map(|client| {
                    let bundle = client["caBundle"].as_str().unwrap_or_default();
                    String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap()
                }));
            }
        }
        bundles
    }

    /// Whether an API server with this bundle accepts a server with this pair, now.
    pub(crate) async fn accepts(&self, bundle: &str, pair: &Pair) -> Result<(), String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificates = CertificateDer::pem_slice_iter(pair.certificate().as_bytes()).map(Result::unwrap);
        let key = PrivateKeyDer::from_pem_slice(pair.key().as_bytes()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates.collect(), key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        if roots.is_empty() {
            return Err("the bundle is empty".into());
        }
        let client = ClientConfig::builder_with_details(provider, Arc::new(At(Arc::clone(&self.clock))))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (near, far) = tokio::io::duplex(1 << 16);
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        let name = ServerName::try_from(HOST).unwrap();
        let (client, _) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
        client.map(drop).map_err(|error| error.to_string())
    }
}

fn cluster_scoped(kind: &str, plural: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("{plural}.admissionregistration.k8s.io"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, in place of a kind of Kubernetes" },
        },
        "spec": {
            "group": "admissionregistration.k8s.io", "scope": "Cluster",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

/// The simulated time, for the TLS client.
#[derive(Debug)]
struct At(Arc<ManualClock>);

impl rustls::time_provider::TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().timestamp()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
