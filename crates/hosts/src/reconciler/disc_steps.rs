//! The reads and writes that the discs of hosts need.

use std::sync::Arc;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_domain::clock::Monotonic;
use metal3_ironic::Error;
use metal3_ironic::calls::{NodeRef, hardware};
use metal3_runtime::cache::Key;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::{Observed, PlannedEvent, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{Mode, WriteError, Writer, Written};

use super::HostReconciler;
use super::act::{Executor, Outcome};
use super::discs::{is_about_disc, is_final, text};
use super::ironic_session::chosen;
use super::observations::Observations;
use super::observer::Observer;
use crate::action::Action;
use crate::facts::{DiscFacts, DiscRefusal, DriveView, FoundNode};
use crate::names::disc_reason::{EJECTED, INSERTED};
use crate::needs::Hosts;
use crate::node::drive::Drive;

impl HostReconciler {
    pub(super) fn disc_facts<'a>(&self, key: &Key, observed: &'a Observations, now: Monotonic) -> DiscFacts<'a> {
        let object = observed.data_image.as_deref();
        let present = object.clone().into_present();
        DiscFacts {
            attempts: self.discs.view(
                key,
                &observed.host,
                (present, observed.newest_node()),
                (self.led(), now),
            ),
            object,
            freshness: observed.data_image_freshness(now),
            drive: observed.drive.as_ref(),
        }
    }
}

impl Observer {
    /// One that cannot be read any more is unknown: nothing waits for it.
    pub(super) async fn live_data_image(
        &self,
        host: &Key,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<(), Fault> {
        match writer.read(&self.caches.data_images, host).await {
            Err(Fault::Transient {
                category: Category::FORBIDDEN | Category::NOT_FOUND,
                ..
            }) => {
                tracing::warn!(host = %host, "its DataImage cannot be read; look at the roles and the installed kinds");
                observed.data_image = Observed::Unknown(UnknownReason::NotPermitted);
            }
            found => observed.set_data_image(found?, self.clock.monotonic()),
        }
        Ok(())
    }

    /// Reads the virtual drive of the node that was observed in this reconcile.
    pub(super) async fn drive(&self, observed: &mut Observations) -> Result<(), Error> {
        let Observed::Present(FoundNode::Own(node, _)) = &observed.node else {
            return Ok(());
        };
        let node = Arc::clone(node);
        let call = hardware::virtual_media(&NodeRef::Uuid(node.uuid.clone()));
        let view = match chosen(observed.ironic.as_ref())?
            .read(observed.send_permit.as_ref(), &call)
            .await
        {
            Ok(media) => DriveView::Known(Drive::of(&media, &node)),
            Err(error) if is_final(&error) => DriveView::Unsupported(text(&error)),
            // Ironic has just answered about the node, so its BMC is the reason.
            Err(error @ Error::Timeout { .. }) => DriveView::Failed(text(&error)),
            Err(error) if is_about_disc(&error) => DriveView::Failed(text(&error)),
            Err(error) => return Err(error),
        };
        observed.drive = Observed::Present(view);
        Ok(())
    }
}

impl Executor<'_> {
    /// Writes what the rest of the plan relies on.
    pub(super) async fn record_disc(&self, action: Action, observed: &mut Observations) -> Result<Outcome, Fault> {
        let cache = &self.caches.data_images;
        let (written, event) = match action {
            Action::ProtectDisc(patch) => (self.writer.patch::<DataImage>(cache, self.key, patch).await, None),
            Action::RecordDisc { patch, event } => {
                let written = self.writer.patch_status::<DataImage>(cache, self.key, patch).await;
                (written, event)
            }
            _ => return Ok(Outcome::Done),
        };
        match written.map_err(Fault::from) {
            Err(Fault::Transient {
                category: Category::FORBIDDEN,
                ..
            }) => {
                tracing::warn!(host = %self.key, "its DataImage cannot be written, so its virtual drive is left as it is; look at the roles");
                self.discs.give_up(self.key);
                Ok(Outcome::Declined)
            }
            written => Ok(match self.store_data_image(written?, observed) {
                true => {
                    self.record_disc_event(event, observed);
                    Outcome::Done
                }
                // Nothing would eject what is inserted for it.
                false => Outcome::Declined,
            }),
        }
    }

    pub(super) async fn report_disc(
        &self,
        patch: MergePatch,
        event: Option<PlannedEvent>,
        observed: &mut Observations,
    ) -> Result<(), WriteError> {
        let cache = &self.caches.data_images;
        let written = self.writer.patch_status::<DataImage>(cache, self.key, patch).await?;
        if self.store_data_image(written, observed) {
            self.record_disc_event(event, observed);
        }
        Ok(())
    }

    /// Stores what a write returned. `false`: the object is gone.
    fn store_data_image(&self, written: Written<DataImage>, observed: &mut Observations) -> bool {
        let now = self.clock.monotonic();
        match written {
            Written::Object(object) => observed.set_data_image(Some(object), now),
            Written::Deleted => {
                observed.set_data_image(None, now);
                return false;
            }
            Written::Unchanged | Written::DryRun => {}
        }
        true
    }

    fn record_disc_event(&self, event: Option<PlannedEvent>, observed: &Observations) {
        if let (Some(event), Observed::Present(object)) = (event, &observed.data_image)
            && self.writer.mode() != Mode::ObserveOnly
        {
            if [INSERTED, EJECTED].contains(&event.reason) {
                self.discs.announced(self.key);
            }
            self.events
                .record(&**object, event.importance, event.reason, event.message);
        }
    }

    /// Ironic rejected an order because of the disc, the drive or its driver.
    pub(super) fn disc_rejected(&self, verb: &'static str, error: &Error, observed: &mut Observations) {
        let message = text(error);
        tracing::warn!(host = %self.key, verb, why = message, "a request about the disc of the host was rejected");
        let is_final = is_final(error);
        self.discs.refused(self.key, DiscRefusal { message, is_final });
        observed.forget_node();
    }
}
