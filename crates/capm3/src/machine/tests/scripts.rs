//! Histories that are written down: races that are too rare to be drawn, each with the rule that settles it.

use metal3_api::infrastructure::names::CHOSEN_HOST_ANNOTATION;
use serde_json::json;

use super::server::{Sort, associated, text};
use super::world::{World, machine_document};
use crate::machine::rules::Rules;

/// What is played, and what is wrong in the end.
type Script = fn(Rules) -> Vec<String>;

/// A machine that brings its own metadata and needs nobody to render any. `image` tells it from others of its name.
fn make_plain(world: &mut World, name: &str, image: &str) {
    let mut machine = machine_document();
    machine["spec"]["dataTemplate"].take();
    machine["spec"]["metaData"] = json!({ "name": "own" });
    machine["spec"]["image"]["url"] = json!(image);
    world.server.create(Sort::Machine, name, machine).unwrap();
}

fn delete(world: &mut World, name: &str) {
    world.server.delete(Sort::Machine, name, None).unwrap();
}

/// Somebody takes the finalizers off a machine that goes.
fn force(world: &mut World, name: &str) {
    delete(world, name);
    let bare = json!({ "metadata": { "finalizers": null } });
    world.server.patch(Sort::Machine, name, bare).unwrap();
}

fn ended(mut world: World) -> Vec<String> {
    world.settle();
    let unrested = world.unrested();
    world.server.wrong.into_iter().chain(unrested).collect()
}

/// One replica says which host the machine takes; the other still sees that host as taken.
fn one_of_two_chooses(rules: Rules, make: fn(&mut World, &str)) -> (World, String) {
    let mut world = World::new(rules, 2, 2);
    make_plain(&mut world, "m0", "http://192.0.2.9/a");
    world.serve(0, "m0");
    world.look(1);
    let taken = associated(world.server.get(Sort::Machine, "m0").unwrap()).to_owned();
    delete(&mut world, "m0");
    world.serve(0, "m0");
    world.look(0);
    // Which host a machine chooses follows from its UID: until one chooses this host.
    for _ in 0..20 {
        make(&mut world, "m1");
        world.refresh(0, Sort::Machine);
        // It says what it takes, and takes its time.
        world.begin_and_make(0, "m1", 1);
        let machine = world.server.get(Sort::Machine, "m1").unwrap();
        if machine["metadata"]["annotations"][CHOSEN_HOST_ANNOTATION] == json!(taken) {
            break;
        }
        force(&mut world, "m1");
    }
    world.refresh(1, Sort::Machine);
    (world, taken)
}

/// A machine goes, and whoever lets its data go has not seen yet that a host was taken for it.
fn data_by_an_old_view_of_the_host(rules: Rules) -> Vec<String> {
    let mut world = World::new(rules, 2, 1);
    world.make("m0");
    world.look(1);
    world.serve(0, "m0");
    delete(&mut world, "m0");
    world.refresh(1, Sort::Machine);
    world.refresh(1, Sort::Claim);
    world.work_on(1, "m0");
    ended(world)
}

/// The other chooses another, and both carry out what they chose.
fn surplus(rules: Rules) -> Vec<String> {
    let (mut world, taken) = one_of_two_chooses(rules, World::make);
    world.work_on(1, "m1");
    let other = associated(world.server.get(Sort::Machine, "m1").unwrap());
    assert!(!other.is_empty() && other != taken, "{other}");
    world.work(0, "m1");
    ended(world)
}

/// Both die when they have taken a host each, before the machine says which it has; and both go on with what they took.
fn two_run(rules: Rules) -> Vec<String> {
    let (mut world, _) = one_of_two_chooses(rules, |world, name| make_plain(world, name, "http://192.0.2.9/a"));
    world.begin_and_make(1, "m1", 2);
    world.work(0, "m1");
    for replica in [0, 1] {
        world.refresh(replica, Sort::Machine);
    }
    // Both look at the machine before either writes.
    world.begin_and_make(1, "m1", 0);
    world.begin_and_make(0, "m1", 3);
    (0..3).for_each(|_| world.work(1, "m1"));
    ended(world)
}

