//! The agent that a node boots when an image is built for each host (`--build-preprov-image`).

use std::fmt;

use metal3_api::metal3::v1alpha1::PreprovisioningImageFormat as Format;
use metal3_domain::bmc::Profile;
use metal3_ironic::model::node::Node;
use ring::digest;
use serde_json::Value;

use super::changes::Passwords;
use super::ramdisk::{INITRAMFS, ISO, KERNEL, PARAMETERS, Ramdisk, Ramdisks};

/// Identifies what was sent. Ironic masks the parts of a URL that it takes for a secret, so the URL that it shows does not
/// tell a new one from the present one.
// differs: `agent-image-sent`. The Go manager compares the masked URL.
const IDENTITY: &str = "metal3_agent";
/// Ironic's placeholder for its own kernel parameters. Without it they would be replaced.
const USUAL_PARAMETERS: &str = "%default%";

/// Where the agent comes from. `Debug` shows no URL: it may contain a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum AgentFiles {
    /// An ISO.
    Iso(String),
    /// A kernel and an initial ramdisk.
    Initrd {
        /// URL of the kernel.
        kernel: String,
        /// URL of the initial ramdisk.
        initramfs: String,
        /// Kernel parameters, in addition to Ironic's.
        parameters: Option<String>,
    },
}

impl fmt::Debug for AgentFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iso(_) => "Iso(not shown)",
            Self::Initrd { .. } => "Initrd(not shown)",
        })
    }
}

