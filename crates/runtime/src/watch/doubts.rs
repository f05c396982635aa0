//! Objects of which a write left nobody sure what the server holds are read afresh, one request each.
//!
//! Without this the author of a lost write would look again while the hub shows the state before it, and write once
//! more: a conflict with itself.

use std::time::Duration;

use kube::Client;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::hub::{Doubt, Indexes, Key, SharedHub};

use super::decode::{self, Garbled, Page};
use super::pace::Pace;
use super::scope::Requests;
use super::task::Trouble;

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Reads what is doubted, for ever.
pub(super) async fn resolve<K: Resource + DeserializeOwned, I: Indexes<K>>(
    client: &Client,
    requests: &Requests,
    hub: &SharedHub<K, I>,
    mut doubts: UnboundedReceiver<Doubt>,
    seed: u64,
) {
    let mut pace = Pace::seeded(seed);
    loop {
        let Some(doubt) = doubts.recv().await else {
            // Another task resolves them now.
            return std::future::pending().await;
        };
        while let Err(trouble) = look(client, requests, hub, &doubt.object).await {
            tracing::warn!(kind = %requests.kind(), object = %doubt.object, %trouble, "object not read afresh");
            tokio::time::sleep(pace.fail().max(trouble.retry_after())).await;
        }
        pace.succeed();
    }
}

async fn look<K: Resource + DeserializeOwned, I: Indexes<K>>(
    client: &Client,
    requests: &Requests,
    hub: &SharedHub<K, I>,
    object: &Key,
) -> Result<(), Trouble> {
    let request = requests.one(object).map_err(kube::Error::BuildRequest);
    let text = async { client.request_text(request?).await };
    let answer = timeout(ANSWER, text).await.map_err(|_| Trouble::Silent(ANSWER))?;
    let page: Page<K> = decode::page(&answer.map_err(Trouble::of)?)?;
    let found = page.items.into_iter().next();
    hub.learned(object, found, &page.at).map_err(Garbled::from)?;
    Ok(())
}
