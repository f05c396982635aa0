//! Objects of other providers: what their conditions say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_api::meta::{Condition, ConditionStatus};
use serde_json::Value;

use super::conditions::{Bad, first_bad, reason_link, since};
use super::{End, Next, Walk, in_namespace, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::read::Read;
use crate::table::{Actor, Area};
use crate::values::{namespace_of, text};

const PAUSED: &str = "Paused";

/// The conditions by which providers report, those of a step before the summaries. Those that name a tenant or Kamaji are of its
/// control plane, which has no summary before it is initialized.
const ORDER: [Bad; 12] = [
    (PAUSED, ConditionStatus::True),
    ("DataSecretAvailable", ConditionStatus::False),
    ("TenantControlPlaneCreated", ConditionStatus::False),
    ("TenantControlPlaneAddressReady", ConditionStatus::False),
    ("ControlPlaneEndpointPatched", ConditionStatus::False),
    ("InfrastructureClusterPatched", ConditionStatus::False),
    ("KamajiControlPlaneIsInitialized", ConditionStatus::False),
    ("KubeadmResourcesCreated", ConditionStatus::False),
    ("KamajiControlPlaneIsReady", ConditionStatus::False),
    ("Initialized", ConditionStatus::False),
    ("Available", ConditionStatus::False),
    ("Ready", ConditionStatus::False),
];

impl Walk<'_> {
    pub(crate) fn foreign(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let conditions = conditions(&object);
        let cure = format!(
            "See its conditions, and the log of its provider: kubectl describe {} {}{}",
            at.kind,
            at.name,
            in_namespace(namespace_of(&object))
        );
        let meta: ObjectMeta = object
            .get("metadata")
            .and_then(|meta| serde_json::from_value(meta.clone()).ok())
            .unwrap_or_default();
        match first_bad(&conditions, &ORDER) {
            Some(bad) if bad.type_ == PAUSED => {
                self.push(reason_link(at, Area::Shared, PAUSED, &bad.message, since(bad)));
            }
            Some(bad) => self.push(Link {
                reason: Some(bad.reason.clone()).filter(|reason| !reason.is_empty()),
                message: bad.message.clone(),
                since: since(bad),
                at_most: true,
                ..Link::plain(at, format!("{} is not as it should be", bad.type_), Actor::System, cure)
            }),
            None if is_deleting(&meta) => self.push_deleting(at, &meta),
            None if is_exhausted_pool(&object) => {
                let cure = "Add addresses to the pool, or scale down what holds them.";
                self.push(Link::plain(at, "has no free address", Actor::User, cure));
            }
            None if conditions.is_empty() && !is_ready(&object) => {
                self.push(Link::plain(at, "has no conditions yet", Actor::System, cure));
            }
            None if at.group == CONTROL_PLANE_GROUP && !is_initialized(&object, &conditions) => {
                self.push(Link::plain(at, "is not initialized yet", Actor::System, cure));
            }
            None => {}
        }
        Ok(None)
    }
}

/// Whether an object says in another way than by conditions that it is done. Objects with addresses, as of the in-cluster IPAM
/// provider, have nothing to wait for.
fn is_ready(object: &Value) -> bool {
    let is = |path| object.pointer(path).and_then(Value::as_bool) == Some(true);
    let has_addresses = object.pointer("/status/ipAddresses").is_some();
    is("/status/ready") || is("/status/initialization/provisioned") || has_addresses
}

/// Whether a control plane says in any version that it answers. A summary that is not bad says so, too.
fn is_initialized(object: &Value, conditions: &[Condition]) -> bool {
    let is = |path| object.pointer(path).and_then(Value::as_bool) == Some(true);
    let summaries = ["Initialized", "Available", "Ready"];
    let summed_up = conditions
        .iter()
        .any(|condition| summaries.contains(&condition.type_.as_str()));
    summed_up
        || is("/status/initialization/controlPlaneInitialized")
        || is("/status/initialized")
        || is("/status/ready")
}

/// Whether the object is a pool of the in-cluster IPAM provider without free addresses.
fn is_exhausted_pool(object: &Value) -> bool {
    let free = object.pointer("/status/ipAddresses/free").and_then(Value::as_i64);
    free == Some(0)
}

/// The conditions of any version: providers may omit all but the type and the status.
pub(super) fn conditions(object: &Value) -> Vec<Condition> {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    let all = all.map(Vec::as_slice).unwrap_or_default();
    let condition = |one: &Value| Condition {
        type_: text(one, "/type").to_owned(),
        status: match text(one, "/status") {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        observed_generation: None,
        last_transition_time: one
            .get("lastTransitionTime")
            .and_then(|time| serde_json::from_value(time.clone()).ok())
            .unwrap_or_default(),
        reason: text(one, "/reason").to_owned(),
        message: text(one, "/message").to_owned(),
    };
    all.iter().map(condition).collect()
}
