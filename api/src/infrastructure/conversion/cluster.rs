//! Metal3Cluster and Metal3ClusterTemplate.

use std::collections::BTreeMap;

use super::error::{ConversionError, Inside};
use super::pair::{Hub, hub};
use super::value::{narrow, non_default, text};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};
use crate::meta::{Condition, LegacyCondition};

hub! {
    Metal3Cluster {
        spec: spec_to_spoke, spec_from_spoke;
        status: status_to_spoke, status_from_spoke;
    }
}

impl Hub for hub::Metal3ClusterTemplate {
    type Spoke = spoke::Metal3ClusterTemplate;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3ClusterTemplate {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3ClusterTemplateSpec {
                template: spoke::ClusterTemplateResource {
                    spec: spec_to_spoke(&self.spec.template.spec),
                },
            },
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3ClusterTemplateSpec {
                template: hub::ClusterTemplateResource {
                    metadata: None,
                    spec: spec_from_spoke(&spoke.spec.template.spec).inside("spec.template.spec")?,
                },
            },
        })
    }
}

fn spec_to_spoke(spec: &hub::Metal3ClusterSpec) -> spoke::Metal3ClusterSpec {
    spoke::Metal3ClusterSpec {
        control_plane_endpoint: spec
            .control_plane_endpoint
            .as_ref()
            .map(|endpoint| spoke::ControlPlaneEndpoint {
                host: endpoint.host.clone().unwrap_or_default(),
                port: endpoint.port.unwrap_or_default().into(),
            }),
        no_cloud_provider: spec.cloud_provider_enabled.map(|enabled| !enabled),
        cloud_provider_enabled: spec.cloud_provider_enabled,
        failure_domains: domains_to_spoke(&spec.failure_domains),
    }
}

/// `noCloudProvider` applies only when `cloudProviderEnabled` is absent.
fn spec_from_spoke(spec: &spoke::Metal3ClusterSpec) -> Result<hub::Metal3ClusterSpec, ConversionError> {
    let endpoint = spec.control_plane_endpoint.as_ref();
    let endpoint = endpoint
        .map(|endpoint| {
            Ok(hub::ControlPlaneEndpoint {
                host: text(Some(&endpoint.host)),
                port: non_default(narrow(endpoint.port, "controlPlaneEndpoint.port")?),
            })
        })
        .transpose()?;
    Ok(hub::Metal3ClusterSpec {
        control_plane_endpoint: endpoint.and_then(non_default),
        cloud_provider_enabled: spec
            .cloud_provider_enabled
            .or(spec.no_cloud_provider.map(|without| !without)),
        failure_domains: domains_from_spoke(&spec.failure_domains),
        ..hub::Metal3ClusterSpec::default()
    })
}

fn domains_to_spoke(domains: &[hub::FailureDomain]) -> BTreeMap<String, spoke::FailureDomain> {
    let convert = |domain: &hub::FailureDomain| {
        let attributes = domain.attributes.clone();
        let control_plane = domain.control_plane.and_then(non_default);
        (
            domain.name.clone(),
            spoke::FailureDomain {
                control_plane,
                attributes,
            },
        )
    };
    domains.iter().map(convert).collect()
}

fn domains_from_spoke(domains: &BTreeMap<String, spoke::FailureDomain>) -> Vec<hub::FailureDomain> {
    let convert = |(name, domain): (&String, &spoke::FailureDomain)| hub::FailureDomain {
        name: name.clone(),
        control_plane: domain.control_plane.and_then(non_default),
        attributes: domain.attributes.clone(),
    };
    domains.iter().map(convert).collect()
}

fn status_to_spoke(status: &hub::Metal3ClusterStatus) -> spoke::Metal3ClusterStatus {
    let legacy = legacy(status.deprecated.as_ref());
    spoke::Metal3ClusterStatus {
        last_updated: status.last_updated,
        failure_reason: legacy.failure_reason,
        failure_message: legacy.failure_message,
        ready: Some(is_provisioned(status.initialization.as_ref())),
        failure_domains: domains_to_spoke(&status.failure_domains),
        conditions: legacy.conditions,
        v1beta2: newer(&status.conditions),
    }
}

fn status_from_spoke(status: &spoke::Metal3ClusterStatus) -> Result<hub::Metal3ClusterStatus, ConversionError> {
    Ok(hub::Metal3ClusterStatus {
        conditions: conditions(status.v1beta2.as_ref()),
        last_updated: status.last_updated,
        initialization: initialization(status.ready),
        failure_domains: domains_from_spoke(&status.failure_domains),
        deprecated: deprecated(
            &status.conditions,
            status.failure_reason.as_ref(),
            status.failure_message.as_ref(),
        ),
        ..hub::Metal3ClusterStatus::default()
    })
}

/// The `v1beta1` part of a status.
pub(super) fn legacy(deprecated: Option<&hub::DeprecatedStatus>) -> hub::LegacyStatus {
    deprecated
        .and_then(|deprecated| deprecated.v1beta1.clone())
        .unwrap_or_default()
}

/// The `v1beta1` part of a status; `None` when it is empty.
pub(super) fn deprecated(
    conditions: &[LegacyCondition],
    failure_reason: Option<&String>,
    failure_message: Option<&String>,
) -> Option<hub::DeprecatedStatus> {
    let legacy = non_default(hub::LegacyStatus {
        conditions: conditions.to_vec(),
        failure_reason: failure_reason.cloned(),
        failure_message: failure_message.cloned(),
    })?;
    Some(hub::DeprecatedStatus { v1beta1: Some(legacy) })
}

/// Whether the infrastructure is provisioned.
pub(super) fn is_provisioned(initialization: Option<&hub::Initialization>) -> bool {
    initialization.and_then(|steps| steps.provisioned) == Some(true)
}

/// `false` is not kept: older clients write it for an unknown state.
pub(super) fn initialization(ready: Option<bool>) -> Option<hub::Initialization> {
    let provisioned = ready.and_then(non_default)?;
    Some(hub::Initialization {
        provisioned: Some(provisioned),
    })
}

/// Converts conditions of the newer form to `status.v1beta2` of the older version.
pub(super) fn newer(conditions: &[Condition]) -> Option<spoke::NewerStatus> {
    non_default(spoke::NewerStatus {
        conditions: conditions.to_vec(),
    })
}

/// Conditions of the newer form, from `status.v1beta2` of the older version.
pub(super) fn conditions(newer: Option<&spoke::NewerStatus>) -> Vec<Condition> {
    newer.map(|newer| newer.conditions.clone()).unwrap_or_default()
}
