//! Whether a PreprovisioningImage is what a host asks for.

use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::v1alpha1::{
    PreprovisioningImage, PreprovisioningImageFormat as Format, PreprovisioningImageSpec,
};
use metal3_domain::bmc::Profile;
use metal3_runtime::plan::Observed;

use crate::facts::Secret;
use crate::node::{AgentFiles, Ramdisks};

/// Condition of an image: it can be booted.
pub(crate) const READY: &str = "Ready";
/// Condition of an image that was not made.
pub(crate) const ERROR: &str = "Error";

/// Of a URL and of kernel parameters. They are part of the record of a node.
const LONGEST: usize = 8192;

/// The state of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentState {
    /// It can be booted.
    Ready(AgentFiles),
    /// Its builder reports an error.
    Failed(String),
    /// It is being built, or is not what the host asks for any more.
    Pending(String),
}

/// Why an order that boots the agent waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentWait {
    /// The image is not ready.
    Pending(String),
    /// The builder reports an error.
    Failed(String),
    /// The API server does not accept the image.
    Refused(String),
}

/// The state of an image, compared with what the host asks for now: an image that is deleted is not changed any more.
pub(crate) fn state_of(
    image: &PreprovisioningImage,
    wanted: &PreprovisioningImageSpec,
    secret: &Observed<Secret<'_>>,
    (ramdisks, profile): (&Ramdisks, &Profile),
) -> AgentState {
    let pending = |why: &str| AgentState::Pending(why.to_owned());
    let status = &image.status;
    if image.spec != *wanted {
        return pending("it is for an earlier state of the host");
    }
    // The generation of an object changes when it is deleted.
    let is_deleted = image.metadata.deletion_timestamp.is_some();
    let holds = |kind: &str| {
        let mut conditions = status.conditions.iter();
        conditions.find(|condition| {
            let at = condition.observed_generation;
            // Only of `Ready` builders must say what it is about.
            let is_about_any = is_deleted || (kind == ERROR && at.is_none());
            let is_present = is_about_any || at == image.metadata.generation;
            condition.type_ == kind && condition.status == ConditionStatus::True && is_present
        })
    };
    // differs: `agent-image-error`. The Go manager shows no error of an image that was never built.
    if let Some(error) = holds(ERROR) {
        return AgentState::Failed(error.message.clone());
    }
    if status.architecture.as_deref().unwrap_or_default() != wanted.architecture.as_deref().unwrap_or_default() {
        return pending("its builder has not served this architecture yet");
    }
    let Some(format) = status.format.filter(|format| wanted.accept_formats.contains(format)) else {
        return pending("its builder has not served an accepted format yet");
    };
    if let Err(why) = compare_network(image, wanted, secret) {
        return pending(why);
    }
    if holds(READY).is_none() {
        return pending("its builder has not finished");
    }
    files(image, format, (ramdisks, profile))
}

fn compare_network(
    image: &PreprovisioningImage,
    wanted: &PreprovisioningImageSpec,
    secret: &Observed<Secret<'_>>,
) -> Result<(), &'static str> {
    let text = |text: Option<&String>| text.map(String::as_str).unwrap_or_default().to_owned();
    let built = image.status.network_data.as_ref();
    let name = text(wanted.network_data_name.as_ref());
    if text(built.and_then(|built| built.name.as_ref())) != name {
        return Err("its builder has not served these network data yet");
    }
    if name.is_empty() {
        return Ok(());
    }
    match secret {
        Observed::Present(secret) if text(built.and_then(|built| built.version.as_ref())) == secret.version() => Ok(()),
        Observed::Present(_) => Err("its builder has not served this version of the network data yet"),
        Observed::Absent => Err("the Secret that spec.preprovisioningNetworkDataName names does not exist; create it"),
        Observed::Unknown(_) => Err("the Secret that spec.preprovisioningNetworkDataName names is not known"),
    }
}

fn files(image: &PreprovisioningImage, format: Format, (ramdisks, profile): (&Ramdisks, &Profile)) -> AgentState {
    let status = &image.status;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let Some(url) = given(&status.image_url) else {
        return AgentState::Failed("the image is ready and its status names no URL".to_owned());
    };
    let mut sent = [&status.image_url, &status.kernel_url, &status.extra_kernel_params]
        .into_iter()
        .flatten();
    if sent.any(|text| text.len() > LONGEST || text.contains(char::is_control)) {
        return AgentState::Failed(
            "a URL or the kernel parameters in its status have a control character, or more than 8192 bytes".to_owned(),
        );
    }
    match format {
        Format::Iso if profile.iso_preprovisioning_image => AgentState::Ready(AgentFiles::Iso(url)),
        Format::Iso => AgentState::Failed("Preprovisioning Image is not acceptable to provisioner".to_owned()),
        Format::Initrd => {
            let architecture = image.spec.architecture.as_deref().unwrap_or_default();
            let kernel = given(&status.kernel_url).or_else(|| ramdisks.kernel(architecture).map(str::to_owned));
            match kernel {
                Some(kernel) => AgentState::Ready(AgentFiles::Initrd {
                    kernel,
                    initramfs: url,
                    parameters: given(&status.extra_kernel_params),
                }),
                None => AgentState::Failed(
                    "Preprovisioning Image is not acceptable to provisioner: its status names no kernel, and DEPLOY_KERNEL_URL \
                     is not set"
                        .to_owned(),
                ),
            }
        }
    }
}
