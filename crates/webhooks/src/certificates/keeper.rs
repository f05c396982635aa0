//! Keeping certificates: looks at what is stored and told, does what is due, and hands the pair to the server.

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

use super::door::{Door, SelfManaged, Write};
use super::inject::{Service, injection, is_kept_by_another, version};
use super::mint;
use super::plan::{Step, due};
use super::vault::{Pair, Vault};
use crate::manifest::INJECTION_ANNOTATION;
use crate::table::{Suite, Task};

/// How often it looks. An installer that writes a configuration anew takes the authority out of it, and until the next
/// look the API server cannot ask; a look costs a handful of reads.
pub const LOOK: Duration = Duration::from_secs(60);
/// Writes in one look: the steps that can follow each other at once, and as many lost races.
const ROUNDS: usize = 8;

/// What certificates are kept for.
#[derive(Clone, Debug)]
pub struct Site {
    namespace: String,
    secret: String,
    services: Vec<Service>,
    configurations: Vec<(Task, String)>,
    definitions: Vec<String>,
    names: Vec<String>,
}

impl Site {
    /// The suites that a process in this namespace serves.
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
            .flat_map(|suite| [(suite, Task::Fill), (suite, Task::Judge)]);
        let asked = tasks.filter(|(suite, task)| suite.hooks().iter().any(|hook| hook.task == *task));
        let converted = catalog::definitions().into_iter().filter(|definition| {
            definition.conversion.is_some() && suites.iter().any(|suite| suite.group == definition.group)
        });
        Self {
            namespace: namespace.to_owned(),
            // Programs with other suites in the same namespace have other host names, so they need a Secret of their own.
            secret: format!("{}-webhook-certificates", prefixes.join("-")),
            names: services.iter().flat_map(host_names).collect(),
            services,
            configurations: asked.map(|(suite, task)| (task, suite.configuration(task))).collect(),
            definitions: converted.map(|definition| definition.name()).collect(),
        }
    }

    /// Name of the Secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Names of the objects of a resource that tell the API server whom to trust: no others are looked at.
    #[must_use]
    pub fn named(&self, resource: &str) -> Vec<String> {
        let of = |wanted: Task| {
            let named = self.configurations.iter().filter(move |(task, _)| *task == wanted);
            named.map(|(_, name)| name.clone()).collect()
        };
        match resource {
            "mutatingwebhookconfigurations" => of(Task::Fill),
            "validatingwebhookconfigurations" => of(Task::Judge),
            "customresourcedefinitions" => self.definitions.clone(),
            _ => Vec::new(),
        }
    }
}

fn host_names(service: &Service) -> [String; 2] {
    let name = format!("{}.{}.svc", service.name, service.namespace);
    [name.clone(), format!("{name}.cluster.local")]
}

/// How a configuration was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// It carries the bundle, or does not exist and asks nobody.
    Told,
    /// It did not; that was written, or somebody was faster.
    Written,
    /// It is somebody else's.
    Kept,
}

