//! Features of the API that are not supported. They are rejected by name, never ignored.
//!
//! `spec.firmware` is none of them: Go managers since 0.14 ignore it, and hosts of older ones still have it.
//! differs (`host-unsupported-fields`): the Go manager performs the features named here.

use metal3_api::metal3::v1alpha1::{BareMetalHost, InspectionMode};
use thiserror::Error;

/// A host uses a feature that is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[error("{} is not supported yet: {}; {}", .0.field(), .0.description(), .0.remedy())]
pub struct Unsupported(pub UnsupportedFeature);

/// A feature that is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnsupportedFeature {
    /// Fast inspection through the BMC.
    FastInspection,
}

impl UnsupportedFeature {
    const fn field(self) -> &'static str {
        match self {
            Self::FastInspection => "spec.inspectionMode",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::FastInspection => "fast inspection through the BMC",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::FastInspection => "use agent or disabled",
        }
    }
}

impl Unsupported {
    /// The field of the feature.
    #[must_use]
    pub const fn field(self) -> &'static str {
        self.0.field()
    }
}

/// Whether a recorded error is about such a feature.
#[must_use]
pub fn is_rejection(message: &str) -> bool {
    message.starts_with("spec.") && message.contains(" is not supported yet: ")
}

/// The unsupported features that a host uses, in the order of [`UnsupportedFeature`].
#[must_use]
pub fn of(host: &BareMetalHost) -> Vec<Unsupported> {
    let spec = &host.spec;
    let features = [(
        UnsupportedFeature::FastInspection,
        !host.inspection_disabled() && spec.inspection_mode == Some(InspectionMode::Fast),
    )];
    features
        .into_iter()
        .filter_map(|(feature, is_used)| is_used.then_some(Unsupported(feature)))
        .collect()
}
