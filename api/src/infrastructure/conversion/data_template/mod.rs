//! Metal3DataTemplate.

mod links;
mod meta_data;
mod networks;

use super::error::{ConversionError, Inside};
use super::pair::Hub;
use super::value::{narrow, non_default, text};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};

impl Hub for hub::Metal3DataTemplate {
    type Spoke = spoke::Metal3DataTemplate;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3DataTemplate {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3DataTemplateSpec {
                cluster_name: self.spec.cluster_name.clone().unwrap_or_default(),
                template_reference: None,
                meta_data: self.spec.meta_data.as_ref().map(meta_data::to_spoke),
                network_data: self.spec.network_data.as_ref().map(network_data_to_spoke),
            },
            status: status_to_spoke(&self.status),
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        let meta_data = spoke.spec.meta_data.as_ref().map(meta_data::from_spoke);
        let network_data = spoke.spec.network_data.as_ref().map(network_data_from_spoke);
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3DataTemplateSpec {
                cluster_name: text(Some(&spoke.spec.cluster_name)),
                meta_data: meta_data.transpose().inside("spec.metaData")?,
                network_data: network_data.transpose().inside("spec.networkData")?,
            },
            status: status_from_spoke(&spoke.status).inside("status")?,
        })
    }
}

fn network_data_to_spoke(data: &hub::NetworkData) -> spoke::NetworkData {
    spoke::NetworkData {
        links: data.links.as_ref().map(links::to_spoke).and_then(non_default),
        networks: data.networks.as_ref().map(networks::to_spoke).and_then(non_default),
        services: data
            .services
            .as_ref()
            .map(networks::services_to_spoke)
            .and_then(non_default),
    }
}

fn network_data_from_spoke(data: &spoke::NetworkData) -> Result<hub::NetworkData, ConversionError> {
    let links = data.links.as_ref().map(links::from_spoke).transpose();
    let networks = data.networks.as_ref().map(networks::from_spoke).transpose();
    Ok(hub::NetworkData {
        links: links.inside("links")?.and_then(non_default),
        networks: networks.inside("networks")?.and_then(non_default),
        services: data
            .services
            .as_ref()
            .map(networks::services_from_spoke)
            .and_then(non_default),
    })
}

fn status_to_spoke(status: &hub::Metal3DataTemplateStatus) -> spoke::Metal3DataTemplateStatus {
    let grant = |grant: &hub::IndexGrant| (grant.name.clone(), i64::from(grant.index));
    spoke::Metal3DataTemplateStatus {
        last_updated: status.last_updated,
        indexes: status.indexes.iter().map(grant).collect(),
    }
}

/// All indexes in use are kept, however many; the controller truncates the published list.
fn status_from_spoke(
    status: &spoke::Metal3DataTemplateStatus,
) -> Result<hub::Metal3DataTemplateStatus, ConversionError> {
    let grant = |(name, index): (&String, &i64)| {
        Ok(hub::IndexGrant {
            name: name.clone(),
            index: narrow(*index, &format!("indexes[{name}]"))?,
        })
    };
    let mut indexes = status.indexes.iter().map(grant).collect::<Result<Vec<_>, _>>()?;
    indexes.sort_by_key(|grant| grant.index);
    Ok(hub::Metal3DataTemplateStatus {
        indexes,
        last_updated: status.last_updated,
    })
}
