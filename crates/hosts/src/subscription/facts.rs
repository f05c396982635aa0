//! What a decision about one subscription knows.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::metal3::names::{SUBSCRIPTION_FINALIZER, SUBSCRIPTION_RECORD_ANNOTATION};
use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_domain::destination::check_destination;
use metal3_runtime::reason::Reason;
use serde::{Deserialize, Serialize};

use crate::live::{GoManager, Reading};
use crate::subscription::plan::Wait;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The name of the host, in the namespace of the object.
    pub(super) host: String,
    pub(super) destination: String,
    /// Empty for none, as in the BMC.
    pub(super) context: String,
    /// The name of the Secret with the headers, in the namespace of the object.
    pub(super) headers: Option<String>,
}

impl Wanted {
    pub(super) fn of(object: &BMCEventSubscription) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let spec = &object.spec;
        Self {
            host: text(&spec.host_name),
            destination: text(&spec.destination),
            context: text(&spec.context),
            headers: spec.http_headers_ref.as_ref().map(|secret| text(&secret.name)),
        }
    }

    /// Why nothing is created. The webhooks check the same, and may have been away. The field is not repeated: a destination
    /// may contain a login.
    fn problem(&self, object: &BMCEventSubscription) -> Option<String> {
        if self.host.is_empty() {
            return Some("spec.hostName is empty".to_owned());
        }
        if let Err(error) = check_destination(&self.destination) {
            return Some(format!("spec.destination: {error}"));
        }
        if [&self.destination, &self.context]
            .into_iter()
            .any(|text| text.chars().any(char::is_control))
        {
            return Some("spec.destination or spec.context has a control character, such as a line break".to_owned());
        }
        if self.headers.as_deref() == Some("") {
            return Some("spec.httpHeadersRef.name is empty".to_owned());
        }
        let secret = object.spec.http_headers_ref.as_ref();
        let own_namespace = object.metadata.namespace.as_ref();
        let is_elsewhere = secret.is_some_and(|secret| secret.namespace.as_ref() != own_namespace);
        is_elsewhere.then(|| "spec.httpHeadersRef.namespace is not the namespace of the subscription".to_owned())
    }
}

/// Where this program creates, or has created, the subscription. It is written before the first request, so a creation whose
/// response is lost is searched for in the BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The UUID of the node; empty when the annotation cannot be read.
    pub(super) node: String,
    /// The host of that node; empty when an older version wrote the record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) host: String,
    /// The subscriptions of the BMC that had this destination before, or could not be read. They are another's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<String>,
}

/// The object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) wanted: Wanted,
    /// Which field of the spec forbids a creation, and how to correct it. What exists is served all the same.
    pub(super) problem: Option<String>,
    /// The BMC's identifier, if the status records one.
    pub(super) id: Option<String>,
    pub(super) has_error: bool,
    pub(super) record: Option<Record>,
    pub(super) has_finalizer: bool,
    pub(super) is_deleted: bool,
    /// Whether clusterctl deletes it, because it exists in another cluster now.
    pub(super) is_moving: bool,
    pub(super) is_paused: bool,
    /// Whether it was read from the server in this reconcile.
    pub(super) is_live: bool,
}

impl Object {
    /// Whether a creation is recorded, and its result is not.
    pub(super) const fn is_open(&self) -> bool {
        self.id.is_none() && self.record.is_some()
    }

    /// The host that the subscription was created on, if the spec names another one now: the webhooks may have been away.
    pub(super) fn former_host(&self) -> Option<&str> {
        let recorded = self.record.as_ref().map(|record| record.host.as_str())?;
        Some(recorded).filter(|recorded| !recorded.is_empty() && *recorded != self.wanted.host)
    }

