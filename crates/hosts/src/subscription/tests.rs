//! The decisions as tables.

mod deletion;

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{
    Attempts, Bar, Details, Facts, Failure, FailureClass, Headers, HostView, List, NodeView, Object, Read, Record,
    Sibling, Wanted,
};
use super::plan::{HOST_GRACE, PATIENCE, Step, Wait, plan};
use crate::live::{GoManager, Reading};
use crate::names::subscription_reason::{
    CREATION_FAILED, CREATION_UNCONFIRMED, GO_MANAGER_RUNS, HEADERS_UNUSABLE, HOST_ABSENT, HOST_DELETED, HOST_DETACHED,
    HOST_NOT_REGISTERED, HOST_PAUSED, INVALID, MOVING, NODE_ABSENT, NODE_LOCKED, PAUSED, STATE_UNKNOWN, STILL_IN_BMC,
    UNSUPPORTED,
};

const NODE: &str = "11111111-2222-4333-8444-555555555555";
const OTHER: &str = "99999999-2222-4333-8444-555555555555";
const RELEASE: Step = Step::Release { is_left: false };
const SECOND: Duration = Duration::from_secs(1);

fn text(text: &str) -> String {
    text.to_owned()
}

fn record(node: &str, others: &[&str]) -> Option<Record> {
    Some(Record {
        node: text(node),
        host: text("h"),
        others: others.iter().map(|id| text(id)).collect(),
    })
}

fn host(bar: Option<Bar>) -> Reading<HostView> {
    Reading::Known(HostView::Present {
        node: Some(text(NODE)),
        bar,
    })
}

fn list(ids: &[&str]) -> Reading<List, Failure> {
    Reading::Known(List {
        ids: ids.iter().map(|id| text(id)).collect(),
        is_complete: true,
    })
}

/// What the BMC reports of the subscriptions whose names begin so: `own` is equal, `named` has another context, `silent` has no
/// destination.
fn details(ids: &[&str]) -> BTreeMap<String, Reading<Details, Failure>> {
    let one = |id: &&str| {
        let destination = match *id {
            id if id.starts_with("own") || id.starts_with("named") => Some(text("https://events.example/")),
            id if id.starts_with("silent") => None,
            _ => Some(text("https://other.example/")),
        };
        let details = Details {
            destination,
            context: Some(text(if id.starts_with("named") { "Public" } else { "c" })),
        };
        (text(id), Reading::Known(details))
    };
    ids.iter().map(one).collect()
}

fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        text: text("no"),
    }
}

/// A subscription that nothing was requested for, and everything that permits its creation.
fn wanted() -> Facts {
    Facts {
        object: Object {
            wanted: Wanted {
                host: text("h"),
                destination: text("https://events.example/"),
                context: text("c"),
                headers: None,
            },
            problem: None,
            id: None,
            has_error: false,
            record: None,
            has_finalizer: false,
            is_deleted: false,
            is_moving: false,
            is_paused: false,
            is_live: true,
        },
        cached_host: host(None),
        siblings: Vec::new(),
        attempts: Attempts::default(),
        go_manager: Reading::Known(GoManager::Absent),
        host: host(None),
        headers: Reading::Known(Headers::Usable),
        node: Reading::Known(NodeView::Present {
            uuid: text(NODE),
            is_locked: false,
        }),
        list: list(&[]),
        details: BTreeMap::new(),
        refused: None,
        deletion: None,
    }
}

/// One whose creation is recorded.
fn recorded(id: Option<&str>) -> Facts {
    let mut facts = wanted();
    facts.object.record = record(NODE, &[]);
    facts.object.has_finalizer = true;
    facts.object.id = id.map(text);
    facts
}

