//! The result as text.

use std::fmt::Write as _;

use crate::outcome::{Api, Cost, Outcome, Phase, Size, exponent, number};

/// A figure of a phase over all hosts, for growth.
type Of = fn(&Phase) -> f64;

/// The figures whose growth is shown.
pub(crate) const GROWING: [(&str, Of); 6] = [
    ("API writes", |phase| number(Api::total(&phase.api.writes))),
    ("API reads", |phase| number(Api::total(&phase.api.reads))),
    ("Ironic requests", |phase| number(phase.ironic.of_hosts())),
    ("manager processor", |phase| number(cost(phase, "manager").cpu_millis)),
    ("API server processor", |phase| {
        number(cost(phase, "API server").cpu_millis)
    }),
    ("seconds", |phase| phase.seconds),
];

/// What a process used in a phase.
pub(crate) fn cost(phase: &Phase, process: &str) -> Cost {
    phase.processes.get(process).copied().unwrap_or_default()
}

/// The phases of all hosts.
pub(crate) const LIFE: [&str; 4] = ["enrol", "provision", "deprovision", "delete"];

/// The whole result.
pub(crate) fn text(outcome: &Outcome) -> String {
    // Writing to a text cannot fail.
    let mut text = String::new();
    for size in &outcome.sizes {
        write_size(&mut text, size).ok();
    }
    if outcome.sizes.len() > 1 {
        write_growth(&mut text, &outcome.sizes).ok();
    }
    text
}

fn write_size(text: &mut String, size: &Size) -> std::fmt::Result {
    let hosts = f64::from(size.hosts);
    writeln!(
        text,
        "{} hosts, per host     writes   reads  Ironic  refused  manager ms  server ms  Ironic ms  peak MiB: manager  server   etcd",
        size.hosts
    )?;
    for phase in &size.phases {
        let each = |count: u64| number(count) / hosts;
        let millis = |process| each(cost(phase, process).cpu_millis);
        let mib = |process| cost(phase, process).peak_kib / 1024;
        writeln!(
            text,
            "  {:18} {:8.2} {:7.2} {:7.2} {:8.2} {:11.1} {:10.1} {:10.1} {:18} {:7} {:6}",
            phase.name,
            each(Api::total(&phase.api.writes)),
            each(Api::total(&phase.api.reads)),
            each(phase.ironic.of_hosts()),
            each(phase.api.refused()),
            millis("manager"),
            millis("API server"),
            millis("Ironic"),
            mib("manager"),
            mib("API server"),
            mib("etcd"),
        )?;
    }
    writeln!(
        text,
        "\n{} hosts, in seconds      took   alone   floor  took / (alone + floor)   reaction in ms: one after the other; all at once",
        size.hosts
    )?;
    for phase in &size.phases {
        let seconds = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
        let reaction = phase.reaction.as_ref();
        let reaction = reaction.map(|times| format!("{}; {}", times.calm, times.burst));
        writeln!(
            text,
            "  {:18} {:10.1} {:>7} {:>7} {:>23}   {}",
            phase.name,
            phase.seconds,
            seconds(phase.alone),
            seconds(phase.floor),
            phase.ratio().text(|ratio| format!("{ratio:.2}"), ""),
            reaction.unwrap_or_default(),
        )?;
    }
    for phase in &size.phases {
        for (figure, value) in &phase.figures {
            writeln!(text, "  {}: {figure} {value:.2}", phase.name)?;
        }
        if !phase.api.forbidden.is_empty() {
            writeln!(text, "  {}: forbidden {}", phase.name, phase.api.forbidden.join(", "))?;
        }
    }
    writeln!(text)
}

fn write_growth(text: &mut String, sizes: &[Size]) -> std::fmt::Result {
    writeln!(text, "exponents of growth, between neighbouring sizes")?;
    for phase in LIFE {
        for (what, of) in GROWING {
            let growth = growth(sizes, phase, of);
            let growth: Vec<String> = growth.iter().map(|exponent| format!("{exponent:.2}")).collect();
            writeln!(text, "  {phase:12} {what:22} {}", growth.join("  "))?;
        }
    }
    Ok(())
}

/// The exponents of a figure between neighbouring sizes.
pub(crate) fn growth(sizes: &[Size], phase: &str, of: Of) -> Vec<f64> {
    let pairs = sizes.iter().zip(sizes.iter().skip(1));
    let exponents = pairs.filter_map(|(small, large)| {
        let figure = |size: &Size| Some((size.hosts, of(size.phase(phase)?)));
        exponent(figure(small)?, figure(large)?)
    });
    exponents.collect()
}
