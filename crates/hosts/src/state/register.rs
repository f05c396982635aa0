//! That Ironic has a node of the host, and that its BMC obeys: what every state but the first and the last relies on.
//!
//! Steady hosts cost nothing here: the node is compared as the change feed shows it. What is sent is remembered by the
//! version of the Secret, since Ironic does not show what it has.

use metal3_api::meta::SecretReference;
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::{CredentialsStatus, ErrorType, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use serde_json::{Value, json};

use super::graph::Why;
use super::order;
use crate::action::{Count, Request, Step, Wait};
use crate::error::Failure;
use crate::facts::{NodeSeen, NodeSight, Read, Secret, Sight};
use crate::names::reason;
use crate::node::{AgentNetwork, Credentials, NodeRecord, Passwords, Refusal, not_yet, ports};
use crate::plan::{End, Pass, document};
use crate::status;

/// The way to the BMC, as the host gives it.
struct Access {
    /// The Secret, as the status records it.
    secret: CredentialsStatus,
    /// Whether Ironic may not have this login.
    is_new: bool,
    /// The node that the host wants. Nothing: no reason to compare.
    record: Option<NodeRecord>,
}

/// The node of the host, under control. Ends the decision while it is not.
pub(super) fn registered<'a>(pass: &mut Pass<'a>) -> Result<&'a Node, End> {
    let access = match access(pass) {
        Ok(access) => access,
        Err(End::Fail(_)) if pass.is_leaving() => return without_access(pass),
        Err(end) => return Err(end),
    };
    if let NodeSight::Foreign { name } = pass.facts.node {
        let mac = pass.host().spec.boot_mac_address.as_deref().unwrap_or_default();
        let message = format!(
            "MAC address {mac} conflicts with existing node {name}; correct spec.bootMACAddress, or remove that node from Ironic"
        );
        return Err(pass.fails(Failure::attempt(ErrorType::Registration, message)));
    }
    let Some(node) = pass.node()? else {
        return Err(create(pass, &access));
    };
    node.uuid.as_str().clone_into(&mut pass.draft.status.provisioning.id);
    correct(pass, node, &access)?;
    obey(pass, node, &access)
}

/// For a host that leaves and whose login cannot be used: Ironic has it.
fn without_access<'a>(pass: &mut Pass<'a>) -> Result<&'a Node, End> {
    match pass.node()? {
        Some(node) => Ok(node),
        None => Err(End::Go(Why::Forgotten)),
    }
}

fn failure(message: impl Into<String>) -> Failure {
    Failure::standing(ErrorType::Registration, message)
}

fn refusal(refusal: &Refusal) -> End {
    End::Fail(failure(refusal.to_string()))
}

fn access(pass: &mut Pass<'_>) -> Result<Access, End> {
    let bmc = pass.host().spec.bmc.clone().unwrap_or_default();
    let credential = |message: &str| End::Fail(failure(message).told_as(reason::CREDENTIAL_ERROR));
    if bmc.credentials_name.is_empty() {
        return Err(credential(
            "No BMC CredentialsName defined; set spec.bmc.credentialsName to the name of a Secret",
        ));
    }
    if bmc.address.is_empty() {
        return Err(credential("Empty BMC address; set spec.bmc.address"));
    }
    let secret = match pass.facts.credentials {
        Sight::Unknown => return Err(End::read(Read::Credentials)),
        Sight::Absent => {
            let name = &bmc.credentials_name;
            pass.count(Count::One("metal3_credentials_missing_total"));
            return Err(End::Fail(
                Failure::until(
                    ErrorType::Registration,
                    format!(
                        "BMC CredentialsName secret doesn't exist: create Secret {name} with username and password"
                    ),
                    Wait::OnSecret(name.clone()),
                )
                .told_as(reason::CREDENTIAL_ERROR),
            ));
        }
        Sight::Found(secret) => secret,
    };
    claim(pass, &bmc.credentials_name, secret, true)?;
    supported(pass)?;
    let current = CredentialsStatus {
        credentials: Some(SecretReference {
            name: Some(bmc.credentials_name.clone()),
            namespace: pass.host().metadata.namespace.clone(),
        }),
        credentials_version: Some(secret.version().to_owned()),
    };
    let is_new = is_new_login(pass, &current);
    let is_needed = is_new || !matches!(pass.facts.node, NodeSight::Found(..)) || pass.is_changed();
    let record = match secret.values {
        None if is_needed || *pass.state() == State::Registering => return Err(End::read(Read::Credentials)),
        None => None,
        Some(values) => {
            let login = Credentials::of(values)
                .map_err(|error| End::Fail(failure(error.to_string()).told_as(reason::CREDENTIAL_ERROR)))?;
            let network = agent_network(pass)?;
            let hardware = pass.host().status.hardware.as_ref();
            let settings = &pass.facts.settings.node;
            Some(NodeRecord::of(pass.host(), &login, hardware, &network, settings).map_err(|error| refusal(&error))?)
        }
    };
    Ok(Access {
        secret: current,
        is_new,
        record,
    })
}

