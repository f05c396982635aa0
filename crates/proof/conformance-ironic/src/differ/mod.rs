//! Runs the same random operations on two Ironics and compares the results.
//!
//! After each operation both become idle. Then [`FIELDS`] of every node are compared by value, [`PRESENT`] by presence, and
//! responses by the value that the client uses: a state, a count, a device, a name, or status and category of an error. A
//! maintenance reason is compared by value when a client set it, and by presence when Ironic did. Not compared: UUIDs,
//! times, links, error texts, and `last_error`, which the power sync erases.
//!
//! Two concurrent runs on one Ironic conflict. Nodes of earlier runs are removed first.

mod operation;

use anyhow::bail;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls;
use metal3_ironic::calls::node::Order;
use metal3_ironic::error::Error;
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_faults::Random;
use serde_json::{Map, Value, json};

use super::Lab;
use operation::Operation;

/// Fields that are compared by value.
pub const FIELDS: [&str; 30] = [
    "automated_clean",
    "bios_interface",
    "boot_interface",
    "boot_mode",
    "clean_step",
    "deploy_interface",
    "deploy_step",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "extra",
    "fault",
    "inspect_interface",
    "instance_name",
    "instance_uuid",
    "maintenance",
    "name",
    "power_state",
    "properties",
    "provision_state",
    "raid_config",
    "reservation",
    "resource_class",
    "secure_boot",
    "service_step",
    "target_power_state",
    "target_provision_state",
    "target_raid_config",
    "traits",
];

/// Fields that are compared by presence.
pub const PRESENT: [&str; 4] = [
    "inspection_finished_at",
    "instance_info",
    "provision_updated_at",
    "updated_at",
];

/// The name prefix of all nodes of sequences.
const NAME_PREFIX: &str = "differ~";

/// The result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The operation.
    pub operation: String,
    /// The response: a value, or status and category of the error.
    pub answer: Value,
    /// All nodes after the operation.
    pub nodes: Vec<Value>,
}

fn error_summary(error: &Error) -> Value {
    let status = match error {
        Error::NotFound(refusal)
        | Error::Locked(refusal)
        | Error::WrongState(refusal)
        | Error::Exists(refusal)
        | Error::Invalid(refusal)
        | Error::Unauthorised(refusal)
        | Error::Protected(refusal)
        | Error::Busy(refusal) => Some(refusal.status),
        Error::Unexpected { status, .. } => *status,
        _ => None,
    };
    json!({"error": error.category(), "status": status})
}

fn set(value: &Value) -> bool {
    !(value.is_null() || *value == json!({}) || *value == json!(""))
}

/// A sequence of operations on one Ironic.
pub struct Run<'a> {
    lab: &'a Lab,
    random: Random,
    prefix: String,
}

impl<'a> Run<'a> {
    /// Begins a sequence. Its nodes have a name prefix.
    #[must_use]
    pub fn begin(lab: &'a Lab, seed: u64) -> Self {
        Self {
            lab,
            random: Random::seeded(seed),
            prefix: format!("{NAME_PREFIX}{seed}-"),
        }
    }

    /// Runs the next operation.
    ///
    /// # Errors
    /// When Ironic does not become idle or cannot be reached.
    pub async fn next(&mut self) -> anyhow::Result<Outcome> {
        let operation = Operation::draw(&mut self.random);
        let answer = match operation.ask(&self.lab.client, &self.prefix).await? {
            Ok(value) => value,
            Err(error @ (Error::Unreachable { .. } | Error::Timeout { .. })) => return Err(error.into()),
            Err(error) => error_summary(&error),
        };
        Ok(Outcome {
            operation: format!("{operation:?}"),
            answer,
            nodes: self.idle_nodes().await?,
        })
    }

