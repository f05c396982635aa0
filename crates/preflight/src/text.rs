//! A report as text.

use crate::dry_run::DryRun;
use crate::facts::Direction;
use crate::finding::{Decision, Finding, printable};
use crate::report::Report;
use crate::settings;

/// The lines for a person. Names and messages are texts of others: they get no control of the terminal.
#[must_use]
pub fn render(report: &Report) -> String {
    let direction = match report.direction {
        Direction::ToThisProgram => "From the Go managers to this program".to_owned(),
        Direction::Back(series) => format!("Back to the Go managers of {series}"),
    };
    let mut text = format!("{direction}: {}\n", report.decision);
    for manager in &report.managers {
        let kind = if manager.is_this_program {
            "this program"
        } else {
            "Go manager"
        };
        let (name, controllers) = (&manager.deployment, manager.controllers.join(", "));
        let line = format!(
            "- {controllers}: {kind} {name}, {} replicas, {}\n",
            manager.replicas, manager.image
        );
        text.push_str(&line);
    }
    for (decision, title) in [
        (Decision::No, "Do this first, or it is lost"),
        (Decision::Wait, "Wait for these"),
        (Decision::Go, "Good to know"),
    ] {
        let findings: Vec<&Finding> = report.findings.iter().filter(|one| one.decision == decision).collect();
        if !findings.is_empty() {
            text.push_str(&format!("\n{title} ({}):\n", findings.len()));
        }
        for finding in findings {
            text.push_str(&line(finding));
        }
    }
    text.push_str(&report.dry_run.as_ref().map(DryRun::text).unwrap_or_default());
    text.push_str(&settings::text(&report.settings));
    for not_read in &report.not_read {
        text.push_str(&format!("\nNot read: {}, because {}\n", not_read.what, not_read.why));
    }
    text.chars()
        .map(|one| if one == '\n' { one } else { printable(one) })
        .collect()
}

fn line(finding: &Finding) -> String {
    let row = finding.row.map(|row| format!(" [{row}]")).unwrap_or_default();
    let mut text = format!("- {}: {}{row}\n", finding.object, finding.what);
    if !finding.cure.is_empty() {
        text.push_str(&format!("    {}\n", finding.cure));
    }
    text
}
