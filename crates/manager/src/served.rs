//! Whether the API server serves the required kinds, with an instruction for each missing one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use metal3_runtime::admin::CheckResult;
use parking_lot::Mutex;

/// Polling period while kinds are missing. The process has no permission to watch CustomResourceDefinitions.
pub const RECHECK_PERIOD: Duration = Duration::from_secs(5);

/// A required kind and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// The version this program uses.
    pub version: &'static str,
    /// Plural name, as in URLs.
    pub plural: &'static str,
    /// The manifest that installs it, for messages: `ipam-components.yaml`.
    pub installed_by: &'static str,
}

impl Kind {
    /// A kind of a group, and the manifest that installs it.
    #[must_use]
    pub const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        installed_by: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            plural,
            installed_by,
        }
    }
}

/// Versions per group, and resources per version, that a server serves.
pub type Served = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// A sentence for each missing kind.
#[must_use]
pub fn missing(kinds: &[Kind], served: &Served) -> Vec<String> {
    kinds.iter().filter_map(|kind| complaint(kind, served)).collect()
}

fn complaint(kind: &Kind, served: &Served) -> Option<String> {
    let Kind {
        group,
        version,
        plural,
        installed_by,
    } = kind;
    let Some(versions) = served.get(*group) else {
        return Some(format!(
            "{plural}.{group}: the API server does not know the group; install {installed_by}"
        ));
    };
    match versions.get(*version) {
        Some(resources) if resources.iter().any(|resource| resource == plural) => None,
        Some(_) => Some(format!(
            "{plural}.{group}: its CustomResourceDefinition is missing; install {installed_by}"
        )),
        None => {
            let others: Vec<&str> = versions.keys().map(String::as_str).collect();
            Some(format!(
                "{plural}.{group}: served as {} and not as {version}, the only version this program uses; install the \
                 {installed_by} of a matching release",
                others.join(", ")
            ))
        }
    }
}

/// Discovers the groups of these kinds, which needs no permission.
///
/// # Errors
/// When a request fails.
pub async fn ask(client: &Client, kinds: &[Kind]) -> kube::Result<Served> {
    let known = client.list_api_groups().await?;
    let mut served = Served::new();
    for group in known.groups {
        let wanted: Vec<&Kind> = kinds.iter().filter(|kind| kind.group == group.name).collect();
        if wanted.is_empty() {
            continue;
        }
        let mut versions = BTreeMap::new();
        for version in group.versions {
            let mut resources = Vec::new();
            if wanted.iter().any(|kind| kind.version == version.version) {
                let list = client.list_api_group_resources(&version.group_version).await?;
                resources = list.resources.into_iter().map(|resource| resource.name).collect();
            }
            versions.insert(version.version, resources);
        }
        served.insert(group.name, versions);
    }
    Ok(served)
}

/// The missing kinds, for `/readyz`; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    /// `None` before the first discovery.
    sentences: Arc<Mutex<Option<Vec<String>>>>,
}

impl Missing {
    /// The result for a probe. A process without its kinds is ready, because its webhooks do not need them.
    #[must_use]
    pub fn finding(&self) -> CheckResult {
        match self.sentences.lock().as_deref() {
            None => CheckResult::Note("the served kinds are not discovered yet".to_owned()),
            Some([]) => CheckResult::Passed,
            Some(sentences) => CheckResult::Note(sentences.join("; ")),
        }
    }

    /// Waits until every kind is served.
    pub async fn wait(&self, client: &Client, kinds: &[Kind]) {
        loop {
            let sentences = match ask(client, kinds).await {
                Ok(served) => missing(kinds, &served),
                Err(error) => vec![format!("discovery of the served kinds failed: {error}")],
            };
            let done = sentences.is_empty();
            if self.sentences.lock().replace(sentences.clone()).as_ref() != Some(&sentences) {
                for sentence in &sentences {
                    tracing::warn!("waiting: {sentence}");
                }
            }
            if done {
                return;
            }
            tokio::time::sleep(RECHECK_PERIOD).await;
        }
    }
}
