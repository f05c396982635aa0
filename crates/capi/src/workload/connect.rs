//! The way from a Cluster to its API server: the Secret of its kubeconfig, and a client for what it contains.

use std::fmt;
use std::pin::Pin;

use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::Key;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::write::{NoCache, Writer};

use super::kubeconfig;

/// Creates a client from a kubeconfig.
pub type ConnectFn =
    Box<dyn Fn(Kubeconfig) -> Pin<Box<dyn Future<Output = Result<kube::Client, String>> + Send>> + Send + Sync>;

/// Why there is no way into a workload cluster. The text is for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAccess {
    /// The Secret does not exist.
    Missing(String),
    /// It cannot be read at the moment, or may not be.
    Unread(String),
    /// What it contains cannot be used.
    Unusable(String),
}

impl fmt::Display for NoAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(secret) => write!(f, "waiting for Secret {secret} with the way into the workload cluster"),
            Self::Unread(why) | Self::Unusable(why) => f.write_str(why),
        }
    }
}

/// The name of the Secret with the kubeconfig of a Cluster.
pub(super) fn secret_of(cluster: &Key) -> Key {
    Key {
        namespace: cluster.namespace.clone(),
        name: format!("{}{}", cluster.name, kubeconfig::SUFFIX),
    }
}

/// The Secret of a Cluster, and the kubeconfig in it. The Secret is erased after use.
pub(super) async fn kubeconfig_of<R>(
    reader: &Writer<R>,
    cluster: &Key,
) -> Result<(Erased<Secret>, Kubeconfig), NoAccess>
where
    R: Role + Permits<verb::Get, Secret>,
{
    let secret = secret_of(cluster);
    let found = reader.read::<Secret>(&NoCache, &secret).await;
    let unread = |why: String| NoAccess::Unread(format!("Secret {} cannot be read: {why}", secret.name));
    let found = found.map_err(|fault| unread(fault.report()))?;
    let found = Erased::new(found.ok_or_else(|| NoAccess::Missing(secret.name.clone()))?);
    let config = kubeconfig::read(&found);
    let config = config.map_err(|why| NoAccess::Unusable(format!("Secret {}: {why}", secret.name)))?;
    Ok((found, config))
}
