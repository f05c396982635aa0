//! The reads of a report, with the viewer's own rights.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList};
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::{Api, Client};
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::conversion::{Version, convert};
use metal3_api::infrastructure::names as infrastructure;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostDeployPolicy};
use metal3_preflight::{Crd, Decision, Finding, KindName, NotRead, Objects, Provider, Secret as HostSecret, named};
use metal3_runtime::work::{Class, classify};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Objects of one page.
const PAGE: u32 = 500;
/// Secrets that are read at the same time: an installation may have thousands.
const SECRETS_AT_ONCE: usize = 16;

/// Secrets of hosts by namespace and name; `None` for one that does not exist.
pub(super) type HostSecrets = BTreeMap<(String, String), Option<HostSecret>>;

/// Reads, and remembers what could not be read.
pub(super) struct Reader {
    client: Client,
    namespace: Option<String>,
    pub(super) not_read: Vec<NotRead>,
    pub(super) findings: Vec<Finding>,
}

/// The field managers of the versions and the conversion of a definition, except those of which `kubectl apply` takes fields over.
fn writers(metadata: &ObjectMeta) -> Vec<String> {
    const KUBECTL: [&str; 2] = ["kubectl", "kubectl-client-side-apply"];
    let entries = metadata.managed_fields.iter().flatten();
    let owners = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        let has = |path| fields.is_some_and(|fields| fields.0.pointer(path).is_some());
        has("/f:spec/f:versions") || has("/f:spec/f:conversion/f:strategy")
    });
    let names = owners.filter_map(|entry| entry.manager.clone());
    names.filter(|name| !KUBECTL.contains(&name.as_str())).collect()
}

impl Reader {
    pub(super) const fn new(client: Client, namespace: Option<String>) -> Self {
        Self {
            client,
            namespace,
            not_read: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The Deployments of all namespaces: those of the managers are in their own.
    pub(super) async fn deployments(&mut self) -> Vec<Deployment> {
        let api: Api<Deployment> = Api::all(self.client.clone());
        self.listed("deployments.apps", &api).await.unwrap_or_default()
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
            has_webhook: crd.data.pointer("/spec/conversion/strategy") == Some(&"Webhook".into()),
            writers: writers(&crd.metadata),
            name: crd.metadata.name.unwrap_or_default(),
        };
        crds.into_iter().flatten().map(crd).collect()
    }

    /// The inventory of clusterctl, empty without clusterctl. It only confirms what tags of images say, so that a viewer needs no right to
    /// it: `None` without.
    pub(super) async fn providers(&self) -> Option<Vec<Provider>> {
        let kind = GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider");
        let kind = ApiResource::from_gvk_with_plural(&kind, "providers");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let found = match api.list(&ListParams::default()).await {
            Ok(found) => found.items,
            Err(error) if classify(&error) == Class::NotFound => Vec::new(),
            Err(_) => return None,
        };
        let provider = |object: DynamicObject| Provider {
            version: object
                .data
                .get("version")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            namespace: object.metadata.namespace.unwrap_or_default(),
            name: object.metadata.name.unwrap_or_default(),
        };
        Some(found.into_iter().map(provider).collect())
    }

    /// The objects of a kind; none when it is not installed. Go managers up to 1.12 serve an older version of some, and so does
    /// Cluster API up to 1.10.
    pub(super) async fn objects(&mut self, kind: &KindName, crds: &[Crd]) -> Vec<Value> {
        let mut versions = vec![kind.version];
        let has_older = [infrastructure::GROUP, Machine::GROUP].contains(&kind.group);
        if has_older && kind.version == "v1beta2" {
            versions.push("v1beta1");
        }
        for version in versions {
            if let Some(objects) = self.of_version(kind, version).await {
                // Each version of a Machine has its name.
                return match version == kind.version || kind.group == Machine::GROUP {
                    true => objects,
                    false => {
                        let (objects, mut findings) = converted(kind, &objects);
                        self.findings.append(&mut findings);
                        objects
                    }
                };
            }
        }
        let name = kind.resource();
        // The other version of data templates need not be served.
        if crds.iter().any(|crd| crd.name == name) && kind.version != "v1beta1" {
            self.not_read.push(NotRead {
                what: format!("list {name}"),
                why: format!("the version {} is not served", kind.version),
            });
        }
        Vec::new()
    }

    async fn of_version(&mut self, kind: &KindName, version: &str) -> Option<Vec<Value>> {
        let gvk = GroupVersionKind::gvk(kind.group, version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        // A policy opens the hosts of its namespace to claims of others.
        let namespace = self.namespace.as_ref().filter(|_| kind.kind != HostDeployPolicy::KIND);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let objects = self.listed(&kind.resource(), &api).await?;
        let documents = objects.iter().filter_map(|object| serde_json::to_value(object).ok());
        Some(documents.collect())
    }

    /// The metadata of the Secrets that hosts name for their BMC and for their agent. Their content is not requested.
    pub(super) async fn host_secrets(&mut self, objects: &Objects) -> HostSecrets {
        let mut keys: Vec<_> = objects.hosts().flat_map(|host| named_secrets(&host)).collect();
        keys.retain(|(_, name)| is_object_name(name));
        keys.sort();
        keys.dedup();
        let client = self.client.clone();
        let get = |key: (String, String)| {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), &key.0);
            async move { (secrets.get_metadata(&key.1).await, key) }
        };
        let mut answers = stream::iter(keys).map(get).buffered(SECRETS_AT_ONCE);
        let mut found = HostSecrets::new();
        while let Some((answer, key)) = answers.next().await {
            match answer {
                Ok(secret) => {
                    found.insert(key, Some(marks(&secret.metadata)));
                }
                Err(error) if classify(&error) == Class::NotFound => {
                    found.insert(key, None);
                }
                Err(error) => self.failed("get", "secrets", Some(&key.0), &error),
            }
        }
        found
    }