fn with(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

fn deleted(facts: Facts) -> Facts {
    with(facts, |facts| facts.object.is_deleted = true)
}

fn listing(facts: Facts, ids: &[&str]) -> Facts {
    with(facts, |facts| {
        facts.list = list(ids);
        facts.details = details(ids);
    })
}

fn wait(facts: &Facts) -> Wait {
    match plan(facts) {
        Step::Wait(wait) => wait,
        step => panic!("{step:?}"),
    }
}

/// The reason, whether the status reports it, and whether it counts as a failure.
fn kind(facts: &Facts) -> (Reason, bool, bool) {
    let wait = wait(facts);
    (wait.reason, wait.is_reported, wait.is_failure)
}

#[test]
fn first_decision_reads_everything_that_forbids_a_request_in_order_then_records_then_creates() {
    let complete = listing(
        with(wanted(), |facts| set_headers(facts, Headers::Usable)),
        &["a", "own"],
    );
    let mut facts = with(complete.clone(), |facts| {
        facts.object.is_live = false;
        facts.go_manager = Reading::NotRead;
        facts.host = Reading::NotRead;
        facts.headers = Reading::NotRead;
        facts.node = Reading::NotRead;
        facts.list = Reading::NotRead;
        facts.details = BTreeMap::new();
    });
    let mut reads = Vec::new();
    let step = loop {
        let Step::Read(read) = plan(&facts) else {
            break plan(&facts);
        };
        reads.push(read.clone());
        match read {
            Read::Object => facts.object.is_live = true,
            Read::GoManager => facts.go_manager = complete.go_manager.clone(),
            Read::Host => facts.host = complete.host.clone(),
            Read::Headers => facts.headers = complete.headers.clone(),
            Read::Node => facts.node = complete.node.clone(),
            Read::List => facts.list = complete.list.clone(),
            Read::Details(id) => drop(facts.details.insert(id.clone(), complete.details[&id].clone())),
        }
    };
    let first = [
        Read::GoManager,
        Read::Object,
        Read::Host,
        Read::Headers,
        Read::Node,
        Read::List,
    ];
    let last = [Read::Details(text("a")), Read::Details(text("own"))];
    assert_eq!(reads, [&first[..], &last].concat());
    let expected = Record {
        node: text(NODE),
        host: text("h"),
        others: vec![text("own")],
    };
    assert_eq!(step, Step::Record(expected.clone()));
    facts.object.record = Some(expected);
    assert_eq!(plan(&facts), Step::Create, "the equal one is another's");
}

#[test]
fn subscription_that_exists_costs_no_request() {
    let unread = |facts: &mut Facts| {
        facts.object.is_live = false;
        facts.host = Reading::NotRead;
    };
    let settled = with(recorded(Some("own")), unread);
    assert_eq!(plan(&settled), Step::Done);
    assert_eq!(
        plan(&with(settled.clone(), |facts| facts.object.has_error = true)),
        Step::ClearError
    );
    for bar in [Bar::Paused, Bar::Moving, Bar::Deleted, Bar::Detached, Bar::Unregistered] {
        let barred = |node: Option<&str>| {
            with(settled.clone(), |facts| {
                let node = node.map(text);
                facts.cached_host = Reading::Known(HostView::Present { node, bar: Some(bar) });
            })
        };
        for node in [Some(NODE), Some(OTHER), None] {
            assert_eq!(plan(&barred(node)), Step::Done, "{bar:?}");
        }
    }
}

#[test]
fn subscription_of_the_go_manager_is_kept_and_its_node_recorded() {
    let left = with(wanted(), |facts| {
        facts.object.id = Some(text("own"));
        facts.node = Reading::NotRead;
        facts.list = Reading::NotRead;
    });
    let Step::Record(record) = plan(&left) else { panic!() };
    assert_eq!((record.node.as_str(), record.others.len()), (NODE, 0));
}

#[test]
fn nothing_is_requested_for_a_host_that_forbids_it_in_the_cache_or_live() {
    let table = [
        (Bar::Paused, HOST_PAUSED, false),
        (Bar::Moving, MOVING, false),
        (Bar::Deleted, HOST_DELETED, true),
        (Bar::Detached, HOST_DETACHED, true),
        (Bar::Unregistered, HOST_NOT_REGISTERED, true),
    ];
    for (bar, reason, is_reported) in table {
        for facts in [wanted(), recorded(None)] {
            let cached = with(facts.clone(), |facts| facts.cached_host = host(Some(bar)));
            let live = with(facts.clone(), |facts| facts.host = host(Some(bar)));
            for facts in [cached, live] {
                assert_eq!(kind(&facts), (reason, is_reported, false), "{bar:?}");
                let lasting = with(facts, |facts| facts.attempts.waiting = Some((reason, PATIENCE)));
                assert_eq!(kind(&lasting), (reason, true, false), "{bar:?}");
                assert_eq!(wait(&lasting).recheck, None, "the host is watched");
            }
        }
    }
    let absent = with(wanted(), |facts| facts.cached_host = Reading::Known(HostView::Absent));
    assert_eq!(kind(&absent), (HOST_ABSENT, true, false));
    let unreadable = with(wanted(), |facts| facts.host = Reading::Failed(text("server_failed")));
    assert_eq!(kind(&unreadable), (STATE_UNKNOWN, true, true));
    let without_node = Reading::Known(HostView::Present { node: None, bar: None });
    let unregistered = with(wanted(), |facts| facts.cached_host = without_node);
    assert_eq!(kind(&unregistered), (HOST_NOT_REGISTERED, true, false));
}

#[test]
fn object_that_is_paused_moved_invalid_or_served_by_another_is_not_served() {
    let table: [(fn(&mut Facts), _); 5] = [
        (|facts| facts.object.is_paused = true, (PAUSED, false, false)),
        (|facts| facts.object.is_moving = true, (MOVING, false, false)),
        (
            |facts| facts.object.problem = Some(text("spec.hostName is empty")),
            (INVALID, true, false),
        ),
        (
            |facts| facts.go_manager = Reading::Known(GoManager::Running(text("it runs"))),
            (GO_MANAGER_RUNS, false, false),
        ),
        (
            |facts| facts.go_manager = Reading::Failed(text("forbidden")),
            (STATE_UNKNOWN, true, true),
        ),
    ];
    for (change, expected) in table {
        for facts in [wanted(), recorded(None)] {
            assert_eq!(kind(&with(facts, change)), expected);
        }
    }
    // Both would write the status.
    let served = with(wanted(), |facts| {
        facts.go_manager = Reading::Known(GoManager::Running(text("it runs")));
        facts.cached_host = Reading::Known(HostView::Absent);
        facts.object.problem = Some(text("spec.hostName is empty"));
    });
    assert_eq!(kind(&served), (GO_MANAGER_RUNS, false, false));
}

fn set_headers(facts: &mut Facts, headers: Headers) {
    facts.headers = Reading::Known(headers);
    facts.object.wanted.headers = Some(text("login"));
}

#[test]
fn headers_are_required_before_anything_is_recorded() {
    for headers in [Headers::Absent, Headers::Unlabelled, Headers::NoText] {
        let facts = with(wanted(), |facts| set_headers(facts, headers));
        assert_eq!(kind(&facts), (HEADERS_UNUSABLE, true, false), "{headers:?}");
        let message = wait(&facts).message;
        assert!(
            message.starts_with("failed to retrieve HTTP headers secret: "),
            "{message}"
        );
    }
    // Another host names it, which is not watched for this object.
    let other_use = with(wanted(), |facts| set_headers(facts, Headers::OtherUse));
    assert_eq!(kind(&other_use), (HEADERS_UNUSABLE, true, true));
    assert!(wait(&other_use).recheck.is_some());
}

/// What exists needs them no more: the user may have deleted the Secret.
#[test]
fn headers_are_not_required_of_what_the_bmc_has() {
    let without = |facts: Facts| with(facts, |facts| set_headers(facts, Headers::Absent));
    let lost = without(listing(recorded(None), &["own"]));
    assert_eq!(plan(&lost), Step::Adopt(text("own")));
    let moved = with(without(listing(recorded(Some("own")), &["own"])), |facts| {
        facts.object.record = record(OTHER, &[])
    });
    assert!(matches!(plan(&moved), Step::Record(_)), "of another node");
    assert_eq!(
        kind(&without(recorded(None))),
        (HEADERS_UNUSABLE, true, false),
        "it is created again"
    );
}

#[test]
fn unknown_is_never_absent() {
    type Change = fn(&mut Facts, Failure);
    let other = failure(FailureClass::Rejected);
    let table: [(Change, _); 2] = [
        (|facts, failure| facts.node = Reading::Failed(failure), STATE_UNKNOWN),
        (|facts, failure| facts.list = Reading::Failed(failure), STATE_UNKNOWN),
    ];
    for (change, reason) in table {
        for facts in [
            wanted(),
            recorded(None),
            deleted(recorded(None)),
            deleted(recorded(Some("own"))),
        ] {
            let facts = with(facts, |facts| change(facts, other.clone()));
            assert_eq!(kind(&facts), (reason, true, true), "{facts:?}");
        }
    }
    let unreadable = |facts: Facts| {
        with(listing(facts, &["own"]), |facts| {
            facts.details = [(text("own"), Reading::Failed(other.clone()))].into();
        })
    };
    for facts in [recorded(None), deleted(recorded(None)), deleted(recorded(Some("own")))] {
        assert_eq!(kind(&unreadable(facts)), (STATE_UNKNOWN, true, true));
    }
    let Step::Record(first) = plan(&unreadable(wanted())) else {
        panic!()
    };
    assert_eq!(
        first.others,
        ["own"],
        "before the first request it is another's in any case"
    );
}

#[test]
fn failure_is_reported_and_its_delay_grows_to_an_hour() {
    let unsupported = |failures| {
        with(wanted(), |facts| {
            facts.list = Reading::Failed(failure(FailureClass::Invalid));
            facts.attempts.failures = failures;
        })
    };
    assert_eq!(kind(&unsupported(0)), (UNSUPPORTED, true, true));
    let delay = |failures| wait(&unsupported(failures)).recheck.unwrap_or_default();
    assert!(delay(0) >= Duration::from_mins(1) && delay(0) <= Duration::from_mins(2));
    assert!(
        delay(5) > Duration::from_mins(30) && delay(50) <= Duration::from_mins(64),
        "{:?}",
        delay(50)
    );
    let message = wait(&unsupported(0)).message;
    assert!(
        message.starts_with("failed to create a subscription: ") && message.contains("; use a host"),
        "{message}"
    );
    let again = with(unsupported(1), |facts| {
        facts.attempts.delayed = Some((wait(&unsupported(0)), SECOND));
        facts.object.is_live = false;
    });
    let again = wait(&again);
    assert_eq!(
        (again.reason, again.recheck, again.is_failure),
        (UNSUPPORTED, Some(SECOND), false)
    );
}

#[test]
fn lock_is_waited_for_and_reported_when_it_lasts() {
    let locked = |facts: Facts, failures| {
        with(facts, |facts| {
            facts.node = Reading::Known(NodeView::Present {
                uuid: text(NODE),
                is_locked: true,
            });
            facts.attempts.failures = failures;
        })
    };
    for facts in [
        wanted(),
        recorded(None),
        deleted(recorded(None)),
        deleted(recorded(Some("own"))),
    ] {
        assert_eq!(kind(&locked(facts.clone(), 0)), (NODE_LOCKED, false, true));
        assert_eq!(kind(&locked(facts.clone(), 4)), (NODE_LOCKED, true, true));
        let by_response = with(facts, |facts| {
            facts.list = Reading::Failed(failure(FailureClass::Locked))
        });
        assert_eq!(kind(&by_response), (NODE_LOCKED, false, true));
    }
}

#[test]
fn host_and_ironic_must_agree_about_the_node() {
    let other = with(wanted(), |facts| {
        facts.node = Reading::Known(NodeView::Present {
            uuid: text(OTHER),
            is_locked: false,
        });
    });
    assert_eq!(kind(&other), (HOST_NOT_REGISTERED, false, false));
    let absent = with(wanted(), |facts| facts.node = Reading::Known(NodeView::Absent));
    assert_eq!(kind(&absent), (NODE_ABSENT, true, true));
}

#[test]
fn subscription_whose_creation_has_no_response_is_searched_for_before_it_is_created_again() {
    let table: [(&[&str], &[&str], Step); 6] = [
        (&[], &[], Step::Create),
        (&["a", "b"], &[], Step::Create),
        (&["named"], &["named"], Step::Create),
        (&["a", "own"], &[], Step::Adopt(text("own"))),
        (&["own-1", "own-2"], &["own-1"], Step::Adopt(text("own-2"))),
        (&["own-1"], &["own-1"], Step::Create),
    ];
    for (listed, others, step) in table {
        let facts = with(listing(recorded(None), listed), |facts| {
            facts.object.record = record(NODE, others)
        });
        assert_eq!(plan(&facts), step, "{listed:?} {others:?}");
        // Ironic may still perform it.
        let early = with(facts, |facts| facts.attempts.creation_may_come_for = SECOND);
        match step {
            Step::Create => {
                assert_eq!(kind(&early), (CREATION_UNCONFIRMED, false, false));
                assert_eq!(wait(&early).recheck, Some(SECOND));
            }
            _ => assert_eq!(plan(&early), step),
        }
    }
    for unclear in ["silent", "named"] {
        let unclear = listing(recorded(None), &[unclear]);
        assert_eq!(kind(&unclear), (STATE_UNKNOWN, true, true), "it may be the own one");
    }
    for facts in [recorded(None), wanted()] {
        let part = with(facts, |facts| {
            facts.list = Reading::Known(List {
                ids: Vec::new(),
                is_complete: false,
            });
        });
        assert_eq!(kind(&part), (STATE_UNKNOWN, true, true));
    }
}

#[test]
fn subscription_of_another_object_is_never_taken() {
    let sibling = |id: Option<&str>, others: &[&str]| Sibling {
        id: id.map(text),
        record: record(NODE, others),
        is_equal: true,
    };
    let facts = with(listing(recorded(None), &["own-1", "own-2"]), |facts| {
        facts.siblings = vec![sibling(Some("own-1"), &[])];
    });
    assert_eq!(plan(&facts), Step::Adopt(text("own-2")));
    // The other one may have created only the second.
    let open = with(listing(recorded(None), &["own-2", "own-1"]), |facts| {
        facts.siblings = vec![sibling(None, &["own-1"])];
    });
    assert_eq!(plan(&open), Step::Adopt(text("own-1")));
    let same = with(listing(deleted(recorded(Some("own"))), &["own"]), |facts| {
        facts.siblings = vec![sibling(Some("own"), &[])];
    });
    assert_eq!(plan(&same), RELEASE);
    // It is left of a BMC that the host had before.
    let stale = |facts: Facts| {
        with(listing(facts, &["own"]), |facts| {
            facts.siblings = vec![Sibling {
                record: record(OTHER, &[]),
                ..sibling(Some("own"), &[])
            }];
        })
    };
    assert_eq!(plan(&stale(deleted(recorded(Some("own"))))), Step::Delete(text("own")));
    assert_eq!(plan(&stale(recorded(None))), Step::Adopt(text("own")));
}

/// Nothing was requested from the new BMC: what it has is another program's.
#[test]
fn equal_subscription_of_a_new_bmc_is_not_taken_after_the_own_one_was_lost() {
    let mut facts = with(listing(recorded(Some("own")), &["own-2"]), |facts| {
        facts.object.record = record(OTHER, &["x"])
    });
    let mut steps = Vec::new();
    loop {
        let step = plan(&facts);
        steps.push(step.clone());
        match step {
            Step::Record(record) => facts.object.record = Some(record),
            Step::Forget(_) => facts.object.id = None,
            _ => break,
        }
    }
    let recorded = |node: &str| {
        Step::Record(Record {
            node: text(node),
            host: text("h"),
            others: vec![text("x"), text("own-2")],
        })
    };
    let on_new = Step::Record(Record {
        node: text(NODE),
        host: text("h"),
        others: vec![text("own-2")],
    });
    assert_eq!(
        steps,
        [recorded(OTHER), Step::Forget(text("own")), on_new, Step::Create]
    );
}

/// The webhooks may have been away.
#[test]
fn subscription_whose_spec_names_another_host_waits_for_the_former_one() {
    let renamed = |facts: Facts| {
        with(facts, |facts| {
            facts.object.wanted.host = text("other");
            facts.object.record = record(OTHER, &[]);
        })
    };
    assert_eq!(kind(&renamed(recorded(Some("own")))), (INVALID, true, false));
    assert_eq!(kind(&renamed(recorded(None))), (INVALID, true, false));
    for absent in [false, true] {
        let facts = with(renamed(listing(deleted(recorded(Some("own"))), &[])), |facts| {
            if absent {
                facts.host = Reading::Known(HostView::Absent);
                facts.attempts.host_absent_for = HOST_GRACE;
                facts.node = Reading::Known(NodeView::Absent);
            }
        });
        assert_eq!(kind(&facts), (STATE_UNKNOWN, true, true));
        assert!(wait(&facts).message.contains("the host h,"), "{}", wait(&facts).message);
    }
    // Another name of the same host.
    let same = with(recorded(Some("own")), |facts| facts.object.wanted.host = text("other"));
    assert_eq!(plan(&same), Step::Done);
    assert_eq!(plan(&listing(deleted(same), &["own"])), Step::Delete(text("own")));
}

#[test]
fn failed_creation_is_reported_after_the_bmc_was_read_when_it_may_have_had_an_effect() {
    let refused = |class, listed: &[&str]| {
        with(listing(recorded(None), listed), |facts| {
            facts.refused = Some(failure(class))
        })
    };
    assert_eq!(
        plan(&refused(FailureClass::Unconfirmed, &["own"])),
        Step::Adopt(text("own"))
    );
    for class in [FailureClass::Unconfirmed, FailureClass::Rejected, FailureClass::Invalid] {
        assert_eq!(kind(&refused(class, &[])), (CREATION_FAILED, true, true), "{class:?}");
    }
    assert_eq!(kind(&refused(FailureClass::Locked, &[])), (NODE_LOCKED, false, true));
}

#[test]
fn subscription_is_created_again_on_a_new_node_whose_bmc_does_not_have_it() {
    let on_other_node = |id: &str, listed: &[&str]| {
        with(listing(recorded(Some(id)), listed), |facts| {
            facts.object.record = record(OTHER, &["x"])
        })
    };
    let kept = Step::Record(Record {
        node: text(NODE),
        host: text("h"),
        others: vec![text("x")],
    });
    assert_eq!(plan(&on_other_node("own", &["own"])), kept);
    assert_eq!(plan(&on_other_node("own", &[])), Step::Forget(text("own")));
    assert_eq!(
        plan(&on_other_node("1", &["1"])),
        Step::Forget(text("1")),
        "another's of this number"
    );
    let part = with(on_other_node("own", &[]), |facts| {
        facts.list = Reading::Known(List {
            ids: Vec::new(),
            is_complete: false,
        });
    });
    assert_eq!(kind(&part), (STATE_UNKNOWN, true, true));
    let forgotten = |listed: &[&str]| {
        with(listing(recorded(None), listed), |facts| {
            facts.object.record = record(OTHER, &["own-1"])
        })
    };
    let again = Step::Record(Record {
        node: text(NODE),
        host: text("h"),
        others: vec![text("own-1")],
    });
    assert_eq!(plan(&forgotten(&["own-1"])), again);
    assert_eq!(plan(&forgotten(&["own-1", "own-2"])), Step::Adopt(text("own-2")));
}

#[test]
fn each_wait_says_what_to_do() {
    let (mut texts, absent) = (Vec::new(), Reading::Known(HostView::Absent));
    for bar in [Bar::Paused, Bar::Moving, Bar::Deleted, Bar::Detached, Bar::Unregistered] {
        texts.push(wait(&with(wanted(), |facts| facts.host = host(Some(bar)))).message);
    }
    texts.push(wait(&with(wanted(), |facts| facts.cached_host = absent)).message);
    texts.push(wait(&with(wanted(), |facts| facts.object.problem = Some(text("wrong")))).message);
    texts.push(wait(&with(wanted(), |facts| facts.node = Reading::Known(NodeView::Absent))).message);
    texts.push(
        wait(&with(recorded(None), |facts| {
            facts.refused = Some(failure(FailureClass::Rejected))
        }))
        .message,
    );
    for headers in [Headers::Absent, Headers::Unlabelled, Headers::OtherUse, Headers::NoText] {
        texts.push(wait(&with(wanted(), |facts| set_headers(facts, headers))).message);
    }
    for text in texts {
        assert!(text.contains("; ") || text.contains(", "), "{text}");
        assert!(!text.ends_with('.'), "{text}");
    }
}
