//! Certificate management: reads the stored certificates, runs the next step, injects the CA bundle, and publishes the
//! serving pair.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Patch;
use kube::{Client, Resource};
use metal3_api::catalog;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::work::{Category, Fault};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::client::{CertificateClient, SelfManaged, WriteOutcome};
use super::inject::{Service, injection_patch, is_managed_by_cert_manager, version};
use super::issue;
use super::plan::{Step, next_step};
use super::secret::{Pair, StoredCertificates};
use crate::manifest::INJECTION_ANNOTATION;
use crate::table::{Suite, Task};

/// Interval of the reconciles. An installer that overwrites a configuration removes the CA bundle, and until the next
/// reconcile the API server cannot call the webhook; a reconcile costs a few reads.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// Limit of steps in one reconcile: those that can follow each other at once, and as many conflicts.
const MAX_STEPS: usize = 8;

/// The objects and host names that the certificates are for.
#[derive(Clone, Debug)]
pub struct CertificateScope {
    namespace: String,
    secret: String,
    services: Vec<Service>,
    configurations: Vec<(Task, String)>,
    definitions: Vec<String>,
    names: Vec<String>,
}

impl CertificateScope {
    /// The scope of a process in this namespace that serves these suites.
    #[must_use]
    pub fn of(suites: &[Suite], namespace: &str) -> Self {
        let services: Vec<Service> = suites
            .iter()
            .map(|suite| Service {
                namespace: namespace.to_owned(),
                name: suite.service(),
            })
            .collect();
        let prefixes: Vec<&str> = suites.iter().map(|suite| suite.prefix).collect();
        let tasks = suites
            .iter()
            .flat_map(|suite| [(suite, Task::Mutate), (suite, Task::Validate)]);
        let served = tasks.filter(|(suite, task)| suite.hooks().iter().any(|hook| hook.task == *task));
        let converted = catalog::definitions().into_iter().filter(|definition| {
            definition.conversion.is_some() && suites.iter().any(|suite| suite.group == definition.group)
        });
        Self {
            namespace: namespace.to_owned(),
            // Programs with other suites in the same namespace need another Secret for other host names.
            secret: format!("{}-webhook-certificates", prefixes.join("-")),
            names: services.iter().flat_map(host_names).collect(),
            services,
            configurations: served.map(|(suite, task)| (task, suite.configuration(task))).collect(),
            definitions: converted.map(|definition| definition.name()).collect(),
        }
    }

    /// Name of the Secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Names of the objects of a resource that contain the CA bundle.
    #[must_use]
    pub fn named(&self, resource: &str) -> Vec<String> {
        let of = |wanted: Task| {
            let named = self.configurations.iter().filter(move |(task, _)| *task == wanted);
            named.map(|(_, name)| name.clone()).collect()
        };
        match resource {
            "mutatingwebhookconfigurations" => of(Task::Mutate),
            "validatingwebhookconfigurations" => of(Task::Validate),
            "customresourcedefinitions" => self.definitions.clone(),
            _ => Vec::new(),
        }
    }
}

fn host_names(service: &Service) -> [String; 2] {
    let name = format!("{}.{}.svc", service.name, service.namespace);
    [name.clone(), format!("{name}.cluster.local")]
}

/// The state of the CA bundle in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Injection {
    /// It has the bundle, or the configuration does not exist.
    UpToDate,
    /// The bundle was patched, or another replica wrote first.
    Patched,
    /// cert-manager manages it.
    Foreign,
}

/// Manages the certificates of a scope.
pub struct CertificateController {
    client: CertificateClient,
    scope: CertificateScope,
    clock: Arc<dyn Clock>,
    serving: watch::Sender<Option<Pair>>,
}

impl CertificateController {
    /// Creates a controller.
    #[must_use]
    pub fn new(client: Client, scope: CertificateScope, clock: Arc<dyn Clock>) -> Self {
        Self {
            client: CertificateClient::new(client),
            scope,
            clock,
            serving: watch::Sender::new(None),
        }
    }

    /// The current serving pair; `None` until the API server has the CA bundle.
    #[must_use]
    pub fn serving(&self) -> watch::Receiver<Option<Pair>> {
        self.serving.subscribe()
    }

    /// Reconciles periodically until dropped.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.reconcile().await {
                tracing::warn!(error = %error.report(), "reconciling webhook certificates failed; retrying");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Runs all steps that are due, injects the CA bundle, and publishes the serving pair.
    ///
    /// # Errors
    /// When a request fails or a certificate cannot be issued. Completed steps are kept.
    pub async fn reconcile(&self) -> Result<(), Fault> {
        for _ in 0..MAX_STEPS {
            let (secret, stored) = self.read().await?;
            let up_to_date = match &stored {
                Some(stored) => self.inject_all(&stored.bundle()).await?,
                None => true,
            };
            let step = next_step(
                stored.as_ref().map(|stored| &stored.state),
                &self.scope.names,
                up_to_date,
                self.clock.now(),
            );
            match (step, stored) {
                (None, Some(stored)) => {
                    if !up_to_date {
                        continue;
                    }
                    self.publish(stored.serving);
                    return Ok(());
                }
                (None, None) => return Err(Fault::bug("no step is due although there are no certificates")),
                (Some(step), stored) => self.perform(&step, secret.as_ref(), stored.as_ref()).await?,
            }
        }
        let racing = "other replicas wrote first each time, or a configuration did not accept the CA bundle";
        Err(Fault::transient(
            "keep webhook certificates",
            Category::CONFLICT,
            racing,
        ))
    }

