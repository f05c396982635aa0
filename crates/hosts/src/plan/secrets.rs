//! The Secrets that a host uses: labelled by their owner, marked while it uses them, released when it is deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::MOVE_LABEL;
use metal3_api::metal3::names::host_error::SECRET_UNLABELLED;
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use crate::action::Action;
use crate::facts::{Read, Secret};
use crate::names::reason;
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::wait;
use crate::settings::BmcSecrets;

/// Requires that the owner of a Secret has labelled it for the host controllers. Otherwise a user who may edit a host could
/// send the content of any Secret of the namespace to an address of his choice. Decided from metadata, before the
/// content is read. A Secret with the finalizer of host controllers was used before and stays usable. What the status of
/// a host says of its login does not count: users restore it.
pub(crate) fn require_labelled(planner: &Planner<'_>, name: &str, secret: Secret<'_>, field: &str) -> PlanResult<()> {
    // differs: `host-secret-labelled`. The Go manager reads any Secret that a host names, and labels it itself.
    let is_usable = planner.facts.settings.bmc_secrets == BmcSecrets::Any || is_labelled_or_marked(secret.metadata);
    if is_usable {
        return Ok(());
    }
    let namespace = planner.host().metadata.namespace.as_deref().unwrap_or_default();
    let message = format!(
        "Secret {name} {SECRET_UNLABELLED}. If {field} names the right Secret, run: \
         kubectl label secret --namespace {namespace} {name} {ENVIRONMENT_LABEL}={ENVIRONMENT_BAREMETAL}"
    );
    let failure = Failure::until(ErrorType::Registration, message, wait::on_secret(name));
    Err(Decision::Fail(failure.with_event(reason::CREDENTIAL_ERROR)))
}

/// The field of a host that names the Secret of its BMC.
pub(crate) const CREDENTIALS_FIELD: &str = "spec.bmc.credentialsName";
/// The field of a host that names the Secret with the network data of the agent.
pub(crate) const AGENT_NETWORK_FIELD: &str = "spec.preprovisioningNetworkDataName";

fn is_labelled_or_marked(metadata: &ObjectMeta) -> bool {
    let label = metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(ENVIRONMENT_LABEL));
    let mut finalizers = metadata.finalizers.iter().flatten();
    label.is_some_and(|value| value == ENVIRONMENT_BAREMETAL) || finalizers.any(|one| one == SECRET_FINALIZER)
}

/// Whether the host has marked the Secret as the one with its credentials.
pub(crate) fn is_secret_marked(planner: &Planner<'_>, secret: Secret<'_>) -> bool {
    change_secret("", secret, &marked(planner, secret, true)).is_none()
}

/// Marks a Secret as used by the host: label, finalizer, and on the credentials the label with which clusterctl moves
/// them. One patch before the values are sent, so that the new version does not look like new credentials.
///
/// No owner reference: with it Kubernetes deletes the Secret with the host, so a user who may delete a host could delete any
/// Secret that he may name in it. A reference that another manager left stays, since its removal requires the right
/// to delete Secrets where the API server enforces permissions of owner references.
pub(crate) fn mark_secret_used(
    planner: &mut Planner<'_>,
    name: &str,
    secret: Secret<'_>,
    is_login: bool,
) -> PlanResult<()> {
    if planner.is_deleting() {
        return Ok(());
    }
    match change_secret(name, secret, &marked(planner, secret, is_login)) {
        None => Ok(()),
        Some(change) => {
            planner.add(change);
            Err(Decision::Wait(Next::Requeue))
        }
    }
}

fn marked(planner: &Planner<'_>, secret: Secret<'_>, is_login: bool) -> ObjectMeta {
    let mut wanted = secret.metadata.clone();
    let labels = wanted.labels.get_or_insert_default();
    labels.insert(ENVIRONMENT_LABEL.to_owned(), ENVIRONMENT_BAREMETAL.to_owned());
    let finalizers = wanted.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == SECRET_FINALIZER) {
        finalizers.push(SECRET_FINALIZER.to_owned());
    }
    let owners = secret.metadata.owner_references.iter().flatten();
    let moves_with_host = owners.into_iter().any(|owner| owner.uid == planner.uid);
    if is_login && !moves_with_host {
        // differs: `host-secret-not-owned`. The Go manager makes the host an owner of the Secret.
        labels.entry(MOVE_LABEL.to_owned()).or_default();
    }
    wanted
}

fn change_secret(name: &str, secret: Secret<'_>, wanted: &ObjectMeta) -> Option<Action> {
    // Almost always: it is compared each time that the host is looked at.
    if secret.metadata == wanted {
        return None;
    }
    let whole = |metadata: Value| json!({ "metadata": metadata });
    let changes = Changes::between(&whole(document(secret.metadata)), &whole(document(wanted)));
    let version = ResourceVersion::parse(secret.version()).ok();
    let patch = changes
        .main
        .zip(version)
        .map(|(patch, version)| patch.with_precondition(&version));
    patch.map(|patch| Action::PatchSecret {
        name: name.to_owned(),
        patch,
    })
}

/// Removes the finalizer from the Secrets of a deleted host, whatever they contain.
pub(crate) fn release_secrets(planner: &mut Planner<'_>) -> PlanResult<()> {
    let login = planner.host().spec.bmc.as_ref().map(|bmc| bmc.credentials_name.clone());
    let network = planner.host().spec.preprovisioning_network_data_name.clone();
    let facts = planner.facts;
    let used = [
        (login, &facts.credentials, Read::Credentials),
        (network, &facts.agent_network, Read::AgentNetwork),
    ];
    for (name, observed, read) in used {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            continue;
        };
        let secret = match observed {
            Observed::Unknown(_) => return Err(Decision::read(read)),
            Observed::Absent => continue,
            Observed::Present(secret) => *secret,
        };
        let mut wanted = secret.metadata.clone();
        if let Some(finalizers) = &mut wanted.finalizers {
            finalizers.retain(|one| one != SECRET_FINALIZER);
        }
        if let Some(change) = change_secret(&name, secret, &wanted) {
            planner.add(change);
        }
    }
    Ok(())
}
