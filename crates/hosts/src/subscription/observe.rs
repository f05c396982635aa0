//! The reads of a decision. Each may fail, and a failure is an unknown.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState};
use metal3_domain::uri::without_logins;
use metal3_ironic::Error;
use metal3_ironic::calls::{NodeRef, hardware};
use metal3_ironic::error::Refusal;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::object_reader::{Erased, ObjectReader};
use metal3_runtime::plan::Observed;
use metal3_runtime::write::{NoCache, Writer};

use super::facts::{Bar, Details, Facts, Failure, FailureClass, Headers, HostView, List, NodeView, Read, Wanted};
use crate::live::{GoManagerCheck, NodeSearch, OwnNode, Reading, Search, host_key};
use crate::needs::Subscriptions;
use crate::plan::object::is_moving;
use crate::secret_use::{Use, use_of};
use crate::settings::BmcSecrets;
use crate::switches::SecretsOfSwitches;

/// A BMC has some tens of subscriptions at most. Of more than these the details are not read.
const MOST_LISTED: usize = 64;
/// The type of a Secret without another use.
const OPAQUE: &str = "Opaque";
/// Characters of Ironic's message in a status.
const LONGEST_TEXT: usize = 300;

pub(super) struct Observer {
    pub(super) nodes: NodeSearch,
    pub(super) go_manager: GoManagerCheck,
    pub(super) secrets: ObjectReader<Subscriptions, Secret>,
    pub(super) secret_names: SharedCache<PartialObjectMeta<Secret>>,
    pub(super) hosts: SharedCache<BareMetalHost>,
    pub(super) bmc_secrets: BmcSecrets,
    pub(super) switches: Option<SecretsOfSwitches>,
}

/// What was read of one object, in addition to its facts. It lives as long as a reconcile.
#[derive(Default)]
pub(super) struct Found {
    host: Option<BareMetalHost>,
    pub(super) node: Option<OwnNode>,
    pub(super) headers: Option<Arc<Erased<Secret>>>,
}

impl Observer {
    /// Performs one read other than that of the object.
    pub(super) async fn read(
        &self,
        read: Read,
        (object, host): (&Key, &Key),
        (facts, found): (&mut Facts, &mut Found),
        writer: &Writer<Subscriptions>,
    ) {
        match read {
            Read::Object => {}
            Read::GoManager => facts.go_manager = Reading::of((self.go_manager)().await),
            Read::Host => facts.host = live_host(host, found, writer).await,
            Read::Headers => facts.headers = self.headers(object, &facts.object.wanted, found).await,
            Read::Node => facts.node = self.node(host, found).await,
            Read::List => facts.list = self.list(found).await,
            Read::Details(id) => {
                let details = self.details(&id, found).await;
                facts.details.insert(id, details);
            }
        }
    }

    async fn node(&self, host: &Key, found: &mut Found) -> Reading<NodeView, Failure> {
        let rejected = |text: &str| {
            Reading::Failed(Failure {
                class: FailureClass::Rejected,
                text: text.to_owned(),
            })
        };
        let Some(key) = host_key(host) else {
            return rejected("it names no valid host");
        };
        match self.nodes.find(&key, found.host.as_ref()).await {
            Ok(Search::Absent) => Reading::Known(NodeView::Absent),
            Ok(Search::Foreign) => rejected("its host records a node of another name"),
            Ok(Search::Own(node)) => {
                let view = NodeView::Present {
                    uuid: node.node.uuid.to_string(),
                    is_locked: node.node.reservation.is_some(),
                };
                found.node = Some(*node);
                Reading::Known(view)
            }
            Err(error) => Reading::Failed(failure(&error, true)),
        }
    }

    async fn list(&self, found: &Found) -> Reading<List, Failure> {
        let Some(node) = &found.node else {
            return Reading::NotRead;
        };
        let call = hardware::subscriptions(&NodeRef::from(&node.node.uuid));
        match node.ironic.send(&call).await {
            Ok(listed) => {
                let ids: Vec<String> = listed.value.ids().map(str::to_owned).collect();
                Reading::Known(List {
                    is_complete: listed.value.is_complete() && ids.len() <= MOST_LISTED,
                    ids: ids.into_iter().take(MOST_LISTED).collect(),
                })
            }
            Err(error) => Reading::Failed(failure(&error, true)),
        }
    }

    async fn details(&self, id: &str, found: &Found) -> Reading<Details, Failure> {
        let Some(node) = &found.node else {
            return Reading::NotRead;
        };
        let call = match hardware::subscription(&NodeRef::from(&node.node.uuid), id) {
            Ok(call) => call,
            Err(error) => {
                return Reading::Failed(Failure {
                    class: FailureClass::Rejected,
                    text: error.to_string(),
                });
            }
        };
        match node.ironic.send(&call).await {
            Ok(read) => Reading::Known(Details {
                destination: read.value.destination,
                context: read.value.context,
            }),
            Err(error) => Reading::Failed(failure(&error, true)),
        }
    }

