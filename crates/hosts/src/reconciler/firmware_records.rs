//! What this process remembers of updates of the firmware: those that a node keeps, and a record that was refused.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_core::Resource;
use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;

use super::observations::Observations;
use crate::facts::RefusedReports;
use crate::node::firmware::is_worked_on;

/// A refused record is tried again after this time: nothing reports that the right is granted. A little shorter than the plan waits.
const REFUSED_FOR: Duration = Duration::from_secs(290);

type Kind = Cow<'static, str>;

fn is_refused<K: Resource<DynamicType = ()>>(
    of_host: Option<&BTreeMap<Kind, Option<i64>>>,
    object: &Observed<Arc<K>>,
) -> bool {
    let refused = of_host.and_then(|kinds| kinds.get(&K::kind(&())).copied());
    let object = object.present();
    object.is_some_and(|object| refused == Some(object.meta().generation))
}

#[derive(Default)]
pub(super) struct FirmwareRecords(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    left: BTreeMap<Key, (NodeUuid, Monotonic)>,
    refused: BTreeMap<Key, Monotonic>,
    /// The generations of the objects whose reports or owners were refused.
    unreported: BTreeMap<Key, BTreeMap<Kind, Option<i64>>>,
}

impl FirmwareRecords {
    /// How long this process observes updates that have not ended, in a node that is not cleaned. A node that is not observed now
    /// ends nothing.
    pub(super) fn left_for(&self, host: &Key, node: Option<&Node>, now: Monotonic) -> Option<Duration> {
        let node = node?;
        let mut inner = self.0.lock();
        if node.firmware_left().is_empty() || is_worked_on(node) {
            inner.left.remove(host);
            return None;
        }
        let known = inner.left.get(host).filter(|(known, _)| *known == node.uuid);
        let since = known.map_or(now, |(_, since)| *since);
        inner.left.insert(host.clone(), (node.uuid.clone(), since));
        Some(now.since(since))
    }

    /// The API server refused or accepted a change of the status of the HostFirmwareComponents.
    pub(super) fn record(&self, host: &Key, is_refused: bool, now: Monotonic) {
        let mut inner = self.0.lock();
        match is_refused {
            true => drop(inner.refused.insert(host.clone(), now)),
            false => drop(inner.refused.remove(host)),
        }
    }

    /// The API server refused the report about this object, or its owner.
    pub(super) fn refuse_report<K: Resource<DynamicType = ()>>(&self, host: &Key, object: &K) {
        let mut inner = self.0.lock();
        let of_host = inner.unreported.entry(host.clone()).or_default();
        of_host.insert(K::kind(&()), object.meta().generation);
    }

    /// Which reports about these objects as they are it refused.
    pub(super) fn refused_reports(&self, host: &Key, observed: &Observations) -> RefusedReports {
        let inner = self.0.lock();
        let of_host = inner.unreported.get(host);
        RefusedReports {
            settings: is_refused(of_host, &observed.firmware_settings),
            components: is_refused(of_host, &observed.firmware_components),
            policy: is_refused(of_host, &observed.update_policy),
        }
    }

    /// Whether it refused one a short time ago.
    pub(super) fn is_refused(&self, host: &Key, now: Monotonic) -> bool {
        let refused = self.0.lock().refused.get(host).copied();
        refused.is_some_and(|at| now.since(at) < REFUSED_FOR)
    }

    pub(super) fn remove(&self, host: &Key) {
        let mut inner = self.0.lock();
        inner.left.remove(host);
        inner.refused.remove(host);
        inner.unreported.remove(host);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::fixture;

    fn node(state: &str, left: &serde_json::Value) -> Node {
        let mut node = fixture::node(state);
        node["driver_internal_info"] = json!({ "redfish_fw_updates": left });
        serde_json::from_value(node).unwrap()
    }

    fn host() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        }
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    #[test]
    fn updates_are_left_only_in_a_node_that_is_not_cleaned() {
        let records = FirmwareRecords::default();
        let left = json!([{ "component": "bios", "url": "http://f/1", "power_timeout": 300 }]);
        let seen = |state: &str, left: &serde_json::Value, second| {
            records.left_for(&host(), Some(&node(state, left)), at(second))
        };
        assert_eq!(seen("clean wait", &left, 0), None);
        assert_eq!(seen("clean failed", &left, 10), Some(Duration::ZERO));
        assert_eq!(records.left_for(&host(), None, at(20)), None);
        assert_eq!(seen("manageable", &left, 70), Some(Duration::from_secs(60)));
        assert_eq!(seen("manageable", &json!([]), 80), None);
        assert_eq!(
            seen("manageable", &left, 90),
            Some(Duration::ZERO),
            "of a later cleaning"
        );
    }

    #[test]
    fn refusal_is_tried_again_after_some_minutes() {
        let records = FirmwareRecords::default();
        assert!(!records.is_refused(&host(), at(0)));
        records.record(&host(), true, at(0));
        assert!(records.is_refused(&host(), at(60)) && !records.is_refused(&host(), at(300)));
        records.record(&host(), false, at(60));
        assert!(!records.is_refused(&host(), at(61)));
    }
}
