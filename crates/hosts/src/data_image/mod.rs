//! The controller of DataImage: an image in the virtual drive of the host of the same name.
//!
//! | Step | Where |
//! |---|---|
//! | own the object, and let a deleted one go | `plan`, here |
//! | insert and eject the image before the host starts | [`crate::plan`]: `disc` |
//!
//! Nothing is polled: an object that is not deleted costs no request. One that is deleted costs live reads of the API server, of
//! Ironic and of its BMC, one object of each Ironic at a time, and again when its host changes or after some minutes.
//!
//! Invariants: nothing is changed in Ironic; a finalizer is removed only by a patch of the version that was read, after live reads
//! that show that the drive does not hold the image, or with an Event if nothing can eject it any more.

mod facts;
mod observe;
mod plan;
mod sightings;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use metal3_api::metal3::names::DATA_IMAGE_FINALIZER;
use metal3_api::metal3::v1alpha1::DataImage;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::{Changes, remove_finalizer};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Queue;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Writer, Written};
use serde_json::Value;

use crate::ironics::{Ironics, Place, Places};
use crate::live::{GoManagerCheck, NodeSearch, Reading};
use crate::names::disc_reason::LEFT;
use crate::names::wait_reason::OBJECT_UNREADABLE;
use crate::needs::DataImages;
use crate::node::reported::owners;
use crate::plan::wait;
use crate::reconciler::caches::Caches as HostCaches;
use facts::{Facts, Object, Read};
use observe::{Found, Observer};
use plan::{Step, Wait, plan};
use sightings::Sightings;
pub use watches::{DataImageCache, DataImageIndexes};

/// Reads per decision, and its end.
const STEPS: usize = 8;

/// The dependencies of the controller.
pub struct Parts {
    /// The caches of the controller of hosts: hosts and DataImages.
    pub of_hosts: HostCaches,
    /// The Ironics.
    pub ironics: Ironics,
    /// Whether a Go manager runs now.
    pub go_manager: GoManagerCheck,
    /// Whether a node is a host's also by the host's name without the namespace.
    pub plain_node_names: bool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The reconciler of DataImages.
pub struct DataImageReconciler {
    cache: DataImageCache,
    observer: Observer,
    events: EventRecorder,
    clock: Arc<dyn Clock>,
    seen: Sightings,
    places: Places,
}

/// At once for one Ironic: each object that is deleted reads from it and a BMC.
const WORKERS: usize = 1;

/// Creates the controller. It subscribes to the caches at once.
pub fn controller(parts: Parts, writer: Writer<DataImages>) -> Controller<DataImageReconciler> {
    let cache = parts.of_hosts.data_images.clone();
    let of_host = cache.indexes();
    let queue = Queue::new(Arc::clone(&parts.clock));
    let places = Places::new(&parts.ironics, &parts.of_hosts.hosts, WORKERS, &queue.waker());
    let workers = places.workers();
    let reconciler = DataImageReconciler {
        cache: cache.clone(),
        observer: Observer {
            nodes: NodeSearch {
                ironics: parts.ironics,
                plain_node_names: parts.plain_node_names,
            },
            go_manager: parts.go_manager,
            hosts: parts.of_hosts.hosts.clone(),
        },
        events: parts.events,
        clock: Arc::clone(&parts.clock),
        seen: Sightings::default(),
        places,
    };
    Controller::with_queue("dataimage", queue, writer, reconciler)
        .watches(&cache, |change| change.key())
        .watches(&parts.of_hosts.hosts, move |change| {
            let host = change.key();
            host.map_or_else(Vec::new, |host| of_host.read(|indexes| indexes.of_host(host)))
        })
        .workers(workers)
        .metrics(&parts.metrics)
}

impl Reconciler for DataImageReconciler {
    type Key = Key;
    type Role = DataImages;

    async fn reconcile(&self, key: &Key, writer: &Writer<DataImages>) -> Result<Next, Fault> {
        let object = match self.cache.find(key) {
            Observed::Present(object) => object,
            other => {
                self.places.leave(key);
                return Ok(self.without_object(key, other));
            }
        };
        // It has the name of its host.
        let _seat = match self.places.take(key, key) {
            Place::Taken(seat) => seat,
            Place::None(why) => return Ok(wait::on_node(why)),
        };
        self.reconcile_object(key, object, writer).await
    }
}

impl DataImageReconciler {
    fn without_object(&self, key: &Key, found: Observed<Arc<DataImage>>) -> Next {
        match found {
            Observed::Unknown(UnknownReason::Unreadable(why)) => Next::waiting(OBJECT_UNREADABLE, why),
            // The kind need not be installed, and may not be permitted.
            Observed::Unknown(_) | Observed::Present(_) => Next::Done,
            Observed::Absent => {
                self.seen.remove(key);
                Next::Done
            }
        }
    }

