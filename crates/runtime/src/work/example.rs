use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_domain::clock::SystemClock;
use metal3_domain::reasons;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::role;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};
use tokio_util::sync::CancellationToken;

role! {
    /// Keeps a copy of each config map.
    pub struct Copying {
        ConfigMap: List, Watch, Create, Delete;
    }
}

reasons! {
    /// The original cannot be decoded.
    pub UNREADABLE = "OriginalUnreadable";
}

struct Copies {
    maps: SharedCache<ConfigMap>,
}

impl Reconciler for Copies {
    type Key = Key;
    type Role = Copying;

    async fn reconcile(&self, key: &Key, writer: &Writer<Copying>) -> Result<Next, Fault> {
        // Observe: present, absent and unknown are three results.
        let copy = Key {
            name: format!("{}-copy", key.name),
            ..key.clone()
        };
        let original = match self.maps.find(key) {
            Observed::Present(original) => original,
            Observed::Absent => {
                if let Observed::Present(copy) = self.maps.find(&copy) {
                    writer.delete(&self.maps, &*copy).await?;
                }
                return Ok(Next::Done);
            }
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(UNREADABLE, why)),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                return Err(Fault::bug("a pass before the first list"));
            }
        };
        // Act. If the response is lost, the next reconcile finds the copy by its name.
        if !key.name.ends_with("-copy") && self.maps.find(&copy) == Observed::Absent {
            let mut copied = ConfigMap {
                data: original.data.clone(),
                ..ConfigMap::default()
            };
            copied.metadata.name = Some(copy.name);
            copied.metadata.namespace = Some(copy.namespace);
            writer.create(&self.maps, &copied).await?;
        }
        Ok(Next::Done)
    }
}

async fn serve(client: kube::Client, maps: SharedCache<ConfigMap>, stop: CancellationToken) {
    let writer = Writer::new(client, Mode::Perform);
    Controller::new(
        "copies",
        Arc::new(SystemClock::start()),
        writer,
        Copies { maps: maps.clone() },
    )
    // Enqueues the original when its copy changes.
    .watches(&maps, |change| {
        change.key().map(|key| Key {
            name: key.name.trim_end_matches("-copy").to_owned(),
            ..key
        })
    })
    .workers(4)
    .run(stop)
    .await;
}
