//! Metal3Remediation and Metal3RemediationTemplate.

use super::duration;
use super::error::{ConversionError, Inside};
use super::pair::{Hub, hub};
use super::value::{narrow_nonzero, narrow_option, non_default, text, widen_nonzero};
use crate::infrastructure::v1beta2::{RemediationPhase, RemediationType};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};

hub! {
    Metal3Remediation {
        spec: spec_to_spoke, spec_from_spoke;
        status: status_to_spoke, status_from_spoke;
    }
}

impl Hub for hub::Metal3RemediationTemplate {
    type Spoke = spoke::Metal3RemediationTemplate;

    fn to_spoke(&self) -> Self::Spoke {
        spoke::Metal3RemediationTemplate {
            metadata: self.metadata.clone(),
            spec: spoke::Metal3RemediationTemplateSpec {
                template: spoke::RemediationTemplateResource {
                    spec: spec_to_spoke(&self.spec.template.spec),
                },
            },
            status: spoke::Metal3RemediationTemplateStatus {
                status: self.status.status.as_ref().map(status_to_spoke).unwrap_or_default(),
            },
        }
    }

    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError> {
        Ok(Self {
            metadata: spoke.metadata.clone(),
            spec: hub::Metal3RemediationTemplateSpec {
                template: hub::RemediationTemplateResource {
                    spec: spec_from_spoke(&spoke.spec.template.spec).inside("spec.template.spec")?,
                },
            },
            status: hub::Metal3RemediationTemplateStatus {
                status: non_default(status_from_spoke(&spoke.status.status).inside("status.status")?),
            },
        })
    }
}

fn spec_to_spoke(spec: &hub::Metal3RemediationSpec) -> spoke::Metal3RemediationSpec {
    let strategy = |strategy: &hub::RemediationStrategy| spoke::RemediationStrategy {
        type_: strategy.type_.as_ref().map(type_text),
        retry_limit: strategy.retry_limit.map(i64::from),
        timeout: strategy.timeout_seconds.and_then(non_default).map(duration::print),
    };
    spoke::Metal3RemediationSpec {
        strategy: spec.strategy.as_ref().map(strategy),
    }
}

fn spec_from_spoke(spec: &spoke::Metal3RemediationSpec) -> Result<hub::Metal3RemediationSpec, ConversionError> {
    let strategy = |strategy: &spoke::RemediationStrategy| {
        let timeout = strategy.timeout.as_ref();
        let timeout = timeout
            .map(|timeout| duration::seconds(timeout, "strategy.timeout"))
            .transpose()?;
        Ok(hub::RemediationStrategy {
            type_: text(strategy.type_.as_ref()).map(type_from_text),
            retry_limit: narrow_option(strategy.retry_limit, "strategy.retryLimit")?,
            timeout_seconds: timeout.and_then(non_default),
        })
    };
    Ok(hub::Metal3RemediationSpec {
        strategy: spec.strategy.as_ref().map(strategy).transpose()?,
    })
}

const REBOOT: &str = "Reboot";

fn type_text(type_: &RemediationType) -> String {
    match type_ {
        RemediationType::Reboot => REBOOT.to_owned(),
        RemediationType::Other(text) => text.clone(),
    }
}

fn type_from_text(text: String) -> RemediationType {
    match text.as_str() {
        REBOOT => RemediationType::Reboot,
        _ => RemediationType::Other(text),
    }
}

fn status_to_spoke(status: &hub::Metal3RemediationStatus) -> spoke::Metal3RemediationStatus {
    spoke::Metal3RemediationStatus {
        phase: status.phase.as_ref().map(phase_text),
        retry_count: widen_nonzero(status.retry_count),
        last_remediated: status.last_remediated,
    }
}

fn status_from_spoke(status: &spoke::Metal3RemediationStatus) -> Result<hub::Metal3RemediationStatus, ConversionError> {
    Ok(hub::Metal3RemediationStatus {
        phase: text(status.phase.as_ref()).map(phase_from_text),
        retry_count: narrow_nonzero(status.retry_count, "retryCount")?,
        last_remediated: status.last_remediated,
    })
}

const RUNNING: &str = "Running";
const WAITING: &str = "Waiting";
const DELETING_MACHINE: &str = "Deleting machine";
const FAILED: &str = "Failed";

fn phase_text(phase: &RemediationPhase) -> String {
    match phase {
        RemediationPhase::Running => RUNNING,
        RemediationPhase::Waiting => WAITING,
        RemediationPhase::DeletingMachine => DELETING_MACHINE,
        RemediationPhase::Failed => FAILED,
        RemediationPhase::Other(text) => text,
    }
    .to_owned()
}

fn phase_from_text(text: String) -> RemediationPhase {
    match text.as_str() {
        RUNNING => RemediationPhase::Running,
        WAITING => RemediationPhase::Waiting,
        DELETING_MACHINE => RemediationPhase::DeletingMachine,
        FAILED => RemediationPhase::Failed,
        _ => RemediationPhase::Other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_survives_a_round_trip() {
        for type_ in [RemediationType::Reboot, RemediationType::Other("Replace".to_owned())] {
            assert_eq!(type_from_text(type_text(&type_)), type_);
        }
    }

    #[test]
    fn each_phase_survives_a_round_trip() {
        let known = [
            RemediationPhase::Running,
            RemediationPhase::Waiting,
            RemediationPhase::DeletingMachine,
            RemediationPhase::Failed,
        ];
        let unknown = RemediationPhase::Other("Pondering".to_owned());
        for phase in known.into_iter().chain([unknown]) {
            assert_eq!(phase_from_text(phase_text(&phase)), phase);
        }
    }
}
