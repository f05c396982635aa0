//! The report at the start: which kinds without a controller have objects.
//!
//! One list of one object for each kind that is not watched, once for each leadership: the server returns how many
//! more there are. One line in the log and one Event for each kind with objects.

use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use kube_core::{ObjectList, PartialObjectMeta};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{BareMetalSwitch, HostClaim, HostDeployPolicy, HostNetworkAttachment};
use metal3_api::rules::AdmissionRules;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::work::{Class, classify};

use super::Caches;
use crate::names::unserved_reason::KIND_UNSERVED;
use crate::needs::UnservedKinds;

/// The number of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Exactly(usize),
    /// The server does not count the rest.
    MoreThan(usize),
}

/// What the report needs.
pub(super) struct Report {
    pub(super) client: Client,
    /// The watched namespace; `None` for all.
    pub(super) namespace: Option<String>,
    pub(super) events: EventRecorder,
    pub(super) builds_agent_images: bool,
    pub(super) serves_switches: bool,
    pub(super) serves_claims: bool,
}

impl Report {
    /// Reports every kind. A kind that is watched is reported after its first list, and waits for no other one.
    pub(super) async fn send(&self, caches: &Caches) {
        let listed = async {
            if !self.serves_switches {
                self.listed::<BareMetalSwitch>().await;
            }
            if !self.serves_claims {
                self.listed::<HostClaim>().await;
                self.listed::<HostDeployPolicy>().await;
            }
            self.listed::<HostNetworkAttachment>().await;
        };
        futures::join!(listed, async {
            if !self.builds_agent_images {
                self.watched(&caches.agent_images).await;
            }
        });
    }

    async fn watched<K: Kind>(&self, cache: &SharedCache<PartialObjectMeta<K>>) {
        cache.synced().await;
        let found = cache.read(|cache| {
            let first = cache
                .objects()
                .next()
                .map(|(_, object)| PartialObjectMeta::clone(object));
            Some((first?, Number::Exactly(cache.objects().count())))
        });
        self.found(found, None);
    }

    async fn listed<K: AdmissionRules>(&self)
    where
        UnservedKinds: Permits<verb::List, K>,
    {
        match first::<K>(&self.client, self.namespace.as_deref()).await {
            Ok(found) => self.found(found, K::UNSERVED.and_then(|unserved| unserved.setting)),
            Err(error) => {
                tracing::warn!(kind = K::KIND, %error, "whether objects of this kind exist, which has no controller, is not known");
            }
        }
    }

    fn found<K: Kind>(&self, found: Option<(PartialObjectMeta<K>, Number)>, setting: Option<&str>) {
        let Some((first, number)) = found else { return };
        let note = note(K::KIND, number, setting);
        tracing::warn!(kind = K::KIND, first = %Key::of(&first), "{note}");
        self.events.record(&first, Importance::Warning, KIND_UNSERVED, note);
    }
}

/// `setting` is the variable with which this program serves the kind.
fn note(kind: &str, number: Number, setting: Option<&str>) -> String {
    let number = match number {
        Number::Exactly(1) => "one exists".to_owned(),
        Number::Exactly(number) => format!("{number} exist"),
        Number::MoreThan(number) => format!("more than {number} exist"),
    };
    match setting {
        Some(setting) => format!(
            "no controller serves a {kind} without {setting}, and {number}: their content has no effect; set {setting} for \
             this program, or delete them"
        ),
        None => format!(
            "no controller of this program serves a {kind}, and {number}: their content has no effect; keep the Go manager \
             (baremetal-operator) for them, or delete them"
        ),
    }
}

/// One object of a kind and the number of all; `None` when there is none, or the kind is not installed.
async fn first<K: Kind>(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Option<(PartialObjectMeta<K>, Number)>, String> {
    let request = Request::new(K::url_path(&(), namespace)).list_metadata(&ListParams::default().limit(1));
    let request = request.map_err(|error| error.to_string())?;
    let text = match client.request_text(request).await {
        Err(error) if classify(&error) == Class::NotFound => return Ok(None),
        answer => answer.map_err(|error| error.to_string())?,
    };
    let list: ObjectList<PartialObjectMeta<K>> =
        serde_json::from_str(&text).map_err(|error| format!("unexpected answer: {error}"))?;
    let listed = list.items.len();
    let has_more = list.metadata.continue_.is_some_and(|rest| !rest.is_empty());
    let rest = list.metadata.remaining_item_count;
    let number = match rest.and_then(|rest| usize::try_from(rest).ok()) {
        Some(rest) => Number::Exactly(listed.saturating_add(rest)),
        None if has_more => Number::MoreThan(listed),
        None => Number::Exactly(listed),
    };
    Ok(list.items.into_iter().next().map(|first| (first, number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_names_the_kind_the_number_and_what_to_do() {
        for (number, text) in [
            (Number::Exactly(1), "and one exists:"),
            (Number::Exactly(7), "and 7 exist:"),
            (Number::MoreThan(1), "and more than 1 exist:"),
        ] {
            let note = note("PreprovisioningImage", number, None);
            assert!(
                note.contains("a PreprovisioningImage")
                    && note.contains(text)
                    && note.contains("; keep the Go manager"),
                "{note}"
            );
        }
    }
}
