//! BMCEventSubscription: it has no conditions, and `status.error` says why it waits.

use metal3_api::cluster::names::{DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION as CLUSTER_PAUSED_ANNOTATION};
use metal3_api::metal3::names::PAUSED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BMCEventSubscription, BareMetalHost};

use super::conditions::reason_link;
use super::{End, Next, Walk, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area};

/// What holds it, with or without an error in its status.
const HELD: [(&str, &str); 3] = [
    ("Moving", DELETE_FOR_MOVE_ANNOTATION),
    ("Paused", CLUSTER_PAUSED_ANNOTATION),
    ("Paused", PAUSED_ANNOTATION),
];
/// How the error begins while the host is the cause.
const OF_HOST: &str = "its host ";

impl Walk<'_> {
    pub(crate) fn subscription(&mut self, at: &ObjectId) -> Result<Next, End> {
        let subscription: BMCEventSubscription = self.required(at)?;
        let (status, meta) = (&subscription.status, &subscription.metadata);
        let annotation = |name: &&str| meta.annotations.as_ref().is_some_and(|all| all.contains_key(*name));
        if let Some((reason, name)) = HELD.into_iter().find(|(_, name)| annotation(name)) {
            let message = format!("the annotation {name} is set");
            self.push(reason_link(at, Area::Subscriptions, reason, &message, None));
            return Ok(None);
        }
        let Some(error) = status.error.as_deref().filter(|error| !error.is_empty()) else {
            let is_created = status.subscription_id.as_ref().is_some_and(|id| !id.is_empty());
            if is_deleting(meta) {
                self.push_deleting(at, meta);
            } else if !is_created {
                let message = "no controller wrote a status";
                self.push(reason_link(at, Area::Shared, "NotYetReported", message, None));
            }
            return Ok(None);
        };
        let is_of_host = error.starts_with(OF_HOST);
        let cure = "Do what the message says. The Events of the subscription name the reason.";
        let title = if is_of_host { "waits for its host" } else { "waits" };
        self.push(Link {
            message: error.to_owned(),
            ..Link::plain(at, title, Actor::User, cure)
        });
        let host = subscription.spec.host_name.as_deref().filter(|_| is_of_host);
        Ok(host.map(ObjectId::of::<BareMetalHost>))
    }
}
