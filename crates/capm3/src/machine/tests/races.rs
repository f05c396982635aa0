//! Scripted races that random histories rarely reach, each with the rule that prevents the failure.

use metal3_api::infrastructure::names::CHOSEN_HOST_ANNOTATION;
use serde_json::json;

use super::api_server::{ObjectKind, associated, text};
use super::simulation::{Simulation, machine_document, without};
use crate::machine::rules::Rules;

/// Runs a race and returns the violations.
type Race = fn(Rules) -> Vec<String>;

/// A machine with its own metadata. `image` distinguishes machines of the same name.
fn make_plain(simulation: &mut Simulation, name: &str, image: &str) {
    let mut machine = machine_document();
    machine["spec"]["dataTemplate"].take();
    machine["spec"]["metaData"] = json!({ "name": "own" });
    machine["spec"]["image"]["url"] = json!(image);
    simulation.server.create(ObjectKind::Machine, name, machine).unwrap();
}

fn delete(simulation: &mut Simulation, name: &str) {
    simulation.server.delete(ObjectKind::Machine, name, None).unwrap();
}

/// The user removes the finalizers of a machine in deletion.
fn force(simulation: &mut Simulation, name: &str) {
    delete(simulation, name);
    let bare = json!({ "metadata": { "finalizers": null } });
    simulation.server.patch(ObjectKind::Machine, name, bare).unwrap();
}

fn violations(mut simulation: Simulation) -> Vec<String> {
    simulation.settle();
    let final_violations = simulation.final_violations();
    simulation.server.wrong.into_iter().chain(final_violations).collect()
}

/// One replica records a machine's choice; the other replica's cache still shows the host as claimed.
fn one_replica_chooses(rules: Rules, make: fn(&mut Simulation, &str)) -> (Simulation, String) {
    let mut simulation = Simulation::new(rules, 2, 2);
    make_plain(&mut simulation, "m0", "http://192.0.2.9/a");
    simulation.reconcile_everywhere(0, "m0");
    simulation.refresh_all(1);
    let taken = associated(simulation.server.get(ObjectKind::Machine, "m0").unwrap()).to_owned();
    delete(&mut simulation, "m0");
    simulation.reconcile_everywhere(0, "m0");
    simulation.refresh_all(0);
    // The choice depends on the machine's UID: repeat until one chooses this host.
    for _ in 0..20 {
        make(&mut simulation, "m1");
        simulation.refresh(0, ObjectKind::Machine);
        // It records its choice and is delayed.
        simulation.begin_and_make(0, "m1", 1);
        let machine = simulation.server.get(ObjectKind::Machine, "m1").unwrap();
        if machine["metadata"]["annotations"][CHOSEN_HOST_ANNOTATION] == json!(taken) {
            break;
        }
        force(&mut simulation, "m1");
    }
    simulation.refresh(1, ObjectKind::Machine);
    (simulation, taken)
}

/// A machine is deleted, and the replica that releases its data has not observed the claim of its host.
fn data_released_with_an_outdated_host(rules: Rules) -> Vec<String> {
    let mut simulation = Simulation::new(rules, 2, 1);
    simulation.make("m0");
    simulation.refresh_all(1);
    simulation.reconcile_everywhere(0, "m0");
    delete(&mut simulation, "m0");
    simulation.refresh(1, ObjectKind::Machine);
    simulation.refresh(1, ObjectKind::Claim);
    simulation.reconcile_until_idle(1, "m0");
    violations(simulation)
}

/// The other replica chooses another host, and both claim their choice.
fn surplus(rules: Rules) -> Vec<String> {
    let (mut simulation, taken) = one_replica_chooses(rules, Simulation::make);
    simulation.reconcile_until_idle(1, "m1");
    let other = associated(simulation.server.get(ObjectKind::Machine, "m1").unwrap());
    assert!(!other.is_empty() && other != taken, "{other}");
    simulation.reconcile(0, "m1");
    violations(simulation)
}

/// Both replicas stop after claiming a host each, before the machine records one; both continue with their claim.
fn two_hosts_run(rules: Rules) -> Vec<String> {
    let (mut simulation, _) = one_replica_chooses(rules, |simulation, name| {
        make_plain(simulation, name, "http://192.0.2.9/a")
    });
    simulation.begin_and_make(1, "m1", 2);
    simulation.reconcile(0, "m1");
    for replica in [0, 1] {
        simulation.refresh(replica, ObjectKind::Machine);
    }
    // Both observe the machine before either writes.
    simulation.begin_and_make(1, "m1", 0);
    simulation.begin_and_make(0, "m1", 3);
    (0..3).for_each(|_| simulation.reconcile(1, "m1"));
    violations(simulation)
}