/// The keys of `driver_info`; `None`: the key must not exist.
pub(super) type Keys = Vec<(&'static str, Option<Value>)>;

impl AgentFiles {
    pub(super) fn driver_info(&self) -> Keys {
        let text = |url: &str| Some(Value::from(url));
        let mut keys = match self {
            Self::Iso(iso) => vec![(ISO, text(iso)), (KERNEL, None), (INITRAMFS, None), (PARAMETERS, None)],
            Self::Initrd {
                kernel,
                initramfs,
                parameters,
            } => {
                let parameters = parameters
                    .as_ref()
                    .map(|more| format!("{USUAL_PARAMETERS} {more}").into());
                vec![
                    (ISO, None),
                    (KERNEL, text(kernel)),
                    (INITRAMFS, text(initramfs)),
                    (PARAMETERS, parameters),
                ]
            }
        };
        keys.push((IDENTITY, Some(self.identity().into())));
        keys
    }

    fn identity(&self) -> String {
        identity(match self {
            Self::Iso(iso) => [iso.as_str(), "", "", ""],
            Self::Initrd {
                kernel,
                initramfs,
                parameters,
            } => ["", kernel, initramfs, parameters.as_deref().unwrap_or_default()],
        })
    }
}

fn identity(parts: [&str; 4]) -> String {
    // No URL contains a line break.
    let digest = digest::digest(&digest::SHA256, parts.join("\n").as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// That of the configured agent, if a URL has a query, which Ironic may mask.
fn identity_of_configured(keys: &Keys) -> Option<String> {
    let url = |wanted: &str| {
        let mut found = keys.iter().filter(|(key, _)| *key == wanted);
        found
            .find_map(|(_, value)| value.as_ref()?.as_str())
            .unwrap_or_default()
    };
    let parts = [url(ISO), url(KERNEL), url(INITRAMFS), ""];
    parts.iter().any(|url| url.contains('?')).then(|| identity(parts))
}

/// The agent in the record of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Agent {
    /// The configured one: no image is built for each host.
    #[default]
    Configured,
    /// The one that the node has. A node without any gets the configured one: a machine is cleaned with it rather than not.
    Kept,
    /// The one that was built for the host.
    Built(AgentFiles),
}

impl Agent {
    /// The keys of `driver_info` of a node of this architecture. Empty: they are kept as they are.
    pub(super) fn driver_info(
        &self,
        ramdisks: &Ramdisks,
        architecture: &str,
        profile: &Profile,
        has_network: bool,
        found: Option<&Node>,
    ) -> Keys {
        match self {
            Self::Configured => {
                let mut keys = ramdisks.driver_info(architecture, profile, found);
                let has_identity = found.is_some_and(|node| node.driver_info.get(IDENTITY).is_some());
                match identity_of_configured(&keys) {
                    Some(identity) => keys.push((IDENTITY, Some(identity.into()))),
                    // Of a time with images for each host, or with a secret: it does not identify the configured agent.
                    None if has_identity && !keys.is_empty() => keys.push((IDENTITY, None)),
                    None => {}
                }
                keys
            }
            Self::Built(files) => files.driver_info(),
            Self::Kept if found.is_some_and(|node| has_agent(node, profile)) => Keys::new(),
            Self::Kept => {
                let accepted = accepted(profile);
                let usual = ramdisks.offer(architecture, &accepted, has_network);
                usual.map(|files| files.driver_info()).unwrap_or_default()
            }
        }
    }

    /// Whether the node was sent these keys: a masked value is then the present one.
    pub(super) fn passwords(keys: &Keys, found: &Node) -> Passwords {
        let wanted = keys.iter().find(|(key, _)| *key == IDENTITY);
        match wanted {
            Some((_, Some(identity))) if found.driver_info.get(IDENTITY) == Some(identity) => Passwords::AsSent,
            Some(_) => Passwords::Changed,
            None => Passwords::AsSent,
        }
    }

    /// Whether these keys identify what is sent.
    pub(super) fn is_identified(keys: &Keys) -> bool {
        keys.iter().any(|(key, value)| *key == IDENTITY && value.is_some())
    }
}

/// Whether the record of the node names an agent that a machine with this BMC boots.
#[must_use]
pub fn has_agent(node: &Node, profile: &Profile) -> bool {
    let names = |key| node.driver_info.text(key).is_some_and(|url| !url.is_empty());
    names(INITRAMFS) || (profile.iso_preprovisioning_image && names(ISO))
}

/// The formats that a machine with this BMC boots, the preferred one first.
#[must_use]
pub fn accepted(profile: &Profile) -> Vec<Format> {
    let iso = profile.iso_preprovisioning_image.then_some(Format::Iso);
    iso.into_iter().chain([Format::Initrd]).collect()
}

/// Why the configured ramdisks contain nothing for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOffered {
    /// None has a format that the machine accepts.
    Format,
    /// None is for the architecture of the machine.
    Architecture,
}

impl Ramdisks {
    /// What is configured for a machine of this architecture that accepts these formats, the first one first; for an agent with
    /// network data a ramdisk, because Ironic puts them only into an ISO that it makes of one.
    ///
    /// # Errors
    /// When there is nothing. The formats are compared first.
    // differs: `agent-image-architecture`. The Go manager takes the first format that DEPLOY_*_URL has.
    pub fn offer(&self, architecture: &str, accepted: &[Format], has_network: bool) -> Result<AgentFiles, NotOffered> {
        let mut all = self.by_architecture.values().chain([&self.usual]);
        if !all.any(|ramdisk| accepted.iter().any(|format| files(ramdisk, *format).is_some())) {
            return Err(NotOffered::Format);
        }
        let mut accepted = accepted.to_vec();
        if has_network {
            accepted.sort_by_key(|format| *format != Format::Initrd);
        }
        let own = self.of(architecture);
        let mut formats = accepted.into_iter();
        formats
            .find_map(|format| files(own, format))
            .ok_or(NotOffered::Architecture)
    }

    /// Whether anything is configured for machines of this architecture.
    #[must_use]
    pub fn serves(&self, architecture: &str) -> bool {
        self.offer(architecture, &[Format::Iso, Format::Initrd], false).is_ok()
    }

    /// Whether one of the URLs of an image is this one.
    #[must_use]
    pub fn names(&self, url: &str) -> bool {
        let mut all = self.by_architecture.values().chain([&self.usual]);
        all.any(|one| [&one.initramfs, &one.iso].contains(&&Some(url.to_owned())))
    }

    /// The kernel for a ramdisk that comes without one.
    #[must_use]
    pub fn kernel(&self, architecture: &str) -> Option<&str> {
        self.of(architecture).kernel.as_deref()
    }
}

fn files(ramdisk: &Ramdisk, format: Format) -> Option<AgentFiles> {
    match format {
        Format::Iso => ramdisk.iso.clone().map(AgentFiles::Iso),
        Format::Initrd => Some(AgentFiles::Initrd {
            kernel: ramdisk.kernel.clone()?,
            initramfs: ramdisk.initramfs.clone()?,
            parameters: None,
        }),
    }
}
