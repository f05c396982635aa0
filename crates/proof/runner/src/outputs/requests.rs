//! Requests of the managers, with and without a user who looks, and those of the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use metal3_sandbox::world::World;

use super::play::{Played, VIEWER};
use crate::world::PRODUCTS;

/// Requests by client, verb and resource. The client `ironic` stands for all that reached Ironic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Requests(pub(super) BTreeMap<String, u64>);

impl Requests {
    /// The requests to the API server, and to Ironic.
    fn totals(&self) -> (u64, u64) {
        let of = |is_ironic: bool| {
            let counted = self
                .0
                .iter()
                .filter(|(what, _)| what.starts_with("ironic ") == is_ironic);
            counted.map(|(_, number)| *number).sum()
        };
        (of(false), of(true))
    }
}

/// All requests of the managers since the start, to the API server and to Ironic.
pub(super) fn of_managers(world: &World) -> Requests {
    let server = world.cluster.audit();
    let own = server
        .counts()
        .filter(|((user, ..), _)| PRODUCTS.contains(&user.as_str()));
    let own = own.map(|((user, verb, resource), number)| (format!("{user} {verb} {resource}"), number));
    let ironic = world.ironic.audit();
    let of_ironic = ironic
        .counts()
        .map(|((method, path), number)| (format!("ironic {method} {path}"), number));
    Requests(own.chain(of_ironic).collect())
}

/// The number of requests of the commands.
pub(super) fn of_viewer(world: &World) -> u64 {
    let audit = world.cluster.audit();
    let own = audit.counts().filter(|((user, ..), _)| user == VIEWER);
    own.map(|(_, number)| number).sum()
}

/// The counts that differ.
pub(super) fn differences(without: &Requests, with: &Requests) -> Vec<String> {
    let all: BTreeSet<&String> = without.0.keys().chain(with.0.keys()).collect();
    let of = |requests: &Requests, what: &String| requests.0.get(what).copied().unwrap_or(0);
    let differ = all.into_iter().filter(|what| of(without, what) != of(with, what));
    differ
        .map(|what| format!("{what}: {} without, {} with", of(without, what), of(with, what)))
        .collect()
}

/// The section about requests. The managers send the same with and without commands, which the caller compared.
pub(super) fn page(played: &Played) -> String {
    let (server, ironic) = played.requests.totals();
    let mut text = format!(
        "\n## Requests\n\nIn this story the managers send {server} requests to the API server and {ironic} to Ironic, by client, verb and\n\
         resource the same with {} commands and {} scrapes of the metrics as without any: explanations, figures and alerts cost\n\
         them no request.\n\nWhat a command asks of the API server, as it is shown above:\n\n| Command | Requests |\n| --- | --- |\n",
        played.commands, played.scrapes
    );
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for shown in played.chapters.iter().flat_map(|chapter| &chapter.commands) {
        let entry = most.entry(shown.words).or_default();
        *entry = (*entry).max(shown.requests);
    }
    for (words, requests) in most {
        let _ = writeln!(text, "| `{words}` | {requests} |");
    }
    text.push('\n');
    text
}
