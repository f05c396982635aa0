//! The image of the agent that is built for the host.

use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_runtime::plan::Observed;

/// What is known of the PreprovisioningImage with the host's name. Without `--build-preprov-image` it is never read.
#[derive(Debug, Clone)]
pub struct AgentImage<'a> {
    /// The object. Unreadable: what this process lacks to read it.
    pub object: Observed<&'a PreprovisioningImage>,
    /// Why the API server refused to create or change it some minutes ago at most.
    pub refused: Option<&'a str>,
}

impl<'a> AgentImage<'a> {
    /// What was observed of the object, and of its last change.
    #[must_use]
    pub const fn new(object: Observed<&'a PreprovisioningImage>, refused: Option<&'a str>) -> Self {
        Self { object, refused }
    }
}
