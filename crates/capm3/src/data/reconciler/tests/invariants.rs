//! Invariants of data, during and after a run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_capi::owner;
use metal3_harness::State;

use crate::data::index::referred;
use crate::data::subject::name_of;

/// The violated invariants of a state.
pub(crate) fn violations(state: &State) -> Vec<String> {
    let (data, claims) = (state.of::<Metal3Data>(), state.of::<Metal3DataClaim>());
    let mut wrong = Vec::new();
    let mut named = BTreeMap::new();
    for claim in &claims {
        let name = name_of(&claim.metadata);
        let answer = referred(claim.status.rendered_data.as_ref());
        if !answer.is_empty()
            && let Some(other) = named.insert(answer.to_owned(), name.to_owned())
        {
            wrong.push(format!("{answer} answers both {other} and {name}"));
        }
    }
    for object in &data {
        let name = name_of(&object.metadata);
        let claim = referred(object.spec.claim.as_ref());
        if name != format!("tpl-{}", object.spec.index.unwrap_or(-1)) {
            wrong.push(format!("{name} has the number {:?}", object.spec.index));
        }
        let is_worked_on = object
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|name| name.starts_with("metal3data."));
        let holder = claims.iter().find(|found| {
            name_of(&found.metadata) == claim && owner::is_owned_by(&object.metadata, found.metadata.uid.as_deref())
        });
        if let Some(holder) = holder {
            if is_worked_on && named.get(name).map(String::as_str) != Some(claim) {
                wrong.push(format!("{name} is worked on, and its claim {claim} does not name it"));
            }
            let uid = object.metadata.uid.as_deref();
            let is_deleting = |meta: &ObjectMeta| owner::is_owned_by(meta, uid) && meta.deletion_timestamp.is_some();
            if pool_claims(state).iter().any(is_deleting) {
                let holder = name_of(&holder.metadata);
                wrong.push(format!(
                    "{name} releases addresses, and its claim {holder} is still there"
                ));
            }
            wrong.extend(wrong_secrets(state, object));
        }
    }
    wrong
}

/// Secrets with an index or address of another machine.
fn wrong_secrets(state: &State, object: &Metal3Data) -> Vec<String> {
    let own = |secret: &&Secret| owner::is_owned_by(&secret.metadata, object.metadata.uid.as_deref());
    let name = name_of(&object.metadata);
    let granted: Vec<String> = state
        .of::<IPAddress>()
        .iter()
        .filter(|address| address.spec.claim.name.as_deref() == Some(&format!("{name}-pool")))
        .map(|address| address.spec.address.to_string())
        .collect();
    let mut wrong = Vec::new();
    for secret in state.of::<Secret>().iter().filter(own) {
        let Some(text) = secret.data.as_ref().and_then(|data| data.get("metaData")) else {
            continue;
        };
        let text = String::from_utf8(text.0.clone()).unwrap();
        let rendered = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key).map(|value| value.trim_matches('"').to_owned()))
        };
        if rendered("number: ") != object.spec.index.map(|index| index.to_string()) {
            wrong.push(format!("{name} renders: {text}"));
        }
        if rendered("ip: ").is_some_and(|address| !granted.contains(&address)) {
            wrong.push(format!("{name} has {granted:?} and renders: {text}"));
        }
    }
    wrong
}

/// The kinds of these scenarios.
pub(crate) fn paths() -> Vec<String> {
    vec![
        State::path::<Metal3DataTemplate>(),
        State::path::<Metal3DataClaim>(),
        State::path::<Metal3Data>(),
        State::path::<IPClaim>(),
        State::path::<IPAddressClaim>(),
        State::path::<IPAddress>(),
        State::path::<Secret>(),
    ]
}

/// The metadata of all claims on pools.
fn pool_claims(state: &State) -> Vec<ObjectMeta> {
    let metal3 = state.of::<IPClaim>().into_iter().map(|claim| claim.metadata);
    let general = state.of::<IPAddressClaim>().into_iter();
    metal3.chain(general.map(|claim| claim.metadata)).collect()
}

/// Claims on pools without owning Metal3Data.
pub(crate) fn unowned_claims(state: &State, data: &[Metal3Data]) -> Vec<String> {
    let mut left = pool_claims(state);
    left.retain(|claim| {
        let mut owners = data.iter();
        !owners.any(|data| owner::is_owned_by(claim, data.metadata.uid.as_deref()))
    });
    left.iter().map(|claim| format!("{} is left", name_of(claim))).collect()
}

/// The indexes in a template's status, when they differ from the objects.
pub(crate) fn wrong_indexes(template: &Metal3DataTemplate, data: &[Metal3Data]) -> Option<String> {
    let grants = template.status.indexes.iter();
    let shown: Vec<_> = grants.map(|grant| (grant.index, grant.name.as_str())).collect();
    let claim = |data: &'_ Metal3Data| data.spec.claim.clone().unwrap().name.unwrap();
    let real: Vec<_> = data
        .iter()
        .map(|data| (data.spec.index.unwrap(), claim(data)))
        .collect();
    let same = shown.len() == real.len() && shown.iter().zip(&real).all(|(a, b)| a.0 == b.0 && a.1 == b.1);
    (!same).then(|| format!("the template shows {shown:?}"))
}
