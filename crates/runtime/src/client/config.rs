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

/// The kubeconfig and its context that a person names for a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The file; without one, those that `kubectl` would use, else the service account of the Pod.
    pub kubeconfig: Option<String>,
    /// The context; without one, the current one of the file.
    pub context: Option<String>,
}

/// The configuration of a person who runs a command.
///
/// # Errors
/// When there is none, or it has no such context.
pub async fn load_viewer_config(chosen: &Chosen) -> Result<Config, ConfigError> {
    let path = chosen.kubeconfig.as_deref().map(Path::new);
    let context = chosen.context.clone().filter(|name| !name.is_empty());
    let fault = |source| match path {
        Some(path) => ConfigError::File {
            path: path.to_owned(),
            source: Box::new(source),
        },
        None => ConfigError::Viewer {
            source: Box::new(source),
        },
    };
    let read = path.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    match read {
        Ok(kubeconfig) => of_context(kubeconfig, context).await.map_err(fault),
        // A Pod has no contexts: who names one means another API server.
        Err(error) if path.is_some() || context.is_some() => Err(fault(error)),
        Err(error) => Config::incluster().map_err(|_| fault(error)),
    }
}

async fn of_context(kubeconfig: Kubeconfig, context: Option<String>) -> Result<Config, KubeconfigError> {
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(kubeconfig, &options).await
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
    of_context(kubeconfig, None).await.map_err(fault)
}
