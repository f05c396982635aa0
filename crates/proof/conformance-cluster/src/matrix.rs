//! The matrix of verbs and features as a page: claims, unsupported features, unchecked parts of built-in kinds.

use super::claims;
use super::tolerance::TOLERANCES;
use metal3_sim_cluster::TAKEN_AS_GIVEN;

/// Features that are rejected with 501.
const REFUSED: [&str; 10] = [
    "protobuf bodies of CustomResourceDefinitions, protobuf bodies and strategic merge patches of the kinds that only prune needs (Endpoints, volumes, Jobs, Ingresses, other workloads), and fields of protobuf that the tables of the simulator lack",
    "server-side apply of a Secret with `stringData`",
    "a CRD update that changes `x-kubernetes-list-type`, its keys or `x-kubernetes-map-type` while objects of the kind \
     exist: managed fields are not migrated",
    "tables, which only the server of the sandbox has, and other representations than whole objects and metadata; answers \
     other than JSON",
    "other kinds of Kubernetes, including token reviews: roles count for impersonated users only, and the default roles do not exist",
    "extra values of an impersonated user, and writes of roles and bindings by one who is no administrator: what is granted is not compared \
     with what the user has",
    "a definition of a resource that the server has itself, such as Roles",
    "subresources of built-in kinds besides `status` and `scale`: no containers run, so that Pods have no logs",
    "kinds with a conversion webhook, until a function replaces the webhook",
    "YAML bodies, except for apply",
];

/// Features of the simulator that are not compared, mostly because a bare API server has no controllers.
const APART: [&str; 5] = [
    "garbage collection, also in the foreground and with orphans, and emptying terminating namespaces: one pass for each call",
    "periodic bookmarks, about one a minute: too slow to wait for",
    "functions instead of admission webhooks",
    "faults, by request or by seed",
    "the same seed, requests and times produce the same answers, names and uids",
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
        page.push_str(&format!("| {} | {} | {} |\n", claim.verb, claim.feature, claim.text));
    }
    page.push_str(
        "\n## Built-in kinds: what is not checked\n\n\
         The real server validates and defaults more. A test that depends on that must use the real server.\n\n\
         | Kind | Not checked |\n| --- | --- |\n",
    );
    for (kind, given) in TAKEN_AS_GIVEN {
        page.push_str(&format!("| {kind} | {given} |\n"));
    }
    for (title, rows) in [
        ("Rejected with 501", REFUSED.as_slice()),
        ("Covered only by tests of the simulator", &APART),
    ] {
        page.push_str(&format!("\n## {title}\n\n"));
        for row in rows {
            page.push_str(&format!("- {row}\n"));
        }
    }
    page.push_str(
        "\n## Tolerated by the comparison of random requests\n\n\
         `make conformance-real` sends the same random requests to both servers and compares all responses and events\n\
         except for these differences. A difference of the real server only is not tolerated of the simulator.\n\n\
         | Server | Tolerated difference |\n| --- | --- |\n",
    );
    for tolerance in TOLERANCES {
        page.push_str(&format!("| {} | {} |\n", tolerance.of(), tolerance.text));
    }
    page
}
