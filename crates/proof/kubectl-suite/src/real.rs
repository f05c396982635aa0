//! Prepares a real API server: the kinds and the webhooks of the sandbox.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use metal3_api::crd::Definition;
use metal3_conformance_cluster::Webhook;
use metal3_domain::clock::Clock;
use metal3_runtime::metrics::Metrics;
use metal3_sandbox::admission::NoOthers;
use metal3_sandbox::world::definitions;
use metal3_webhooks::manifest;
use metal3_webhooks::related_objects::RelatedObjects;
use metal3_webhooks::router::{CONVERSION_PATH, Callers, Instrumentation, router};
use metal3_webhooks::table::SUITES;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Questions until a new kind must be served.
const ATTEMPTS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// A prepared server.
pub(crate) struct Real {
    client: kube::Client,
    webhook: Webhook,
}

impl Real {
    /// Installs kinds and webhooks, and waits until they are served.
    pub(crate) async fn prepare(kubeconfig: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig).context("reading the kubeconfig")?;
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let instrumentation = Instrumentation {
            metrics: Metrics::new().servers(),
            clock,
        };
        let none: Arc<dyn RelatedObjects> = Arc::new(NoOthers);
        let suites = SUITES.map(|suite| (suite, Arc::clone(&none)));
        let webhook = Webhook::serving(router(&suites, &instrumentation, &Callers::Any)).await?;
        let real = Self {
            client: kube::Client::try_from(config)?,
            webhook,
        };
        for definition in definitions() {
            real.create(DEFINITIONS, &real.manifest(&definition)).await?;
        }
        for definition in definitions() {
            real.wait_until_served(&definition).await?;
        }
        for mut configuration in SUITES.iter().flat_map(manifest::configurations) {
            real.point(&mut configuration);
            let kind = configuration
                .get("kind")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_lowercase();
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}s");
            real.create(&path, &configuration).await?;
        }
        Ok(real)
    }

    /// Stops the webhooks.
    pub(crate) async fn stop(self) {
        self.webhook.stop().await;
    }

    /// A document of the server.
    pub(crate) async fn read(&self, path: &str) -> Result<Value> {
        let request = http::Request::get(path).body(Vec::new())?;
        Ok(self.client.request(request).await?)
    }

    fn manifest(&self, definition: &Definition) -> Value {
        let mut manifest = definition.manifest();
        if let Some(Value::Object(webhook)) = manifest.pointer_mut("/spec/conversion/webhook") {
            let config = self.webhook.client_config_at(CONVERSION_PATH);
            webhook.insert("clientConfig".to_owned(), config);
        }
        manifest
    }

    /// Replaces the Services of a configuration by this process.
    fn point(&self, configuration: &mut Value) {
        let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
            let config = self.webhook.client_config_at(path.unwrap_or_default());
            if let Value::Object(members) = webhook {
                members.insert("clientConfig".to_owned(), config);
            }
        }
    }

    async fn create(&self, path: &str, body: &Value) -> Result<()> {
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(body.to_string().into_bytes())?;
        let created: Result<Value, kube::Error> = self.client.request(request).await;
        created
            .map(drop)
            .with_context(|| format!("creating {}", body.pointer("/metadata/name").unwrap_or(&json!(null))))
    }

    async fn wait_until_served(&self, definition: &Definition) -> Result<()> {
        let versions = definition.versions.iter().map(|version| version.name);
        for version in versions {
            let path = format!("/apis/{}/{version}/{}?limit=1", definition.group, definition.plural);
            let mut attempts = 0..ATTEMPTS;
            while self.read(&path).await.is_err() {
                if attempts.next().is_none() {
                    bail!("{path} is not served");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}
