//! The live reads of a decision. Each may fail, and a failure is an unknown.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::Key;
use metal3_runtime::write::{NoCache, Writer};

use super::facts::{Facts, HostView, NodeView, Read};
use super::kinds::Finalized;
use crate::live::{GoManagerCheck, NodeSearch, Reading, host_key};
use crate::needs::UnservedKinds;
use crate::node::drive::may_run_agent;
use crate::plan::object::is_moving;

pub(super) struct Observer {
    pub(super) nodes: NodeSearch,
    pub(super) go_manager: GoManagerCheck,
}

/// What was read of one object, in addition to its facts.
#[derive(Default)]
pub(super) struct Found {
    host: Option<BareMetalHost>,
}

impl Observer {
    /// Performs one read.
    pub(super) async fn read<K: Finalized>(
        &self,
        read: Read,
        object: &K,
        (facts, found): (&mut Facts, &mut Found),
        writer: &Writer<UnservedKinds>,
    ) {
        match read {
            Read::GoManager => facts.go_manager = Reading::of((self.go_manager)().await),
            Read::Host => facts.host = host(object, found, writer).await,
            Read::Node => facts.node = self.node(object, found).await,
        }
    }

    async fn node<K: Finalized>(&self, object: &K, found: &Found) -> Reading<NodeView> {
        let key = of_host(object).and_then(|key| host_key(&key));
        match self.nodes.read(key.as_ref(), found.host.as_ref()).await {
            Reading::Known(Some(node)) => Reading::Known(NodeView::Present {
                is_locked: node.node.reservation.is_some(),
                names_image: object.is_named_by(&node.node),
                runs_agent: may_run_agent(&node.node),
            }),
            Reading::Known(None) => Reading::Known(NodeView::Absent),
            Reading::Failed(why) => Reading::Failed(why),
            Reading::NotRead => Reading::NotRead,
        }
    }
}

async fn host<K: Finalized>(object: &K, found: &mut Found, writer: &Writer<UnservedKinds>) -> Reading<HostView> {
    let Some(name) = object.host() else {
        return Reading::Failed("it names no host".to_owned());
    };
    let key = Key {
        namespace: object.meta().namespace.clone().unwrap_or_default(),
        name: name.to_owned(),
    };
    match writer.read::<BareMetalHost>(&NoCache, &key).await {
        Ok(host) => {
            let view = match &host {
                None => HostView::Absent,
                Some(host) if is_moving(host) => HostView::Moving,
                Some(host) if host.is_paused() => HostView::Paused,
                Some(host) if object.is_of_former(host) => HostView::Successor,
                Some(_) => HostView::Present,
            };
            found.host = host;
            Reading::Known(view)
        }
        Err(fault) => {
            tracing::debug!(host = %key, "a live read failed: {}", fault.report());
            Reading::Failed(fault.category().to_owned())
        }
    }
}

fn of_host<K: Finalized>(object: &K) -> Option<Key> {
    Some(Key {
        namespace: object.meta().namespace.clone()?,
        name: object.host()?.to_owned(),
    })
}
