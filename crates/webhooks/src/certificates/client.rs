//! The requests for certificate management. Each needs a permission in the declaration.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::work::{Class, Fault, classify, read_fault};
use serde_json::Value;

metal3_runtime::role! {
    /// A process that issues its own webhook certificates. The Secret is in its own namespace.
    pub struct SelfManaged {
        Secret: Get, Create, Patch;
        MutatingWebhookConfiguration: Get, Patch;
        ValidatingWebhookConfiguration: Get, Patch;
        CustomResourceDefinition: Get, Patch;
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The write succeeded.
    Done,
    /// Another replica wrote first.
    Conflict,
}

/// Objects of the declared kinds as JSON documents, so that unknown members are kept.
#[derive(Clone)]
pub(super) struct CertificateClient {
    client: Client,
}

impl CertificateClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Gets an object; `None` when it does not exist.
    pub(super) async fn get<K>(&self, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Fault>
    where
        K: Resource<DynamicType = ()>,
        SelfManaged: Permits<verb::Get, K>,
    {
        match self.api::<K>(namespace).get(name).await {
            Ok(object) => document(&object).map(Some),
            Err(error) if classify(&error) == Class::NotFound => Ok(None),
            Err(error) => Err(read_fault(op::<K>("read", name), error)),
        }
    }

    /// Creates an object, unless one of its name exists.
    pub(super) async fn create<K>(&self, namespace: Option<&str>, object: Value) -> Result<WriteOutcome, Fault>
    where
        K: Resource<DynamicType = ()>,
        SelfManaged: Permits<verb::Create, K>,
    {
        let object: DynamicObject = serde_json::from_value(object).map_err(|error| unreadable(&error))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let written = self.api::<K>(namespace).create(&PostParams::default(), &object).await;
        outcome(op::<K>("create", &name), written)
    }

    /// Patches an object. The patch contains its precondition.
    pub(super) async fn patch<K>(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch<Value>,
    ) -> Result<WriteOutcome, Fault>
    where
        K: Resource<DynamicType = ()>,
        SelfManaged: Permits<verb::Patch, K>,
    {
        let written = self
            .api::<K>(namespace)
            .patch(name, &PatchParams::default(), patch)
            .await;
        outcome(op::<K>("patch", name), written)
    }

    fn api<K: Resource<DynamicType = ()>>(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<K>(&());
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}

fn op<K: Resource<DynamicType = ()>>(verb: &str, name: &str) -> String {
    format!("{verb} {} {name}", K::plural(&()))
}

fn document(object: &DynamicObject) -> Result<Value, Fault> {
    serde_json::to_value(object).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::bug(format!("an object cannot be converted to JSON: {error}"))
}

fn outcome(op: String, written: Result<DynamicObject, kube::Error>) -> Result<WriteOutcome, Fault> {
    match written {
        Ok(_) => Ok(WriteOutcome::Done),
        Err(error) => match classify(&error) {
            Class::Conflict | Class::AlreadyExists | Class::NotFound => Ok(WriteOutcome::Conflict),
            _ => Err(read_fault(op, error)),
        },
    }
}
