//! Gives the host the spec of its claim.

use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, Image, ProvisioningState};
use metal3_runtime::cache::Key;

use super::super::bond::Record;
use super::super::copies::{Copy, Pair, Pairs, Source, Use};
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{Action, Decision, Step, end, reboot, recheck, verify};
use crate::names::claim_reason::NOT_SYNCED;

/// Whether the claim asks for a deployment.
fn is_deployment_wanted(claim: &HostClaim) -> bool {
    claim.spec.image.is_some() || claim.spec.custom_deploy.is_some()
}

/// Of an image only the URL counts, as on a host without a claim: another checksum changes nothing on a running machine.
fn is_same_image(image: Option<&Image>, wanted: Option<&Image>) -> bool {
    let url = |image: &Image| image.url.clone();
    image.filter(|image| !image.url.is_empty()).map(url) == wanted.map(url)
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

/// The most text of an image or a deploy step: a host has it in its spec and up to twice in its status.
const LONGEST: usize = 8192;

fn is_too_long(claim: &HostClaim) -> bool {
    let spec = &claim.spec;
    let of_image = serde_json::to_string(&spec.image).map_or(usize::MAX, |text| text.len());
    let of_deploy = serde_json::to_string(&spec.custom_deploy).map_or(usize::MAX, |text| text.len());
    of_image.saturating_add(of_deploy) > LONGEST
}

/// What the claim asks for and the host does not get.
pub(super) fn shortfall(facts: &Facts, host: &BareMetalHost) -> Option<&'static str> {
    let claim = &facts.claim;
    if !claim.spec.powered_on && host.spec.disable_power_off == Some(true) {
        return Some(
            "the administrators of the host do not permit to power it off, so that it stays on; set spec.poweredOn",
        );
    }
    if facts.is_hardware_refused {
        return Some(
            "the API server refuses to copy labels and annotations of the host to its HardwareData; ask the administrators of the hosts",
        );
    }
    reboot::ignored(claim)
}

/// The Secrets first, then the spec of the host in one patch; at last copies that are not used any more are emptied.
pub(super) fn apply(facts: &Facts, (key, host): (&Key, &BareMetalHost), report: &Report) -> Decision<()> {
    let claim = &facts.claim;
    if is_too_long(claim) {
        let why = "spec.image and spec.customDeploy have more than 8192 characters together; shorten them";
        return Err(end(Some(report.clone().unsynced(NOT_SYNCED, why))));
    }
    let Some(pairs) = facts.copies.get(key) else {
        return Err(Step::Read(Read::Copies(key.clone())));
    };
    if is_deployment_wanted(claim) && !is_provisioned(claim, host) {
        match require_copies(facts, (key, pairs), report) {
            // A Secret that is missing keeps the next image back, and neither power nor reboots of what runs.
            Err(stop @ Step::End(_)) if is_running(host) => {
                give(facts, key, host, with_power(claim, host))?;
                return Err(stop);
            }
            copied => copied?,
        }
    }
    give(facts, key, host, desired(claim, key, host))?;
    let unused = |(which, pair): &(&Use, &Pair)| {
        pair.source == Source::None && pair.is_filled() && !is_referenced(host, &which.name(key))
    };
    if let Some((which, _)) = pairs.iter().find(unused) {
        verify(facts, key)?;
        return Err(Step::Do(Action::Empty(*which, key.clone())));
    }
    Ok(())
}

/// Gives the host this spec, if it has another one.
fn give(facts: &Facts, key: &Key, host: &BareMetalHost, wanted: BareMetalHost) -> Decision<()> {
    if wanted.spec == host.spec && wanted.metadata == host.metadata {
        return Ok(());
    }
    verify(facts, key)?;
    Err(Step::Do(Action::Host(Box::new(wanted), "give the host its spec")))
}

fn is_running(host: &BareMetalHost) -> bool {
    host.status.provisioning.state == ProvisioningState::Provisioned
}

/// Whether the spec of the host names a Secret of its claim.
pub(in super::super) fn is_referenced(host: &BareMetalHost, name: &str) -> bool {
    let spec = &host.spec;
    let data = [&spec.user_data, &spec.network_data, &spec.meta_data];
    let mut named = data.into_iter().flatten().filter_map(|one| one.name.as_deref());
    let login = spec
        .image
        .as_ref()
        .and_then(|image| image.oci_auth_secret_name.as_deref());
    named.any(|one| one == name) || login == Some(name)
}

/// Copies what the claim names, again when it changes, until it is deployed.
fn require_copies(facts: &Facts, (key, pairs): (&Key, &Pairs), report: &Report) -> Decision<()> {
    let Some((which, pair)) = pairs.iter().find(|(_, pair)| !pair.is_synced()) else {
        return Ok(());
    };
    if let Some(problem) = problem(*which, pair) {
        let report = report.clone().unsynced(which.reason(), &problem);
        return Err(match is_watched(pair) {
            true => end(Some(report)),
            false => recheck(report, which.reason(), &problem),
        });
    }
    verify(facts, key)?;
    Err(Step::Do(Action::Fill(*which, key.clone())))
}

/// Whether a change of the claim or of the Secret ends the problem, so that a watch shows it.
fn is_watched(pair: &Pair) -> bool {
    let of_source = !matches!(pair.source, Source::OtherUse | Source::Unknown);
    of_source && matches!(pair.copy, Copy::Absent | Copy::Own(_))
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
        Source::Unknown => Some("names a Secret that cannot be read now; it is read again"),
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

/// The host with the power and the reboots that the claim wants.
fn with_power(claim: &HostClaim, host: &BareMetalHost) -> BareMetalHost {
    let mut wanted = host.clone();
    wanted.spec.online = claim.spec.powered_on || host.spec.disable_power_off == Some(true);
    reboot::hold(claim, &mut wanted);
    // A move or a restoration gave the claim another UID.
    if let Some(record) = Record::of(host).filter(|record| Some(&record.uid) != claim.metadata.uid.as_ref()) {
        record.refreshed(claim).write(&mut wanted);
    }
    wanted
}

/// The host as the claim wants it. Of a Secret the host gets the name of the copy, never the one in the claim, and it keeps those
/// that it has while it runs what the claim asks for: copies are made until then.
pub(super) fn desired(claim: &HostClaim, key: &Key, host: &BareMetalHost) -> BareMetalHost {
    let mut wanted = with_power(claim, host);
    let is_wanted = |which: Use| is_deployment_wanted(claim) && which.named(&claim.spec, &key.namespace).is_some();
    let reference = |which: Use| {
        is_wanted(which).then(|| SecretReference {
            name: Some(which.name(key)),
            namespace: Some(key.namespace.clone()),
        })
    };
    let spec = &mut wanted.spec;
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
    wanted
}
