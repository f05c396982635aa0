//! Whether the API server serves the kinds we need, and in words what to do where it does not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use metal3_runtime::admin::Finding;

/// How often it looks again. Only while kinds are missing: an installer is at work then, and nothing tells us when it is
/// done that we would be allowed to watch.
pub const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A kind in the version we read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// The one version we speak.
    pub version: &'static str,
    /// Name in URLs.
    pub plural: &'static str,
    /// Where its definition comes from, for people: `ipam-components.yaml`.
    pub installed_by: &'static str,
}

/// What a server serves of the groups that were asked about: versions, and the resources of each.
pub type Served = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// What keeps us from working, a sentence for each kind; nothing when all is there.
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
                "{plural}.{group}: served as {} and not as {version}, which is all this program speaks; install the \
                 {installed_by} of a release that fits",
                others.join(", ")
            ))
        }
    }
}

/// Asks the server about the groups of these kinds. Everybody may ask that.
///
/// # Errors
/// When it does not answer.
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

/// What is missing now, for `/readyz`; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    /// Nothing before the first look.
    sentences: Arc<Mutex<Option<Vec<String>>>>,
}

impl Missing {
    /// What a probe says.
    #[must_use]
    pub fn finding(&self) -> Finding {
        match self.lock().as_deref() {
            None => Finding::Failing("the API server has not been asked yet".to_owned()),
            Some([]) => Finding::Fine,
            Some(sentences) => Finding::Failing(sentences.join("; ")),
        }
    }

    /// Waits until every kind is served.
    pub async fn wait(&self, client: &Client, kinds: &[Kind]) {
        loop {
            let sentences = match ask(client, kinds).await {
                Ok(served) => missing(kinds, &served),
                Err(error) => vec![format!("the API server does not say what it serves: {error}")],
            };
            let done = sentences.is_empty();
            if self.lock().replace(sentences.clone()).as_ref() != Some(&sentences) {
                for sentence in &sentences {
                    tracing::warn!("waiting: {sentence}");
                }
            }
            if done {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Vec<String>>> {
        // Replaced whole, so a panic elsewhere leaves it whole.
        self.sentences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