    pub(super) fn of(object: &BMCEventSubscription, is_live: bool) -> Self {
        use metal3_api::cluster::names::{DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION};
        use metal3_api::metal3::names::PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION;
        let meta = &object.metadata;
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name));
        let record = annotation(SUBSCRIPTION_RECORD_ANNOTATION);
        let wanted = Wanted::of(object);
        let mut finalizers = meta.finalizers.iter().flatten();
        Self {
            problem: wanted.problem(object),
            wanted,
            id: object.status.subscription_id.clone().filter(|id| !id.is_empty()),
            has_error: object.status.error.as_ref().is_some_and(|error| !error.is_empty()),
            record: record.map(|text| serde_json::from_str(text).unwrap_or_default()),
            has_finalizer: finalizers.any(|name| name == SUBSCRIPTION_FINALIZER),
            is_deleted: meta.deletion_timestamp.is_some(),
            is_moving: annotation(DELETE_FOR_MOVE_ANNOTATION).is_some(),
            is_paused: [PAUSED_ANNOTATION, HOST_PAUSED_ANNOTATION]
                .into_iter()
                .any(|name| annotation(name).is_some()),
            is_live,
        }
    }
}

/// What of a host forbids a request to its BMC; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bar {
    Paused,
    /// clusterctl deletes it, because it exists in another cluster now.
    Moving,
    Deleted,
    Detached,
    Unregistered,
}

/// The host of the object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostView {
    Absent,
    Present {
        /// The UUID of the node that it records.
        node: Option<String>,
        bar: Option<Bar>,
    },
}

/// The node of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeView {
    Absent,
    Present {
        uuid: String,
        /// Whether a running task has locked it.
        is_locked: bool,
    },
}

/// The Secret with the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    Usable,
    Absent,
    /// Its owner has not labelled it for use by hosts.
    Unlabelled,
    /// A host names it, or it has a type of its own: it is a login, or the data of a machine.
    OtherUse,
    /// A name or a value is no text of one line.
    NoText,
}

/// The subscriptions of the BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    pub(super) ids: Vec<String>,
    /// Whether these are all.
    pub(super) is_complete: bool,
}

/// What the BMC reports of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) destination: Option<String>,
    pub(super) context: Option<String>,
}

/// Another object for the same host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sibling {
    pub(super) id: Option<String>,
    pub(super) record: Option<Record>,
    /// Whether it asks for the same destination and context.
    pub(super) is_equal: bool,
}

/// Why a request to Ironic failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) class: FailureClass,
    /// Without the identifier of the request, which changes with each.
    pub(super) text: String,
}

/// What follows from a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// A running task has locked the node.
    Locked,
    /// Ironic does not accept it, however often it is sent.
    Invalid,
    /// It had no effect.
    Rejected,
    /// It may have had an effect.
    Unconfirmed,
}

/// What this process remembers of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attempts {
    /// How long Ironic may still begin with a creation that was sent, by this process or by one before it.
    pub(super) creation_may_come_for: Duration,
    /// The reason of the last wait, and since when it is the same.
    pub(super) waiting: Option<(Reason, Duration)>,
    /// Failures in a row.
    pub(super) failures: i64,
    /// The last failure, while its delay lasts, and the rest of it.
    pub(super) delayed: Option<(Wait, Duration)>,
    /// Since when this process finds no host; zero while there is one.
    pub(super) host_absent_for: Duration,
    /// A number of the object that spreads its retries.
    pub(super) jitter: u64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) object: Object,
    /// The cached host.
    pub(super) cached_host: Reading<HostView>,
    pub(super) siblings: Vec<Sibling>,
    pub(super) attempts: Attempts,
    pub(super) go_manager: Reading<GoManager>,
    pub(super) host: Reading<HostView>,
    pub(super) headers: Reading<Headers>,
    pub(super) node: Reading<NodeView, Failure>,
    pub(super) list: Reading<List, Failure>,
    /// Those that were read.
    pub(super) details: BTreeMap<String, Reading<Details, Failure>>,
    /// How the creation of this reconcile failed.
    pub(super) refused: Option<Failure>,
    /// How the deletion of this reconcile ended.
    pub(super) deletion: Option<Result<(), Failure>>,
}

/// A read that a decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    Object,
    GoManager,
    Host,
    Headers,
    Node,
    List,
    Details(String),
}
