//! BMCEventSubscription: a host, a destination, and an immutable spec.

use metal3_domain::destination::{DestinationError, check_destination};

use super::{split_message, text};
use crate::metal3::v1alpha1::BMCEventSubscription;
use crate::rules::{AdmissionRules, Findings, Rule};

impl AdmissionRules for BMCEventSubscription {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_create("host-named", "`spec.hostName` names a host.", host_is_named),
        Rule::on_create(
            "destination-readable",
            "`spec.destination` is an absolute URL with a path; a host alone needs a slash after it.",
            destination_is_readable,
        ),
        Rule::on_create(
            "headers-in-own-namespace",
            "The namespace of `spec.httpHeadersRef` is set, and is that of the subscription.",
            headers_are_in_own_namespace,
        ),
        Rule::on_update("unchanged", "The spec cannot be changed.", subscription_is_unchanged)
            .differing("subscription-with-headers"),
    ];
}

fn host_is_named(subscription: &BMCEventSubscription, findings: &mut Findings) {
    if text(subscription.spec.host_name.as_ref()).is_empty() {
        findings.required(
            "spec.hostName",
            "hostName cannot be empty",
            "name a host of this namespace",
        );
    }
}

fn destination_is_readable(subscription: &BMCEventSubscription, findings: &mut Findings) {
    let Err(error) = check_destination(text(subscription.spec.destination.as_ref())) else {
        return;
    };
    let (problem, cure) = split_message(&error.to_string(), "write a URL such as https://192.0.2.50/events");
    if error == DestinationError::Empty {
        findings.required("spec.destination", problem, cure);
    } else {
        findings.unreadable("spec.destination", problem, cure);
    }
}

fn headers_are_in_own_namespace(subscription: &BMCEventSubscription, findings: &mut Findings) {
    let Some(secret) = &subscription.spec.http_headers_ref else {
        return;
    };
    let own = text(subscription.metadata.namespace.as_ref());
    if text(secret.namespace.as_ref()) != own {
        findings.forbidden(
            "spec.httpHeadersRef.namespace",
            "httpHeadersRef secret must be in the same namespace as the BMCEventSubscription",
            format!("write namespace: {own}"),
        );
    }
}

fn subscription_is_unchanged(old: &BMCEventSubscription, new: &BMCEventSubscription, findings: &mut Findings) {
    if old.spec != new.spec {
        findings.forbidden(
            "spec",
            "subscriptions cannot be updated, please recreate it",
            "delete the subscription and create another one",
        );
    }
}