/// A machine of the same name comes after one that was taken away by force before its host ran.
fn data_of_the_earlier(rules: Rules) -> Vec<String> {
    let mut world = World::new(rules, 1, 1);
    world.make("m0");
    world.look(0);
    world.work_on(0, "m0");
    world.data_works("m0");
    world.data_works("m0");
    force(&mut world, "m0");
    world.make("m0");
    world.look(0);
    world.work_on(0, "m0");
    ended(world)
}

/// A replica that still sees the earlier machine of the name sees the host as the later one has it.
fn told_by_an_old_view(rules: Rules) -> Vec<String> {
    let mut world = World::new(rules, 2, 1);
    make_plain(&mut world, "m0", "http://192.0.2.9/a");
    world.look(0);
    // The choice, the host, its Secret, and the word that it is the machine's.
    world.begin_and_make(0, "m0", 4);
    assert_eq!(associated(world.server.get(Sort::Machine, "m0").unwrap()), "h0");
    world.look(1);
    delete(&mut world, "m0");
    world.serve(0, "m0");
    make_plain(&mut world, "m0", "http://192.0.2.9/b");
    world.look(0);
    world.begin_and_make(0, "m0", 4);
    world.refresh(1, Sort::Host);
    world.work_on(1, "m0");
    ended(world)
}

/// The machine is changed while it runs, as a template's controller or a person may do.
fn changed_while_it_runs(rules: Rules) -> Vec<String> {
    let mut world = World::new(rules, 1, 1);
    make_plain(&mut world, "m0", "http://192.0.2.9/a");
    world.serve(0, "m0");
    let change = json!({ "spec": { "image": { "url": "http://192.0.2.9/b" } } });
    world.server.patch(Sort::Machine, "m0", change).unwrap();
    world.look(0);
    world.work_on(0, "m0");
    ended(world)
}

/// A replica that still sees the earlier machine of the name go sees the host as the later one runs on it.
fn taken_by_an_old_view(rules: Rules) -> Vec<String> {
    let mut world = World::new(rules, 2, 1);
    world.make("m0");
    world.serve(0, "m0");
    delete(&mut world, "m0");
    world.look(1);
    world.serve(0, "m0");
    world.make("m0");
    world.serve(0, "m0");
    let host = world.server.get(Sort::Host, "h0").unwrap();
    assert_eq!(text(host, "/status/provisioning/state"), "provisioned");
    world.refresh(1, Sort::Host);
    world.work_on(1, "m0");
    ended(world)
}

const ALL: Rules = Rules::ALL;

/// Each rule, what goes wrong without it, and where.
const SCRIPTS: [(&str, Rules, Script, &str); 7] = [
    (
        "drop_surplus",
        Rules {
            drop_surplus: false,
            ..ALL
        },
        surplus,
        "m1 keeps more than one host",
    ),
    (
        "associate_first",
        Rules {
            associate_first: false,
            ..ALL
        },
        two_run,
        "m1 was put on ",
    ),
    (
        "own_data",
        Rules { own_data: false, ..ALL },
        data_of_the_earlier,
        "h0 got data that are not those of m0",
    ),
    (
        "confirm_provision",
        Rules {
            confirm_provision: false,
            ..ALL
        },
        told_by_an_old_view,
        "h0 was told to run what an earlier m0 wanted",
    ),
    (
        "provision_once",
        Rules {
            provision_once: false,
            ..ALL
        },
        changed_while_it_runs,
        "h0 was told something else while it ran",
    ),
    (
        "confirm_release",
        Rules {
            confirm_release: false,
            ..ALL
        },
        taken_by_an_old_view,
        "h0 was deprovisioned under m0, which lives",
    ),
    (
        "confirm_freed",
        Rules {
            confirm_freed: false,
            ..ALL
        },
        data_by_an_old_view_of_the_host,
        "the data of m0 were given back",
    ),
];

#[test]
fn each_written_history_ends_well_and_goes_wrong_without_its_rule() {
    for (name, rules, script, wrong) in SCRIPTS {
        assert_eq!(script(ALL), Vec::<String>::new(), "with all rules, for {name}");
        let found = script(rules);
        assert!(
            found.iter().any(|one| one.starts_with(wrong)),
            "without {name}: {found:?}"
        );
    }
}
