//! What the cache does not keep of an object.

use kube_core::Resource;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Removes bookkeeping that no controller reads.
pub(crate) fn prune<K: Resource>(object: &mut K) {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED);
    }
}