    /// Decided from metadata, before the content is read. A user who may create a subscription could otherwise send the
    /// content of any Secret of the namespace to an address of his choice. differs (`subscription-headers-secret`): the Go
    /// manager sends the login of a BMC or a switch, too.
    async fn headers(&self, object: &Key, wanted: &Wanted, found: &mut Found) -> Reading<Headers> {
        let Some(key) = wanted.headers.as_ref().map(|name| object.sibling(name)) else {
            return Reading::NotRead;
        };
        let meta = match self.secret_names.find(&key) {
            Observed::Present(meta) => meta,
            Observed::Absent => return Reading::Known(Headers::Absent),
            Observed::Unknown(why) => return Reading::Failed(why.to_string()),
        };
        let users = (&self.hosts, self.switches.as_ref());
        match use_of(&key, &meta, self.bmc_secrets, users) {
            Reading::Known(Use::Free) => {}
            Reading::Known(Use::Unlabelled) => return Reading::Known(Headers::Unlabelled),
            Reading::Known(Use::Host | Use::Switch) => return Reading::Known(Headers::OtherUse),
            Reading::Failed(why) => return Reading::Failed(why),
            Reading::NotRead => return Reading::NotRead,
        }
        match self.secrets.get(&key).await {
            Ok(Observed::Present(secret)) if secret.type_.as_deref().is_some_and(|kind| kind != OPAQUE) => {
                Reading::Known(Headers::OtherUse)
            }
            Ok(Observed::Present(secret)) => {
                let usable = named_values(&secret).is_some();
                found.headers = Some(secret);
                Reading::Known(if usable { Headers::Usable } else { Headers::NoText })
            }
            Ok(Observed::Absent) => Reading::Known(Headers::Absent),
            Ok(Observed::Unknown(why)) => Reading::Failed(why.to_string()),
            Err(fault) => Reading::Failed(fault.category().to_owned()),
        }
    }

    /// The version of the Secret with the headers, as cached.
    pub(super) fn headers_version(&self, object: &Key, wanted: &Wanted) -> Option<String> {
        let name = wanted.headers.as_ref()?;
        let meta = self.secret_names.find(&object.sibling(name)).into_present()?;
        meta.metadata.resource_version.clone()
    }
}

/// Names and values of the headers; `None` when one is no text of one line.
pub(super) fn named_values(secret: &Secret) -> Option<Vec<(String, String)>> {
    let is_line = |text: &str| !text.chars().any(char::is_control);
    let values = secret.data.iter().flatten();
    values
        .map(|(name, value)| {
            let value = std::str::from_utf8(&value.0).ok().filter(|value| is_line(value))?;
            is_line(name).then(|| (name.clone(), value.to_owned()))
        })
        .collect()
}

/// The host as a decision sees it.
pub(super) fn host_view(host: &BareMetalHost) -> HostView {
    let status = &host.status;
    let is_registered = !matches!(
        status.provisioning.state,
        ProvisioningState::None
            | ProvisioningState::Unmanaged
            | ProvisioningState::Registering
            | ProvisioningState::PoweringOffBeforeDelete
            | ProvisioningState::Deleting
    );
    let is_detached = host.detach_request().is_some() || status.operational_status == OperationalStatus::Detached;
    let bars = [
        (host.is_paused(), Bar::Paused),
        (is_moving(host), Bar::Moving),
        (host.metadata.deletion_timestamp.is_some(), Bar::Deleted),
        (is_detached, Bar::Detached),
        (!is_registered, Bar::Unregistered),
    ];
    let bar = bars.into_iter().find(|(applies, _)| *applies);
    HostView::Present {
        node: Some(status.provisioning.id.clone()).filter(|id| !id.is_empty()),
        bar: bar.map(|(_, bar)| bar),
    }
}

async fn live_host(key: &Key, found: &mut Found, writer: &Writer<Subscriptions>) -> Reading<HostView> {
    match writer.read::<BareMetalHost>(&NoCache, key).await {
        Ok(host) => {
            let view = host.as_ref().map_or(HostView::Absent, host_view);
            found.host = host;
            Reading::Known(view)
        }
        Err(fault) => {
            tracing::debug!(host = %key, "a live read failed: {}", fault.report());
            Reading::Failed(fault.category().to_owned())
        }
    }
}