/// A machine of the same name is created after the first was removed by force before its host was provisioned.
fn data_of_the_earlier_machine(rules: Rules) -> Vec<String> {
    let mut simulation = Simulation::new(rules, 1, 1);
    simulation.make("m0");
    simulation.refresh_all(0);
    simulation.reconcile_until_idle(0, "m0");
    simulation.reconcile_data("m0");
    simulation.reconcile_data("m0");
    force(&mut simulation, "m0");
    simulation.make("m0");
    simulation.refresh_all(0);
    simulation.reconcile_until_idle(0, "m0");
    violations(simulation)
}

/// A replica that still observes the earlier machine of the name observes the host of the later one.
fn provisioned_with_an_outdated_cache(rules: Rules) -> Vec<String> {
    let mut simulation = Simulation::new(rules, 2, 1);
    make_plain(&mut simulation, "m0", "http://192.0.2.9/a");
    simulation.refresh_all(0);
    // The choice, the host, its Secret, and the record in the machine.
    simulation.begin_and_make(0, "m0", 4);
    assert_eq!(
        associated(simulation.server.get(ObjectKind::Machine, "m0").unwrap()),
        "h0"
    );
    simulation.refresh_all(1);
    delete(&mut simulation, "m0");
    simulation.reconcile_everywhere(0, "m0");
    make_plain(&mut simulation, "m0", "http://192.0.2.9/b");
    simulation.refresh_all(0);
    simulation.begin_and_make(0, "m0", 4);
    simulation.refresh(1, ObjectKind::Host);
    simulation.reconcile_until_idle(1, "m0");
    violations(simulation)
}

/// The machine is changed while it runs, as by a user.
fn changed_while_it_runs(rules: Rules) -> Vec<String> {
    let mut simulation = Simulation::new(rules, 1, 1);
    make_plain(&mut simulation, "m0", "http://192.0.2.9/a");
    simulation.reconcile_everywhere(0, "m0");
    let change = json!({ "spec": { "image": { "url": "http://192.0.2.9/b" } } });
    simulation.server.patch(ObjectKind::Machine, "m0", change).unwrap();
    simulation.refresh_all(0);
    simulation.reconcile_until_idle(0, "m0");
    violations(simulation)
}

/// A replica that still observes the earlier machine in deletion observes the host that runs the later one.
fn deprovisioned_with_an_outdated_cache(rules: Rules) -> Vec<String> {
    let mut simulation = Simulation::new(rules, 2, 1);
    simulation.make("m0");
    simulation.reconcile_everywhere(0, "m0");
    delete(&mut simulation, "m0");
    simulation.refresh_all(1);
    simulation.reconcile_everywhere(0, "m0");
    simulation.make("m0");
    simulation.reconcile_everywhere(0, "m0");
    let host = simulation.server.get(ObjectKind::Host, "h0").unwrap();
    assert_eq!(text(host, "/status/provisioning/state"), "provisioned");
    simulation.refresh(1, ObjectKind::Host);
    simulation.reconcile_until_idle(1, "m0");
    violations(simulation)
}

/// Disables a rule.
type Disable = fn(&mut Rules);

/// Each rule, the switch that disables it, the race, and the failure without the rule.
const RACES: [(&str, Disable, Race, &str); 7] = [
    (
        "drop_surplus",
        |rules| rules.drop_surplus = false,
        surplus,
        "m1 keeps more than one host",
    ),
    (
        "associate_first",
        |rules| rules.associate_first = false,
        two_hosts_run,
        "m1 was put on ",
    ),
    (
        "own_data",
        |rules| rules.own_data = false,
        data_of_the_earlier_machine,
        "h0 got data that are not those of m0",
    ),
    (
        "confirm_provision",
        |rules| rules.confirm_provision = false,
        provisioned_with_an_outdated_cache,
        "h0 was provisioned with the spec of an earlier m0",
    ),
    (
        "provision_once",
        |rules| rules.provision_once = false,
        changed_while_it_runs,
        "h0 was changed while it ran",
    ),
    (
        "confirm_release",
        |rules| rules.confirm_release = false,
        deprovisioned_with_an_outdated_cache,
        "h0 was deprovisioned under m0, which is not in deletion",
    ),
    (
        "confirm_freed",
        |rules| rules.confirm_freed = false,
        data_released_with_an_outdated_host,
        "the data of m0 were released",
    ),
];

#[test]
fn each_scripted_race_succeeds_and_fails_without_its_rule() {
    for (name, disable, race, wrong) in RACES {
        assert_eq!(race(Rules::ALL), Vec::<String>::new(), "with all rules, for {name}");
        let found = race(without(disable));
        assert!(
            found.iter().any(|one| one.starts_with(wrong)),
            "without {name}: {found:?}"
        );
    }
}
