//! Registration: Ironic has a node of the host, and the BMC accepts the credentials. Every state between the first and
//! the last depends on it.
//!
//! The node is compared on every reconcile, so what a user forbids is in force before any order. A steady host needs no
//! request for it: the node is known from the change feed. Sent credentials are recorded by the version of the Secret,
//! since Ironic does not show them, and the Secrets are read only for something new.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_api::meta::SecretReference;
use metal3_api::metal3::names::host_error::{MACHINE_OF_ANOTHER, NODE_OF_ANOTHER_NAME};
use metal3_api::metal3::v1alpha1::{BareMetalHost, CredentialsStatus, ErrorType, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::graph::Trigger;
use super::host_ports::add_ports;
use super::shared::{DISCARDING, request_transition};
use super::volumes::drop_unfinished;
use crate::action::{Count, Request};
use crate::facts::{ForeignNode, FoundNode, NodeFreshness, Read, Secret};
use crate::names::reason;
use crate::node::{self, AgentNetwork, Credentials, InvalidHost, NodeRecord, Passwords};
use crate::plan::agent_image::{self, NetworkSource};
use crate::plan::deletion::MAINTENANCE;
use crate::plan::error::Failure;
use crate::plan::ironic;
use crate::plan::login;
use crate::plan::ownership::is_owned_node;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::require_live;
use crate::plan::secrets::{
    AGENT_NETWORK_FIELD, CREDENTIALS_FIELD, is_secret_marked, mark_secret_used, require_labelled,
};
use crate::plan::{status, wait};

struct BmcAccess {
    secret: CredentialsStatus,
    /// Whether Ironic may not have these credentials.
    is_new: bool,
    /// The desired node, with the credentials if they were read.
    record: NodeRecord,
}

/// The node of the host, manageable. Ends the decision while it is not.
pub(super) fn ensure_registered<'a>(planner: &mut Planner<'a>) -> PlanResult<&'a Node> {
    let access = match bmc_access(planner) {
        Ok(access) => access,
        Err(Decision::Fail(_)) if planner.is_deleting() => return node_without_credentials(planner),
        Err(end) => return Err(end),
    };
    if let Observed::Present(FoundNode::Foreign(foreign)) = planner.facts.node {
        let message = foreign_node(planner.host(), foreign);
        return Err(planner.fail_with_backoff(Failure::retryable(ErrorType::Registration, message)));
    }
    let Some(node) = planner.node()? else {
        return Err(create_node(planner, &access));
    };
    drop_unfinished(planner, node)?;
    node.uuid.as_str().clone_into(&mut planner.draft.status.provisioning.id);
    take_back_detachment(planner, node)?;
    update_node(planner, node, &access)?;
    add_ports(planner, node)?;
    verify_bmc(planner, node, &access)
}

/// Ends the maintenance of a deletion of the node that was not completed: the annotation that requested it is removed.
fn take_back_detachment(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let reason = node.maintenance_reason.as_deref();
    // Those of updates are discarded in that state only.
    let is_left = reason == Some(DISCARDING) && node.provision_state != S::CleanFailed;
    let is_of_deletion = reason == Some(MAINTENANCE) || is_left;
    if !node.maintenance || !is_of_deletion || node.fault.is_some() || !is_owned_node(planner, node) {
        return Ok(());
    }
    require_live(planner, &[Read::Node])?;
    // differs: `host-detach-taken-back`. The Go manager ends every maintenance without a fault, also an operator's.
    planner.request(Request::ClearMaintenance(node.uuid.clone()));
    Err(Decision::Wait(wait::on_node("Ironic is ending the maintenance")))
}

/// Why the found node is not used. The name of a node is shown only to hosts of its namespace.
fn foreign_node(host: &BareMetalHost, found: &ForeignNode) -> String {
    match found {
        ForeignNode::Address { name } => {
            let mac = host.spec.boot_mac_address.as_deref().unwrap_or_default();
            let shown = name.as_deref().filter(|name| node::name::is_of_namespace(host, name));
            match shown {
                Some(name) => format!(
                    "MAC address {mac} conflicts with existing node {name}; correct spec.bootMACAddress, or remove that \
                     node from Ironic"
                ),
                // differs: `host-foreign-node-unnamed`. The Go manager shows the name of any node.
                None => format!(
                    "MAC address {mac} conflicts with an existing node that is not of this namespace; correct \
                     spec.bootMACAddress, or ask the administrator of Ironic which machine has that address"
                ),
            }
        }
        // differs: `host-node-by-name`. The Go manager takes any node that status.provisioning.ID names.
        ForeignNode::Recorded { uuid } => format!(
            "node {uuid} {NODE_OF_ANOTHER_NAME}, so it may serve another \
             host and is not changed. If it is the node of this host, an administrator of Ironic names it {}",
            node::name::of(host).unwrap_or_default()
        ),
    }
}

