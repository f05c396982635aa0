//! `docs/performance.md` and its pictures, made from the committed results alone.

mod charts;
mod goals;
mod svg;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::outcome::{Api, Outcome, Setup, Size, number};
use crate::table::{GROWING, LIFE, cost, growth};
use goals::ANY;
use svg::short;

/// The committed result.
const RESULT: &str = "e2e/scale/results/hosts.json";
const PAGE: &str = "docs/performance.md";
const PICTURES: &str = "docs/img";
const INTRODUCTION: &str = include_str!("introduction.md");

/// The files, by path below the checkout.
fn files(root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let text = std::fs::read_to_string(root.join(RESULT)).context(RESULT)?;
    let outcome: Outcome = serde_json::from_str(&text).context(RESULT)?;
    let pictures = charts::all(&outcome);
    let mut page = INTRODUCTION.to_owned();
    // Writing to a text cannot fail.
    write_page(&mut page, &outcome, &pictures).ok();
    let mut files = vec![(PathBuf::from(PAGE), page)];
    files.extend(
        pictures
            .into_iter()
            .map(|(name, text)| (Path::new(PICTURES).join(name), text)),
    );
    Ok(files)
}

/// Writes the files of the checkout in this folder.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (path, text) in files(root)? {
        let path = root.join(path);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn write_page(page: &mut String, outcome: &Outcome, pictures: &[charts::Picture]) -> std::fmt::Result {
    write_setup(page, outcome)?;
    write_goals(page, outcome)?;
    for (name, _) in pictures {
        writeln!(page, "![]({}/{name})\n", PICTURES.trim_start_matches("docs/"))?;
    }
    for size in &outcome.sizes {
        write_size(page, size)?;
    }
    write_growth(page, &outcome.sizes)
}

fn write_setup(page: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let Setup {
        program,
        optimised,
        speed,
        slots,
        idle_seconds,
        away_seconds,
    } = &outcome.setup;
    let sizes: Vec<String> = outcome.sizes.iter().map(|size| size.hosts.to_string()).collect();
    let (sizes, option) = (sizes.join(", "), sizes.join(" "));
    let compiled = if *optimised {
        "compiled as released"
    } else {
        "not optimised"
    };
    let at_once = if *slots == 0 {
        "all".to_owned()
    } else {
        slots.to_string()
    };
    writeln!(
        page,
        "\nMeasured: `{program}`, {compiled}, with {sizes} hosts, machines {speed} times faster than real ones, {at_once} at once on\n\
         the provisioning network, {idle_seconds} s idle and {away_seconds} s without Ironic:\n\
         `make scale HOSTS=\"{option}\" HOSTS_ONLY=1 SPEED={speed} SLOTS={slots} IDLE={idle_seconds} AWAY={away_seconds}`.\n",
    )
}

fn write_goals(page: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let largest = outcome.sizes.last().map(|size| size.hosts).unwrap_or_default();
    writeln!(page, "## Goals\n\nAt {largest} hosts:\n")?;
    writeln!(
        page,
        "| Figure | At most | With | Measured | |\n| --- | --- | --- | --- | --- |"
    )?;
    for goal in goals::of(outcome) {
        let most = format!("{} {}", precise(goal.most), goal.unit);
        writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            goal.what,
            most.trim_end(),
            if goal.hosts == ANY {
                "any number".to_owned()
            } else {
                format!("{} hosts", goal.hosts)
            },
            goal.measured.text(short, "not measured"),
            goal.result(largest),
        )?;
    }
    writeln!(page, "\n## Pictures\n")
}

/// A goal with all its digits.
fn precise(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_size(page: &mut String, size: &Size) -> std::fmt::Result {
    let hosts = f64::from(size.hosts);
    writeln!(page, "## {} hosts\n\nPer host, and memory at most:\n", size.hosts)?;
    writeln!(
        page,
        "| Phase | API writes | reads | refused | Ironic requests | manager ms | API server ms | etcd ms | manager MiB | API server MiB |"
    )?;
    writeln!(page, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
    for phase in &size.phases {
        let each = |count: u64| number(count) / hosts;
        let millis = |process| short(each(cost(phase, process).cpu_millis));
        let mib = |process| cost(phase, process).peak_kib / 1024;
        writeln!(
            page,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {} | {} | {} | {} |",
            phase.name,
            each(Api::total(&phase.api.writes)),
            each(Api::total(&phase.api.reads)),
            each(phase.api.refused()),
            each(phase.ironic.of_hosts()),
            millis("manager"),
            millis("API server"),
            millis("etcd"),
            mib("manager"),
            mib("API server"),
        )?;
    }
    writeln!(
        page,
        "\n| Phase | seconds | one host alone | the same writes | ratio | reaction one after the other, ms | to all at once, ms |"
    )?;
    writeln!(page, "| --- | --- | --- | --- | --- | --- | --- |")?;
    for phase in LIFE.iter().filter_map(|name| size.phase(name)) {
        let known = |value: Option<f64>| value.map(short).unwrap_or_default();
        let reaction = phase.reaction.clone().unwrap_or_default();
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            phase.name,
            short(phase.seconds),
            known(phase.alone),
            known(phase.floor),
            phase.ratio().text(|ratio| format!("{ratio:.2}"), ""),
            reaction.calm,
            reaction.burst,
        )?;
    }
    writeln!(page)?;
    for phase in &size.phases {
        for (figure, value) in &phase.figures {
            writeln!(page, "- {}: {figure}: {}", phase.name, short(*value))?;
        }
    }
    writeln!(page)
}

fn write_growth(page: &mut String, sizes: &[Size]) -> std::fmt::Result {
    let pairs = sizes.iter().zip(sizes.iter().skip(1));
    let pairs: Vec<String> = pairs
        .map(|(small, large)| format!("{} to {}", small.hosts, large.hosts))
        .collect();
    if pairs.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Growth\n\nExponents: 1 is the same per host, 0 the same in all.\n"
    )?;
    writeln!(page, "| Phase | Figure | {} |", pairs.join(" | "))?;
    writeln!(page, "| --- | --- |{}", " --- |".repeat(pairs.len()))?;
    for phase in LIFE {
        for (what, of) in GROWING {
            let growth = growth(sizes, phase, of);
            if growth.is_empty() {
                continue;
            }
            let growth: Vec<String> = growth.iter().map(|exponent| format!("{exponent:.2}")).collect();
            writeln!(page, "| {phase} | {what} | {} |", growth.join(" | "))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_pictures_are_what_the_results_give() {
        // Tests run in the folder of their package; that of the compilation may be another checkout.
        let root = Path::new("../..");
        for (path, text) in files(root).unwrap() {
            let committed = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
            assert!(
                committed == text,
                "{} is out of date: run `cargo run --bin scale -- page`",
                path.display()
            );
        }
    }

    #[test]
    fn goals_have_all_their_digits() {
        for (value, text) in [(1.02, "1.02"), (60.0, "60"), (0.0, "0"), (2.5, "2.5")] {
            assert_eq!(precise(value), text);
        }
    }
}
