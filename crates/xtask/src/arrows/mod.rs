//! `arrows`: the rooms import each other in one direction, and the pure ones reach no runtime and no client.

mod graph;
mod released;
mod rooms;

use anyhow::Result;

use graph::Graph;
use rooms::{IMPURE, ROOMS, Room, SIMULATORS};

/// Checks the workspace and prints what points the wrong way.
pub(crate) fn run() -> Result<bool> {
    let graph = Graph::read()?;
    let mut wrong = violations(&graph);
    wrong.extend(simulators(&graph));
    wrong.extend(released::violations()?);
    for line in &wrong {
        println!("{line}");
    }
    let arrows: usize = graph
        .members
        .iter()
        .map(|member| {
            graph
                .imports(member)
                .filter(|import| graph.members.contains(*import))
                .count()
        })
        .sum();
    println!(
        "arrows: {} rooms, {arrows} arrows between them, {} wrong",
        graph.members.len(),
        wrong.len()
    );
    Ok(wrong.is_empty())
}

/// A line for each arrow that the table of rooms forbids.
fn violations(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in &graph.members {
        match ROOMS.iter().find(|room| room.name == member) {
            Some(room) => {
                wrong.extend(forbidden_imports(graph, room));
                wrong.extend(impurities(graph, room));
            }
            None => wrong.push(format!("{member} has no place in the table of rooms")),
        }
    }
    wrong
}

fn forbidden_imports(graph: &Graph, room: &Room) -> Vec<String> {
    graph
        .imports(room.name)
        .filter(|import| graph.members.contains(*import) && !room.imports.contains(import))
        .map(|import| format!("{} must not import {import}", room.name))
        .collect()
}

fn impurities(graph: &Graph, room: &Room) -> Vec<String> {
    let impure: &[&str] = if room.pure { IMPURE } else { &[] };
    impure
        .iter()
        .filter_map(|package| graph.chain(room.name, package))
        .map(|chain| format!("{} must stay pure: {}", room.name, chain.join(" -> ")))
        .collect()
}

/// A line for each simulator that `xtask` reaches.
fn simulators(graph: &Graph) -> Vec<String> {
    let chains = SIMULATORS
        .iter()
        .filter_map(|simulator| graph.chain("xtask", simulator));
    chains
        .map(|chain| format!("xtask must reach no simulator: {}", chain.join(" -> ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of arrows `from -> to`; what starts with `metal3-` or is `xtask` is a member.
    fn graph(arrows: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (from, to) in arrows {
            graph.edges.entry((*from).into()).or_default().insert((*to).into());
            let ours = [from, to].into_iter().filter(|name| name.starts_with("metal3-"));
            graph.members.extend(ours.map(|name| (*name).to_owned()));
        }
        graph
    }

    /// The house as it is meant.
    const MEANT: &[(&str, &str)] = &[
        ("metal3-api", "metal3-domain"),
        ("metal3-schema", "metal3-domain"),
        ("metal3-runtime", "metal3-api"),
        ("metal3-runtime", "tokio"),
        ("metal3-capi", "metal3-runtime"),
        ("metal3-ironic", "metal3-domain"),
        ("metal3-ironic", "reqwest"),
        ("metal3-hosts", "metal3-ironic"),
        ("metal3-ipam", "metal3-capi"),
        ("metal3-capm3", "metal3-capi"),
        ("metal3-webhooks", "metal3-api"),
        ("metal3-manager", "metal3-hosts"),
        ("metal3-manager", "metal3-sim-cluster"),
        ("metal3-sim-cluster", "metal3-schema"),
        ("metal3-sim-cluster", "metal3-sim-faults"),
    ];

    #[test]
    fn the_house_as_it_is_meant_passes() {
        assert_eq!(violations(&graph(MEANT)), Vec::<String>::new());
    }

    #[test]
    fn each_reversed_arrow_fails() {
        for reversed in MEANT.iter().filter(|(_, to)| to.starts_with("metal3-")) {
            let arrows: Vec<_> = MEANT
                .iter()
                .map(|arrow| if arrow == reversed { (arrow.1, arrow.0) } else { *arrow })
                .collect();
            let wrong = violations(&graph(&arrows));
            let expected = format!("{} must not import {}", reversed.1, reversed.0);
            assert!(wrong.contains(&expected), "{expected}: {wrong:?}");
        }
    }

    #[test]
    fn sideways_arrows_fail() {
        for (from, to) in [
            ("metal3-hosts", "metal3-ipam"),
            ("metal3-capm3", "metal3-hosts"),
            ("metal3-ironic", "metal3-runtime"),
            ("metal3-sim-ironic", "metal3-hosts"),
            ("metal3-capm3", "metal3-sim-cluster"),
            ("metal3-api", "metal3-schema"),
        ] {
            let wrong = violations(&graph(&[(from, to)]));
            assert_eq!(wrong, [format!("{from} must not import {to}")]);
        }
    }

    #[test]
    fn a_pure_room_reaches_no_runtime_even_through_others() {
        let through = graph(&[("metal3-api", "harmless"), ("harmless", "tokio")]);
        assert_eq!(
            violations(&through),
            ["metal3-api must stay pure: metal3-api -> harmless -> tokio"]
        );
    }

    #[test]
    fn xtask_reaches_no_simulator_even_through_other_packages() {
        let through = graph(&[("xtask", "metal3-manager"), ("metal3-manager", "metal3-sim-bmc")]);
        assert_eq!(
            simulators(&through),
            ["xtask must reach no simulator: xtask -> metal3-manager -> metal3-sim-bmc"]
        );
        assert_eq!(simulators(&graph(&[("metal3-manager", "metal3-sim-bmc")])), [""; 0]);
    }

    #[test]
    fn a_room_without_a_place_fails() {
        let wrong = violations(&graph(&[("metal3-attic", "metal3-domain")]));
        assert_eq!(wrong, ["metal3-attic has no place in the table of rooms"]);
    }

    #[test]
    fn this_workspace_has_no_wrong_arrow() {
        let graph = Graph::read().unwrap();
        assert!(graph.members.contains("metal3-api") && graph.chain("metal3-api", "metal3-domain").is_some());
        assert_eq!(violations(&graph), Vec::<String>::new());
        assert_eq!(simulators(&graph), Vec::<String>::new());
    }
}
