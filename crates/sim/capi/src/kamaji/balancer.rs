//! A load balancer: it gives every Service that asks for one the address that its annotation names, or else its own.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::tenant::{SERVICE, balanced};
use crate::program::{Parts, perform};
use crate::view::Object;
use crate::watch::{News, follow};
use crate::write::{Write, status};

/// What it gives where no address is asked for.
pub(super) const ADDRESS: &str = "198.51.100.153";
/// How those who know their address ask for it.
const ASKED: &str = "metallb.io/loadBalancerIPs";
/// Until it has given it.
const TAKES: Duration = Duration::from_secs(2);

/// Runs it for ever. Dropping the future ends it.
pub async fn run(parts: Parts) {
    let (to, mut news) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), SERVICE.clone(), None, to, |news| news));
    while let Some(heard) = news.recv().await {
        while tasks.try_join_next().is_some() {}
        let News::Seen(service) = heard else { continue };
        if let Some(given) = give(&service) {
            let parts = parts.clone();
            tasks.spawn(async move {
                tokio::time::sleep(TAKES).await;
                if let Err(why) = perform(&parts, &given).await {
                    tracing::debug!(?given, "not written: {why}");
                }
            });
        }
    }
}

/// What it does about a Service.
fn give(service: &Object) -> Option<Write> {
    if service.text("/spec/type") != "LoadBalancer" || balanced(service).is_some() {
        return None;
    }
    let address = service.annotation(ASKED).unwrap_or(ADDRESS);
    status(
        SERVICE,
        service,
        json!({ "loadBalancer": { "ingress": [{ "ip": address }] } }),
    )
}