    async fn reconcile_object(
        &self,
        key: &Key,
        mut object: Arc<DataImage>,
        writer: &Writer<DataImages>,
    ) -> Result<Next, Fault> {
        let (mut facts, mut found) = (self.facts(key, &object), Found::default());
        for _ in 0..STEPS {
            match plan(&facts) {
                Step::Done => return Ok(Next::Done),
                Step::Read(Read::Object) => {
                    let live = writer.read::<DataImage>(&self.cache, key).await?;
                    let Some(live) = live.filter(|live| live.metadata.uid == object.metadata.uid) else {
                        return Ok(Next::Requeue);
                    };
                    object = Arc::new(live);
                    facts.object = Object::of(&object, true);
                }
                Step::Read(read) => {
                    self.observer
                        .read(read, (key, &object), (&mut facts, &mut found), writer)
                        .await;
                    (facts.absent_for, facts.starting_for) =
                        self.seen.of_host(key, &facts.host, self.clock.monotonic());
                }
                Step::Adopt => return self.adopt(key, (&object, &found), writer).await,
                Step::Release { is_left } => return self.release(key, &object, is_left, writer).await,
                Step::Wait(wait) => return self.wait(key, &object, wait, writer).await,
            }
        }
        Err(Fault::bug("a decision about a DataImage does not end"))
    }

    fn facts(&self, key: &Key, object: &DataImage) -> Facts {
        let object_view = Object::of(object, false);
        Facts {
            object: object_view,
            deleted_for: self.seen.deleted_for(key, object, self.clock.monotonic()),
            cached_host: self.observer.cached_host(key, object),
            go_manager: Reading::NotRead,
            host: Reading::NotRead,
            absent_for: Duration::ZERO,
            starting_for: Duration::ZERO,
            node: Reading::NotRead,
            drive: Reading::NotRead,
        }
    }

    /// The owner and the finalizer in one patch. The finalizer of a Go manager stays as it is.
    async fn adopt(
        &self,
        key: &Key,
        (object, found): (&DataImage, &Found),
        writer: &Writer<DataImages>,
    ) -> Result<Next, Fault> {
        let Some(host) = &found.host else {
            return Ok(Next::Done);
        };
        let mut adopted = object.clone();
        if let Some(owners) = owners(&object.metadata, host, false) {
            adopted.metadata.owner_references = Some(owners);
        }
        let finalizers = adopted.metadata.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|name| name == DATA_IMAGE_FINALIZER) {
            finalizers.push(DATA_IMAGE_FINALIZER.to_owned());
        }
        let at = Identity::of(object).map_err(|error| bug(key, &error))?;
        if let Some(patch) = Changes::between(&document(key, object)?, &document(key, &adopted)?).main {
            let patch = patch.with_precondition(&at.version);
            writer.patch::<DataImage>(&self.cache, key, patch).await?;
        }
        Ok(Next::Done)
    }

    async fn release(
        &self,
        key: &Key,
        object: &DataImage,
        is_left: bool,
        writer: &Writer<DataImages>,
    ) -> Result<Next, Fault> {
        let at = Identity::of(object).map_err(|error| bug(key, &error))?;
        let present = object.metadata.finalizers.as_deref().unwrap_or_default();
        let Some(patch) = remove_finalizer(present, DATA_IMAGE_FINALIZER, &at.version) else {
            return Ok(Next::Done);
        };
        let written = writer.patch::<DataImage>(&self.cache, key, patch).await?;
        if is_left && matches!(written, Written::Object(_) | Written::Deleted) {
            let note = "its host is detached or has no node in Ironic, so the virtual drive of the machine may still hold the \
                        image; eject it at the BMC";
            self.events.record(object, Importance::Warning, LEFT, note.to_owned());
        }
        Ok(Next::Done)
    }

    /// Reports the wait, once: the status has it afterwards.
    async fn wait(
        &self,
        key: &Key,
        object: &DataImage,
        wait: Wait,
        writer: &Writer<DataImages>,
    ) -> Result<Next, Fault> {
        let mut reporting = object.clone();
        let error = reporting.status.error.get_or_insert_default();
        if wait.is_reported && error.message != wait.message {
            error.message.clone_from(&wait.message);
            error.count = error.count.saturating_add(1);
            let at = Identity::of(object).map_err(|error| bug(key, &error))?;
            if let Some(patch) = Changes::between(&document(key, object)?, &document(key, &reporting)?).status {
                let patch = patch.with_precondition(&at.version);
                let written = writer.patch_status::<DataImage>(&self.cache, key, patch).await?;
                if written.object().is_some() {
                    let message = wait.message.clone();
                    self.events.record(object, Importance::Warning, wait.reason, message);
                }
            }
        }
        Ok(match wait.recheck {
            Some(recheck) => Next::waiting_with_recheck(wait.reason, wait.message, recheck),
            None => Next::waiting(wait.reason, wait.message),
        })
    }
}

fn document(key: &Key, object: &DataImage) -> Result<Value, Fault> {
    serde_json::to_value(object).map_err(|error| bug(key, &error))
}

fn bug(key: &Key, error: &dyn std::error::Error) -> Fault {
    Fault::bug(format!("{key}: {error}"))
}
