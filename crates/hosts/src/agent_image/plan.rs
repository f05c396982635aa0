//! The decision about one image. Pure.

use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::names::{AGENT_IMAGE_BUILDER_ANNOTATION, AGENT_IMAGE_FINALIZER};
use metal3_api::metal3::v1alpha1::{PreprovisioningImage, PreprovisioningImageFormat as Format, SecretVersion};
use metal3_runtime::condition::set_condition;
use metal3_runtime::plan::Observed;
use metal3_runtime::reason::Reason;

use crate::names::image_reason::{CONFIGURATION_ERROR, MISSING_NETWORK_DATA, SUCCESS};
use crate::node::agent::NotOffered;
use crate::node::{AgentFiles, Ramdisks};
use crate::plan::agent_image::{OWN_BUILDER, is_own};
use crate::plan::agent_state::{ERROR, READY};

/// The message of an image that is ready, as the Go manager writes it.
const GENERATED: &str = "Generated image";

/// The message of an ISO for a host that names network data.
const WITHOUT_NETWORK: &str = "Generated image. The agent gets no network data: Ironic puts none into an ISO that is ready. \
                               Set DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL to have them used";

/// What a decision knows.
pub(super) struct Facts<'a> {
    pub(super) image: &'a PreprovisioningImage,
    /// The version of the Secret with the network data, if the image names one.
    pub(super) secret: Observed<String>,
    pub(super) ramdisks: &'a Ramdisks,
    pub(super) now: Time,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// There is nothing to do until the image or its Secret changes.
    Done,
    /// Change annotations and finalizers.
    Own(Box<PreprovisioningImage>),
    /// Write the status.
    Report(Box<PreprovisioningImage>),
}

pub(super) fn plan(facts: &Facts<'_>) -> Step {
    let image = facts.image;
    if image.metadata.deletion_timestamp.is_some() {
        return release(image);
    }
    if !is_own(image) && !may_be_claimed(facts) {
        return Step::Done;
    }
    let owned = owned(image);
    if owned.metadata != image.metadata {
        return Step::Own(Box::new(owned));
    }
    let reported = match result(facts) {
        Ok((files, network)) => ready(facts, files, network),
        Err(None) => return Step::Done,
        Err(Some((reason, message))) => failed(facts, reason, message),
    };
    match reported.status == image.status {
        true => Step::Done,
        false => Step::Report(Box::new(reported)),
    }
}

/// The host and others let it go first. A configured image is not discarded.
fn release(image: &PreprovisioningImage) -> Step {
    let finalizers = image.metadata.finalizers.as_deref().unwrap_or_default();
    let is_last = finalizers.iter().all(|name| name == AGENT_IMAGE_FINALIZER) && !finalizers.is_empty();
    let annotations = image.metadata.annotations.as_ref();
    // clusterctl removes the finalizers of an object that exists in another cluster now.
    let is_moving = annotations.is_some_and(|all| all.contains_key(DELETE_FOR_MOVE_ANNOTATION));
    if !is_own(image) || !is_last || is_moving {
        return Step::Done;
    }
    let mut released = image.clone();
    released.metadata.finalizers = None;
    Step::Own(Box::new(released))
}

/// Whether no other builder has begun with the image: it has no finalizer of a builder and no status. Or the Go manager
/// served it from the same configuration.
// differs: `agent-image-builder`. The Go manager serves all images once one is configured.
fn may_be_claimed(facts: &Facts<'_>) -> bool {
    let image = facts.image;
    if !facts.ramdisks.serves(architecture(image)) {
        return false;
    }
    let mut finalizers = image.metadata.finalizers.iter().flatten();
    let is_begun = finalizers.any(|name| name == AGENT_IMAGE_FINALIZER);
    match image.status.image_url.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => facts.ramdisks.names(url),
        None => !is_begun && image.status.conditions.is_empty(),
    }
}

/// Whether something is configured for an image of another builder.
pub(super) fn is_left(facts: &Facts<'_>) -> bool {
    let image = facts.image;
    image.metadata.deletion_timestamp.is_none() && !is_own(image) && facts.ramdisks.serves(architecture(image))
}

