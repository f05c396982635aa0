//! The matrix of verbs and features as a page: what is claimed, what is not done, what is taken as given.

use super::claims;
use super::tolerance::TOLERANCES;
use metal3_sim_cluster::TAKEN_AS_GIVEN;

/// What is refused with 501.
const REFUSED: [&str; 12] = [
    "strategic merge patches",
    "server-side apply of built-in kinds whose owners of fields are not kept, and taking fields over from client-side apply",
    "server-side apply of a Secret with `stringData`",
    "a CRD update that changes how a list or a map is grouped (`x-kubernetes-list-type`, its keys, \
     `x-kubernetes-map-type`) while there are objects of the kind: owners of fields are not reconciled",
    "tables and other representations than whole objects and metadata; media types other than JSON",
    "foreground and orphan deletion",
    "kinds of Kubernetes that are not named above, reviews of tokens and of access among them: there are no roles",
    "subresources of built-in kinds besides `status`",
    "a kind whose versions a webhook converts, until a function is there in place of the webhook",
    "`explain` and OpenAPI documents",
    "aggregated discovery",
    "requests with a body in YAML, apply excepted",
];

/// What holds on the simulator and is not compared, mostly because a bare API server has no controllers and calls no
/// function.
const APART: [&str; 5] = [
    "background garbage collection by owner, and emptying namespaces that are to go: a pass whenever the test says so",
    "bookmarks of a quiet watch, about one a minute: too slow to wait for",
    "functions in place of admission webhooks",
    "faults, by request or by seed",
    "the same seed, requests and times give the same answers, names and uids",
];

/// The page, as it is committed.
#[must_use]
pub fn matrix() -> String {
    let mut page = String::from(
        "# What the simulated API server does\n\n\
         Written by `make conformance-matrix`. Each row is a claim that `make conformance` checks on the simulator and\n\
         `make conformance-real` on a real API server.\n\n\
         | Verb | Feature | Claim |\n| --- | --- | --- |\n",
    );
    for claim in claims::all() {
        page.push_str(&format!("| {} | {} | {} |\n", claim.verb, claim.feature, claim.says));
    }
    page.push_str(
        "\n## Built-in kinds: what is taken as given\n\n\
         The real server checks and defaults more. A test that leans on that belongs on the real one.\n\n\
         | Kind | Taken as given |\n| --- | --- |\n",
    );
    for (kind, given) in TAKEN_AS_GIVEN {
        page.push_str(&format!("| {kind} | {given} |\n"));
    }
    for (title, rows) in [
        ("Refused with 501", REFUSED.as_slice()),
        ("Held by tests of the simulator alone", &APART),
    ] {
        page.push_str(&format!("\n## {title}\n\n"));
        for row in rows {
            page.push_str(&format!("- {row}\n"));
        }
    }
    page.push_str(
        "\n## Tolerated by the comparison of random requests\n\n\
         `make conformance-real` sends the same random requests to both servers and compares every answer and every event,\n\
         but for this. What is tolerated of the real server alone counts as a difference where the simulator does it.\n\n\
         | Of | Tolerated |\n| --- | --- |\n",
    );
    for tolerance in TOLERANCES {
        page.push_str(&format!("| {} | {} |\n", tolerance.of(), tolerance.says));
    }
    page
}
