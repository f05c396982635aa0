//! A template with the endpoint filled in, for a load balancer that runs on the machines and needs the address before
//! the first of them starts.
//!
//! The template is in a ConfigMap; the result is written to a Secret, from where bootstrap data takes files. The Secret
//! follows template and endpoint; a Secret of another owner is not changed.
//!
//! Invariant: nothing is written before the endpoint is in the object or in the Cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::cluster::{
    ENDPOINT_RENDERED, REASON_RENDERED, REASON_SECRET_NOT_OURS, REASON_SECRET_REFUSED, REASON_TEMPLATE_FORBIDDEN,
    REASON_TEMPLATE_INVALID, REASON_TEMPLATE_NOT_FOUND, REASON_WAITING_FOR_ENDPOINT, REASON_WAITING_FOR_SECRET,
    REASON_WAITING_FOR_TEMPLATE,
};
use metal3_api::infrastructure::v1beta2::{EndpointRender, Metal3Cluster};
use metal3_capi::owner;
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::reason::Reason;
use serde_json::json;

use super::address::Address;
use super::conditions::forbidden_message;
use super::rendered::{Digester, RenderedSecret};
use super::source::{Template, validated};
use crate::diff::{changes, version};

const HOST: &str = "${HOST}";
const PORT: &str = "${PORT}";

/// The write of the Secret.
#[derive(Clone, PartialEq)]
pub enum SecretWrite {
    /// Creates it.
    Create(Box<Secret>),
    /// Patches it at the observed version.
    Patch(String, MergePatch),
}

impl fmt::Debug for SecretWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (write, name) = match self {
            Self::Create(secret) => ("Create", secret.metadata.name.as_deref().unwrap_or_default()),
            Self::Patch(name, _) => ("Change", name.as_str()),
        };
        write!(f, "{write}({name})")
    }
}

/// Input of [`render`].
#[derive(Clone, Copy)]
pub struct RenderInput<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// Name of its Cluster.
    pub cluster: &'a str,
    /// The effective endpoint, once it is known.
    pub endpoint: Option<&'a Address>,
    /// The template.
    pub template: Option<&'a Template>,
    /// The Secret, if it exists.
    pub secret: Option<&'a RenderedSecret>,
    /// Computes the digest of its content.
    pub digester: &'a Digester,
    /// The error of the rejected Secret.
    pub refused: Option<&'a str>,
}

/// The requested template and Secret.
#[must_use]
pub fn requested(object: &Metal3Cluster) -> Option<&EndpointRender> {
    object.spec.control_plane_endpoint_source.as_ref()?.render.as_ref()
}

/// The write and the condition; `None` when not requested.
#[must_use]
pub fn render(input: &RenderInput<'_>) -> Option<(Option<SecretWrite>, ConditionBuilder)> {
    let requested = requested(input.object)?;
    Some(match plan_write(input, requested) {
        Ok(write) => (write, ConditionBuilder::mark_true(ENDPOINT_RENDERED, REASON_RENDERED)),
        Err((reason, message)) => {
            let severity = if TRANSIENT_REASONS.contains(&reason) {
                Severity::Info
            } else {
                Severity::Warning
            };
            (
                None,
                ConditionBuilder::mark_false(ENDPOINT_RENDERED, reason, severity, message),
            )
        }
    })
}

/// Reasons of states that end without a change by the user.
const TRANSIENT_REASONS: [Reason; 3] = [
    REASON_WAITING_FOR_ENDPOINT,
    REASON_WAITING_FOR_TEMPLATE,
    REASON_WAITING_FOR_SECRET,
];

type NotRendered = (Reason, String);

/// Whether a Secret is owned and not being deleted: only then is its content read.
#[must_use]
pub fn is_owned_and_live(object: &Metal3Cluster, secret: &ObjectMeta) -> bool {
    secret.deletion_timestamp.is_none() && owner::is_owned_by(secret, object.metadata.uid.as_deref())
}

