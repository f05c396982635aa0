//! Rules about definitions and webhooks.

use super::*;

fn definition(writer: &str) -> Crd {
    Crd {
        name: "metal3clustertemplates.infrastructure.cluster.x-k8s.io".to_owned(),
        stored: vec!["v1beta2".to_owned()],
        has_webhook: true,
        writers: vec![writer.to_owned()],
    }
}

#[test]
fn definitions_of_another_writer_need_a_forced_apply() {
    for direction in [Direction::ToThisProgram, Direction::Back(Series::new(1, 14))] {
        let mut facts = facts(direction);
        facts.crds.push(definition("clusterctl"));
        let found = about(facts, "CustomResourceDefinitions");
        assert_eq!(found.len(), 1, "{found:?}");
        let (decision, text) = &found[0];
        assert_eq!(*decision, Decision::Go);
        for part in ["by clusterctl", "--force-conflicts", "clusterctl upgrade apply"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn definitions_of_other_projects_are_not_counted() {
    let mut facts = facts(Direction::ToThisProgram);
    for name in ["clusters.cluster.x-k8s.io", "hosts.notmetal3.io"] {
        facts.crds.push(Crd {
            name: name.to_owned(),
            ..definition("clusterctl")
        });
    }
    assert!(about(facts, "CustomResourceDefinitions").is_empty());
}

/// A cluster that was installed without its definitions, or lost some.
#[test]
fn this_program_without_definitions_that_it_waits_for_is_a_reason_to_stop() {
    const HOSTS: [&str; 2] = ["baremetalhosts.metal3.io", "hardwaredata.metal3.io"];
    const POOLS: &str = "ippools.ipam.metal3.io";
    let found = |name: &str, arguments: &[&str], is_ours: bool, there: &[&str]| {
        let crd = |name: &&str| Crd {
            name: (*name).to_owned(),
            ..Crd::default()
        };
        let mut facts = facts(Direction::ToThisProgram);
        facts.required = BTreeMap::from([
            ("hosts", HOSTS.map(str::to_owned).to_vec()),
            ("ipam", vec![POOLS.to_owned()]),
        ]);
        facts.deployments = vec![deployment("x", name, "r/capm3:v1.15.0", arguments, is_ours)];
        facts.crds = there.iter().map(crd).collect();
        let mut about = about(facts, "Deployment");
        about.retain(|(_, text)| text.contains("definitions"));
        about
    };
    let (one, all) = ("baremetal-operator-controller-manager", "metal3-controller-manager");
    assert_eq!(found(one, &[], true, &HOSTS), [], "no other kind is waited for");
    assert_eq!(
        found(one, &[], false, &[]),
        [],
        "a Go manager's come with the components"
    );
    assert_eq!(found(all, &["--controllers=capm3,hosts"], true, &HOSTS), []);
    for (name, arguments, there, missing) in [
        (one, &[][..], &HOSTS[..1], HOSTS[1]),
        (all, &[][..], &HOSTS[..], POOLS),
        (all, &["--controllers=ipam"][..], &[][..], POOLS),
    ] {
        let found = found(name, arguments, true, there);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Decision::No);
        assert!(
            found[0].1.contains(missing) && found[0].1.contains("components"),
            "{found:?}"
        );
    }
}

#[test]
fn conversion_that_the_go_manager_lacks_is_taken_off_on_the_way_back_only() {
    const KIND: &str = "CustomResourceDefinition metal3clustertemplates";
    let mut there = facts(Direction::ToThisProgram);
    there.crds.push(definition("clusterctl"));
    assert!(about(there, KIND).is_empty());
    let mut back = facts(Direction::Back(Series::new(1, 14)));
    back.crds.push(definition("clusterctl"));
    let found = about(back, KIND);
    assert!(
        found[0].1.contains("kubectl patch crd metal3clustertemplates"),
        "{found:?}"
    );
    let mut without = facts(Direction::Back(Series::new(1, 14)));
    without.crds.push(Crd {
        has_webhook: false,
        ..definition("clusterctl")
    });
    assert!(about(without, KIND).is_empty());
}

#[test]
fn webhooks_of_hosts_that_the_go_manager_lacks_are_deleted_on_the_way_back() {
    const KIND: &str = "ValidatingWebhookConfiguration";
    const OF_HOSTS: &str = "baremetal-operator-controller-manager";
    let with = |direction, name, ours| {
        let mut facts = facts(direction);
        facts.deployments = vec![deployment(
            "baremetal-operator-system",
            name,
            "capm3:v1.15.0",
            &[],
            ours,
        )];
        about(facts, KIND)
    };
    let back = Direction::Back(Series::new(1, 14));
    for name in [OF_HOSTS, "metal3-controller-manager"] {
        let found = with(back, name, true);
        assert!(
            found[0]
                .1
                .contains("kubectl delete --ignore-not-found validatingwebhookconfiguration baremetal-operator"),
            "{found:?}"
        );
    }
    assert!(with(back, "ipam-controller-manager", true).is_empty());
    assert!(with(back, OF_HOSTS, false).is_empty());
    assert!(with(Direction::ToThisProgram, OF_HOSTS, false).is_empty());
}
