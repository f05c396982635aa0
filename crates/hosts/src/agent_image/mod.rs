//! The controller of PreprovisioningImage, for `--build-preprov-image`: it serves the configured images
//! (`DEPLOY_ISO_URL`, or `DEPLOY_KERNEL_URL` and `DEPLOY_RAMDISK_URL`, and those of an architecture).
//!
//! | Step | Where |
//! |---|---|
//! | map changes of images and Secrets | `watches` |
//! | plan | `plan` |
//!
//! Nothing is polled: an image that is served costs no request, and one that waits for a Secret is planned again when the
//! Secret changes. Of a Secret only the metadata is read.
//!
//! Invariants: only images with the annotation `preprovisioningimage.metal3.io/builder: capm3` are written. The
//! controller of hosts sets it when it creates an image for which something is configured, and this controller when it finds
//! an image that no builder has begun with, or one that the Go manager served from the same configuration. It is never
//! removed and never set on the image of another builder, so a status has one writer.

mod plan;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_domain::clock::Clock;
use metal3_domain::uri::public_text;
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::names::image_reason::OBJECT_UNREADABLE;
use crate::names::reason::AGENT_IMAGE_REFUSED;
use crate::needs::AgentImages;
use crate::node::Ramdisks;
use crate::plan::agent_image::{TAKEN_BACK, has_effect};
use crate::plan::wait::AGENT_IMAGE_RETRY;
use crate::reconciler::caches::Caches;
use plan::{Facts, Step, is_left, plan};
pub use watches::ImageIndexes;

/// The dependencies of the controller.
pub struct Parts {
    /// The caches of the controller of hosts: images and Secrets.
    pub caches: Caches,
    /// What is configured.
    pub ramdisks: Ramdisks,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The reconciler of images.
pub struct ImageReconciler {
    caches: Caches,
    ramdisks: Ramdisks,
    clock: Arc<dyn Clock>,
}

/// Creates the controller. It subscribes to the caches at once.
pub fn controller(parts: Parts, writer: Writer<AgentImages>) -> Controller<ImageReconciler> {
    let caches = parts.caches.clone();
    let of_secret = caches.agent_images.indexes();
    let reconciler = ImageReconciler {
        caches: parts.caches,
        ramdisks: parts.ramdisks,
        clock: Arc::clone(&parts.clock),
    };
    Controller::new("preprovisioningimage-builder", parts.clock, writer, reconciler)
        .watches(&caches.agent_images, |change| change.key())
        .watches(&caches.secrets, move |change| {
            let secret = change.key();
            secret.map_or_else(Vec::new, |secret| of_secret.read(|indexes| indexes.of_secret(&secret)))
        })
        .metrics(&parts.metrics)
}

impl Reconciler for ImageReconciler {
    type Key = Key;
    type Role = AgentImages;

    async fn reconcile(&self, key: &Key, writer: &Writer<AgentImages>) -> Result<Next, Fault> {
        // The kind need not be installed, and may not be permitted.
        let image = match self.caches.agent_images.find(key) {
            Observed::Present(image) => image,
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(OBJECT_UNREADABLE, why)),
            Observed::Unknown(_) | Observed::Absent => return Ok(Next::Done),
        };
        let name = image.spec.network_data_name.as_deref().unwrap_or_default();
        let secret = self.caches.secrets.find(&key.sibling(name));
        let facts = Facts {
            image: &image,
            secret: secret.map(|secret| secret.metadata.resource_version.clone().unwrap_or_default()),
            ramdisks: &self.ramdisks,
            now: Time::new(self.clock.now()),
        };
        let cache = &self.caches.agent_images;
        match plan(&facts) {
            Step::Done => {
                if let Some(url) = image.status.image_url.as_deref().filter(|_| is_left(&facts)) {
                    let url = public_text(url);
                    tracing::info!(image = %key, url, "another builder serves this image, so DEPLOY_*_URL is not used");
                }
                Ok(Next::Done)
            }
            Step::Own(owned) => {
                if let Some(patch) = changes(key, &image, &owned)?.0 {
                    let sent = patch.clone().into_document();
                    let written = writer.patch::<PreprovisioningImage>(cache, key, patch).await?;
                    if written.object().is_some_and(|stored| !has_effect(&sent, &stored)) {
                        tracing::warn!(image = %key, why = TAKEN_BACK, "the image is not served");
                        let message = TAKEN_BACK.to_owned();
                        return Ok(Next::waiting_with_recheck(
                            AGENT_IMAGE_REFUSED,
                            message,
                            AGENT_IMAGE_RETRY,
                        ));
                    }
                }
                // The status follows. An own write enqueues nothing.
                Ok(Next::Requeue)
            }
            Step::Report(reported) => {
                if let Some(patch) = changes(key, &image, &reported)?.1 {
                    writer.patch_status::<PreprovisioningImage>(cache, key, patch).await?;
                }
                Ok(Next::Done)
            }
        }
    }
}

type Patches = (Option<MergePatch>, Option<MergePatch>);

/// The patches of the object and of its status, with the version as precondition.
fn changes(key: &Key, from: &PreprovisioningImage, to: &PreprovisioningImage) -> Result<Patches, Fault> {
    let bug = |error: &dyn std::error::Error| Fault::bug(format!("{key}: {error}"));
    let document = |image: &PreprovisioningImage| serde_json::to_value(image).map_err(|error| bug(&error));
    let changes = Changes::between(&document(from)?, &document(to)?);
    let at = Identity::of(from).map_err(|error| bug(&error))?;
    let with_version = |patch: MergePatch| patch.with_precondition(&at.version);
    Ok((changes.main.map(with_version), changes.status.map(with_version)))
}