fn plan_write(input: &RenderInput<'_>, requested: &EndpointRender) -> Result<Option<SecretWrite>, NotRendered> {
    let requested = validated(requested).map_err(|why| (REASON_TEMPLATE_INVALID, why))?;
    let template = text(input.template, requested)?;
    let Some(endpoint) = input.endpoint else {
        return Err((REASON_WAITING_FOR_ENDPOINT, "waiting for the endpoint".to_owned()));
    };
    let non_empty = template.replace(HOST, &endpoint.host);
    let non_empty = non_empty.replace(PORT, &endpoint.port.to_string());
    let content = ByteString(non_empty.into_bytes());
    let write = match input.secret {
        None => Some(SecretWrite::Create(Box::new(new_secret(input, requested, content)))),
        Some(secret) => update(input, requested, secret, content)?,
    };
    match (write, input.refused) {
        (Some(_), Some(why)) => Err((
            REASON_SECRET_REFUSED,
            format!(
                "Secret {} cannot be written: {why}; it is retried each minute",
                requested.secret_name
            ),
        )),
        (write, _) => Ok(write),
    }
}

fn text<'a>(template: Option<&'a Template>, requested: &EndpointRender) -> Result<&'a str, NotRendered> {
    let name = &requested.config_map_name;
    match template {
        Some(Template::Text(text)) => Ok(text),
        Some(Template::Absent) => Err((
            REASON_TEMPLATE_NOT_FOUND,
            format!(
                "ConfigMap {name} does not exist; create it with the template under the key {}",
                requested.key
            ),
        )),
        Some(Template::WithoutKey) => Err((
            REASON_TEMPLATE_NOT_FOUND,
            format!("ConfigMap {name} has no key {}; put the template there", requested.key),
        )),
        Some(Template::Forbidden { verb, resource }) => Err((
            REASON_TEMPLATE_FORBIDDEN,
            forbidden_message(&format!("ConfigMap {name}"), verb, resource),
        )),
        Some(Template::Unknown(why)) => Err((
            REASON_WAITING_FOR_TEMPLATE,
            format!("ConfigMap {name} cannot be read: {why}"),
        )),
        None => Err((REASON_WAITING_FOR_TEMPLATE, format!("ConfigMap {name} is not read yet"))),
    }
}

fn new_secret(input: &RenderInput<'_>, requested: &EndpointRender, content: ByteString) -> Secret {
    let meta = &input.object.metadata;
    Secret {
        metadata: ObjectMeta {
            name: Some(requested.secret_name.clone()),
            namespace: meta.namespace.clone(),
            labels: Some(BTreeMap::from([(
                CLUSTER_NAME_LABEL.to_owned(),
                input.cluster.to_owned(),
            )])),
            owner_references: Some(vec![owner::reference::<Metal3Cluster>(meta)]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(requested.key.clone(), content)])),
        ..Secret::default()
    }
}

/// The patch of an existing Secret. One that is being deleted is created again afterwards.
fn update(
    input: &RenderInput<'_>,
    requested: &EndpointRender,
    secret: &RenderedSecret,
    content: ByteString,
) -> Result<Option<SecretWrite>, NotRendered> {
    let name = &requested.secret_name;
    if secret.metadata.deletion_timestamp.is_some() {
        return Err((
            REASON_WAITING_FOR_SECRET,
            format!("Secret {name} is being deleted, and is created again afterwards; see its metadata.finalizers"),
        ));
    }
    if !owner::is_owned_by(&secret.metadata, input.object.metadata.uid.as_deref()) {
        let why = "has another owner; name another Secret in spec.controlPlaneEndpointSource.render";
        return Err((REASON_SECRET_NOT_OURS, format!("Secret {name} {why}")));
    }
    if secret.content == Some(input.digester.of(&content.0)) {
        return Ok(None);
    }
    let wanted = json!({ "data": { &requested.key: content } });
    let patch = changes(&json!({}), &wanted).main.zip(version(&secret.metadata));
    Ok(patch.map(|(patch, version)| SecretWrite::Patch(name.clone(), patch.with_precondition(&version))))
}