    /// The entries of a ConfigMap, empty when it does not exist; `None` when it could not be read.
    pub(super) async fn config_map(&mut self, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        match maps.get_opt(name).await {
            Ok(map) => Some(map.and_then(|map| map.data).unwrap_or_default()),
            Err(error) => {
                self.failed("get", "configmaps", Some(namespace), &error);
                None
            }
        }
    }

    /// All pages of a list; `None` when the kind is not served.
    async fn listed<K: Clone + DeserializeOwned + std::fmt::Debug>(
        &mut self,
        name: &str,
        api: &Api<K>,
    ) -> Option<Vec<K>> {
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
                Err(error) if classify(&error) == Class::NotFound => return None,
                Err(error) => self.failed("list", name, None, &error),
            }
            if next.is_none() {
                return Some(found);
            }
        }
    }

    fn failed(&mut self, verb: &str, resource: &str, namespace: Option<&str>, error: &kube::Error) {
        let place = namespace.map(|namespace| format!(" --namespace {namespace}"));
        let place = place.unwrap_or_default();
        let why = match classify(error) {
            Class::Forbidden => format!("you may not: check it with kubectl auth can-i {verb} {resource}{place}"),
            _ => error.to_string(),
        };
        let what = match namespace {
            Some(namespace) => format!("{verb} {resource} in the namespace {namespace}"),
            None => format!("{verb} {resource}"),
        };
        let not_read = NotRead { what, why };
        if !self.not_read.contains(&not_read) {
            self.not_read.push(not_read);
        }
    }
}

/// The objects in the version of this program. One that cannot be converted makes each list of its kind fail after the switch.
fn converted(kind: &KindName, objects: &[Value]) -> (Vec<Value>, Vec<Finding>) {
    let (mut current, mut findings) = (Vec::new(), Vec::new());
    for object in objects {
        match convert(object, Version::V1Beta2) {
            Ok(object) => current.push(object),
            Err(why) => findings.push(Finding::new(
                Decision::No,
                named(kind.kind, object),
                format!("cannot be converted to {}: {why}", kind.version),
                "correct it before the switch: no object of its kind could be listed after it",
            )),
        }
    }
    (current, findings)
}

fn named_secrets(host: &BareMetalHost) -> Vec<(String, String)> {
    let namespace = host.metadata.namespace.clone().unwrap_or_default();
    let login = host.spec.bmc.as_ref().map(|bmc| bmc.credentials_name.clone());
    let network = host.spec.preprovisioning_network_data_name.clone();
    let named = login.into_iter().chain(network).filter(|name| !name.is_empty());
    named.map(|name| (namespace.clone(), name)).collect()
}

/// Whether a text can be the name of an object. Other texts of a host reach neither a URL nor a command that a person
/// copies.
fn is_object_name(text: &str) -> bool {
    const LONGEST: usize = 253;
    let is_permitted = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-' || one == '.';
    let is_edge = |one: Option<char>| one.is_some_and(|one| one.is_ascii_lowercase() || one.is_ascii_digit());
    let (first, last) = (text.chars().next(), text.chars().next_back());
    text.len() <= LONGEST && text.chars().all(is_permitted) && is_edge(first) && is_edge(last)
}

/// Whether host controllers have used a Secret.
fn marks(meta: &ObjectMeta) -> HostSecret {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(ENVIRONMENT_LABEL));
    let is_labelled = label.is_some_and(|value| value == ENVIRONMENT_BAREMETAL);
    let is_held = meta.finalizers.iter().flatten().any(|one| one == SECRET_FINALIZER);
    HostSecret {
        is_marked: is_labelled || is_held,
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::infrastructure::v1beta2::Metal3DataTemplate;
    use metal3_runtime::guard;
    use serde_json::json;

    use super::*;

    #[test]
    fn object_that_cannot_be_converted_is_named_and_hides_no_other() {
        let template = |name: &str, offset: i64| {
            let indexes = json!([{ "key": "k", "offset": offset }]);
            json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3DataTemplate",
                "metadata": { "name": name, "namespace": "lab" }, "spec": { "clusterName": "c", "metaData": { "indexes": indexes } } })
        };
        let kind = KindName::of::<Metal3DataTemplate>();
        let (kept, findings) = converted(&kind, &[template("wide", 4_294_967_301), template("fits", 1)]);
        assert_eq!((kept.len(), findings.len()), (1, 1));
        assert_eq!(
            (findings[0].decision, findings[0].object.as_str()),
            (Decision::No, "Metal3DataTemplate lab/wide")
        );
    }

    #[test]
    fn deployments_that_are_waited_for_are_those_of_the_guard() {
        let guarded = [guard::CAPM3, guard::IPAM, guard::IPAM_OF_CAPM3, guard::HOSTS];
        let guarded = guarded.map(|(namespace, name)| format!("{namespace}/{name}"));
        assert_eq!(metal3_preflight::WAITED_FOR.map(str::to_owned), guarded);
    }
}
