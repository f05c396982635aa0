//! The address and credentials for the API server.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The given file cannot be used.
    #[error("use the kubeconfig {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<KubeconfigError>,
    },
    /// The kubeconfig that `kubectl` would use cannot be used.
    #[error("use the kubeconfig that $KUBECONFIG names, or ~/.kube/config")]
    Viewer {
        /// Why.
        source: Box<KubeconfigError>,
    },
    /// No file was given, and the program does not run in a Pod.
    #[error("find the API server as a Pod does; outside a cluster, name a kubeconfig")]
    Cluster {
        /// Why.
        source: Box<InClusterError>,
    },
}

/// The configuration of a person who runs a command: the kubeconfig at `path`, else those that `kubectl` would use, else
/// that of the Pod.
///
/// # Errors
/// When none can be used.
pub async fn load_viewer_config(path: Option<&Path>) -> Result<Config, ConfigError> {
    if path.is_some() {
        return load_config(path).await;
    }
    let viewer = |source| ConfigError::Viewer {
        source: Box::new(source),
    };
    match Kubeconfig::read() {
        Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(viewer),
        Err(error) => Config::incluster().map_err(|_| viewer(error)),
    }
}

/// The configuration of the kubeconfig at `path`, with its current context; without a path, that of the Pod.
///
/// There is no default file: a manager with a kubeconfig found by chance would manage the wrong cluster.
///
/// # Errors
/// When the file cannot be used, or the program does not run in a Pod.
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
