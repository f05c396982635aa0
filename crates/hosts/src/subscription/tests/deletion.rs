//! Subscriptions that are deleted.

use super::*;

#[test]
fn deleted_object_is_released_without_a_look_when_nothing_was_requested() {
    let never = with(deleted(wanted()), |facts| {
        facts.object.has_finalizer = true;
        facts.host = Reading::NotRead;
    });
    assert_eq!(plan(&never), RELEASE);
    assert_eq!(plan(&deleted(wanted())), Step::Done, "no finalizer");
}

#[test]
fn deleted_object_is_released_once_the_bmc_does_not_have_its_subscription() {
    let table: [(Option<&str>, &[&str], Step); 8] = [
        (Some("own"), &[], RELEASE),
        (Some("own"), &["a"], RELEASE),
        (Some("own"), &["own"], Step::Delete(text("own"))),
        (Some("named"), &["named"], Step::Delete(text("named"))),
        (Some("silent"), &["silent"], Step::Delete(text("silent"))),
        (Some("1"), &["1"], Step::Release { is_left: true }),
        (None, &["a"], RELEASE),
        (None, &["own"], Step::Delete(text("own"))),
    ];
    for (id, listed, step) in table {
        let facts = listing(deleted(recorded(id)), listed);
        assert_eq!(plan(&facts), step, "{id:?} {listed:?}");
        if let Step::Delete(_) = step {
            let ended = |deletion| with(facts.clone(), |facts| facts.deletion = Some(deletion));
            assert_eq!(kind(&ended(Ok(()))), (STILL_IN_BMC, true, true));
            let refused = ended(Err(failure(FailureClass::Rejected)));
            assert_eq!(kind(&refused), (STILL_IN_BMC, true, true));
            assert!(
                wait(&refused)
                    .message
                    .starts_with("failed to delete a subscription: no; "),
                "why it failed"
            );
            let locked = ended(Err(failure(FailureClass::Locked)));
            assert_eq!(kind(&locked), (NODE_LOCKED, false, true), "a lock passes");
        }
    }
    let named = listing(deleted(recorded(None)), &["named"]);
    assert_eq!(kind(&named), (STATE_UNKNOWN, true, true), "it may be the own one");
    let left = with(listing(deleted(recorded(Some("own"))), &["own"]), |facts| {
        facts.object.record = None
    });
    assert_eq!(plan(&left), Step::Delete(text("own")), "of the Go manager");
    let early = with(deleted(recorded(None)), |facts| {
        facts.attempts.creation_may_come_for = SECOND
    });
    assert_eq!(kind(&early), (CREATION_UNCONFIRMED, false, false));
    let silent = with(listing(deleted(recorded(Some("silent"))), &["silent"]), |facts| {
        facts.object.record = record(OTHER, &[]);
    });
    assert_eq!(kind(&silent), (STILL_IN_BMC, true, true));
    let part = with(deleted(recorded(Some("own"))), |facts| {
        facts.list = Reading::Known(List {
            ids: Vec::new(),
            is_complete: false,
        });
    });
    assert_eq!(kind(&part), (STILL_IN_BMC, true, true));
}

#[test]
fn nothing_is_deleted_while_the_object_or_its_host_moves_or_is_paused() {
    type Change = fn(&mut Facts);
    let table: [(Change, Reason); 4] = [
        (|facts| facts.object.is_moving = true, MOVING),
        (|facts| facts.object.is_paused = true, PAUSED),
        (|facts| facts.host = host(Some(Bar::Paused)), HOST_PAUSED),
        (|facts| facts.host = host(Some(Bar::Moving)), MOVING),
    ];
    for id in [None, Some("own")] {
        for (change, reason) in table {
            let facts = with(listing(deleted(recorded(id)), &["own"]), change);
            assert_eq!(kind(&facts), (reason, false, false));
            let lasting = with(facts, |facts| facts.attempts.waiting = Some((reason, PATIENCE)));
            assert_eq!(kind(&lasting), (reason, true, false));
        }
        for bar in [Bar::Deleted, Bar::Detached, Bar::Unregistered] {
            let facts = with(listing(deleted(recorded(id)), &["own"]), |facts| {
                facts.host = host(Some(bar))
            });
            assert_eq!(plan(&facts), Step::Delete(text("own")), "the node exists: {bar:?}");
        }
    }
}

/// The webhooks of the Go manager may have been away, or of another release.
#[test]
fn subscription_that_exists_is_kept_and_deleted_whatever_its_spec() {
    let invalid = |facts: &mut Facts| facts.object.problem = Some(text("spec.destination: it has no path"));
    let kept = with(recorded(Some("own")), invalid);
    assert_eq!(plan(&kept), Step::Done);
    let left = with(kept.clone(), |facts| facts.object.record = None);
    assert!(matches!(plan(&left), Step::Record(_)), "of the Go manager");
    for facts in [kept, left] {
        let deleted = listing(deleted(facts), &["own"]);
        assert_eq!(plan(&deleted), Step::Delete(text("own")));
    }
    for host in ["", "a/../b"] {
        let unnamed = with(deleted(recorded(Some("own"))), |facts| {
            facts.object.wanted.host = text(host)
        });
        assert_eq!(kind(&unnamed), (STATE_UNKNOWN, true, true));
        assert!(wait(&unnamed).message.contains("by hand"));
    }
}

/// Another cluster may serve the node.
#[test]
fn nothing_is_deleted_from_the_bmc_of_a_host_that_is_absent() {
    let absent = |absent_for, listed: &[&str]| {
        with(listing(deleted(recorded(Some("own"))), listed), |facts| {
            facts.host = Reading::Known(HostView::Absent);
            facts.attempts.host_absent_for = absent_for;
        })
    };
    assert_eq!(
        kind(&absent(HOST_GRACE - SECOND, &["own"])),
        (HOST_ABSENT, false, false)
    );
    assert_eq!(kind(&absent(HOST_GRACE, &["own"])), (STILL_IN_BMC, true, true));
    assert_eq!(plan(&absent(HOST_GRACE, &[])), RELEASE);
    let without_node = |facts: Facts| with(facts, |facts| facts.node = Reading::Known(NodeView::Absent));
    assert_eq!(plan(&without_node(absent(HOST_GRACE, &[]))), RELEASE);
    let detached = without_node(deleted(recorded(Some("own"))));
    assert_eq!(kind(&detached), (NODE_ABSENT, true, true));
}
