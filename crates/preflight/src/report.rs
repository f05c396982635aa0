//! The report.

use serde::Serialize;

use crate::dry_run::DryRun;
use crate::facts::{Direction, Facts};
use crate::finding::{Decision, Finding, NotRead};
use crate::managers::Manager;
use crate::settings::{Settings, settings};
use crate::{admission, back, definitions, hosts, machines, managers, replaced, rights, unserved};

/// What the switch would meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The direction of the switch.
    pub direction: Direction,
    /// The worst of all findings; not known to be good when something could not be read.
    pub decision: Decision,
    /// The managers that were found.
    pub managers: Vec<Manager>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// The settings of the Go managers, as this program takes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Settings>,
    /// What the controllers of this program do first. It changes no decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
    /// What could not be read, and may hide a finding.
    pub not_read: Vec<NotRead>,
}

impl Report {
    /// The exit code of the command.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        self.decision.exit_code()
    }
}

/// Applies all rules.
#[must_use]
pub fn report(mut facts: Facts) -> Report {
    let mut managers = managers::found(&facts.deployments);
    for manager in managers.iter_mut().filter(|manager| !manager.is_this_program) {
        manager.series = replaced::version::series(&facts, manager);
    }
    let mut findings = match facts.direction {
        Direction::ToThisProgram => {
            let not_found = replaced::not_found(&facts, &managers);
            facts.not_read.extend(not_found);
            let not_known = replaced::not_known(&facts, &managers);
            facts.not_read.extend(not_known);
            let mut findings = replaced::findings(&facts, &managers);
            findings.extend(facts.environment.iter().cloned());
            findings.extend(hosts::findings(&facts));
            findings.extend(machines::findings(&facts));
            findings.extend(unserved::findings(&facts.objects, &facts.given, &managers));
            findings.extend(rights::findings(&facts.accounts));
            findings.extend(admission::findings(&facts.objects));
            findings
        }
        Direction::Back(series) => {
            let not_decoded = back::not_decoded(&facts.objects);
            facts.not_read.extend(not_decoded);
            back::findings(&facts, &managers, series)
        }
    };
    findings.extend(definitions::findings(&facts, &managers));
    findings.sort_by(|a, b| b.decision.cmp(&a.decision).then_with(|| a.object.cmp(&b.object)));
    findings.dedup();
    let settings = match facts.direction {
        Direction::ToThisProgram => settings(&managers, &facts.given),
        Direction::Back(_) => Vec::new(),
    };
    let worst = findings.first().map_or(Decision::Go, |worst| worst.decision);
    let decision = match facts.not_read.is_empty() {
        true => worst,
        false => worst.max(Decision::Unknown),
    };
    Report {
        direction: facts.direction,
        decision,
        managers,
        findings,
        settings,
        dry_run: facts.dry_run,
        not_read: facts.not_read,
    }
}
