//! The pictures of the page.

use std::collections::BTreeSet;

use super::svg::{Series, areas, bars, lines, position};
use crate::outcome::{Api, Outcome, Phase, Size, number};
use crate::table::{LIFE, cost};

/// A file name, and its content.
pub(super) type Picture = (&'static str, String);

pub(super) fn all(outcome: &Outcome) -> Vec<Picture> {
    let sizes = &outcome.sizes;
    let mut pictures = Vec::new();
    // One size is a dot and no line.
    if sizes.len() > 1 {
        pictures.extend([
            ("scale-requests.svg", requests(sizes)),
            ("scale-memory.svg", memory(sizes)),
            ("scale-processor.svg", processor(sizes)),
        ]);
    }
    if let Some(largest) = sizes.last() {
        pictures.push(("scale-time.svg", time(largest)));
        pictures.push(("scale-life.svg", life(largest)));
    }
    pictures
}

fn ticks(sizes: &[Size]) -> Vec<String> {
    sizes.iter().map(|size| size.hosts.to_string()).collect()
}

/// A series over the sizes.
fn over(sizes: &[Size], name: &str, of: impl Fn(&Size) -> f64) -> Series {
    let points = sizes.iter().enumerate();
    Series {
        name: name.to_owned(),
        points: points.map(|(index, size)| (position(index), of(size))).collect(),
    }
}

/// The sum of a figure over a life, per host.
pub(super) fn per_life(size: &Size, of: impl Fn(&Phase) -> u64) -> f64 {
    let phases = LIFE.iter().filter_map(|name| size.phase(name));
    let sum: u64 = phases.map(of).sum();
    number(sum) / f64::from(size.hosts)
}

fn requests(sizes: &[Size]) -> String {
    let series = [
        over(sizes, "API writes", |size| {
            per_life(size, |phase| Api::total(&phase.api.writes))
        }),
        over(sizes, "API reads", |size| {
            per_life(size, |phase| Api::total(&phase.api.reads))
        }),
        over(sizes, "Ironic requests", |size| {
            per_life(size, |phase| phase.ironic.of_hosts())
        }),
    ];
    lines("Life of a host", ("hosts", "requests per host"), &ticks(sizes), &series)
}

/// The largest memory of a process in any phase, in MiB.
pub(super) fn peak(size: &Size, process: &str) -> f64 {
    let peaks = size.phases.iter().map(|phase| cost(phase, process).peak_kib);
    number(peaks.max().unwrap_or_default()) / 1024.0
}

fn memory(sizes: &[Size]) -> String {
    let series = [over(sizes, "manager", |size| peak(size, "manager"))];
    lines(
        "Memory of the manager",
        ("hosts", "MiB at most"),
        &ticks(sizes),
        &series,
    )
}

fn processor(sizes: &[Size]) -> String {
    let of = |process: &'static str| move |size: &Size| per_life(size, |phase| cost(phase, process).cpu_millis);
    let series = [
        over(sizes, "manager", of("manager")),
        over(sizes, "API server", of("API server")),
        over(sizes, "etcd", of("etcd")),
    ];
    lines(
        "Processor in the life of a host",
        ("hosts", "milliseconds per host"),
        &ticks(sizes),
        &series,
    )
}

fn time(size: &Size) -> String {
    let named = LIFE.iter().filter_map(|name| size.phase(name));
    let phases: Vec<&Phase> = named.collect();
    let series = |name: &str, of: fn(&Phase) -> f64| Series {
        name: name.to_owned(),
        points: phases
            .iter()
            .enumerate()
            .map(|(index, phase)| (position(index), of(phase)))
            .collect(),
    };
    let ticks: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
    let title = format!("All {} hosts", size.hosts);
    bars(
        &title,
        ("phase", "seconds"),
        &ticks,
        &[
            series("all hosts", |phase| phase.seconds),
            series("one host alone", |phase| phase.alone.unwrap_or_default()),
            series("the same writes", |phase| phase.floor.unwrap_or_default()),
        ],
    )
}

/// The states of a fleet, phase after phase.
fn life(size: &Size) -> String {
    let (mut begin, mut ticks, mut samples) = (0.0, Vec::new(), Vec::new());
    for phase in LIFE.iter().filter_map(|name| size.phase(name)) {
        ticks.push((begin + phase.seconds / 2.0, phase.name.clone()));
        samples.extend(phase.states.iter().map(|(at, states)| (begin + at, states)));
        begin += phase.seconds;
    }
    let names: BTreeSet<&String> = samples.iter().flat_map(|(_, states)| states.keys()).collect();
    let of = |name: &&String| Series {
        name: (*name).clone(),
        points: samples
            .iter()
            .map(|(at, states)| (*at, number(states.get(*name).copied().unwrap_or(0))))
            .collect(),
    };
    let series: Vec<Series> = names.iter().map(of).collect();
    let title = format!("The life of {} hosts", size.hosts);
    areas(&title, ("seconds, by phase", "hosts by state"), &ticks, &series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_size_has_no_lines_over_sizes() {
        let names = |hosts: &[u32]| -> Vec<&str> {
            let size = |hosts: &u32| Size {
                hosts: *hosts,
                ..Size::default()
            };
            let outcome = Outcome {
                sizes: hosts.iter().map(size).collect(),
                ..Outcome::default()
            };
            all(&outcome).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[100]), ["scale-time.svg", "scale-life.svg"]);
        assert_eq!(names(&[100, 1000]).len(), 5);
    }
}