    async fn read(&self) -> Result<(Option<Value>, Option<StoredCertificates>), Fault> {
        let secret = self
            .client
            .get::<Secret>(Some(&self.scope.namespace), &self.scope.secret)
            .await?;
        let stored = secret.as_ref().and_then(StoredCertificates::read);
        Ok((secret, stored))
    }

    async fn perform(
        &self,
        step: &Step,
        secret: Option<&Value>,
        stored: Option<&StoredCertificates>,
    ) -> Result<(), Fault> {
        let made = issue::perform(step, stored, &self.scope.names, self.clock.now());
        let next = made.map_err(|error| Fault::bug(format!("webhook certificates cannot be issued: {error}")))?;
        let (namespace, name) = (self.scope.namespace.as_str(), self.scope.secret.as_str());
        let written = match secret {
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": { "name": name, "namespace": namespace }, "data": next.data(),
                });
                self.client.create::<Secret>(Some(namespace), secret).await?
            }
            Some(secret) => {
                let patch = Patch::Merge(replacement(secret, next.data()));
                self.client.patch::<Secret>(Some(namespace), name, &patch).await?
            }
        };
        match written {
            WriteOutcome::Done => tracing::info!(step = ?step, secret = name, "webhook certificates changed"),
            WriteOutcome::Conflict => tracing::debug!(step = ?step, secret = name, "another replica wrote first"),
        }
        Ok(())
    }

    /// Injects the bundle into every configuration. True when all were up to date.
    ///
    /// A configuration that cert-manager manages is not changed and is an error: the API server does not trust the
    /// serving pair there.
    async fn inject_all(&self, bundle: &str) -> Result<bool, Fault> {
        let mut injections = Vec::new();
        for (task, name) in &self.scope.configurations {
            let injection = match task {
                Task::Mutate => self.inject::<MutatingWebhookConfiguration>(name, bundle).await?,
                Task::Validate => self.inject::<ValidatingWebhookConfiguration>(name, bundle).await?,
            };
            injections.push((name, injection));
        }
        for name in &self.scope.definitions {
            injections.push((name, self.inject::<CustomResourceDefinition>(name, bundle).await?));
        }
        let foreign = injections
            .iter()
            .filter(|(_, injection)| *injection == Injection::Foreign);
        let foreign: Vec<&str> = foreign.map(|(name, _)| name.as_str()).collect();
        if foreign.is_empty() {
            return Ok(injections
                .iter()
                .all(|(_, injection)| *injection == Injection::UpToDate));
        }
        let why = format!(
            "cert-manager manages {}; remove the annotation {INJECTION_ANNOTATION} from them, or start with \
             --webhook-certificates=mounted",
            foreign.join(", ")
        );
        Err(Fault::transient("keep webhook certificates", Category::CONFLICT, why))
    }

    async fn inject<K>(&self, name: &str, bundle: &str) -> Result<Injection, Fault>
    where
        K: Resource<DynamicType = ()>,
        SelfManaged: Permits<verb::Get, K> + Permits<verb::Patch, K>,
    {
        // A configuration that is not installed needs no bundle.
        let Some(object) = self.client.get::<K>(None, name).await? else {
            return Ok(Injection::UpToDate);
        };
        if is_managed_by_cert_manager(&object, &self.scope.services) {
            return Ok(Injection::Foreign);
        }
        let Some(patch) = injection_patch(&object, &self.scope.services, bundle) else {
            return Ok(Injection::UpToDate);
        };
        let patch = serde_json::from_value(patch).map_err(|error| Fault::bug(error.to_string()))?;
        self.client.patch::<K>(None, name, &Patch::Json(patch)).await?;
        Ok(Injection::Patched)
    }

    fn publish(&self, pair: Pair) {
        self.serving.send_if_modified(|serving| {
            let same = serving
                .as_ref()
                .is_some_and(|serving| serving.certificate() == pair.certificate());
            if !same {
                *serving = Some(pair);
            }
            !same
        });
    }
}

/// A merge patch that replaces the data of a Secret, with its resource version as precondition.
fn replacement(secret: &Value, mut data: Map<String, Value>) -> Value {
    let stored = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    for (name, _) in stored {
        data.entry(name.clone()).or_insert(Value::Null);
    }
    json!({ "metadata": { "resourceVersion": version(secret) }, "data": data })
}
