//! The login to the registry that an image comes from.

use metal3_api::metal3::v1alpha1::{ErrorType, Image};
use metal3_runtime::plan::Observed;

use crate::facts::{Read, Secret};
use crate::names::reason;
use crate::node::{PullSecret, PullSecretError};
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::wait;

/// The login that `spec.image.ociAuthSecretName` names; `None` without one, and for an image that is not from a registry.
pub(super) fn registry_login(planner: &Planner<'_>, image: Option<&Image>) -> PlanResult<Option<PullSecret>> {
    let (Some(from), Some(name)) = (
        image.and_then(|image| image.fields().registry_image()),
        Read::PullSecret.secret_name(planner.host()),
    ) else {
        return Ok(None);
    };
    let fail = |message| Failure::until(ErrorType::Provisioning, message, wait::on_secret(name));
    match planner.facts.pull_secret {
        Observed::Unknown(_) | Observed::Present(Secret { values: None, .. }) => Err(Decision::read(Read::PullSecret)),
        Observed::Absent => Err(Decision::Fail(fail(format!(
            "Secret {name} for the image does not exist; create it, or remove spec.image.ociAuthSecretName if the registry needs no \
             login"
        )))),
        Observed::Present(
            secret @ Secret {
                values: Some(values), ..
            },
        ) => {
            let login = PullSecret::of(values, secret.version(), &from).map_err(|error| {
                let event = match error {
                    PullSecretError::OtherType => reason::IMAGE_AUTH_FORMAT_UNSUPPORTED,
                    PullSecretError::Unreadable | PullSecretError::Helper { .. } | PullSecretError::NoLogin { .. } => {
                        reason::IMAGE_AUTH_PARSE_ERROR
                    }
                };
                let message = format!("the Secret that spec.image.ociAuthSecretName names {error}");
                Decision::Fail(fail(message).with_event(event))
            })?;
            Ok(Some(login))
        }
    }
}
