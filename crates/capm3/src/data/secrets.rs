//! The Secrets with rendered data: names, content, and the rule that they are written once.
//!
//! An existing Secret is never rendered again, because the host may have booted with it. A Secret of another Metal3Data
//! is left from an earlier machine of the same name; the controller waits for its deletion, so that no machine starts
//! with another one's data. A Secret without owning Metal3Data is the user's and is used.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::names::SECRET_TYPE;
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_capi::owner;
use metal3_domain::derived::{RenderedPart, rendered_secret};
use metal3_domain::names::ObjectName;

use super::DataError;

/// The action for a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAction {
    /// It exists and is not changed.
    Keep,
    /// It must be created.
    Write,
    /// It belongs to an object in deletion, and cannot be created before it is deleted.
    Wait,
}

/// A Secret to write. Its text may contain secrets, so `Debug` redacts it.
#[derive(Clone, PartialEq)]
pub struct NewSecret {
    /// Its metadata, with the Metal3Data as owner.
    pub metadata: ObjectMeta,
    /// The part that it contains.
    pub part: RenderedPart,
    text: String,
}

/// Name of the Secret with a part: the one in the Metal3Data, else derived from the machine's.
///
/// # Errors
/// When it is invalid.
pub fn name(data: &Metal3Data, part: RenderedPart, metal3_machine: &str) -> Result<ObjectName, DataError> {
    let (reference, field) = match part {
        RenderedPart::MetaData => (&data.spec.meta_data, "spec.metaData.name"),
        RenderedPart::NetworkData => (&data.spec.network_data, "spec.networkData.name"),
    };
    let stated = reference.as_ref().and_then(|reference| reference.name.as_deref());
    if let Some(stated) = stated.filter(|name| !name.is_empty()) {
        return ObjectName::parse(stated).map_err(|error| DataError::made_name(stated, error, field));
    }
    ObjectName::parse(metal3_machine)
        .and_then(|machine| rendered_secret(&machine, part))
        .map_err(|error| DataError::made_name(metal3_machine, error, field))
}

/// The action for a Secret, from its metadata. `None`: it does not exist.
#[must_use]
pub fn action(data: &Metal3Data, secret: Option<&ObjectMeta>) -> SecretAction {
    let Some(secret) = secret else {
        return SecretAction::Write;
    };
    // differs (`secret-of-another`): the Go manager uses any Secret of the name.
    let is_another_data_objects =
        owner::first::<Metal3Data>(secret).is_some() && !owner::is_owned_by(secret, data.metadata.uid.as_deref());
    if secret.deletion_timestamp.is_some() || is_another_data_objects {
        SecretAction::Wait
    } else {
        SecretAction::Keep
    }
}

impl fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metadata, part, text } = self;
        write!(f, "NewSecret({metadata:?}, {part:?}, {} bytes)", text.len())
    }
}

impl NewSecret {
    pub(super) fn new(data: &Metal3Data, part: RenderedPart, name: &ObjectName, cluster: &str, text: String) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name.to_string()),
                namespace: data.metadata.namespace.clone(),
                labels: Some(BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned())])),
                owner_references: Some(vec![owner::reference::<Metal3Data>(&data.metadata)]),
                ..ObjectMeta::default()
            },
            part,
            text,
        }
    }

    /// The rendered text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The complete object to create.
    #[must_use]
    pub fn to_object(&self) -> Secret {
        let content = ByteString(self.text.clone().into_bytes());
        Secret {
            metadata: self.metadata.clone(),
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some(BTreeMap::from([(self.part.key().to_owned(), content)])),
            ..Secret::default()
        }
    }
}