/// For a deleted host with unusable credentials: Ironic has its own copy.
fn node_without_credentials<'a>(planner: &mut Planner<'a>) -> PlanResult<&'a Node> {
    match planner.node()? {
        Some(node) => Ok(node),
        None => Err(Decision::ChangeState(Trigger::NodeAbsent)),
    }
}

fn registration_failure(message: impl Into<String>) -> Failure {
    Failure::until_host_changes(ErrorType::Registration, message)
}

pub(super) fn invalid(error: InvalidHost) -> Decision {
    Decision::reject(ErrorType::Registration, error.to_string())
}

fn bmc_access(planner: &mut Planner<'_>) -> PlanResult<BmcAccess> {
    let bmc = planner.host().spec.bmc.clone().unwrap_or_default();
    if bmc.credentials_name.is_empty() {
        let message = "No BMC CredentialsName defined; set spec.bmc.credentialsName to the name of a Secret";
        return Err(invalid_credentials(planner, message));
    }
    if bmc.address.is_empty() {
        return Err(invalid_credentials(planner, "Empty BMC address; set spec.bmc.address"));
    }
    let secret = credentials_secret(planner, &bmc.credentials_name)?;
    let current = CredentialsStatus {
        credentials: Some(SecretReference {
            name: Some(bmc.credentials_name.clone()),
            namespace: planner.host().metadata.namespace.clone(),
        }),
        credentials_version: Some(secret.version().to_owned()),
    };
    let is_new = is_new_login(planner, &current);
    let is_marked = planner.is_deleting() || is_secret_marked(planner, secret);
    let is_needed = is_new || !is_marked || planner.facts.own_node().is_none();
    let login = match secret.values {
        None if is_needed => return Err(Decision::read(Read::Credentials)),
        None => None,
        Some(values) => {
            Some(Credentials::of(values).map_err(|error| invalid_credentials(planner, &error.to_string()))?)
        }
    };
    // Only what is a login.
    // differs: `host-secret-read-first`. The Go manager marks whatever the host names.
    mark_secret_used(planner, &bmc.credentials_name, secret, true)?;
    let (agent, source) = agent_image::choose(planner)?;
    let network = match source {
        NetworkSource::Secret => agent_network(planner)?,
        NetworkSource::Image => AgentNetwork::None,
        NetworkSource::Node => AgentNetwork::Unread,
    };
    if source != NetworkSource::Secret {
        keep_agent_network(planner)?;
    }
    let hardware = planner.host().status.hardware.as_ref();
    let settings = &planner.facts.settings.node;
    let record = NodeRecord::of(planner.host(), login.as_ref(), hardware, &network, settings)
        .and_then(|record| record.with_agent(agent));
    if matches!(record, Err(InvalidHost::Address(_))) {
        planner.count(Count::One("metal3_credentials_invalid_total"));
    }
    let record = record.map_err(invalid)?;
    Ok(BmcAccess {
        secret: current,
        is_new,
        record,
    })
}

/// The Secret with the credentials, which the host may use.
fn credentials_secret<'a>(planner: &mut Planner<'a>, name: &str) -> PlanResult<Secret<'a>> {
    let secret = match planner.facts.credentials {
        Observed::Unknown(_) => return Err(Decision::read(Read::Credentials)),
        Observed::Absent => {
            planner.count(Count::One("metal3_credentials_missing_total"));
            return Err(Decision::Fail(
                Failure::until(
                    ErrorType::Registration,
                    format!(
                        "BMC CredentialsName secret doesn't exist: create Secret {name} with username and password"
                    ),
                    wait::on_secret(name),
                )
                .with_event(reason::CREDENTIAL_ERROR),
            ));
        }
        Observed::Present(secret) => secret,
    };
    require_labelled(planner, name, secret, CREDENTIALS_FIELD).inspect_err(|_| {
        planner.count(Count::One("metal3_credentials_invalid_total"));
    })?;
    Ok(secret)
}

