//! A text with the endpoint filled in, for a load balancer that runs on the machines and has to know the address before
//! the first of them starts.
//!
//! The template is in a ConfigMap; what is made of it goes into a Secret, from where bootstrap data takes files. The
//! Secret follows the template and the endpoint, and one that somebody else made is left alone.
//!
//! Invariant: nothing is written before the endpoint is in the object or in the Cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::cluster::{
    ENDPOINT_RENDERED, REASON_SECRET_NOT_OURS, REASON_SECRET_REFUSED, REASON_TEMPLATE_FORBIDDEN,
    REASON_TEMPLATE_INVALID, REASON_TEMPLATE_NOT_FOUND, REASON_WAITING_FOR_SECRET, REASON_WAITING_FOR_TEMPLATE,
};
use metal3_api::infrastructure::v1beta2::{EndpointRender, Metal3Cluster};
use metal3_capi::owner;
use metal3_domain::names::ObjectName;
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::reason::Reason;

use super::address::Address;
use super::said::refusal;
use crate::diff::{changes, version};

const HOST: &str = "${HOST}";
const PORT: &str = "${PORT}";

/// What is known of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// Its text.
    Text(String),
    /// There is no such ConfigMap.
    Absent,
    /// The ConfigMap has no such key.
    WithoutKey,
    /// We may not look.
    Forbidden {
        /// The verb that is refused.
        verb: &'static str,
        /// The resource.
        resource: String,
    },
    /// Nobody can say, and why.
    Unknown(String),
}

/// The Secret as it is. It shows its content to nobody but who compares it.
#[derive(Clone, Copy)]
pub struct Kept<'a>(pub &'a Secret);

impl fmt::Debug for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// The write that the Secret needs.
#[derive(Clone, PartialEq)]
pub enum Writing {
    /// It is made.
    Create(Box<Secret>),
    /// It follows, at the version that was seen.
    Change(String, MergePatch),
}

impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (write, name) = match self {
            Self::Create(secret) => ("Create", secret.metadata.name.as_deref().unwrap_or_default()),
            Self::Change(name, _) => ("Change", name.as_str()),
        };
        write!(f, "{write}({name})")
    }
}

/// All that decides about it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// Name of its Cluster.
    pub cluster: &'a str,
    /// The endpoint that counts, once it is known.
    pub endpoint: Option<&'a Address>,
    /// The template.
    pub template: Option<&'a Template>,
    /// The Secret, where there is one.
    pub secret: Option<Kept<'a>>,
    /// What the server said when it refused the Secret.
    pub refused: Option<&'a str>,
}

/// What is asked for.
#[must_use]
pub fn asked(object: &Metal3Cluster) -> Option<&EndpointRender> {
    object.spec.control_plane_endpoint_source.as_ref()?.render.as_ref()
}

/// What to write, and what to say. Nothing where nobody asks.
#[must_use]
pub fn render(question: &Question<'_>) -> Option<(Option<Writing>, ConditionBuilder)> {
    let asked = asked(question.object)?;
    Some(match settle(question, asked) {
        Ok(writing) => (
            writing,
            ConditionBuilder::mark_true(ENDPOINT_RENDERED, Reason::new("Rendered")),
        ),
        Err((reason, message)) => {
            let severity = if WAITS.contains(&reason) {
                Severity::Info
            } else {
                Severity::Warning
            };
            (
                None,
                ConditionBuilder::mark_false(ENDPOINT_RENDERED, Reason::new(reason), severity, message),
            )
        }
    })
}

const WAITING: &str = "WaitingForEndpoint";
/// What ends without anybody's doing.
const WAITS: [&str; 3] = [WAITING, REASON_WAITING_FOR_TEMPLATE, REASON_WAITING_FOR_SECRET];