    /// Waits until all nodes of this sequence are idle and returns them.
    async fn idle_nodes(&self) -> anyhow::Result<Vec<Value>> {
        let begun = self.lab.clock.monotonic();
        loop {
            let nodes = nodes(self.lab, &self.prefix).await?;
            if nodes.iter().all(is_idle) {
                return Ok(nodes.iter().map(compared).collect());
            }
            if self.lab.clock.monotonic().since(begun) > super::lab::TIMEOUT {
                bail!("the nodes do not become idle: {nodes:?}");
            }
            tokio::time::sleep(super::lab::POLL_INTERVAL).await;
        }
    }

    /// Removes the nodes of all sequences.
    ///
    /// # Errors
    /// When Ironic rejects a request.
    pub async fn clear(&self) -> anyhow::Result<()> {
        for node in nodes(self.lab, NAME_PREFIX).await? {
            let uuid = node.get("uuid").and_then(Value::as_str).unwrap_or_default();
            self.lab.remove(&NodeUuid::parse(uuid)?).await?;
        }
        Ok(())
    }
}

/// The nodes with this name prefix, sorted by name.
async fn nodes(lab: &Lab, prefix: &str) -> anyhow::Result<Vec<Value>> {
    let call = calls::node::list::<Value>(Order::Created, 1000, None);
    let mut nodes = lab.client.send(&call).await?.value.items;
    nodes.retain(|node| {
        let name = node.get("name").and_then(Value::as_str);
        name.is_some_and(|name| name.starts_with(prefix))
    });
    nodes.sort_by_key(|node| node.get("name").map(Value::to_string));
    Ok(nodes)
}

fn is_idle(node: &Value) -> bool {
    let state = node.get("provision_state").and_then(Value::as_str).unwrap_or_default();
    let state = ProvisionState::from(state.to_owned());
    // On fake hardware only a service step waits.
    let moves = state.is_transitional() && state != ProvisionState::ServiceWait;
    node.get("reservation").is_none_or(Value::is_null) && !moves
}

fn compared(node: &Value) -> Value {
    let of = |field: &str| node.get(field).cloned().unwrap_or_default();
    let as_is = FIELDS.iter().map(|field| ((*field).to_owned(), of(field)));
    let whether = PRESENT
        .iter()
        .map(|field| (format!("{field} set"), set(&of(field)).into()));
    // A reason that Ironic set is an error text.
    let reason = match of("fault") {
        Value::Null => of("maintenance_reason"),
        _ => set(&of("maintenance_reason")).into(),
    };
    let reason = std::iter::once(("maintenance_reason".to_owned(), reason));
    Value::Object(as_is.chain(whether).chain(reason).collect::<Map<_, _>>())
}

/// The number of differences that ends a sequence: later ones are mostly consequences.
const ENOUGH: usize = 6;

/// Runs one sequence on both and returns the differences with their operations.
///
/// # Errors
/// When one of them fails.
pub async fn compare(one: &Lab, other: &Lab, seed: u64, operations: u32) -> anyhow::Result<Vec<String>> {
    let (mut left, mut right) = (Run::begin(one, seed), Run::begin(other, seed));
    left.clear().await?;
    right.clear().await?;
    let mut differences = Vec::new();
    for number in 0..operations {
        let (here, there) = (left.next().await?, right.next().await?);
        if here != there {
            differences.push(format!(
                "seed {seed}, operation {number}, {}: {}",
                here.operation,
                difference(&here, &there)
            ));
        }
        if differences.len() >= ENOUGH {
            break;
        }
    }
    left.clear().await?;
    right.clear().await?;
    Ok(differences)
}

fn difference(here: &Outcome, there: &Outcome) -> String {
    if here.answer != there.answer {
        return format!("answered {} and {}", here.answer, there.answer);
    }
    if here.nodes.len() != there.nodes.len() {
        return format!("{} nodes and {}", here.nodes.len(), there.nodes.len());
    }
    let mut differing = Vec::new();
    for (here, there) in here.nodes.iter().zip(&there.nodes) {
        let fields = here.as_object().into_iter().flatten();
        for (field, value) in fields.filter(|(field, value)| there.get(field.as_str()) != Some(value)) {
            let other = there.get(field).cloned().unwrap_or_default();
            differing.push(format!("{field} is {value} and {other}"));
        }
    }
    differing.join(", ")
}
