//! The control plane itself: it gets an address from a load balancer, starts in many small steps, and is ready.

use std::time::Duration;

use serde_json::json;

use crate::kinds::TENANT;
use crate::view::{Object, text_of};
use crate::write::{Deed, Write, protect, release, status};

const FINALIZER: &str = "finalizer.kamaji.clastix.io";
/// What a load balancer gives to a tenant for which no address was chosen.
pub(super) const BALANCED: &str = "198.51.100.153";
/// Until the load balancer has given it.
const ADDRESS: Duration = Duration::from_secs(2);
/// Certificates, kubeconfigs, addons: as many as were recorded, as far apart.
const STEPS: i64 = 20;
const STEP: Duration = Duration::from_millis(250);

/// What happens next to a tenant, and after which time.
pub(super) fn next(tenant: &Object) -> Option<(Duration, Vec<Write>)> {
    let at = tenant.text("/status/controlPlaneEndpoint");
    if tenant.is_going() {
        let stop = (!at.is_empty()).then(|| Write::Site(at.to_owned(), Deed::Stop));
        let gone = stop.into_iter().chain(release(TENANT, tenant, FINALIZER)).collect();
        return Some((STEP, gone));
    }
    let step = tenant.number("/status/step").unwrap_or_default();
    let told = |what| status(TENANT, tenant, what).into_iter().collect::<Vec<_>>();
    if at.is_empty() {
        let network = tenant.part("/spec/networkProfile");
        let host = Some(text_of(&network, "address")).filter(|host| !host.is_empty());
        let port = tenant.number("/spec/networkProfile/port").unwrap_or(6443);
        let endpoint = format!("{}:{port}", host.unwrap_or(BALANCED));
        let mut due: Vec<Write> = protect(TENANT, tenant, FINALIZER).into_iter().collect();
        due.extend(told(json!({ "controlPlaneEndpoint": endpoint })));
        return Some((ADDRESS, due));
    }
    if step < STEPS {
        return Some((STEP, told(json!({ "step": step.saturating_add(1) }))));
    }
    let mut due = told(json!({ "ready": true }));
    if !due.is_empty() {
        due.insert(0, Write::Site(at.to_owned(), Deed::Start));
    }
    (!due.is_empty()).then_some((STEP, due))
}
