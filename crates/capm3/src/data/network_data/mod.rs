//! The network data of a machine, in the format of OpenStack's `network_data.json`.
//!
//! Links, networks and services keep the template's order within a kind; the order of kinds is fixed. References by id
//! between links and networks are not checked: an id may refer to a device of the image.

mod links;
mod networks;

use metal3_api::infrastructure::v1beta2 as api;
use metal3_domain::network_data as model;

use super::pools::Grants;
use super::subject::Subject;
use super::{DataError, Problem, yaml};

pub(super) const SERVICES: &str = "spec.networkData.services";

pub(super) fn network_field(list: &str, position: usize) -> String {
    format!("spec.networkData.networks.{list}[{position}]")
}

pub(super) fn route_field(network: &str, position: usize) -> String {
    format!("{network}.routes[{position}]")
}

/// Renders the network data.
///
/// # Errors
/// When the host lacks a requested property, a pool has granted nothing, or the grant does not match the network.
pub fn render(data: &api::NetworkData, subject: &Subject<'_>, grants: &Grants) -> Result<String, DataError> {
    let value = serde_json::to_value(model(data, subject, grants)?)
        .map_err(|error| Problem::Unwritable(error.to_string()).of("spec.networkData"))?;
    Ok(yaml::document(&value))
}

fn model(data: &api::NetworkData, subject: &Subject<'_>, grants: &Grants) -> Result<model::NetworkData, DataError> {
    let links = data
        .links
        .as_ref()
        .map(|links| links::all(links, subject))
        .transpose()?;
    let networks = data
        .networks
        .as_ref()
        .map(|networks| networks::all(networks, subject, grants));
    let services = data.services.as_ref().map(|services| {
        let written = services.dns.iter().map(|address| address.as_str().to_owned()).collect();
        networks::name_servers(written, services.dns_from_ip_pool.as_deref(), grants, SERVICES)
    });
    Ok(model::NetworkData {
        links: links.unwrap_or_default(),
        networks: networks.transpose()?.unwrap_or_default(),
        services: services.transpose()?.unwrap_or_default(),
    })
}
