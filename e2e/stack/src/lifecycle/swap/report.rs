//! The page of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::judge::{INVARIANTS, Turn};
use super::stage::{AT_REST, FAILED, host};

const HEAD: &str = "# Switching a live installation\n\n\
    Written by `make e2e-swap` ([development.md](development.md#the-swap)): real Go managers, a real Ironic, simulated machines. \
    [migration.md](migration.md) is the runbook.\n";

pub(super) fn page(turns: &[Turn]) -> String {
    let release = turns.first().map_or_else(String::new, of_release);
    let mut text = format!("{HEAD}\n{release}\n{}", invariants(turns));
    for (number, turn) in turns.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n## Switch {}: to {}, {}\n\n```text\n{}\n\n{}```\n\n{}",
            number + 1,
            turn.to.name(),
            turn.way.describe(),
            turn.predicted,
            turn.session,
            hosts(turn)
        );
    }
    text.trim_end().to_owned() + "\n"
}

/// The release, and what it could not have.
fn of_release(turn: &Turn) -> String {
    let release = &turn.release;
    let stored = if release.older().is_empty() {
        "v1beta2"
    } else {
        "v1beta1"
    };
    let mut text = format!(
        "The Go managers are of the series {}; their machines are stored as `{stored}`.\n",
        release.series()
    );
    for what in release.not_staged() {
        let _ = writeln!(text, "Not staged: {what}.");
    }
    text
}

/// Each invariant with its figures in each switch.
fn invariants(turns: &[Turn]) -> String {
    let mut text = "| Invariant |".to_owned();
    for number in 1..=turns.len() {
        let _ = write!(text, " {number} |");
    }
    text += "\n| --- |";
    text += &" --- |".repeat(turns.len());
    text += "\n";
    for (name, proof) in INVARIANTS {
        let _ = write!(text, "| {} |", name.replace('_', " "));
        for turn in turns {
            let cell = match proof(turn) {
                Ok(figures) if figures.is_empty() => "holds".to_owned(),
                Ok(figures) => figures,
                Err(error) => format!(
                    "FAILS: {}",
                    error.to_string().replace('\n', "; ").replace("       ", "")
                ),
            };
            let _ = write!(text, " {cell} |");
        }
        text += "\n";
    }
    text
}

/// What happened to each host.
fn hosts(turn: &Turn) -> String {
    let mut text =
        "| Host | At the switch | Named by preflight | Orders to Ironic | Writes |\n| --- | --- | --- | --- | ---: |\n"
            .to_owned();
    let work = turn.work.hosts();
    let is_busy = |number: &u64| work.iter().any(|(busy, _)| busy == number);
    let rest = AT_REST.iter().chain(FAILED).filter(|(number, _)| !is_busy(number));
    for (number, what) in work.iter().chain(rest) {
        let name = host(*number);
        let mut orders: BTreeMap<&str, usize> = BTreeMap::new();
        for order in turn.orders.iter().filter(|order| order.host == name) {
            *orders.entry(order.what.name()).or_default() += 1;
        }
        let orders: Vec<String> = orders.iter().map(|(what, number)| format!("{number} {what}")).collect();
        let named = if turn.named.contains(&name) { "yes" } else { "" };
        let _ = writeln!(
            text,
            "| {name} | {what} | {named} | {} | {} |",
            orders.join(", "),
            turn.writes_to(&name).len()
        );
    }
    text
}
