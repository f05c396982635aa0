//! The condition about the data templates of deployment zones.

use super::*;
use crate::cluster::zones::observe;

/// A Metal3Cluster with two zones that have a template, and one that has none.
fn zoned() -> Metal3Cluster {
    let zone = |name: &str| json!({ "name": name, "dataTemplate": { "name": format!("net-{name}") } });
    object(json!({ "spec": { "deploymentZones": [zone("a"), zone("b"), { "name": "c" }] } }))
}

fn decide_with(object: &Metal3Cluster, missing: &[&str], unreadable: &[&str]) -> Plan {
    let find = |name: &str| match name {
        _ if missing.contains(&name) => Observed::Absent,
        _ if unreadable.contains(&name) => Observed::Unknown(UnknownReason::Unreadable("odd".to_owned())),
        _ => Observed::Present(()),
    };
    let cluster = cluster(json!({}));
    plan(&Facts {
        zone_templates: observe(object, find),
        ..facts(object, Observed::Present(&cluster))
    })
}

#[test]
fn missing_data_template_of_a_zone_is_named_with_the_remedy_until_it_exists() {
    let object = zoned();
    let missing = decide_with(&object, &["net-b"], &["net-a"]);
    assert_eq!(
        state(&missing, "DeploymentZonesReady"),
        (ConditionStatus::False, "DataTemplateNotFound")
    );
    assert_eq!(
        condition(&missing, "DeploymentZonesReady").message,
        "spec.deploymentZones[b].dataTemplate: Metal3DataTemplate net-b does not exist; create it, or correct the name"
    );
    assert_eq!(
        provisioned(&missing),
        Some(true),
        "the Metal3Cluster itself is provisioned"
    );
    let unreadable = decide_with(&after(&object, &missing), &[], &["net-a"]);
    assert_eq!(
        state(&unreadable, "DeploymentZonesReady"),
        (ConditionStatus::Unknown, "DataTemplateUnreadable")
    );
    let complete = decide_with(&after(&object, &unreadable), &[], &[]);
    assert_eq!(
        state(&complete, "DeploymentZonesReady"),
        (ConditionStatus::True, "DataTemplatesFound")
    );
    let done = after(&object, &complete);
    assert_eq!(decide_with(&done, &[], &[]), Plan::default());
    let mut without = done.clone();
    without.spec.deployment_zones.clear();
    let removed = decide_with(&without, &[], &[]);
    let mut left = status(&removed).conditions.iter();
    assert!(!left.any(|one| one.type_ == "DeploymentZonesReady"));
}

#[test]
fn cluster_without_data_templates_in_zones_has_no_such_condition() {
    for zones in [
        json!([]),
        json!([{ "name": "a" }]),
        json!([{ "name": "a", "dataTemplate": { "name": "" } }]),
    ] {
        let object = object(json!({ "spec": { "deploymentZones": zones } }));
        let plan = decide_with(&object, &[], &[]);
        let mut all = status(&plan).conditions.iter();
        assert!(!all.any(|one| one.type_ == "DeploymentZonesReady"), "{zones}");
    }
}

/// A user decides how many zones there are, and how long their names.
#[test]
fn message_about_a_hundred_zones_fits_the_schema() {
    let zone = |at: usize| json!({ "name": format!("{at:0>256}"), "dataTemplate": { "name": format!("{at:0>253}") } });
    let object = object(json!({ "spec": { "deploymentZones": (0..100).map(zone).collect::<Vec<_>>() } }));
    let names: Vec<String> = (0..100).map(|at| format!("{at:0>253}")).collect();
    let missing: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = decide_with(&object, &missing, &[]);
    let message = &condition(&plan, "DeploymentZonesReady").message;
    assert!(message.len() <= 32_768 && message.ends_with("and 92 more"), "{message}");
}
