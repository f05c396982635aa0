//! One host as a row.

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::meta::{Time, moment};
use metal3_api::metal3::names::PAUSED_ANNOTATION;
use metal3_api::metal3::names::host_condition as conditions;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState as State};
use metal3_domain::uri::{public_text, redacted_url};
use serde::Serialize;
use serde_json::Value;

use crate::read::Unread;
use crate::snapshot::decode;
use crate::table::reason_of_error;
use crate::values::name;
use crate::walk::conditions::{find, since};

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRow {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// `status.provisioning.state`.
    pub state: String,
    /// `status.operationalStatus`.
    pub status: String,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it shall be on.
    pub online: bool,
    /// Whether it was on at the last observation.
    pub powered_on: bool,
    /// Kind and name of its consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The Cluster that uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The image to deploy, or that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The address of the BMC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<String>,
    /// The reason of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The message of its error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when it is in its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

impl HostRow {
    /// The row of a host that is not decoded yet.
    ///
    /// # Errors
    /// When it cannot be decoded.
    pub fn read(host: &Value) -> Result<Self, Unread> {
        Ok(Self::of(&decode(host)?))
    }

    /// The row of a host.
    #[must_use]
    pub fn of(host: &BareMetalHost) -> Self {
        let (meta, spec, status) = (&host.metadata, &host.spec, &host.status);
        let consumer = spec.consumer_ref.as_ref();
        let wanted = spec.image.as_ref().map(|image| image.url.as_str());
        let deployed = Some(status.provisioning.image.url.as_str());
        let image = wanted.or(deployed).filter(|url| !url.is_empty());
        let bmc = spec.bmc.as_ref().map(|bmc| bmc.address.as_str());
        let annotations = meta.annotations.as_ref();
        let error = status.error_type.filter(|_| !status.error_message.is_empty());
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: name(meta).to_owned(),
            state: status.provisioning.state.to_string(),
            status: operational(status.operational_status).to_owned(),
            paused: annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION)),
            online: spec.online,
            powered_on: status.powered_on,
            consumer: consumer.map(|one| {
                let text = |part: &Option<String>| part.clone().unwrap_or_default();
                format!("{}/{}", text(&one.kind), text(&one.name))
            }),
            cluster: meta
                .labels
                .as_ref()
                .and_then(|all| all.get(CLUSTER_NAME_LABEL).cloned()),
            // `redacted_url` would take the digest of an OCI image for a host that follows a login.
            image: image.map(public_text),
            bmc: bmc.filter(|address| !address.is_empty()).map(redacted_url),
            error: error.map(|error| reason_of_error(error).to_owned()),
            message: public_text(&status.error_message),
            since: entered(host),
        }
    }
}

/// When the host came into its state: its operation began or ended, or its conditions changed.
fn entered(host: &BareMetalHost) -> Option<Time> {
    let (status, history) = (&host.status, &host.status.operation_history);
    let of = |kind: &str| find(&status.conditions, kind).and_then(since);
    let operation = match &status.provisioning.state {
        State::Registering => history.register.start,
        State::MatchProfile | State::Inspecting => history.inspect.start,
        // It may be prepared again, long after it was inspected.
        State::Preparing => history.inspect.end.max(of(conditions::PROGRESSING)),
        State::Provisioning => history.provision.start,
        State::Provisioned => history.provision.end,
        State::Deprovisioning => history.deprovision.start,
        State::Available | State::Ready => history.deprovision.end.max(history.inspect.end),
        State::None => host
            .metadata
            .creation_timestamp
            .as_ref()
            .and_then(moment)
            .map(Time::new),
        State::Unmanaged
        | State::ExternallyProvisioned
        | State::PoweringOffBeforeDelete
        | State::Deleting
        | State::Other(_) => None,
    };
    let changed = [
        conditions::PROGRESSING,
        conditions::AVAILABLE_FOR_PROVISIONING,
        conditions::PROVISIONED,
    ];
    operation.or_else(|| changed.into_iter().filter_map(of).max())
}

const fn operational(status: OperationalStatus) -> &'static str {
    match status {
        OperationalStatus::Unset => "",
        OperationalStatus::Ok => "OK",
        OperationalStatus::Discovered => "discovered",
        OperationalStatus::Error => "error",
        OperationalStatus::Delayed => "delayed",
        OperationalStatus::Detached => "detached",
        OperationalStatus::Servicing => "servicing",
    }
}