/// A failed request. `is_shown`: its message may be shown. Ironic repeats the whole request in the message about a creation,
/// and in a notation in which a header is not recognized.
pub(super) fn failure(error: &Error, is_shown: bool) -> Failure {
    let class = match error {
        Error::Locked(_) => FailureClass::Locked,
        Error::Invalid(_) => FailureClass::Invalid,
        error if error.may_have_happened() => FailureClass::Unconfirmed,
        _ => FailureClass::Rejected,
    };
    let message = |refusal: &Refusal| format!("Ironic rejects it: {}", refusal.message);
    let text = match error {
        _ if !is_shown => format!(
            "Ironic: {} (its message is not shown, because it may repeat the headers)",
            error.category()
        ),
        Error::NotFound(refusal)
        | Error::Locked(refusal)
        | Error::WrongState(refusal)
        | Error::Exists(refusal)
        | Error::Invalid(refusal)
        | Error::Protected(refusal)
        | Error::Busy(refusal) => message(refusal),
        Error::Unexpected {
            status: Some(status),
            reason,
            ..
        } => format!("Ironic answers with status {status}: {reason}"),
        // These name no more than the operation, or change with each attempt.
        Error::Unauthorised(_)
        | Error::Unreachable { .. }
        | Error::NotReady { .. }
        | Error::Timeout { .. }
        | Error::Unexpected { status: None, .. } => format!("Ironic: {}", error.category()),
        Error::NoCommonVersion(_) | Error::TooOld { .. } | Error::Untrusted { .. } => error.to_string(),
    };
    Failure {
        class,
        text: without_logins(&text).chars().take(LONGEST_TEXT).collect(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    fn refusal(message: &str) -> Refusal {
        Refusal {
            operation: "create an event subscription",
            status: 400,
            message: message.to_owned(),
            request_id: Some("req-1".to_owned()),
        }
    }

    #[test]
    fn failure_is_reported_without_what_changes_with_each_attempt_and_without_headers() {
        let shown = failure(&Error::Invalid(refusal("no handler")), true);
        assert_eq!(
            (shown.class, shown.text.as_str()),
            (FailureClass::Invalid, "Ironic rejects it: no handler")
        );
        let payload = refusal("payload: {'HttpHeaders': [{'Authorization': 'canary'}]}");
        let hidden = failure(&Error::Invalid(payload), false);
        assert!(
            !hidden.text.contains("canary") && hidden.text.contains("not shown"),
            "{}",
            hidden.text
        );
        let lost = failure(&Error::Timeout { operation: "create" }, true);
        assert_eq!(lost.class, FailureClass::Unconfirmed);
        let long = failure(&Error::Busy(refusal(&"x".repeat(999))), true);
        assert_eq!(long.text.chars().count(), LONGEST_TEXT);
        let login = failure(&Error::Invalid(refusal("bad https://u:canary@e/ here")), true);
        assert!(!login.text.contains("canary"), "{}", login.text);
    }

    #[test]
    fn each_value_of_a_secret_is_a_header_of_one_line() {
        let secret = |values: &[(&str, &[u8])]| Secret {
            data: Some(
                values
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), ByteString(value.to_vec())))
                    .collect(),
            ),
            ..Secret::default()
        };
        let two = named_values(&secret(&[("A", b"1"), ("B", b"2")])).unwrap();
        let text = |text: &str| text.to_owned();
        assert_eq!(two, [(text("A"), text("1")), (text("B"), text("2"))]);
        assert_eq!(named_values(&Secret::default()), Some(Vec::new()));
        assert_eq!(named_values(&secret(&[("A", b"1\n")])), None);
        assert_eq!(named_values(&secret(&[("A", b"\xff")])), None);
    }

    #[test]
    fn host_forbids_requests_for_the_first_reason_that_applies() {
        let bar = |document: serde_json::Value| {
            let host: BareMetalHost = serde_json::from_value(document).unwrap();
            match host_view(&host) {
                HostView::Present { bar, .. } => bar,
                HostView::Absent => unreachable!(),
            }
        };
        let host = |annotations: serde_json::Value, state: &str, operational: &str| {
            json!({ "metadata": { "annotations": annotations }, "spec": { "online": true },
                "status": { "operationalStatus": operational, "errorMessage": "", "errorCount": 0, "poweredOn": true,
                    "provisioning": { "state": state, "ID": "n", "image": { "url": "" } } } })
        };
        let none = json!({});
        for state in ["available", "provisioned", "externally provisioned", "inspecting"] {
            assert_eq!(bar(host(none.clone(), state, "OK")), None, "{state}");
        }
        for state in ["", "unmanaged", "registering", "deleting"] {
            assert_eq!(bar(host(none.clone(), state, "OK")), Some(Bar::Unregistered), "{state}");
        }
        assert_eq!(bar(host(none, "available", "detached")), Some(Bar::Detached));
        let detached = json!({ "baremetalhost.metal3.io/detached": "" });
        assert_eq!(bar(host(detached, "available", "OK")), Some(Bar::Detached));
        let moving = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
        assert_eq!(bar(host(moving, "available", "OK")), Some(Bar::Moving));
        let paused = json!({ "baremetalhost.metal3.io/paused": "", "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
        assert_eq!(bar(host(paused, "", "OK")), Some(Bar::Paused));
        let mut deleted = host(json!({}), "available", "OK");
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(bar(deleted), Some(Bar::Deleted));
    }
}