fn owned(image: &PreprovisioningImage) -> PreprovisioningImage {
    let mut owned = image.clone();
    let annotations = owned.metadata.annotations.get_or_insert_default();
    annotations.insert(AGENT_IMAGE_BUILDER_ANNOTATION.to_owned(), OWN_BUILDER.to_owned());
    let finalizers = owned.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == AGENT_IMAGE_FINALIZER) {
        finalizers.push(AGENT_IMAGE_FINALIZER.to_owned());
    }
    owned
}

fn architecture(image: &PreprovisioningImage) -> &str {
    image.spec.architecture.as_deref().unwrap_or_default()
}

/// The image and its network data.
type Served = (AgentFiles, Option<SecretVersion>);
/// Why there is no image; `None`: it is not known yet.
type NotServed = Option<(Reason, String)>;

fn result(facts: &Facts<'_>) -> Result<Served, NotServed> {
    let spec = &facts.image.spec;
    let wrong = |message: String| Some((CONFIGURATION_ERROR, message));
    let named = spec.network_data_name.clone().filter(|name| !name.is_empty());
    let files = facts
        .ramdisks
        .offer(architecture(facts.image), &spec.accept_formats, named.is_some())
        .map_err(|not_offered| {
            wrong(match not_offered {
                NotOffered::Format => {
                    "No acceptable image format supported; set DEPLOY_ISO_URL for spec.acceptFormats iso, or \
                                       DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL for initrd"
                        .to_owned()
                }
                NotOffered::Architecture => format!(
                    "Architecture not supported; add {:?} to DEPLOY_ISO_BY_ARCH, or to DEPLOY_KERNEL_BY_ARCH and \
                     DEPLOY_RAMDISK_BY_ARCH, or delete the image to let another builder serve it",
                    architecture(facts.image)
                ),
            })
        })?;
    let Some(name) = named else {
        return Ok((files, None));
    };
    match &facts.secret {
        Observed::Unknown(_) => Err(None),
        Observed::Absent => Err(Some((
            MISSING_NETWORK_DATA,
            format!(
                "NetworkData secret not found; create Secret {name} in this namespace, or remove \
                 spec.preprovisioningNetworkDataName of the host"
            ),
        ))),
        Observed::Present(version) => {
            let network = SecretVersion {
                name: Some(name),
                version: Some(version.clone()),
            };
            Ok((files, Some(network)))
        }
    }
}

fn ready(facts: &Facts<'_>, files: AgentFiles, network: Option<SecretVersion>) -> PreprovisioningImage {
    let mut reported = facts.image.clone();
    let message = match (&files, &network) {
        (AgentFiles::Iso(_), Some(_)) => WITHOUT_NETWORK,
        _ => GENERATED,
    };
    let status = &mut reported.status;
    (status.format, status.image_url, status.kernel_url) = match files {
        AgentFiles::Iso(url) => (Some(Format::Iso), Some(url), None),
        AgentFiles::Initrd { kernel, initramfs, .. } => (Some(Format::Initrd), Some(initramfs), Some(kernel)),
    };
    status.extra_kernel_params = None;
    status.architecture.clone_from(&facts.image.spec.architecture);
    status.network_data = network;
    state(facts, &mut reported, (READY, ConditionStatus::True), (SUCCESS, message));
    state(facts, &mut reported, (ERROR, ConditionStatus::False), (SUCCESS, ""));
    reported
}

fn failed(facts: &Facts<'_>, reason: Reason, message: String) -> PreprovisioningImage {
    let mut reported = facts.image.clone();
    reported.status.image_url = None;
    state(facts, &mut reported, (READY, ConditionStatus::False), (reason, ""));
    state(facts, &mut reported, (ERROR, ConditionStatus::True), (reason, &message));
    reported
}

fn state(
    facts: &Facts<'_>,
    image: &mut PreprovisioningImage,
    (kind, status): (&str, ConditionStatus),
    (reason, message): (Reason, &str),
) {
    let condition = Condition {
        type_: kind.to_owned(),
        status,
        observed_generation: facts.image.metadata.generation,
        last_transition_time: facts.now,
        reason: reason.to_string(),
        message: message.to_owned(),
    };
    set_condition(&mut image.status.conditions, condition);
}
