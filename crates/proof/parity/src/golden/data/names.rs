//! `naming`: the claim of a machine, and the Metal3Data and index of a claim.

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_capm3::data::claims::Naming;
use metal3_capm3::data::request;
use serde_json::{Map, Value, json};

use super::controllers::{self, Controllers};
use super::objects::CaseObjects;
use super::{rules, shown};
use crate::golden::case::Case;
use crate::golden::group::Group;

pub(super) const DATA: Group = Group {
    name: "naming/data_names",
    answer: answer_data,
    expectation: super::expectation,
    rules: rules::DATA_NAMES,
};

pub(super) const CLAIMS: Group = Group {
    name: "naming/claim_names",
    answer: answer_claims,
    expectation: super::expectation,
    rules: &[],
};

fn answer_claims(case: &Case) -> Value {
    let Some(mut machine) = CaseObjects::of(case).all::<Metal3Machine>().pop() else {
        return json!("no Metal3Machine");
    };
    let mut shown = Map::new();
    match request::claim_of(&machine) {
        Ok(None) => {}
        Ok(Some(claim)) => {
            machine.spec.data_template.clone_from(&claim.spec.template);
            let mut claim = json!(claim);
            claim
                .as_object_mut()
                .map(|claim| claim.insert("status".into(), json!({})));
            shown.insert("dataClaims".into(), json!([claim]));
        }
        Err(_) => {
            shown.insert("error".into(), true.into());
        }
    }
    shown.insert("machineSpec".into(), json!(machine.spec));
    shown.insert("machineStatus".into(), json!(machine.status));
    shown.into()
}

fn answer_data(case: &Case) -> Value {
    match controllers::run_case(case, Controllers::Templates, Naming::Data) {
        Ok(Some(state)) => shown::numbered(&state),
        Ok(None) => json!("the server refuses the manifests"),
        Err(error) => json!(format!("{error:#}")),
    }
}
