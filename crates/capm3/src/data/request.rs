//! The Metal3DataClaim of a machine.
//!
//! A machine that has its data, or needs none, makes no claim. References to Secrets of another namespace are an error
//! here too, because an admission webhook may not run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3DataClaimSpec, Metal3Machine, Metal3ObjectRef};
use metal3_capi::owner;

use super::{DataError, Problem};

/// The claim to create, unless one with the machine's name exists. Its `spec.template` is also the complete form of the
/// machine's `spec.dataTemplate`: the template with its namespace.
///
/// # Errors
/// When the machine names a Secret or a template of another namespace.
pub fn claim_of(machine: &Metal3Machine) -> Result<Option<Metal3DataClaim>, DataError> {
    let own = machine.metadata.namespace.as_deref().unwrap_or_default();
    let secrets = [
        ("spec.metaData", &machine.spec.meta_data),
        ("spec.networkData", &machine.spec.network_data),
    ];
    for (field, secret) in secrets {
        check_namespace(
            field,
            secret.as_ref().and_then(|secret| secret.namespace.as_deref()),
            own,
        )?;
    }
    let Some(template) = machine
        .spec
        .data_template
        .as_ref()
        .filter(|_| machine.status.rendered_data.is_none())
    else {
        return Ok(None);
    };
    check_namespace("spec.dataTemplate", template.namespace.as_deref(), own)?;
    let metadata = ObjectMeta {
        name: machine.metadata.name.clone(),
        namespace: machine.metadata.namespace.clone(),
        labels: machine.metadata.labels.clone(),
        finalizers: Some(vec![MACHINE_FINALIZER.to_owned()]),
        owner_references: Some(vec![owner::reference::<Metal3Machine>(&machine.metadata)]),
        ..ObjectMeta::default()
    };
    let template = Metal3ObjectRef {
        name: template.name.clone(),
        namespace: machine.metadata.namespace.clone(),
    };
    let spec = Metal3DataClaimSpec {
        template: Some(template),
    };
    Ok(Some(Metal3DataClaim {
        metadata,
        spec,
        ..Metal3DataClaim::default()
    }))
}

fn check_namespace(field: &str, found: Option<&str>, own: &str) -> Result<(), DataError> {
    match found.filter(|found| !found.is_empty() && *found != own) {
        None => Ok(()),
        Some(found) => {
            let (found, own) = (found.to_owned(), own.to_owned());
            Err(Problem::ForeignNamespace { found, own }.of(format!("{field}.namespace")))
        }
    }
}
