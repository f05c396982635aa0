use std::collections::BTreeMap;

use metal3_explain::example;
use serde_json::json;

use super::*;

/// All objects of the example, by their kinds, as watches list them.
fn example() -> Shared {
    let shared = Shared::default();
    let mut kinds: BTreeMap<ObjectId, Vec<Value>> = BTreeMap::new();
    for object in example::objects() {
        let group = text(&object, "/apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned();
        let kind = ObjectId::foreign(&group, text(&object, "/kind"), "");
        kinds.entry(kind).or_default().push(object);
    }
    for (kind, objects) in kinds {
        shared.change(|all| all.replace(&kind, None, objects.clone()));
    }
    shared
}

fn applied(fleet: &mut Fleet, shared: &Shared) -> (Vec<String>, Vec<String>) {
    let delta = fleet.apply(shared, &shared.take_changed());
    let rows = delta
        .rows
        .iter()
        .map(|row| format!("{}: {} ({})", row.host.name, row.why, row.who.as_str()));
    (rows.collect(), delta.gone.into_iter().map(|(_, name)| name).collect())
}

#[test]
fn row_says_who_acts_in_the_words_of_the_explanation() {
    let (shared, mut fleet) = (example(), Fleet::default());
    let (rows, _) = applied(&mut fleet, &shared);
    assert_eq!(
        rows,
        [
            "rack-1-u7: Registration failed (hardware)",
            "rack-1-u8:  (nothing to do)"
        ]
    );
    let row = serde_json::to_value(fleet.rows().next().unwrap().as_ref()).unwrap();
    assert_eq!(
        (&row["result"], &row["reason"]),
        (&json!("blocked"), &json!("RegistrationError"))
    );
    assert_eq!(row["labels"]["rack"], "1");
}

#[test]
fn only_rows_that_differ_are_sent() {
    let (shared, mut fleet) = (example(), Fleet::default());
    applied(&mut fleet, &shared);
    let kind = ObjectId::of::<BareMetalHost>("");
    let host = shared.read(|objects| objects.get(&kind, "lab", "rack-1-u8")).unwrap();
    let mut host = Value::clone(&host);
    host["metadata"]["resourceVersion"] = json!("99");
    shared.change(|objects| objects.put(&kind, host.clone()));
    assert_eq!(applied(&mut fleet, &shared), (Vec::new(), Vec::new()));
    shared.change(|objects| objects.remove(&kind, &host));
    assert_eq!(applied(&mut fleet, &shared), (Vec::new(), vec!["rack-1-u8".to_owned()]));
}

/// A host that its machine pauses waits for the machine: its row follows the machine.
#[test]
fn row_follows_the_other_objects_that_its_explanation_read() {
    let (shared, mut fleet) = (example(), Fleet::default());
    let kind = ObjectId::of::<BareMetalHost>("");
    let host = shared.read(|objects| objects.get(&kind, "lab", "rack-1-u8")).unwrap();
    let mut host = Value::clone(&host);
    host["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/paused": "metal3.io/capm3" });
    shared.change(|objects| objects.put(&kind, host));
    applied(&mut fleet, &shared);
    let machines = ObjectId::foreign("infrastructure.cluster.x-k8s.io", "Metal3Machine", "");
    let machine = shared
        .read(|objects| objects.get(&machines, "lab", "edge-md-1"))
        .unwrap();
    shared.change(|objects| objects.remove(&machines, &machine));
    let (rows, _) = applied(&mut fleet, &shared);
    assert!(rows.iter().any(|row| row.starts_with("rack-1-u8: ")), "{rows:?}");
}

#[test]
fn host_that_cannot_be_decoded_is_a_row_whose_state_is_not_known() {
    let (shared, mut fleet) = (Shared::default(), Fleet::default());
    let kind = ObjectId::of::<BareMetalHost>("");
    let host = json!({ "metadata": { "namespace": "lab", "name": "a" }, "spec": 7 });
    shared.change(|objects| objects.replace(&kind, None, vec![host]));
    applied(&mut fleet, &shared);
    let row = serde_json::to_value(fleet.rows().next().unwrap().as_ref()).unwrap();
    assert_eq!(
        (&row["state"], &row["result"]),
        (&json!("not known"), &json!("unknown"))
    );
}
