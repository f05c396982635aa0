//! The same random operations on two Ironics, and what differs.
//!
//! After each operation both come to rest; then [`FIELDS`] of every node are compared as they are, [`PRESENT`] only for
//! whether they are set, and the answers as far as they are read: a state, a count, a device, a name, or status and kind
//! of a refusal. A reason for maintenance is compared in words when a client gave it, and for its presence when Ironic
//! did. Not compared: identities, times, links, the wording of errors, and `last_error`, which Ironic erases by itself
//! whenever it looks at the power.
//!
//! Two runs on one Ironic at a time would meet; what an earlier run left behind is removed first.

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

/// The fields that are compared as they are.
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

/// The fields of which only whether they are set is compared.
pub const PRESENT: [&str; 4] = [
    "inspection_finished_at",
    "instance_info",
    "provision_updated_at",
    "updated_at",
];

/// The nodes of any sequence are called so.
const CALLED: &str = "differ~";

/// What an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was asked.
    pub asked: String,
    /// What came back: a value, or status and kind of the refusal.
    pub answer: Value,
    /// Every node then.
    pub nodes: Vec<Value>,
}

fn refusal(error: &Error) -> Value {
    let status = match error {
        Error::NotFound(refusal)
        | Error::Locked(refusal)
        | Error::WrongState(refusal)
        | Error::Exists(refusal)
        | Error::Invalid(refusal)
        | Error::Unauthorised(refusal)
        | Error::Busy(refusal) => Some(refusal.status),
        Error::Unexpected { status, .. } => *status,
        _ => None,
    };
    json!({"refused": error.category(), "status": status})
}

fn set(value: &Value) -> bool {
    !(value.is_null() || *value == json!({}) || *value == json!(""))
}

/// A sequence of operations on one Ironic.
#[derive(Debug)]
pub struct Run<'a> {
    lab: &'a Lab,
    random: Random,
    prefix: String,
}

impl<'a> Run<'a> {
    /// Begins a sequence. Its nodes are told from others by their names.
    #[must_use]
    pub fn begin(lab: &'a Lab, seed: u64) -> Self {
        Self {
            lab,
            random: Random::seeded(seed),
            prefix: format!("{CALLED}{seed}-"),
        }
    }

    /// Carries out the next operation.
    ///
    /// # Errors
    /// When Ironic does not come to rest or cannot be reached.
    pub async fn next(&mut self) -> anyhow::Result<Outcome> {
        let operation = Operation::draw(&mut self.random);
        let answer = match operation.ask(&self.lab.client, &self.prefix).await? {
            Ok(value) => value,
            Err(error @ (Error::Unreachable { .. } | Error::Timeout { .. })) => return Err(error.into()),
            Err(error) => refusal(&error),
        };
        Ok(Outcome {
            asked: format!("{operation:?}"),
            answer,
            nodes: self.at_rest().await?,
        })
    }

    /// The nodes of this sequence, once nothing moves.
    async fn at_rest(&self) -> anyhow::Result<Vec<Value>> {
        let begun = self.lab.clock.monotonic();
        loop {
            let nodes = nodes(self.lab, &self.prefix).await?;
            if nodes.iter().all(rests) {
                return Ok(nodes.iter().map(compared).collect());
            }
            if self.lab.clock.monotonic().since(begun) > super::lab::PATIENCE {
                bail!("the nodes do not come to rest: {nodes:?}");
            }
            tokio::time::sleep(super::lab::LOOK_EVERY).await;
        }
    }

    /// Removes the nodes of every sequence, this one's and what others left.
    ///
    /// # Errors
    /// When Ironic refuses.
    pub async fn clear(&self) -> anyhow::Result<()> {
        for node in nodes(self.lab, CALLED).await? {
            let uuid = node.get("uuid").and_then(Value::as_str).unwrap_or_default();
            self.lab.remove(&NodeUuid::parse(uuid)?).await?;
        }
        Ok(())
    }
}

/// The nodes whose names begin so, in the order of their names.
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

fn rests(node: &Value) -> bool {
    let state = node.get("provision_state").and_then(Value::as_str).unwrap_or_default();
    let state = ProvisionState::from(state.to_owned());
    // Fake hardware waits only where a step has it wait.
    let moves = state.is_transitional() && state != ProvisionState::ServiceWait;
    node.get("reservation").is_none_or(Value::is_null) && !moves
}

fn compared(node: &Value) -> Value {
    let of = |field: &str| node.get(field).cloned().unwrap_or_default();
    let as_is = FIELDS.iter().map(|field| ((*field).to_owned(), of(field)));
    let whether = PRESENT
        .iter()
        .map(|field| (format!("{field} set"), set(&of(field)).into()));
    // Where Ironic set it, the reason is an error in words.
    let reason = match of("fault") {
        Value::Null => of("maintenance_reason"),
        _ => set(&of("maintenance_reason")).into(),
    };
    let reason = std::iter::once(("maintenance_reason".to_owned(), reason));
    Value::Object(as_is.chain(whether).chain(reason).collect::<Map<_, _>>())
}

/// So many differences end a sequence: what follows is most often their consequence.
const ENOUGH: usize = 6;

/// Runs one sequence on both, and returns the differences, each with what was asked before.
///
/// # Errors
/// When one of them cannot be worked with.
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
                here.asked,
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
    let mut words = Vec::new();
    for (here, there) in here.nodes.iter().zip(&there.nodes) {
        let fields = here.as_object().into_iter().flatten();
        for (field, value) in fields.filter(|(field, value)| there.get(field.as_str()) != Some(value)) {
            let theirs = there.get(field).cloned().unwrap_or_default();
            words.push(format!("{field} is {value} and {theirs}"));
        }
    }
    words.join(", ")
}
