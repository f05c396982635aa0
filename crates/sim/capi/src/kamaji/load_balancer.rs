//! A load balancer: it assigns to every Service of type LoadBalancer the address of its annotation, or a default.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::tenant::{SERVICE, load_balancer_ip};
use crate::program::{Parts, perform};
use crate::view::Object;
use crate::watch::{WatchEvent, follow};
use crate::write::{Write, status};

/// Default address.
pub(super) const ADDRESS: &str = "198.51.100.153";
/// Annotation that requests an address.
const ADDRESS_ANNOTATION: &str = "metallb.io/loadBalancerIPs";
/// Delay of an assignment.
const ASSIGNMENT_DELAY: Duration = Duration::from_secs(2);

/// Runs until the future is dropped.
pub async fn run(parts: Parts) {
    let (to, mut events) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), SERVICE.clone(), None, to, |event| event));
    while let Some(event) = events.recv().await {
        while tasks.try_join_next().is_some() {}
        let WatchEvent::Applied(service) = event else { continue };
        if let Some(given) = assign_address(&service) {
            let parts = parts.clone();
            tasks.spawn(async move {
                tokio::time::sleep(ASSIGNMENT_DELAY).await;
                if let Err(why) = perform(&parts, &given).await {
                    tracing::debug!(?given, "not written: {why}");
                }
            });
        }
    }
}

/// Assigns an address to a Service that needs one.
fn assign_address(service: &Object) -> Option<Write> {
    if service.text("/spec/type") != "LoadBalancer" || load_balancer_ip(service).is_some() {
        return None;
    }
    let address = service.annotation(ADDRESS_ANNOTATION).unwrap_or(ADDRESS);
    status(
        SERVICE,
        service,
        json!({ "loadBalancer": { "ingress": [{ "ip": address }] } }),
    )
}
