//! `arrows`: dependencies between packages have one direction, and so have imports between the files of a package; pure
//! packages reach no async runtime and no client, and `xtask` reaches no simulator.

mod circles;
mod graph;
mod packages;
mod released;

use anyhow::Result;

use graph::Graph;
use packages::{IMPURE, PACKAGES, Package, SIMULATORS};

/// Checks the workspace and prints the violations.
pub(crate) fn run() -> Result<bool> {
    let graph = Graph::read()?;
    let mut found = violations(&graph);
    found.extend(simulators(&graph));
    found.extend(released::violations()?);
    found.extend(circles::violations()?);
    for line in &found {
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
        "arrows: {} packages, {arrows} dependencies between them, {} violations",
        graph.members.len(),
        found.len()
    );
    Ok(found.is_empty())
}

/// A line for each dependency that the table of packages forbids.
fn violations(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for member in &graph.members {
        match PACKAGES.iter().find(|package| package.name == member) {
            Some(package) => {
                found.extend(forbidden_imports(graph, package));
                found.extend(impurities(graph, package));
            }
            None => found.push(format!("{member} is not in the table of packages")),
        }
    }
    found
}

fn forbidden_imports(graph: &Graph, package: &Package) -> Vec<String> {
    graph
        .imports(package.name)
        .filter(|import| graph.members.contains(*import) && !package.imports.contains(import))
        .map(|import| format!("{} must not import {import}", package.name))
        .collect()
}

fn impurities(graph: &Graph, package: &Package) -> Vec<String> {
    let impure: &[&str] = if package.pure { IMPURE } else { &[] };
    impure
        .iter()
        .filter_map(|impure| graph.chain(package.name, impure))
        .map(|chain| format!("{} must stay pure: {}", package.name, chain.join(" -> ")))
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

    /// A graph of dependencies `from -> to`; packages with the prefix `metal3-` are members.
    fn graph(arrows: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (from, to) in arrows {
            graph.edges.entry((*from).into()).or_default().insert((*to).into());
            let members = [from, to].into_iter().filter(|name| name.starts_with("metal3-"));
            graph.members.extend(members.map(|name| (*name).to_owned()));
        }
        graph
    }

    /// The intended graph.
    const INTENDED: &[(&str, &str)] = &[
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
    fn the_intended_graph_passes() {
        assert_eq!(violations(&graph(INTENDED)), Vec::<String>::new());
    }

    #[test]
    fn each_reversed_dependency_fails() {
        for reversed in INTENDED.iter().filter(|(_, to)| to.starts_with("metal3-")) {
            let arrows: Vec<_> = INTENDED
                .iter()
                .map(|arrow| if arrow == reversed { (arrow.1, arrow.0) } else { *arrow })
                .collect();
            let found = violations(&graph(&arrows));
            let expected = format!("{} must not import {}", reversed.1, reversed.0);
            assert!(found.contains(&expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn dependencies_between_siblings_fail() {
        for (from, to) in [
            ("metal3-hosts", "metal3-ipam"),
            ("metal3-capm3", "metal3-hosts"),
            ("metal3-ironic", "metal3-runtime"),
            ("metal3-sim-ironic", "metal3-hosts"),
            ("metal3-capm3", "metal3-sim-cluster"),
            ("metal3-api", "metal3-schema"),
        ] {
            let found = violations(&graph(&[(from, to)]));
            assert_eq!(found, [format!("{from} must not import {to}")]);
        }
    }

    #[test]
    fn a_pure_package_reaches_no_runtime_transitively() {
        let through = graph(&[("metal3-api", "harmless"), ("harmless", "tokio")]);
        assert_eq!(
            violations(&through),
            ["metal3-api must stay pure: metal3-api -> harmless -> tokio"]
        );
    }

    #[test]
    fn xtask_reaches_no_simulator_transitively() {
        let through = graph(&[("xtask", "metal3-manager"), ("metal3-manager", "metal3-sim-bmc")]);
        assert_eq!(
            simulators(&through),
            ["xtask must reach no simulator: xtask -> metal3-manager -> metal3-sim-bmc"]
        );
        assert_eq!(simulators(&graph(&[("metal3-manager", "metal3-sim-bmc")])), [""; 0]);
    }

    #[test]
    fn an_unlisted_package_fails() {
        let found = violations(&graph(&[("metal3-attic", "metal3-domain")]));
        assert_eq!(found, ["metal3-attic is not in the table of packages"]);
    }

    #[test]
    fn this_workspace_has_no_violation() {
        let graph = Graph::read().unwrap();
        assert!(graph.members.contains("metal3-api") && graph.chain("metal3-api", "metal3-domain").is_some());
        assert_eq!(violations(&graph), Vec::<String>::new());
        assert_eq!(simulators(&graph), Vec::<String>::new());
        assert_eq!(circles::violations().unwrap(), Vec::<String>::new());
    }
}
