//! The controller of Metal3Data: observes, plans, reads live what the plan requires, and performs the plan.

mod act;
mod observe;

use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::work::{Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::facts::Responses;
use super::plan::plan;
use crate::cluster::reconciler::is_served;
use crate::data::claims::Naming;
use crate::data::reconciler::caches::Caches;
use crate::data::reconciler::grants::find;
use crate::data::reconciler::related_keys::SharedRelatedKeys;
use crate::needs::Data;

/// Plans per reconcile: after a live read, and after the rejection of a new object.
const ROUNDS: usize = 4;

/// Reconciles one Metal3Data at a time.
pub struct Objects {
    pub(in crate::data) caches: Caches,
    pub(in crate::data) related: SharedRelatedKeys,
    pub(in crate::data) events: EventRecorder,
    pub(in crate::data) naming: Naming,
    pub(in crate::data) watch_filter: Option<String>,
}

impl Reconciler for Objects {
    type Key = Key;
    type Role = Data;

    async fn reconcile(&self, key: &Key, writer: &Writer<Data>) -> Result<Next, Fault> {
        let data = match find(&self.caches.data, key) {
            Ok(data) => data,
            Err(waiting) => return Ok(waiting),
        };
        let (data, filter) = (data.as_deref(), self.watch_filter.as_deref());
        if data.is_some_and(|data| !is_served(&data.metadata, filter)) {
            return Ok(Next::Done);
        }
        let mut responses = Responses::default();
        for _ in 0..ROUNDS {
            let plan = plan(&self.observe(key, data, &responses));
            if !plan.reads.is_empty() {
                self.read(key, plan.reads, &mut responses, writer).await?;
                continue;
            }
            match self.act(key, data, plan, writer).await? {
                Ok(next) => return Ok(next),
                Err(rejection) => responses.rejection = Some(rejection),
            }
        }
        Ok(Next::Requeue)
    }
}
