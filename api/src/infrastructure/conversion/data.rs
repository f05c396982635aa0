//! Metal3Data and Metal3DataClaim.

use super::error::ConversionError;
use super::pair::Hub;
use super::value::{metal3_reference, narrow, non_default, object_reference, text, widen_nonzero};
use crate::infrastructure::v1beta2::Metal3ObjectRef;
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};
use crate::meta::ObjectReference;

impl Hub for hub::Metal3Data {
    type Spoke = spoke::Metal3Data;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3Data {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3DataSpec {
                index: widen_nonzero(self.spec.index),
                template_reference: None,
                template: required(self.spec.template.as_ref()),
                claim: required(self.spec.claim.as_ref()),
                meta_data: self.spec.meta_data.clone(),
                network_data: self.spec.network_data.clone(),
            },
            status: spoke::Metal3DataStatus {
                ready: Some(self.status.ready == Some(true)),
                error_message: self.status.error_message.clone(),
            },
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3DataSpec {
                index: Some(narrow(spoke.spec.index.unwrap_or_default(), "spec.index")?),
                template: non_default(metal3_reference(&spoke.spec.template)),
                claim: non_default(metal3_reference(&spoke.spec.claim)),
                meta_data: spoke.spec.meta_data.clone(),
                network_data: spoke.spec.network_data.clone(),
            },
            status: hub::Metal3DataStatus {
                ready: Some(spoke.status.ready == Some(true)),
                error_message: text(spoke.status.error_message.as_ref()),
            },
        })
    }
}

impl Hub for hub::Metal3DataClaim {
    type Spoke = spoke::Metal3DataClaim;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3DataClaim {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3DataClaimSpec {
                template: required(self.spec.template.as_ref()),
            },
            status: spoke::Metal3DataClaimStatus {
                rendered_data: self.status.rendered_data.as_ref().map(object_reference),
                error_message: self.status.error_message.clone(),
            },
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3DataClaimSpec {
                template: non_default(metal3_reference(&spoke.spec.template)),
            },
            status: hub::Metal3DataClaimStatus {
                rendered_data: spoke.status.rendered_data.as_ref().map(metal3_reference),
                error_message: text(spoke.status.error_message.as_ref()),
            },
        })
    }
}

/// A reference that the older version requires; empty if absent.
fn required(reference: Option<&Metal3ObjectRef>) -> ObjectReference {
    reference.map(object_reference).unwrap_or_default()
}
