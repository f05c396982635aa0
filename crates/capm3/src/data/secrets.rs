//! The Secrets with rendered data: their names, their content, and that they are written once.
//!
//! A Secret that exists is never rendered again, because the host may have booted with it. One that belongs to another
//! Metal3Data is the rest of an earlier machine of the same name; it is waited for until it is gone, so that no machine
//! ever starts as another. One that nobody's Metal3Data made is the user's and counts.

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

use super::{DataError, Problem};

/// What is to be done about a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is there and stays as it is.
    Keep,
    /// It has to be written.
    Write,
    /// It belongs to what is going away, and cannot be written before it is gone.
    Wait,
}

/// Rendered text. It may hold secrets, so it shows itself to nobody but who writes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendered(String);

/// A Secret to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSecret {
    /// Its name.
    pub name: ObjectName,
    /// What it holds.
    pub part: RenderedPart,
    /// The text.
    pub content: Rendered,
}

/// Name of the Secret with a part: the one the Metal3Data states, else made from the machine's.
///
/// # Errors
/// When it is no name.
pub fn name(data: &Metal3Data, part: RenderedPart, metal3_machine: &str) -> Result<ObjectName, DataError> {
    let (reference, field) = match part {
        RenderedPart::MetaData => (&data.spec.meta_data, "spec.metaData.name"),
        RenderedPart::NetworkData => (&data.spec.network_data, "spec.networkData.name"),
    };
    let stated = reference.as_ref().and_then(|reference| reference.name.as_deref());
    if let Some(stated) = stated.filter(|name| !name.is_empty()) {
        let unusable = |error| {
            Problem::MadeName {
                name: stated.to_owned(),
                error,
            }
            .of(field)
        };
        return ObjectName::parse(stated).map_err(unusable);
    }
    let unusable = |error| {
        Problem::MadeName {
            name: metal3_machine.to_owned(),
            error,
        }
        .of(field)
    };
    ObjectName::parse(metal3_machine)
        .and_then(|machine| rendered_secret(&machine, part))
        .map_err(unusable)
}

/// What is to be done about a Secret, of which the metadata tell enough. `None`: it is known not to exist.
#[must_use]
pub fn verdict(data: &Metal3Data, secret: Option<&ObjectMeta>) -> Verdict {
    let Some(secret) = secret else { return Verdict::Write };
    // differs (`secret-of-another`): the Go manager takes any Secret of the name for its own.
    let is_another_data_objects =
        owner::first::<Metal3Data>(secret).is_some() && !owner::is_owned_by(secret, data.metadata.uid.as_deref());
    if secret.deletion_timestamp.is_some() || is_another_data_objects {
        Verdict::Wait
    } else {
        Verdict::Keep
    }
}

impl Rendered {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for whoever writes it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rendered({} bytes)", self.0.len())
    }
}

impl NewSecret {
    /// The object to create, complete.
    #[must_use]
    pub fn to_object(&self, data: &Metal3Data, cluster: &str) -> Secret {
        let content = ByteString(self.content.reveal().as_bytes().to_vec());
        Secret {
            metadata: ObjectMeta {
                name: Some(self.name.to_string()),
                namespace: data.metadata.namespace.clone(),
                labels: Some(BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned())])),
                owner_references: Some(vec![owner::reference::<Metal3Data>(&data.metadata)]),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some(BTreeMap::from([(self.part.key().to_owned(), content)])),
            ..Secret::default()
        }
    }
}
