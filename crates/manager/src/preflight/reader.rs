//! The reads of a report, with the viewer's own rights.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList};
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::{Api, Client};
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_preflight::{Crd, KindName, NotRead, Objects, Secret as Login};
use metal3_runtime::work::{Class, classify};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Objects of one page.
const PAGE: u32 = 500;

/// Logins by namespace and name; `None` for one that does not exist.
pub(super) type Logins = BTreeMap<(String, String), Option<Login>>;

/// Reads, and remembers what could not be read.
pub(super) struct Reader {
    client: Client,
    namespace: Option<String>,
    pub(super) not_read: Vec<NotRead>,
}

impl Reader {
    pub(super) const fn new(client: Client, namespace: Option<String>) -> Self {
        Self {
            client,
            namespace,
            not_read: Vec::new(),
        }
    }

    /// The Deployments of all namespaces: those of the managers are in their own.
    pub(super) async fn deployments(&mut self) -> Vec<Deployment> {
        let api: Api<Deployment> = Api::all(self.client.clone());
        self.listed("deployments.apps", &api).await
    }

    /// The definitions of the kinds.
    pub(super) async fn crds(&mut self) -> Vec<Crd> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let kind = ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let crds = self
            .listed("customresourcedefinitions.apiextensions.k8s.io", &api)
            .await;
        let stored = |crd: &DynamicObject| crd.data.pointer("/status/storedVersions").cloned().unwrap_or_default();
        let crd = |crd: DynamicObject| Crd {
            stored: serde_json::from_value(stored(&crd)).unwrap_or_default(),
            name: crd.metadata.name.unwrap_or_default(),
        };
        crds.into_iter().map(crd).collect()
    }

    /// The objects of a kind; none when it is not installed.
    pub(super) async fn objects(&mut self, kind: &KindName) -> Vec<Value> {
        let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let name = format!("{}.{}", kind.plural, kind.group);
        let objects = self.listed(&name, &api).await;
        objects
            .iter()
            .filter_map(|object| serde_json::to_value(object).ok())
            .collect()
    }

    /// The metadata of the logins that hosts name. Their content is not requested.
    pub(super) async fn logins(&mut self, objects: &Objects) -> Logins {
        let mut logins = Logins::new();
        for host in objects.hosts() {
            let Some(key) = login(&host) else { continue };
            if logins.contains_key(&key) {
                continue;
            }
            let (namespace, name) = &key;
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
            match secrets.get_metadata(name).await {
                Ok(secret) => logins.insert(key, Some(marks(&secret.metadata))),
                Err(error) if classify(&error) == Class::NotFound => logins.insert(key, None),
                Err(error) => {
                    self.failed("get secrets", &error);
                    break;
                }
            };
        }
        logins
    }

    /// The entries of a ConfigMap; none when it does not exist.
    pub(super) async fn config_map(&mut self, namespace: &str, name: &str) -> BTreeMap<String, String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        match maps.get_opt(name).await {
            Ok(map) => map.and_then(|map| map.data).unwrap_or_default(),
            Err(error) => {
                self.failed(&format!("get configmaps in the namespace {namespace}"), &error);
                BTreeMap::new()
            }
        }
    }

    /// All pages of a list.
    async fn listed<K: Clone + DeserializeOwned + std::fmt::Debug>(&mut self, name: &str, api: &Api<K>) -> Vec<K> {
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut wanted = ListParams::default().limit(PAGE);
            wanted.continue_token = next.take();
            let page: Result<ObjectList<K>, _> = api.list(&wanted).await;
            match page {
                Ok(page) => {
                    found.extend(page.items);
                    next = page.metadata.continue_.filter(|token| !token.is_empty());
                }
                Err(error) if classify(&error) == Class::NotFound => {}
                Err(error) => self.failed(&format!("list {name}"), &error),
            }
            if next.is_none() {
                return found;
            }
        }
    }

    fn failed(&mut self, what: &str, error: &kube::Error) {
        let why = match classify(error) {
            Class::Forbidden => format!("you may not: check it with kubectl auth can-i {what}"),
            _ => error.to_string(),
        };
        let what = what.to_owned();
        self.not_read.push(NotRead { what, why });
    }
}

fn login(host: &BareMetalHost) -> Option<(String, String)> {
    let bmc = host.spec.bmc.as_ref().filter(|bmc| !bmc.credentials_name.is_empty())?;
    Some((host.metadata.namespace.clone()?, bmc.credentials_name.clone()))
}

/// Whether host controllers have used a Secret.
fn marks(meta: &ObjectMeta) -> Login {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(ENVIRONMENT_LABEL));
    let is_labelled = label.is_some_and(|value| value == ENVIRONMENT_BAREMETAL);
    let is_held = meta.finalizers.iter().flatten().any(|one| one == SECRET_FINALIZER);
    Login {
        is_marked: is_labelled || is_held,
    }
}
