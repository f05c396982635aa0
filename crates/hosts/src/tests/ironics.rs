//! Which Ironic serves a host: its record, its reports, and that nothing is sent without one.

use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::{asked, available, deleting, provisioned, registering};
use crate::action::Action;
use crate::ironics::{Elsewhere, Located, Name, Names};

const RECORD: &str = "baremetalhost.metal3.io/registered-in";

fn among_two(fixture: Fixture, (wanted, recorded): (&str, &str)) -> Fixture {
    let label = Some(wanted).filter(|name| !name.is_empty());
    let fixture = fixture.host(json!({ "metadata": { "labels": { "baremetalhost.metal3.io/ironic": label } } }));
    let fixture = match recorded {
        "" => fixture,
        recorded => fixture.annotated(RECORD, recorded),
    };
    fixture.with(|fixture| fixture.ironics = Names::one("a").with(["b"]))
}

fn located(fixture: Fixture, located: Located) -> Fixture {
    fixture.with(|fixture| fixture.located = located)
}

fn orders(fixture: &Fixture) -> usize {
    let plan = fixture.plan();
    let mut all = plan.actions.iter();
    let is_order = |action: &&Action| matches!(action, Action::Ironic(_));
    all.by_ref().filter(is_order).count()
}

#[test]
fn host_without_an_ironic_gets_no_order_and_says_why() {
    let away = || Observed::Unknown(UnknownReason::Unreadable("Ironic b does not respond".to_owned()));
    for (given, fixture, reason) in [
        ("unknown", among_two(available(), ("x", "a")), "IronicUnknown"),
        ("unknown, new", among_two(registering(), ("x", "")), "IronicUnknown"),
        (
            "not configured",
            among_two(asked(), ("", "gone")),
            "IronicNotConfigured",
        ),
        (
            "not configured, deleted",
            among_two(deleting(), ("", "gone")),
            "IronicNotConfigured",
        ),
        (
            "not searched",
            located(among_two(provisioned(), ("", "")), away()),
            "NodeNotLocated",
        ),
    ] {
        let fixture = fixture.node("available").live();
        let summary = fixture.summary();
        assert!(summary.contains(&format!("withheld: {reason}")), "{given}: {summary}");
        assert_eq!(orders(&fixture), 0, "{given}");
    }
}

#[test]
fn the_ironic_of_a_host_is_recorded_before_the_first_request() {
    let found = Observed::Present(Name::from("b"));
    for (given, fixture, expected) in [
        (
            "new",
            among_two(Fixture::new(""), ("b", "")),
            "changes the host, replan",
        ),
        ("searched", among_two(provisioned(), ("", "")), "reads Ironic, replan"),
        (
            "found",
            located(among_two(provisioned(), ("", "")), found.clone()),
            "changes the host, replan",
        ),
        (
            "found, deleted",
            located(among_two(deleting(), ("", "")), found),
            "changes the host, replan",
        ),
    ] {
        assert_eq!(fixture.summary(), expected, "{given}");
        let names_one = |action: Action| match action {
            Action::PatchHost(patch) => patch.into_document().to_string().contains(RECORD),
            _ => false,
        };
        let written = fixture.plan().actions.into_iter().any(names_one);
        assert_eq!(written, given != "searched", "{given}");
    }
    let alone = Fixture::new("").summary();
    assert_eq!(alone, among_two(Fixture::new(""), ("", "a")).summary());
}

#[test]
fn refused_label_changes_nothing_but_the_report() {
    let served = |wanted: &str| among_two(asked(), (wanted, "a")).node("available").live();
    let (kept, refused) = (served("a"), served("b"));
    assert_eq!(orders(&kept), orders(&refused));
    assert!(
        refused.summary().contains("withheld: IronicChangeRefused"),
        "{}",
        refused.summary()
    );
}

#[test]
fn search_without_a_result_records_no_ironic_while_a_creation_may_begin() {
    for given in [registering(), deleting()] {
        let fixture = located(among_two(given, ("b", "")), Observed::Absent);
        assert_eq!(fixture.summary(), "changes the host, replan");
        assert_eq!(fixture.creation_left(40).summary(), "waits for a time");
    }
    let found = located(among_two(registering(), ("b", "")), Observed::Present(Name::from("a")));
    assert_eq!(found.creation_left(40).summary(), "changes the host, replan");
}

fn elsewhere(fixture: Fixture, elsewhere: Elsewhere) -> Fixture {
    among_two(fixture, ("", "a")).with(|fixture| fixture.elsewhere = elsewhere)
}

/// Whether the finalizer stays.
fn is_kept(fixture: &Fixture) -> bool {
    let after = fixture.after(&fixture.plan());
    after
        .metadata
        .finalizers
        .is_some_and(|finalizers| !finalizers.is_empty())
}

#[test]
fn host_whose_node_another_ironic_has_gets_no_order_and_is_kept() {
    for (given, fixture) in [
        ("in use", provisioned().no_node()),
        ("with a node here, too", provisioned().node("active").live()),
        ("registering", registering().no_node()),
        ("deleted", deleting().no_node()),
    ] {
        let fixture = elsewhere(fixture, Elsewhere::Node);
        let summary = fixture.summary();
        assert!(summary.contains("withheld: IronicMisplaced"), "{given}: {summary}");
        assert!(orders(&fixture) == 0 && is_kept(&fixture), "{given}");
    }
}

#[test]
fn node_is_created_only_while_no_other_ironic_may_have_it() {
    for (given, id, began_elsewhere, created) in [
        (Elsewhere::Nothing, "1-2", false, 1),
        // A new host does not wait for an Ironic that is away.
        (Elsewhere::Unknown, "", false, 1),
        (Elsewhere::Unknown, "1-2", false, 0),
        (Elsewhere::Unknown, "", true, 0),
        (Elsewhere::Machine, "", false, 0),
        (Elsewhere::Same, "", false, 0),
    ] {
        let fixture = registering().no_node().status(json!({ "provisioning": { "ID": id } }));
        let fixture = elsewhere(fixture, given).with(|fixture| fixture.began_elsewhere = began_elsewhere);
        assert_eq!(orders(&fixture), created, "{given:?} {id:?}: {}", fixture.summary());
    }
}

#[test]
fn node_is_not_created_while_an_earlier_creation_may_begin_elsewhere() {
    let given = elsewhere(registering().no_node(), Elsewhere::Nothing);
    assert_eq!(orders(&given.clone().creation_left(40)), 0);
    let alone = registering().no_node();
    assert_eq!((orders(&given), orders(&alone.creation_left(40))), (1, 1));
}

#[test]
fn host_is_given_up_without_a_node_unless_two_names_lead_to_its_ironic() {
    for (given, kept) in [
        (Elsewhere::Nothing, false),
        (Elsewhere::Unknown, false),
        (Elsewhere::Same, true),
    ] {
        let fixture = elsewhere(deleting().no_node(), given);
        assert_eq!(is_kept(&fixture), kept, "{given:?}: {}", fixture.summary());
    }
}