/// Whether Ironic was never sent what this version of the Secret holds, as far as is known.
fn is_new_login(pass: &mut Pass<'_>, current: &CredentialsStatus) -> bool {
    if pass.host().status.tried_credentials == *current {
        return false;
    }
    // differs: `host-same-login`. The Go manager sends the login again for every label.
    let Some(known) = pass.facts.same_login else {
        return true;
    };
    pass.record_login(current.clone(), known);
    false
}

/// Whether all that the host still asks for is built.
fn supported(pass: &Pass<'_>) -> Result<(), End> {
    // What runs was made by a manager that could, and cleaning needs none of it.
    let is_done = matches!(
        pass.state(),
        State::Provisioned | State::ExternallyProvisioned | State::Deprovisioning
    );
    match not_yet::of(pass.host()).first() {
        Some(asked) if !is_done && !pass.is_leaving() => Err(End::Fail(failure(asked.to_string()))),
        _ => Ok(()),
    }
}

/// The network of the agent.
fn agent_network(pass: &mut Pass<'_>) -> Result<AgentNetwork, End> {
    let name = pass.host().spec.preprovisioning_network_data_name.clone();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(AgentNetwork::None);
    };
    match pass.facts.agent_network {
        Sight::Unknown => Err(End::read(Read::AgentNetwork)),
        Sight::Absent if pass.is_leaving() => Ok(AgentNetwork::Unread),
        Sight::Absent => Err(End::Fail(Failure::until(
            ErrorType::Registration,
            format!(
                "failed to read preprovisioningNetworkData: create Secret {name}, or remove spec.preprovisioningNetworkDataName"
            ),
            Wait::OnSecret(name),
        ))),
        Sight::Found(secret) => {
            claim(pass, &name, secret, false)?;
            let Some(values) = secret.values else {
                return Err(End::read(Read::AgentNetwork));
            };
            AgentNetwork::of(values).map_err(|error| refusal(&error))
        }
    }
}

/// Marks a Secret as one that a host uses: label, finalizer, and for the login an owner. One patch, before the values
/// are sent, so that our own bookkeeping does not look like another login.
fn claim(pass: &mut Pass<'_>, name: &str, secret: Secret<'_>, is_login: bool) -> Result<(), End> {
    if pass.is_leaving() {
        return Ok(());
    }
    let mut wanted = secret.metadata.clone();
    let labels = wanted.labels.get_or_insert_default();
    labels.insert(ENVIRONMENT_LABEL.to_owned(), ENVIRONMENT_BAREMETAL.to_owned());
    let finalizers = wanted.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == SECRET_FINALIZER) {
        finalizers.push(SECRET_FINALIZER.to_owned());
    }
    if is_login {
        let owners = wanted.owner_references.get_or_insert_default();
        match owners.iter_mut().find(|owner| owner.uid == pass.uid) {
            // An older manager made itself the controller of it.
            Some(owner) => owner.controller = None,
            None => owners.push(k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
                api_version: "metal3.io/v1alpha1".to_owned(),
                kind: "BareMetalHost".to_owned(),
                name: pass.host().metadata.name.clone().unwrap_or_default(),
                uid: pass.uid.to_owned(),
                ..Default::default()
            }),
        }
    }
    let step = change_secret(name, secret, &wanted);
    if step.is_empty() {
        return Ok(());
    }
    for one in step {
        pass.step(one);
    }
    Err(End::Wait(Wait::Again))
}

fn change_secret(
    name: &str,
    secret: Secret<'_>,
    wanted: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
) -> Vec<Step> {
    let whole = |metadata: Value| json!({ "metadata": metadata });
    let changes = Changes::between(&whole(document(secret.metadata)), &whole(document(wanted)));
    let version = ResourceVersion::parse(secret.version()).ok();
    let patch = changes
        .main
        .zip(version)
        .map(|(patch, version)| patch.only_at(&version));
    patch
        .map(|patch| Step::PatchSecret {
            name: name.to_owned(),
            patch,
        })
        .into_iter()
        .collect()
}

