//! How long the step of the last host usually takes.

use super::*;

/// A host that was provisioned in so many seconds.
fn provisioned(name: &str, seconds: u32) -> Value {
    let took = json!({ "start": "2026-01-01T00:00:00Z", "end": format!("2026-01-01T00:00:{seconds:02}Z") });
    host(name, json!({ "status": { "operationHistory": { "provision": took } } }))
}

fn in_state(state: &str) -> Value {
    host("h0", json!({ "status": { "provisioning": { "state": state } } }))
}

fn usual(objects: &[Value]) -> Option<i64> {
    let host = ObjectId::of::<BareMetalHost>("h0");
    let explanation = offline::explain_with_background(&host, objects);
    explanation.chain.last().and_then(|last| last.usual_seconds)
}

#[test]
fn step_of_a_host_in_progress_has_the_median_of_those_that_completed_it() {
    let others = [provisioned("a", 9), provisioned("b", 50), provisioned("c", 20)];
    let with = |own: Value| {
        let mut all = others.to_vec();
        all.push(own);
        all
    };
    assert_eq!(usual(&with(in_state("provisioning"))), Some(20));
    // No host was deprovisioned, and no history has the other step.
    assert_eq!(usual(&with(in_state("deprovisioning"))), None);
    assert_eq!(usual(&with(in_state("preparing"))), None);
    assert_eq!(usual(&[in_state("provisioning")]), None);
}

/// Only the host itself may be read: the chain is complete, and says what is missing.
#[test]
fn hosts_that_may_not_be_listed_are_named_and_the_chain_stays() {
    let objects = [in_state("provisioning"), provisioned("a", 9)];
    let start = ObjectId::of::<BareMetalHost>("h0");
    let mut snapshot = Snapshot::default();
    let explanation = loop {
        match explain(&start, &snapshot).and_then(|chain| with_background(chain, &snapshot)) {
            Ok(explanation) => break explanation,
            Err(wanted) => {
                for read in wanted {
                    let forbidden = matches!(read, Read::List { .. }).then_some("BareMetalHost");
                    let answer = answer(&objects, &read, forbidden);
                    snapshot.insert(read, answer);
                }
            }
        }
    };
    assert_eq!(explanation.state, State::Waiting);
    assert_eq!(explanation.chain.last().and_then(|last| last.usual_seconds), None);
    assert_eq!(explanation.not_read.len(), 1, "{:?}", explanation.not_read);
}
