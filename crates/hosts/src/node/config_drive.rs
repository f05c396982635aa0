//! The config drive: user data, meta data and network data for the first boot.
//!
//! The parts come from Secrets of the host's namespace; Ironic builds the disk. A live ISO gets no config drive.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::provision::ConfigDrive;
use serde_json::{Map, Value};

use super::invalid_host::InvalidHost;
use super::secret;
use crate::claims::bond;

const USER_DATA: &str = "spec.userData";
const NETWORK_DATA: &str = "spec.networkData";
const META_DATA: &str = "spec.metaData";
const AGENT_NETWORK: &str = "spec.preprovisioningNetworkDataName";

/// The names of the Secrets that a host references, in its namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct References<'a> {
    /// User data.
    pub user_data: Option<&'a str>,
    /// Network data.
    pub network_data: Option<&'a str>,
    /// Meta data.
    pub meta_data: Option<&'a str>,
    /// Network data of the agent, also used for the system when it has none.
    pub agent_network: Option<&'a str>,
}

/// The values of those Secrets. `None`: not referenced. `Debug` shows no value.
#[derive(Clone, Copy, Default)]
pub struct Parts<'a> {
    /// Values of [`References::user_data`].
    pub user_data: Option<&'a BTreeMap<String, ByteString>>,
    /// Values of [`References::network_data`].
    pub network_data: Option<&'a BTreeMap<String, ByteString>>,
    /// Values of [`References::meta_data`].
    pub meta_data: Option<&'a BTreeMap<String, ByteString>>,
    /// Values of [`References::agent_network`]. Needed only without network data.
    pub agent_network: Option<&'a BTreeMap<String, ByteString>>,
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("user_data", &self.user_data.is_some())
            .field("network_data", &self.network_data.is_some())
            .field("meta_data", &self.meta_data.is_some())
            .field("agent_network", &self.agent_network.is_some())
            .finish()
    }
}

/// The Secrets that the host references.
///
/// # Errors
/// When a reference has no name or another namespace.
pub fn references(host: &BareMetalHost) -> Result<References<'_>, InvalidHost> {
    let own = host.metadata.namespace.as_deref().unwrap_or_default();
    let spec = &host.spec;
    Ok(References {
        user_data: name_of(spec.user_data.as_ref(), own, USER_DATA)?,
        network_data: name_of(spec.network_data.as_ref(), own, NETWORK_DATA)?,
        meta_data: name_of(spec.meta_data.as_ref(), own, META_DATA)?,
        // differs: `claim-agent-network`. The machine of a tenant gets no Secret of the administrators.
        agent_network: spec
            .preprovisioning_network_data_name
            .as_deref()
            .filter(|name| !name.is_empty() && bond::consumer(host).is_none()),
    })
}

fn name_of<'a>(
    reference: Option<&'a SecretReference>,
    own: &str,
    field: &'static str,
) -> Result<Option<&'a str>, InvalidHost> {
    let text = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
    let Some(reference) = reference else {
        return Ok(None);
    };
    match (text(&reference.namespace), text(&reference.name)) {
        (Some(namespace), _) if namespace != own => Err(InvalidHost::OtherNamespace { field }),
        (_, None) => Err(InvalidHost::Unnamed { field }),
        (_, name) => Ok(name),
    }
}

/// Builds the config drive. Empty parts are omitted.
///
/// # Errors
/// When a Secret lacks its key, or its value is not text or not a map.
pub fn build(host: &BareMetalHost, parts: &Parts<'_>, is_live_iso: bool) -> Result<ConfigDrive, InvalidHost> {
    let mut drive = Map::new();
    if is_live_iso {
        return Ok(ConfigDrive(drive));
    }
    let meta_data = meta_data(host, parts)?;
    drive.insert("meta_data".to_owned(), Value::Object(meta_data));
    let network_data = network_data(parts)?;
    if !network_data.is_empty() {
        drive.insert("network_data".to_owned(), Value::Object(network_data));
    }
    if let Some(values) = parts.user_data {
        let text = needed(values, "userData", USER_DATA)?;
        if !text.is_empty() {
            drive.insert("user_data".to_owned(), text.into());
        }
    }
    Ok(ConfigDrive(drive))
}

/// The defaults from the host, overridden by the meta data of the user.
fn meta_data(host: &BareMetalHost, parts: &Parts<'_>) -> Result<Map<String, Value>, InvalidHost> {
    let text = |text: &Option<String>| Value::from(text.clone().unwrap_or_default());
    let name = text(&host.metadata.name);
    // A tenant recognizes no host by it that had another claim before.
    let of_claim = bond::bound_claim(host).and_then(|_| bond::Record::of(host));
    let uid = of_claim.map_or_else(|| host.metadata.uid.clone(), |record| Some(record.uid));
    let mut meta_data: Map<String, Value> = [
        ("uuid", text(&uid)),
        ("metal3-namespace", text(&host.metadata.namespace)),
        ("metal3-name", name.clone()),
        ("local-hostname", name.clone()),
        ("local_hostname", name.clone()),
        ("name", name),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    if let Some(values) = parts.meta_data {
        meta_data.extend(secret::map(META_DATA, needed(values, "metaData", META_DATA)?)?);
    }
    Ok(meta_data)
}

fn network_data(parts: &Parts<'_>) -> Result<Map<String, Value>, InvalidHost> {
    let (values, field) = match (parts.network_data, parts.agent_network) {
        (Some(values), _) => (values, NETWORK_DATA),
        (None, Some(values)) => (values, AGENT_NETWORK),
        (None, None) => return Ok(Map::new()),
    };
    let text = secret::text(values, "networkData", field)?;
    secret::map(field, text.unwrap_or_default())
}

fn needed<'a>(
    values: &'a BTreeMap<String, ByteString>,
    key: &'static str,
    field: &'static str,
) -> Result<&'a str, InvalidHost> {
    secret::text(values, key, field)?.ok_or(InvalidHost::NoValue { field, key })
}
