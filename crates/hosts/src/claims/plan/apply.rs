//! Gives the host the spec of its claim.

use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, Image, ProvisioningState};
use metal3_runtime::cache::Key;

use super::super::copies::{Copy, Pair, Source, Use};
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{Action, Decision, Step, end, reboot, verify};

/// Whether the claim asks for a deployment.
fn is_deployment_wanted(claim: &HostClaim) -> bool {
    claim.spec.image.is_some() || claim.spec.custom_deploy.is_some()
}

fn is_same_image(image: Option<&Image>, wanted: Option<&Image>) -> bool {
    let identity = |image: &Image| (image.url.clone(), image.checksum.clone());
    image.filter(|image| !image.url.is_empty()).map(identity) == wanted.map(identity)
}

/// Whether the host runs what the claim asks for, and is not asked for something else.
pub(super) fn is_provisioned(claim: &HostClaim, host: &BareMetalHost) -> bool {
    let (provisioning, wanted) = (&host.status.provisioning, claim.spec.image.as_ref());
    let methods = [&provisioning.custom_deploy, &host.spec.custom_deploy];
    is_deployment_wanted(claim)
        && provisioning.state == ProvisioningState::Provisioned
        && is_same_image(Some(&provisioning.image), wanted)
        && is_same_image(host.spec.image.as_ref(), wanted)
        && methods.iter().all(|method| **method == claim.spec.custom_deploy)
}

/// The Secrets first, then the spec of the host in one patch.
pub(super) fn apply(facts: &Facts, (key, host): (&Key, &BareMetalHost), report: &Report) -> Decision<()> {
    let claim = &facts.claim;
    if is_deployment_wanted(claim) && !is_provisioned(claim, host) {
        require_copies(facts, key, report)?;
    }
    let wanted = desired(claim, key, host);
    if wanted.spec == host.spec && wanted.metadata == host.metadata {
        return Ok(());
    }
    verify(facts, key)?;
    Err(Step::Do(Action::Host(Box::new(wanted), "give the host its spec")))
}

/// Copies what the claim names, again when it changes, until it is deployed.
fn require_copies(facts: &Facts, key: &Key, report: &Report) -> Decision<()> {
    let Some(pairs) = facts.copies.get(key) else {
        return Err(Step::Read(Read::Copies(key.clone())));
    };
    for (which, pair) in pairs.iter().filter(|(_, pair)| !pair.is_synced()) {
        if let Some(problem) = problem(*which, pair) {
            return Err(end(Some(report.clone().unsynced(which.reason(), &problem))));
        }
        verify(facts, key)?;
        return Err(Step::Do(Action::Fill(*which, key.clone())));
    }
    Ok(())
}

/// Why a Secret is not copied. It names fields of the claim only.
fn problem(which: Use, pair: &Pair) -> Option<String> {
    let field = which.field();
    let of_source = match &pair.source {
        Source::None | Source::Secret { .. } => None,
        Source::Absent => Some("names a Secret that does not exist in the namespace of the claim; create it"),
        Source::Elsewhere => Some("names another namespace; name a Secret in the namespace of the claim"),
        Source::Invalid => Some("is no valid name of a Secret; correct it"),
        Source::OtherUse => {
            Some("names a Secret that is the login of a BMC, or a copy for another claim; name one of its own")
        }
        Source::OtherType => Some("names a Secret of a type that cannot be used for it; name one of another type"),
        Source::Unknown => Some("names a Secret that cannot be read now; it is read again when that changes"),
    };
    let of_copy = match &pair.copy {
        Copy::Absent | Copy::Own(_) => None,
        Copy::Foreign => Some(
            "cannot be copied: a Secret with the name of the copy exists and is another one; the administrators of the hosts \
                  have to remove it",
        ),
        Copy::Refused => Some("cannot be copied: the API server refuses it; ask the administrators of the hosts"),
        Copy::Unknown => Some("cannot be copied: whether a copy exists is not known now"),
    };
    Some(format!("{field} {}", of_source.or(of_copy)?))
}

/// The host as the claim wants it. Of a Secret the host gets the name of the copy, never the one in the claim, and it keeps those
/// that it has while it runs what the claim asks for: copies are made until then.
pub(super) fn desired(claim: &HostClaim, key: &Key, host: &BareMetalHost) -> BareMetalHost {
    let mut wanted = host.clone();
    let is_wanted = |which: Use| is_deployment_wanted(claim) && which.named(&claim.spec, &key.namespace).is_some();
    let reference = |which: Use| {
        is_wanted(which).then(|| SecretReference {
            name: Some(which.name(key)),
            namespace: Some(key.namespace.clone()),
        })
    };
    let spec = &mut wanted.spec;
    spec.online = claim.spec.powered_on;
    if !is_provisioned(claim, host) {
        spec.custom_deploy.clone_from(&claim.spec.custom_deploy);
        spec.user_data = reference(Use::UserData);
        spec.network_data = reference(Use::NetworkData);
        spec.meta_data = reference(Use::MetaData);
        spec.image = claim.spec.image.clone().map(|image| Image {
            oci_auth_secret_name: is_wanted(Use::RegistryLogin).then(|| Use::RegistryLogin.name(key)),
            ..image
        });
    }
    reboot::hold(claim, &mut wanted);
    wanted
}
