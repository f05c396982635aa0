//! Metal3Machine and Metal3MachineTemplate.

use super::cluster::{conditions, deprecated, initialization, is_provisioned, legacy, newer};
use super::error::ConversionError;
use super::pair::{Hub, hub};
use super::value::{metal3_reference, non_default, object_reference, text};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};

hub! {
    Metal3Machine {
        spec: spec_to_spoke, spec_from_spoke;
        status: status_to_spoke, status_from_spoke;
    }
}

impl Hub for hub::Metal3MachineTemplate {
    type Spoke = spoke::Metal3MachineTemplate;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3MachineTemplate {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3MachineTemplateSpec {
                template: spoke::MachineTemplateResource {
                    spec: spec_to_spoke(&self.spec.template.spec),
                },
                node_reuse: Some(self.spec.node_reuse == Some(true)),
            },
            status: self.status.clone(),
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3MachineTemplateSpec {
                template: hub::MachineTemplateResource {
                    metadata: None,
                    spec: spec_from_spoke(&spoke.spec.template.spec)?,
                },
                node_reuse: spoke.spec.node_reuse.and_then(non_default),
            },
            status: spoke.status.clone(),
        })
    }
}

fn spec_to_spoke(spec: &hub::Metal3MachineSpec) -> spoke::Metal3MachineSpec {
    spoke::Metal3MachineSpec {
        provider_id: spec.provider_id.clone(),
        image: spec.image.as_ref().and_then(image_to_spoke),
        custom_deploy: spec.custom_deploy.as_ref().map(|deploy| spoke::CustomDeploy {
            method: deploy.method.clone(),
        }),
        user_data: spec.user_data.clone(),
        host_selector: spec.host_selector.as_ref().and_then(selector_to_spoke),
        data_template: spec.data_template.as_ref().map(object_reference),
        meta_data: spec.meta_data.clone(),
        network_data: spec.network_data.clone(),
        automated_cleaning_mode: spec.automated_cleaning_mode,
        failure_domain: spec.failure_domain.clone(),
    }
}

fn spec_from_spoke(spec: &spoke::Metal3MachineSpec) -> Result<hub::Metal3MachineSpec, ConversionError> {
    let method = spec
        .custom_deploy
        .as_ref()
        .and_then(|deploy| text(Some(&deploy.method)));
    Ok(hub::Metal3MachineSpec {
        provider_id: text(spec.provider_id.as_ref()),
        image: spec.image.as_ref().and_then(image_from_spoke),
        custom_deploy: method.map(|method| hub::CustomDeploy { method }),
        user_data: spec.user_data.clone(),
        host_selector: spec.host_selector.as_ref().and_then(selector_from_spoke),
        data_template: spec.data_template.as_ref().map(metal3_reference),
        meta_data: spec.meta_data.clone(),
        network_data: spec.network_data.clone(),
        automated_cleaning_mode: spec.automated_cleaning_mode,
        failure_domain: text(spec.failure_domain.as_ref()),
        ..hub::Metal3MachineSpec::default()
    })
}

fn image_to_spoke(image: &hub::Image) -> Option<spoke::Image> {
    non_default(spoke::Image {
        url: image.url.clone(),
        checksum: text(image.checksum.as_ref()),
        checksum_type: image.checksum_type.and_then(non_default),
        format: image.disk_format.and_then(non_default),
    })
}

/// An image without URL and checksum counts as absent: the older version writes one next to a deploy step. The checksum
/// of any other image is set, because the older version does not distinguish empty from absent.
fn image_from_spoke(image: &spoke::Image) -> Option<hub::Image> {
    let checksum = image.checksum.clone().unwrap_or_default();
    (!image.url.is_empty() || !checksum.is_empty()).then(|| hub::Image {
        url: image.url.clone(),
        checksum: Some(checksum),
        checksum_type: image.checksum_type.and_then(non_default),
        disk_format: image.format.and_then(non_default),
    })
}

fn selector_to_spoke(selector: &hub::HostSelector) -> Option<spoke::HostSelector> {
    let requirement = |requirement: &hub::HostSelectorRequirement| spoke::HostSelectorRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone(),
    };
    non_default(spoke::HostSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: selector.match_expressions.iter().map(requirement).collect(),
    })
}

fn selector_from_spoke(selector: &spoke::HostSelector) -> Option<hub::HostSelector> {
    let requirement = |requirement: &spoke::HostSelectorRequirement| hub::HostSelectorRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone(),
    };
    non_default(hub::HostSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: selector.match_expressions.iter().map(requirement).collect(),
        in_namespace: None,
    })
}

fn status_to_spoke(status: &hub::Metal3MachineStatus) -> spoke::Metal3MachineStatus {
    let legacy = legacy(status.deprecated.as_ref());
    spoke::Metal3MachineStatus {
        last_updated: status.last_updated,
        failure_reason: legacy.failure_reason,
        failure_message: legacy.failure_message,
        addresses: status.addresses.clone(),
        phase: None,
        ready: Some(is_provisioned(status.initialization.as_ref())),
        user_data: status.user_data.clone(),
        meta_data: status.meta_data.clone(),
        network_data: status.network_data.clone(),
        rendered_data: status.rendered_data.as_ref().map(object_reference),
        conditions: legacy.conditions,
        v1beta2: newer(&status.conditions),
    }
}

fn status_from_spoke(status: &spoke::Metal3MachineStatus) -> Result<hub::Metal3MachineStatus, ConversionError> {
    Ok(hub::Metal3MachineStatus {
        conditions: conditions(status.v1beta2.as_ref()),
        last_updated: status.last_updated,
        addresses: status.addresses.clone(),
        initialization: initialization(status.ready),
        user_data: status.user_data.clone(),
        meta_data: status.meta_data.clone(),
        network_data: status.network_data.clone(),
        rendered_data: status.rendered_data.as_ref().map(metal3_reference),
        deprecated: deprecated(
            &status.conditions,
            status.failure_reason.as_ref(),
            status.failure_message.as_ref(),
        ),
        ..hub::Metal3MachineStatus::default()
    })
}
