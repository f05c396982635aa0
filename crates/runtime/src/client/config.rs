//! Where the API server is, and who we are to it.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be used.
    #[error("use the kubeconfig {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<KubeconfigError>,
    },
    /// No file was named, and this is no Pod.
    #[error("find the API server as a Pod does; outside a cluster, name a kubeconfig")]
    Cluster {
        /// Why.
        source: Box<InClusterError>,
    },
}

/// The configuration of the kubeconfig at `path`, its current context; without a path, that of the Pod we run in.
///
/// Nothing is guessed: a manager that finds somebody's kubeconfig by chance would manage the wrong cluster.
///
/// # Errors
/// When the file cannot be used, or there is no Pod around us.
pub async fn load_config(path: Option<&Path>) -> Result<Config, ConfigError> {
    let Some(path) = path else {
        return Config::incluster().map_err(|source| ConfigError::Cluster {
            source: Box::new(source),
        });
    };
    let fault = |source| ConfigError::File {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(fault)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(fault)
}