/// Lets go of the Secrets that a leaving host used, whatever is in them.
pub(crate) fn release_secrets(pass: &mut Pass<'_>) -> Result<(), End> {
    let login = pass.host().spec.bmc.as_ref().map(|bmc| bmc.credentials_name.clone());
    let network = pass.host().spec.preprovisioning_network_data_name.clone();
    let used = [
        (login, pass.facts.credentials, Read::Credentials),
        (network, pass.facts.agent_network, Read::AgentNetwork),
    ];
    for (name, sight, read) in used {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            continue;
        };
        let secret = match sight {
            Sight::Unknown => return Err(End::read(read)),
            Sight::Absent => continue,
            Sight::Found(secret) => secret,
        };
        let mut wanted = secret.metadata.clone();
        if let Some(finalizers) = &mut wanted.finalizers {
            finalizers.retain(|one| one != SECRET_FINALIZER);
        }
        for step in change_secret(&name, secret, &wanted) {
            pass.step(step);
        }
    }
    Ok(())
}

/// Creates the node. Only a search that found nothing leads here.
fn create(pass: &mut Pass<'_>, access: &Access) -> End {
    let Some(record) = &access.record else {
        return End::read(Read::Credentials);
    };
    pass.ask(Request::CreateNode(Box::new(record.creation())));
    pass.tell(reason::REGISTERED, "registered with Ironic");
    End::Wait(Wait::Again)
}

/// Brings the node's record in line with the host.
fn correct(pass: &mut Pass<'_>, node: &Node, access: &Access) -> Result<(), End> {
    let is_created = matches!(pass.facts.node, NodeSight::Found(_, NodeSeen::Created));
    let passwords = if access.is_new && !is_created {
        Passwords::Changed
    } else {
        Passwords::AsSent
    };
    let changes = match &access.record {
        Some(record) => record.changes(node, passwords).map_err(|error| refusal(&error))?,
        None => return Ok(()),
    };
    let is_waiting = access.is_new && !is_created && changes.login_waits();
    if access.is_new && !is_waiting {
        pass.draft.status.tried_credentials = access.secret.clone();
        pass.count(Count::One("metal3_credentials_updated_total"));
    }
    if changes.patch.is_empty() {
        return Ok(());
    }
    pass.ask(Request::PatchNode(node.uuid.clone(), changes.patch));
    if node.provision_state == S::Enroll {
        return Ok(());
    }
    Err(End::Wait(Wait::Again))
}

/// Creates the ports that the node lacks. Ends the decision if there are any.
pub(super) fn ports(pass: &mut Pass<'_>, node: &Node) -> Result<(), End> {
    if !ports::may_be_created(&node.provision_state) {
        return Ok(());
    }
    let hardware = pass.host().status.hardware.as_ref();
    if ports::wanted(pass.host(), hardware)
        .map_err(|error| refusal(&error))?
        .is_empty()
    {
        return Ok(());
    }
    let found = match pass.facts.ports {
        Sight::Unknown => return Err(End::read(Read::Ports)),
        Sight::Absent => &[],
        Sight::Found(found) => found,
    };
    let missing = ports::missing(pass.host(), hardware, found).map_err(|error| refusal(&error))?;
    if missing.is_empty() {
        return Ok(());
    }
    for port in missing {
        pass.ask(Request::CreatePort {
            node: node.uuid.clone(),
            address: port.address,
            pxe_enabled: port.pxe_enabled,
        });
    }
    Err(End::Wait(Wait::Again))
}

/// Has Ironic try the BMC, where it has not.
fn obey<'a>(pass: &mut Pass<'a>, node: &'a Node, access: &Access) -> Result<&'a Node, End> {
    match &node.provision_state {
        S::Enroll => {
            match &node.last_error {
                Some(error) if !access.is_new => {
                    pass.attempt_on_failed(Failure::attempt(ErrorType::Registration, error.clone()))?;
                }
                _ => status::clear_of(&mut pass.draft.status, ErrorType::Registration),
            }
            Err(order(pass, node, Transition::Manage))
        }
        S::Verifying => Err(End::Wait(Wait::OnNode("Ironic tries the BMC"))),
        _ => {
            let status = &mut pass.draft.status;
            // Under another version of the Secret it is the login that was tried which was found good.
            let is_tried = status.tried_credentials == access.secret || !access.is_new;
            if is_tried && status.good_credentials != status.tried_credentials {
                status.good_credentials.clone_from(&status.tried_credentials);
                // differs: `host-access-tried`. The Go manager says so of every login that it sent.
                if *pass.state() == State::Registering {
                    pass.tell(reason::ACCESS_VALIDATED, "Verified access to BMC");
                }
            }
            status::clear_of(&mut pass.draft.status, ErrorType::Registration);
            Ok(node)
        }
    }
}