type Wait = (&'static str, String);

/// What is asked for under names that can be some.
///
/// # Errors
/// Which name cannot, by its field.
pub fn named(asked: &EndpointRender) -> Result<&EndpointRender, String> {
    let names = [
        ("configMapName", &asked.config_map_name),
        ("secretName", &asked.secret_name),
    ];
    for (member, name) in names {
        ObjectName::parse(name.as_str())
            .map_err(|error| format!("spec.controlPlaneEndpointSource.render.{member}: {error}"))?;
    }
    Ok(asked)
}

/// Whether a Secret is one of the object's that stays: only of that one does the content matter.
#[must_use]
pub fn is_kept(object: &Metal3Cluster, secret: &ObjectMeta) -> bool {
    secret.deletion_timestamp.is_none() && owner::is_owned_by(secret, object.metadata.uid.as_deref())
}

fn settle(question: &Question<'_>, asked: &EndpointRender) -> Result<Option<Writing>, Wait> {
    let asked = named(asked).map_err(|why| (REASON_TEMPLATE_INVALID, why))?;
    let template = text(question.template, asked)?;
    let Some(endpoint) = question.endpoint else {
        return Err((WAITING, "waiting for the endpoint, which is to be filled in".to_owned()));
    };
    let filled = template.replace(HOST, &endpoint.host);
    let filled = filled.replace(PORT, &endpoint.port.to_string());
    let content = ByteString(filled.into_bytes());
    let writing = match question.secret {
        None => Some(Writing::Create(Box::new(made(question, asked, content)))),
        Some(Kept(secret)) => follow(question, asked, secret, content)?,
    };
    match (writing, question.refused) {
        (Some(_), Some(why)) => Err((
            REASON_SECRET_REFUSED,
            format!(
                "Secret {} cannot be written: {why}; it is tried again each minute",
                asked.secret_name
            ),
        )),
        (writing, _) => Ok(writing),
    }
}

fn text<'a>(template: Option<&'a Template>, asked: &EndpointRender) -> Result<&'a str, Wait> {
    let name = &asked.config_map_name;
    match template {
        Some(Template::Text(text)) => Ok(text),
        Some(Template::Absent) => Err((
            REASON_TEMPLATE_NOT_FOUND,
            format!(
                "ConfigMap {name} does not exist; create it with the template under the key {}",
                asked.key
            ),
        )),
        Some(Template::WithoutKey) => Err((
            REASON_TEMPLATE_NOT_FOUND,
            format!("ConfigMap {name} has no key {}; put the template there", asked.key),
        )),
        Some(Template::Forbidden { verb, resource }) => Err((
            REASON_TEMPLATE_FORBIDDEN,
            refusal(&format!("ConfigMap {name}"), verb, resource),
        )),
        Some(Template::Unknown(why)) => Err((
            REASON_WAITING_FOR_TEMPLATE,
            format!("ConfigMap {name} cannot be read: {why}"),
        )),
        None => Err((
            REASON_WAITING_FOR_TEMPLATE,
            format!("ConfigMap {name} was not read yet"),
        )),
    }
}

fn made(question: &Question<'_>, asked: &EndpointRender, content: ByteString) -> Secret {
    let meta = &question.object.metadata;
    Secret {
        metadata: ObjectMeta {
            name: Some(asked.secret_name.clone()),
            namespace: meta.namespace.clone(),
            labels: Some(BTreeMap::from([(
                CLUSTER_NAME_LABEL.to_owned(),
                question.cluster.to_owned(),
            )])),
            owner_references: Some(vec![owner::reference::<Metal3Cluster>(meta)]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(asked.key.clone(), content)])),
        ..Secret::default()
    }
}

/// What an existing Secret lacks. One that is going is made again when it is gone.
fn follow(
    question: &Question<'_>,
    asked: &EndpointRender,
    secret: &Secret,
    content: ByteString,
) -> Result<Option<Writing>, Wait> {
    let name = &asked.secret_name;
    if secret.metadata.deletion_timestamp.is_some() {
        return Err((
            REASON_WAITING_FOR_SECRET,
            format!("Secret {name} is being deleted, and is made again when it is gone; see its metadata.finalizers"),
        ));
    }
    if !owner::is_owned_by(&secret.metadata, question.object.metadata.uid.as_deref()) {
        let why = "was made by somebody else; delete it, or name another in spec.controlPlaneEndpointSource.render";
        return Err((REASON_SECRET_NOT_OURS, format!("Secret {name} {why}")));
    }
    let mut after = secret.clone();
    after.data.get_or_insert_default().insert(asked.key.clone(), content);
    let patch = changes(secret, &after).main.zip(version(&secret.metadata));
    Ok(patch.map(|(patch, version)| Writing::Change(name.clone(), patch.with_precondition(&version))))
}
