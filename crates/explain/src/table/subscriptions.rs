//! Reasons of BMCEventSubscriptions, in their Events, logs and metrics. `status.error` has the message.

use super::row::{Row, Severity, done, hardware, passes, user};

const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "SubscriptionCreated",
        "The BMC has the subscription",
        "`status.subscriptionID` is the identifier that the BMC gave it.",
    ),
    warning([
        "SubscriptionLost",
        "The BMC of the new node lacks the subscription",
        "The host has another node now, because Ironic lost its database or the host is another machine. The subscription is created again.",
        "Nothing, if that was intended. Otherwise look at the database of Ironic.",
    ]),
    warning([
        "SubscriptionLeft",
        "The BMC keeps another subscription",
        "The subscription of the BMC with the identifier in the status has another destination than the deleted object: the BMC was reset and gave the identifier to another one, or the spec was changed. It is not deleted.",
        "Delete it at the BMC if nothing uses it.",
    ]),
    warning([
        "SubscriptionInvalid",
        "The spec of the subscription is invalid",
        "The spec cannot be served, and no webhook rejected it.",
        "Delete the subscription and create it again: its spec cannot be changed.",
    ]),
    passes(
        "Moving",
        "clusterctl moves the subscription or its host",
        "Nothing is changed in the BMC meanwhile. clusterctl removes the finalizers itself at the end of the move.",
        "If the move was interrupted, repeat it.",
    ),
    passes(
        "GoManagerRuns",
        "A Go manager serves the subscription",
        "While the Go manager of hosts runs, its subscriptions are its own matter.",
        "See the log of the Go manager.",
    ),
    warning([
        "HostAbsent",
        "Its host does not exist in this cluster",
        "Nothing can be created. A deleted subscription keeps its finalizer for ten minutes, because a move or a restored backup may create the host after its objects.",
        "Create the host in the namespace of the subscription, or delete the subscription.",
    ]),
    user(
        Severity::Info,
        [
            "HostPaused",
            "Its host is paused",
            "The node may be served from another cluster, so nothing is changed in its BMC.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove `baremetalhost.metal3.io/paused` \
             from the host when the work on it is over.",
        ],
    ),
    user(
        Severity::Info,
        [
            "HostDeleted",
            "Its host is being deleted",
            "Nothing is created in the BMC of a host that goes.",
            "Delete the subscription too, or wait until a host of this name exists again.",
        ],
    ),
    user(
        Severity::Info,
        [
            "HostDetached",
            "Its host is detached from Ironic",
            "Without a node in Ironic there is no way to the BMC.",
            "Remove `baremetalhost.metal3.io/detached` from the host.",
        ],
    ),
    passes(
        "HostNotRegistered",
        "Its host is not registered in Ironic yet",
        "The subscription is created when the host is registered.",
        "If that lasts, see the conditions of the host.",
    ),
    warning([
        "HeadersUnusable",
        "The Secret with the HTTP headers cannot be used",
        "It does not exist, has no label for hosts, is named by a host or of another type than Opaque, or has a value that is no text of one line. Nothing was created.",
        "Do what the message says. The subscription is created when the Secret changes.",
    ]),
    passes(
        "NodeAbsent",
        "Ironic has no node of its host",
        "The host is detached, or Ironic lost its database and the host is registered again.",
        "Wait until the host is registered again; if that lasts, see its conditions.",
    ),
    passes(
        "NodeLocked",
        "A task of Ironic has locked the node",
        "The node of the host is in use by Ironic for the moment.",
        "Wait. A lock that stays goes with a restart of the conductor that holds it.",
    ),
    warning([
        "StateUnknown",
        "What the BMC has is not known",
        "The host, Ironic or the BMC cannot be read, so nothing is created or deleted.",
        "See the message. It is tried again, within an hour at most.",
    ]),
    hardware(
        Severity::Warning,
        [
            "SubscriptionsUnsupported",
            "The BMC has no event subscriptions",
            "The driver of the node has no such methods. It is tried again within an hour.",
            "Use a host with a Redfish BMC that has an event service, or delete the subscription.",
        ],
    ),
    hardware(
        Severity::Error,
        [
            "SubscriptionFailed",
            "The BMC did not create the subscription",
            "Ironic or the BMC rejected it: too many subscriptions, a destination that it does not accept, or no response. It is tried again within an hour.",
            "Correct what the message names, or see the log of Ironic and of the BMC.",
        ],
    ),
    passes(
        "SubscriptionUnconfirmed",
        "Ironic may still perform an earlier request",
        "The response to the creation is lost. It is searched for in the BMC before another one is created.",
        "Wait: this ends after a minute.",
    ),
    hardware(
        Severity::Warning,
        [
            "SubscriptionInBMC",
            "The BMC still has a deleted subscription",
            "Ironic was asked to delete it and the BMC lists it, the BMC does not list all, or the host is in another cluster.",
            "Do what the message says: delete it at the BMC, or remove the finalizer.",
        ],
    ),
];
