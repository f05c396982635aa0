//! The PreprovisioningImages of hosts: what the cache contains, and what the API server refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::v1alpha1::{PreprovisioningImage, ProvisioningState};
use metal3_domain::clock::Monotonic;
use metal3_domain::uri::public_text;
use metal3_runtime::cache::{Cache, Key};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Fault;
use metal3_runtime::write::{WriteError, WriteErrorKind, Written};
use parking_lot::Mutex;

use super::act::{Executor, Outcome};
use super::firmware_reads::no_kind;
use super::observations::Observations;
use super::observer::Observer;
use crate::plan::agent_image::{TAKEN_BACK, has_effect};
use crate::plan::wait::AGENT_IMAGE_RETRY;

/// Why an image was refused, and when.
#[derive(Default)]
pub(super) struct AgentImages {
    refused: Mutex<BTreeMap<Key, (String, Monotonic)>>,
}

impl AgentImages {
    /// Why the image of the host was refused, unless it is time to try again.
    pub(super) fn refused(&self, host: &Key, now: Monotonic) -> Option<String> {
        let mut refused = self.refused.lock();
        refused.retain(|_, (_, at)| now.since(*at) < AGENT_IMAGE_RETRY);
        refused.get(host).map(|(why, _)| why.clone())
    }

    fn record(&self, host: &Key, why: String, now: Monotonic) {
        self.refused.lock().insert(host.clone(), (why, now));
    }

    pub(super) fn remove(&self, host: &Key) {
        self.refused.lock().remove(host);
    }
}

impl Observer {
    /// Without the flag the kind is not watched, and nothing reads it.
    pub(super) fn cached_agent_image(&self, host: &Key) -> Observed<Arc<PreprovisioningImage>> {
        if !self.builds_agent_images {
            return Observed::Unknown(UnknownReason::NotRead);
        }
        match self.caches.agent_images.read(Cache::is_served) {
            true => self.caches.agent_images.find(host),
            false => Observed::Unknown(UnknownReason::Unreadable(no_kind::<PreprovisioningImage>())),
        }
    }
}

impl Executor<'_> {
    pub(super) async fn create_agent_image(
        &self,
        image: &PreprovisioningImage,
        observed: &mut Observations,
    ) -> Result<Outcome, Fault> {
        let cache = &self.caches.agent_images;
        match self.writer.create(cache, image).await {
            Err(error) if error.kind == WriteErrorKind::AlreadyExists => {
                // The watch has not shown it, or the response to an earlier creation is lost.
                let found = self.writer.read::<PreprovisioningImage>(cache, self.key).await?;
                observed.agent_image = Observed::from(found.map(Arc::new));
                Ok(Outcome::Done)
            }
            written => self.store_agent_image(written, observed),
        }
    }

    pub(super) async fn patch_agent_image(
        &self,
        patch: MergePatch,
        observed: &mut Observations,
    ) -> Result<Outcome, Fault> {
        let cache = &self.caches.agent_images;
        let sent = patch.clone().into_document();
        let written = self.writer.patch::<PreprovisioningImage>(cache, self.key, patch).await;
        if observed.host.metadata.deletion_timestamp.is_some() {
            return match written {
                // What it is refused would hold the host for ever. The controller of finalizers goes on once the host is gone.
                Err(error) if is_refusal(error.kind) => {
                    tracing::warn!(host = %self.key, why = refusal(&error), "the image of its agent is not released");
                    Ok(Outcome::Done)
                }
                // The host keeps its finalizer until the image is released.
                written => written.map(|_| Outcome::Done).map_err(Fault::from),
            };
        }
        if let Ok(Written::Object(object)) = &written
            && !has_effect(&sent, object)
        {
            self.refuse_agent_image(TAKEN_BACK.to_owned());
        }
        self.store_agent_image(written, observed)
    }

    fn refuse_agent_image(&self, why: String) {
        tracing::warn!(host = %self.key, why, "the image of its agent is refused");
        self.agent_images.record(self.key, why, self.clock.monotonic());
    }

    fn store_agent_image(
        &self,
        written: Result<Written<PreprovisioningImage>, WriteError>,
        observed: &mut Observations,
    ) -> Result<Outcome, Fault> {
        // An erasure waits for no image, and so for no webhook that answers for one.
        let is_erased = observed.host.status.provisioning.state == ProvisioningState::Deprovisioning;
        match written {
            Err(error) if is_refusal(error.kind) || (is_erased && is_unanswered(error.kind)) => {
                self.refuse_agent_image(refusal(&error));
                Ok(Outcome::ImageRefused)
            }
            written => {
                match written? {
                    Written::Object(object) => observed.agent_image = Observed::Present(Arc::new(object)),
                    Written::Deleted => observed.agent_image = Observed::Absent,
                    Written::Unchanged | Written::DryRun => {}
                }
                Ok(Outcome::Done)
            }
        }
    }
}

/// Whether the same request is refused again.
const fn is_refusal(kind: WriteErrorKind) -> bool {
    matches!(
        kind,
        WriteErrorKind::Invalid | WriteErrorKind::Forbidden | WriteErrorKind::NotFound
    )
}

/// Whether the server, or what it asks, cannot answer now.
const fn is_unanswered(kind: WriteErrorKind) -> bool {
    matches!(
        kind,
        WriteErrorKind::Terminating | WriteErrorKind::Throttled { .. } | WriteErrorKind::OutcomeUnknown
    )
}

fn refusal(error: &WriteError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    public_text(&cause.unwrap_or_else(|| error.to_string()))
}