fn invalid_credentials(planner: &mut Planner<'_>, message: &str) -> Decision {
    planner.count(Count::One("metal3_credentials_invalid_total"));
    Decision::Fail(registration_failure(message).with_event(reason::CREDENTIAL_ERROR))
}

/// Whether the credentials in this version of the Secret may not have been sent to Ironic.
fn is_new_login(planner: &mut Planner<'_>, current: &CredentialsStatus) -> bool {
    if planner.host().status.tried_credentials == *current {
        return false;
    }
    // differs: `host-same-login`. The Go manager sends the credentials again after every label change.
    let Some(known) = planner.facts.login_unchanged_for else {
        return true;
    };
    planner.record_login_version(current.clone(), known);
    false
}

fn agent_network(planner: &mut Planner<'_>) -> PlanResult<AgentNetwork> {
    let name = planner.host().spec.preprovisioning_network_data_name.clone();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(AgentNetwork::None);
    };
    match planner.facts.agent_network {
        Observed::Unknown(_) => Err(Decision::read(Read::AgentNetwork)),
        Observed::Absent if planner.is_deleting() => Ok(AgentNetwork::Unread),
        Observed::Absent => Err(Decision::Fail(Failure::until(
            ErrorType::Registration,
            format!(
                "failed to read preprovisioningNetworkData: create Secret {name}, or remove spec.preprovisioningNetworkDataName"
            ),
            wait::on_secret(&name),
        ))),
        Observed::Present(secret) => {
            match require_labelled(planner, &name, secret, AGENT_NETWORK_FIELD) {
                Err(_) if planner.is_deleting() => return Ok(AgentNetwork::Unread),
                labelled => labelled?,
            }
            match (secret.values, planner.facts.own_node()) {
                (Some(values), _) => {
                    require_bounded(planner, &name, values)?;
                    let network = AgentNetwork::of(values).map_err(invalid)?;
                    mark_secret_used(planner, &name, secret, false)?;
                    Ok(network)
                }
                // Read once the node takes changes: earlier a difference cannot be written.
                (None, Some((node, _))) if planner.facts.agent_network_on_node || !node::takes_changes(node) => {
                    Ok(AgentNetwork::Unread)
                }
                (None, _) => Err(Decision::read(Read::AgentNetwork)),
            }
        }
    }
}

/// Marks the Secret with the network data as used, also where another program reads it: the next image needs it.
fn keep_agent_network(planner: &mut Planner<'_>) -> PlanResult<()> {
    let name = planner.host().spec.preprovisioning_network_data_name.clone();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    match planner.facts.agent_network {
        Observed::Present(secret) if require_labelled(planner, &name, secret, AGENT_NETWORK_FIELD).is_ok() => {
            mark_secret_used(planner, &name, secret, false)
        }
        _ => Ok(()),
    }
}

/// Network data of some hundred interfaces. They are part of the record of a node, which each poll of Ironic returns.
const MOST_NETWORK_DATA: usize = 64 * 1024;

/// Requires network data of a usual size, with `--build-preprov-image`.
fn require_bounded(planner: &Planner<'_>, name: &str, values: &BTreeMap<String, ByteString>) -> PlanResult<()> {
    let given = ["networkData", "value"].iter().find_map(|key| values.get(*key));
    let length = given.map_or(0, |value| value.0.len());
    if !planner.facts.settings.builds_agent_images || planner.is_deleting() || length <= MOST_NETWORK_DATA {
        return Ok(());
    }
    let message = format!(
        "Secret {name}, which {AGENT_NETWORK_FIELD} names, has {length} bytes of network data, and an agent gets \
         {MOST_NETWORK_DATA} at most; shorten them"
    );
    let wait = wait::on_secret(name);
    Err(Decision::Fail(Failure::until(ErrorType::Registration, message, wait)))
}