/// Keeps the certificates of a site.
pub struct Keeper {
    door: Door,
    site: Site,
    clock: Arc<dyn Clock>,
    serving: watch::Sender<Option<Pair>>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl Keeper {
    /// A keeper that has not looked yet.
    #[must_use]
    pub fn new(client: Client, site: Site, clock: Arc<dyn Clock>) -> Self {
        Self {
            door: Door::new(client),
            site,
            clock,
            serving: watch::Sender::new(None),
        }
    }

    /// The pair to serve, as it changes; nothing before the API server knows whom to trust.
    #[must_use]
    pub fn serving(&self) -> watch::Receiver<Option<Pair>> {
        self.serving.subscribe()
    }

    /// Looks again and again, for ever: whoever runs it drops it at the end.
    pub async fn keep(&self) {
        loop {
            if let Err(fault) = self.look().await {
                tracing::warn!(error = %fault.report(), "webhook certificates were not looked after; trying again");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Looks once: does all that is due, tells the API server, and hands out the pair.
    ///
    /// # Errors
    /// When a request fails or a certificate cannot be made. What was done before stays done.
    pub async fn look(&self) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            let (secret, vault) = self.read().await?;
            let told = match &vault {
                Some(vault) => self.tell(&vault.bundle()).await?,
                None => true,
            };
            let step = due(
                vault.as_ref().map(|vault| &vault.ledger),
                &self.site.names,
                told,
                self.clock.now(),
            );
            match (step, vault) {
                (None, Some(vault)) => {
                    if !told {
                        continue;
                    }
                    self.hand_out(vault.serving);
                    return Ok(());
                }
                (None, None) => return Err(Fault::bug("no certificates are due although there are none")),
                (Some(step), vault) => self.perform(&step, secret.as_ref(), vault.as_ref()).await?,
            }
        }
        let racing = "other replicas wrote first each time, or a configuration would not take the authority";
        Err(Fault::transient(
            "keep webhook certificates",
            Category::CONFLICT,
            racing,
        ))
    }

    async fn read(&self) -> Result<(Option<Value>, Option<Vault>), Fault> {
        let secret = self
            .door
            .get::<Secret>(Some(&self.site.namespace), &self.site.secret)
            .await?;
        let vault = secret.as_ref().and_then(Vault::read);
        Ok((secret, vault))
    }

    async fn perform(&self, step: &Step, secret: Option<&Value>, vault: Option<&Vault>) -> Result<(), Fault> {
        let made = mint::perform(step, vault, &self.site.names, self.clock.now());
        let next = made.map_err(|error| Fault::bug(format!("webhook certificates cannot be made: {error}")))?;
        let (namespace, name) = (self.site.namespace.as_str(), self.site.secret.as_str());
        let written = match secret {
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": { "name": name, "namespace": namespace }, "data": next.data(),
                });
                self.door.create::<Secret>(Some(namespace), secret).await?
            }
            Some(secret) => {
                let patch = Patch::Merge(replacement(secret, next.data()));
                self.door.patch::<Secret>(Some(namespace), name, &patch).await?
            }
        };
        match written {
            Write::Done => tracing::info!(step = ?step, secret = name, "webhook certificates changed"),
            Write::Late => tracing::debug!(step = ?step, secret = name, "another replica was faster"),
        }
        Ok(())
    }

    /// Lets every configuration carry the bundle. True when all did so already.
    ///
    /// One that cert-manager keeps stays as it is, and is a fault: the API server would not trust what we serve.
    async fn tell(&self, bundle: &str) -> Result<bool, Fault> {
        let mut views = Vec::new();
        for (task, name) in &self.site.configurations {
            let told = match task {
                Task::Fill => self.tell_one::<MutatingWebhookConfiguration>(name, bundle).await?,
                Task::Judge => self.tell_one::<ValidatingWebhookConfiguration>(name, bundle).await?,
            };
            views.push((name, told));
        }
        for name in &self.site.definitions {
            views.push((name, self.tell_one::<CustomResourceDefinition>(name, bundle).await?));
        }
        let kept = views.iter().filter(|(_, view)| *view == View::Kept);
        let kept: Vec<&str> = kept.map(|(name, _)| name.as_str()).collect();
        if kept.is_empty() {
            return Ok(views.iter().all(|(_, view)| *view == View::Told));
        }
        let why = format!(
            "cert-manager keeps {}; take the annotation {INJECTION_ANNOTATION} from them, or start with \
             --webhook-certificates=mounted",
            kept.join(", ")
        );
        Err(Fault::transient("keep webhook certificates", Category::CONFLICT, why))
    }

    async fn tell_one<K>(&self, name: &str, bundle: &str) -> Result<View, Fault>
    where
        K: Resource<DynamicType = ()>,
        SelfManaged: Permits<verb::Get, K> + Permits<verb::Patch, K>,
    {
        // One that is not installed asks nobody.
        let Some(object) = self.door.get::<K>(None, name).await? else {
            return Ok(View::Told);
        };
        if is_kept_by_another(&object, &self.site.services) {
            return Ok(View::Kept);
        }
        let Some(patch) = injection(&object, &self.site.services, bundle) else {
            return Ok(View::Told);
        };
        let patch = serde_json::from_value(patch).map_err(|error| Fault::bug(error.to_string()))?;
        self.door.patch::<K>(None, name, &Patch::Json(patch)).await?;
        Ok(View::Written)
    }

    fn hand_out(&self, pair: Pair) {
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

/// The merge patch after which a Secret holds this and nothing else, if it is still the one that was read.
fn replacement(secret: &Value, mut data: Map<String, Value>) -> Value {
    let stored = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    for (name, _) in stored {
        data.entry(name.clone()).or_insert(Value::Null);
    }
    json!({ "metadata": { "resourceVersion": version(secret) }, "data": data })
}
