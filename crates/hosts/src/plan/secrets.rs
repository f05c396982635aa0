//! The Secrets that a host uses: marked while it uses them, released when it is deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use crate::action::Action;
use crate::facts::{Read, Secret};
use crate::plan::planner::{Decision, PlanResult, Planner, document};

/// Whether the host has marked the Secret as the one with its credentials.
pub(crate) fn is_secret_marked(planner: &Planner<'_>, secret: Secret<'_>) -> bool {
    change_secret("", secret, &marked(planner, secret, true)).is_none()
}

/// Marks a Secret as used by the host: label, finalizer, and an owner reference on the credentials. One patch before
/// the values are sent, so that the new version does not look like new credentials.
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
    if is_login {
        let owners = wanted.owner_references.get_or_insert_default();
        match owners.iter_mut().find(|owner| owner.uid == planner.uid) {
            // An older manager made the host the controller of the Secret.
            Some(owner) => owner.controller = None,
            None => owners.push(OwnerReference {
                api_version: "metal3.io/v1alpha1".to_owned(),
                kind: "BareMetalHost".to_owned(),
                name: planner.host().metadata.name.clone().unwrap_or_default(),
                uid: planner.uid.to_owned(),
                ..Default::default()
            }),
        }
    }
    wanted
}

fn change_secret(name: &str, secret: Secret<'_>, wanted: &ObjectMeta) -> Option<Action> {
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
