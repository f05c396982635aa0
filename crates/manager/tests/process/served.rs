//! Messages about kinds that are not served.

use std::collections::BTreeMap;

use metal3_manager::served::{Served, ask, missing};

use crate::environment::{KINDS, TestCluster};

fn served(versions: &[(&str, &[&str])]) -> Served {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let versions = versions
        .iter()
        .map(|(version, resources)| ((*version).to_owned(), names(resources)));
    [("ipam.metal3.io".to_owned(), versions.collect::<BTreeMap<_, _>>())].into()
}

#[test]
fn each_reason_for_a_missing_kind_has_its_fix() {
    for (found, words) in [
        (
            Served::new(),
            ["does not know the group", "install ipam-components.yaml"],
        ),
        (
            served(&[("v1alpha1", &["ipclaims"])]),
            ["CustomResourceDefinition is missing", "install ipam-components.yaml"],
        ),
        (
            served(&[("v1", &[]), ("v1beta1", &[])]),
            ["served as v1, v1beta1 and not as v1alpha1", "of a matching release"],
        ),
    ] {
        let sentences = missing(KINDS, &found);
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].starts_with("ippools.ipam.metal3.io:"), "{sentences:?}");
        assert!(words.iter().all(|word| sentences[0].contains(word)), "{sentences:?}");
    }
    assert!(
        missing(
            KINDS,
            &served(&[("v1", &[]), ("v1alpha1", &["ippools", "ippools/status"])])
        )
        .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_of_a_cluster_with_the_kinds_finds_nothing_missing() {
    let world = TestCluster::empty().await;
    let client = world.cluster.client("a");
    assert_eq!(missing(KINDS, &ask(&client, KINDS).await.unwrap()).len(), 1);
    world.install();
    assert_eq!(
        missing(KINDS, &ask(&client, KINDS).await.unwrap()),
        Vec::<String>::new()
    );
}