/// Creates the node. Only reached after a search without a result.
fn create_node(planner: &mut Planner<'_>, access: &BmcAccess) -> Decision {
    // differs: `host-machine-once`. The Go manager creates a second node for the machine, which boots and erases it.
    if let Some(other) = planner.facts.machine_of {
        return machine_of_another(planner, other);
    }
    if let Err(elsewhere) = ironic::require_nowhere_else(planner, true) {
        return elsewhere;
    }
    planner.request(Request::CreateNode(Box::new(access.record.creation())));
    planner.record_event(reason::REGISTERED, "registered with Ironic");
    Decision::Wait(Next::Requeue)
}

fn machine_of_another(planner: &Planner<'_>, other: &Key) -> Decision {
    let is_near = planner.host().metadata.namespace.as_deref() == Some(&other.namespace);
    let whose = match is_near {
        true => format!("BareMetalHost {}", other.name),
        false => "a BareMetalHost of another namespace".to_owned(),
    };
    let message = format!("{MACHINE_OF_ANOTHER}{whose}; correct it, or delete the other host");
    planner.fail_with_backoff(Failure::retryable(ErrorType::Registration, message))
}

fn update_node(planner: &mut Planner<'_>, node: &Node, access: &BmcAccess) -> PlanResult<()> {
    let is_created = matches!(planner.facts.own_node(), Some((_, NodeFreshness::Created)));
    if access.is_new && node.provision_state == S::Verifying && !planner.is_deleting() {
        // What is verified is one login or the other.
        return Err(Decision::Wait(wait::on_node("Ironic verifies the BMC")));
    }
    let passwords = if access.is_new && !is_created {
        Passwords::Changed
    } else {
        Passwords::AsSent
    };
    let changes = access.record.changes(node, passwords).map_err(|error| {
        // A deletion must not wait for ever: its attempts are counted.
        if planner.is_deleting() {
            return planner.fail_with_backoff(Failure::retryable(ErrorType::Registration, error.to_string()));
        }
        invalid(error)
    })?;
    if changes.needs_login {
        return Err(Decision::read(Read::Credentials));
    }
    // Before the login is recorded: it is not sent either.
    if let Some(other) = planner.facts.machine_of.filter(|_| changes.leads_elsewhere) {
        return Err(machine_of_another(planner, other));
    }
    if changes.leads_elsewhere {
        // A refusal is of the former BMC.
        status::clear_kind(&mut planner.draft.status, ErrorType::Registration);
    }
    let is_waiting = access.is_new && !is_created && changes.is_login_postponed();
    if access.is_new && !is_waiting {
        if !is_created {
            login::record_untried(&mut planner.draft.status, node, &access.secret);
        }
        planner.draft.status.tried_credentials = access.secret.clone();
        planner.count(Count::One("metal3_credentials_updated_total"));
    }
    if changes.patch.is_empty() {
        return Ok(());
    }
    planner.request(Request::PatchNode(node.uuid.clone(), changes.patch));
    if node.provision_state == S::Enroll {
        return Ok(());
    }
    Err(Decision::Wait(Next::Requeue))
}

fn verify_bmc<'a>(planner: &mut Planner<'a>, node: &'a Node, access: &BmcAccess) -> PlanResult<&'a Node> {
    match &node.provision_state {
        S::Enroll => {
            match &node.last_error {
                Some(error) if !access.is_new => {
                    let failure = Failure::retryable(ErrorType::Registration, error.clone());
                    planner.retry_node_failure(failure).inspect_err(|decision| {
                        if matches!(decision, Decision::Fail(_)) {
                            planner.count(Count::One("metal3_credentials_no_management_access_total"));
                        }
                    })?;
                }
                _ => status::clear_kind(&mut planner.draft.status, ErrorType::Registration),
            }
            Err(request_transition(planner, node, Transition::Manage)?)
        }
        S::Verifying => Err(Decision::Wait(wait::on_node("Ironic verifies the BMC"))),
        _ => {
            // After a mere version change of the Secret, the tried credentials are the verified ones.
            let is_tried = planner.draft.status.tried_credentials == access.secret || !access.is_new;
            login::require_accepted(planner, node, is_tried)?;
            // Hosts of two namespaces do not see each other before they are verified.
            if let Some(other) = planner
                .facts
                .machine_of
                .filter(|_| *planner.state() == State::Registering)
            {
                return Err(machine_of_another(planner, other));
            }
            status::clear_kind(&mut planner.draft.status, ErrorType::Registration);
            Ok(node)
        }
    }
}
