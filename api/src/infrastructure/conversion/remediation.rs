//! Metal3Remediation and Metal3RemediationTemplate.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::duration;
use super::error::{ConversionError, Inside};
use super::pair::{Hub, hub};
use super::value::{narrow_nonzero, narrow_option, non_default, text, widen_nonzero};
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
        type_: strategy.type_.as_ref().and_then(word),
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
            type_: text(strategy.type_.as_ref()).and_then(from_word),
            // differs: conversion-no-zero-limit
            // 0 and less are no limit. The schema of `v1beta2` refuses them.
            retry_limit: narrow_option(strategy.retry_limit.filter(|tries| *tries > 0), "strategy.retryLimit")?,
            timeout_seconds: timeout.and_then(non_default),
        })
    };
    Ok(hub::Metal3RemediationSpec {
        strategy: spec.strategy.as_ref().map(strategy).transpose()?,
    })
}

fn status_to_spoke(status: &hub::Metal3RemediationStatus) -> spoke::Metal3RemediationStatus {
    spoke::Metal3RemediationStatus {
        phase: status.phase.as_ref().and_then(word),
        retry_count: widen_nonzero(status.retry_count),
        last_remediated: status.last_remediated,
    }
}

fn status_from_spoke(status: &spoke::Metal3RemediationStatus) -> Result<hub::Metal3RemediationStatus, ConversionError> {
    Ok(hub::Metal3RemediationStatus {
        phase: text(status.phase.as_ref()).and_then(from_word),
        retry_count: narrow_nonzero(status.retry_count, "retryCount")?,
        last_remediated: status.last_remediated,
        // `v1beta1` has none.
        conditions: Vec::new(),
    })
}

/// The word of a type or phase on the wire.
fn word<T: Serialize>(value: &T) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// The type or phase of a word: an unknown word is kept.
fn from_word<T: DeserializeOwned>(word: String) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infrastructure::v1beta2::{RemediationPhase, RemediationType};

    #[test]
    fn each_strategy_survives_a_round_trip() {
        for type_ in [RemediationType::Reboot, RemediationType::Other("Replace".to_owned())] {
            assert_eq!(word(&type_).and_then(from_word), Some(type_));
        }
    }

    #[test]
    fn timeout_becomes_seconds_and_back() {
        let older = spoke::Metal3RemediationSpec {
            strategy: Some(spoke::RemediationStrategy {
                timeout: Some("5m0s".to_owned()),
                ..Default::default()
            }),
        };
        let newer = spec_from_spoke(&older).unwrap();
        assert_eq!(newer.strategy.as_ref().unwrap().timeout_seconds, Some(300));
        assert_eq!(spec_to_spoke(&newer), older);
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
            assert_eq!(word(&phase).and_then(from_word), Some(phase));
        }
    }
}
