//! Reads of the objects that ask for changes of BIOS and firmware.
//!
//! What a cache contains and cannot be read again is not forgotten: it asks for something.

use std::sync::Arc;

use kube_core::Resource;
use metal3_api::metal3::v1alpha1::HostFirmwareComponents;
use metal3_runtime::cache::{Cache, Key};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::Writer;

use super::observations::Observations;
use super::observer::Observer;
use crate::needs::Hosts;

impl Observer {
    /// A kind that is not served now may be served again, with its objects.
    pub(super) fn cached_components(&self, host: &Key) -> Observed<Arc<HostFirmwareComponents>> {
        match self.caches.firmware_components.read(Cache::is_served) {
            true => self.caches.firmware_components.find(host),
            false => Observed::Unknown(UnknownReason::Unreadable(no_kind::<HostFirmwareComponents>())),
        }
    }

    pub(super) async fn live_components(
        &self,
        host: &Key,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<(), Fault> {
        let is_known = matches!(observed.firmware_components, Observed::Present(_));
        match readable(writer.read(&self.caches.firmware_components, host).await)? {
            Ok(found) => observed.set_firmware_components(found, self.clock.monotonic()),
            Err(why) if is_known => observed.unreadable = Some(why),
            Err(why) => observed.firmware_components = Observed::Unknown(UnknownReason::Unreadable(why)),
        }
        Ok(())
    }

    /// Settings that are not known and of a kind that is not served are none: nothing asks for them.
    pub(super) async fn live_settings(
        &self,
        host: &Key,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<(), Fault> {
        let is_known = matches!(observed.firmware_settings, Observed::Present(_));
        let read = writer.read(&self.caches.firmware_settings, host).await;
        let found = match read {
            Err(Fault::Transient {
                category: Category::NOT_FOUND,
                ..
            }) if !is_known => None,
            read if is_known => match readable(read)? {
                Ok(found) => found,
                Err(why) => {
                    observed.unreadable = Some(why);
                    return Ok(());
                }
            },
            read => read?,
        };
        observed.set_firmware_settings(found, self.clock.monotonic());
        Ok(())
    }

    /// A policy that cannot be read allows nothing.
    pub(super) async fn live_policy(
        &self,
        host: &Key,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<(), Fault> {
        let found = match readable(writer.read(&self.caches.update_policies, host).await)? {
            Ok(found) => found,
            Err(why) => {
                tracing::warn!(host = %host, why, "its HostUpdatePolicy cannot be read, so it is serviced at no reboot");
                None
            }
        };
        observed.set_update_policy(found, self.clock.monotonic());
        Ok(())
    }
}

/// The object, or the right or the definition without which it is not known.
fn readable<K: Resource<DynamicType = ()>>(read: Result<Option<K>, Fault>) -> Result<Result<Option<K>, String>, Fault> {
    match read {
        Err(Fault::Transient { category, .. }) if category == Category::FORBIDDEN => {
            Ok(Err(format!("the account of this program may not get {}", kind::<K>())))
        }
        Err(Fault::Transient { category, .. }) if category == Category::NOT_FOUND => Ok(Err(no_kind::<K>())),
        read => read.map(Ok),
    }
}

pub(super) fn no_kind<K: Resource<DynamicType = ()>>() -> String {
    format!("the API server does not serve {}", kind::<K>())
}

fn kind<K: Resource<DynamicType = ()>>() -> String {
    format!("{}.{}", K::plural(&()), K::group(&()))
}
