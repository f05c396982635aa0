//! Metal3Remediation and its template.

use crate::infrastructure::v1beta2::{
    Metal3Remediation, Metal3RemediationTemplate, RemediationStrategy, RemediationType,
};
use crate::rules::{AdmissionRules, Defaulting, FieldPath, Findings, Rule, WriteRequest};

const SHORTEST_TIMEOUT: i32 = 100;
const USUAL_TIMEOUT: i32 = 600;

const REBOOT: &str = "The strategy is `Reboot`, the only supported one.";
const TIMEOUT: &str = "The timeout of each try is at least 100 seconds.";
const RETRIES: &str = "The retry limit is at least 1.";

impl AdmissionRules for Metal3Remediation {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec("strategy-known", REBOOT, |writing, findings| {
            check(writing, findings, strategy_is_known)
        }),
        Rule::on_spec("timeout-long-enough", TIMEOUT, |writing, findings| {
            check(writing, findings, timeout_is_long_enough)
        }),
        Rule::on_spec("one-try-at-least", RETRIES, |writing, findings| {
            check(writing, findings, there_is_a_try)
        }),
    ];
}

impl AdmissionRules for Metal3RemediationTemplate {
    const RULES: &'static [Rule<Self>] = &[
        Rule::<Self>::on_spec("strategy-known", REBOOT, |writing, findings| {
            check_template(writing, findings, strategy_is_known)
        })
        .differing("remediation-template-without-strategy"),
        Rule::on_spec("timeout-long-enough", TIMEOUT, |writing, findings| {
            check_template(writing, findings, timeout_is_long_enough)
        }),
        Rule::on_spec("one-try-at-least", RETRIES, |writing, findings| {
            check_template(writing, findings, there_is_a_try)
        }),
    ];
    const DEFAULTS: &'static [Defaulting<Self>] = &[
        Defaulting {
            name: "reboot",
            description: "The strategy is `Reboot`.",
            apply: |template| {
                with_strategy(template, |strategy| {
                    let empty =
                        |kind: &RemediationType| matches!(kind, RemediationType::Other(word) if word.is_empty());
                    strategy.type_ = strategy
                        .type_
                        .take()
                        .filter(|kind| !empty(kind))
                        .or(Some(RemediationType::Reboot));
                })
            },
        },
        Defaulting {
            name: "timeout",
            description: "The timeout of each try is 600 seconds.",
            apply: |template| {
                with_strategy(template, |strategy| {
                    strategy.timeout_seconds = strategy
                        .timeout_seconds
                        .filter(|seconds| *seconds != 0)
                        .or(Some(USUAL_TIMEOUT));
                })
            },
        },
        Defaulting {
            name: "one-try",
            description: "The retry limit is 1.",
            apply: |template| {
                with_strategy(template, |strategy| {
                    strategy.retry_limit = strategy.retry_limit.filter(|tries| *tries >= 1).or(Some(1));
                })
            },
        },
    ];
}

type Check = fn(&FieldPath, &RemediationStrategy, &mut Findings);

fn check(remediation: &WriteRequest<'_, Metal3Remediation>, findings: &mut Findings, check: Check) {
    if let Some(strategy) = remediation.new.spec.strategy.as_ref() {
        check(&FieldPath::new("spec.strategy"), strategy, findings);
    }
}

fn check_template(template: &WriteRequest<'_, Metal3RemediationTemplate>, findings: &mut Findings, check: Check) {
    if let Some(strategy) = template.new.spec.template.spec.strategy.as_ref() {
        check(&FieldPath::new("spec.template.spec.strategy"), strategy, findings);
    }
}

fn with_strategy(template: &mut Metal3RemediationTemplate, fill: fn(&mut RemediationStrategy)) {
    if let Some(strategy) = &mut template.spec.template.spec.strategy {
        fill(strategy);
    }
}

fn strategy_is_known(path: &FieldPath, strategy: &RemediationStrategy, findings: &mut Findings) {
    if strategy.type_ != Some(RemediationType::Reboot) {
        let found = &strategy.type_;
        findings.invalid(
            path.child("type"),
            found,
            "is not a remediation strategy that is supported",
            "write Reboot",
        );
    }
}

fn timeout_is_long_enough(path: &FieldPath, strategy: &RemediationStrategy, findings: &mut Findings) {
    if strategy
        .timeout_seconds
        .is_some_and(|seconds| seconds != 0 && seconds < SHORTEST_TIMEOUT)
    {
        let found = strategy.timeout_seconds;
        findings.invalid(
            path.child("timeoutSeconds"),
            found,
            "min duration is 100 seconds",
            "write 100 or more",
        );
    }
}

fn there_is_a_try(path: &FieldPath, strategy: &RemediationStrategy, findings: &mut Findings) {
    if strategy.retry_limit.is_some_and(|tries| tries < 1) {
        let found = strategy.retry_limit;
        findings.invalid(
            path.child("retryLimit"),
            found,
            "is the minimum number of tries",
            "write 1 or more",
        );
    }
}
