//! `render`: claims and Secrets of a Metal3Data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metal3_api::cluster::{IPAddressClaim, Machine};
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3ObjectRef,
};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capm3::data::claims::{self, Naming, NewClaim};
use metal3_capm3::data::object::action::{Action, Plan};
use metal3_capm3::data::object::facts::{KnownClaims, Rendering};
use metal3_capm3::data::object::plan::render;
use metal3_capm3::data::reason;
use metal3_capm3::data::secrets::NewSecret;
use metal3_domain::names::ObjectName;
use metal3_runtime::work::Next;
use serde_json::{Map, Value, json};

use super::controllers::{self, Controllers};
use super::objects::CaseObjects;
use super::{pools, rules, shown};
use crate::admission::{self, Answer};
use crate::golden::case::Case;
use crate::golden::group::Group;
use crate::values::list;

pub(super) const GROUP: Group = Group {
    name: "render",
    answer,
    expectation: super::expectation,
    rules: rules::RENDER,
};

/// Limit of steps, after which a case counts as endless.
const MAX_STEPS: usize = 10;

/// Result of one Metal3Data.
#[derive(Default)]
struct Run {
    secrets: Vec<NewSecret>,
    metal3: BTreeMap<ObjectName, IPClaim>,
    general: BTreeMap<ObjectName, IPAddressClaim>,
    ended: Map<String, Value>,
}

/// Result of the real controllers; of the decision functions where the server rejects the manifests.
fn answer(case: &Case) -> Value {
    let mut answer = match controllers::run_case(case, Controllers::All, naming(case)) {
        Ok(Some(ended)) => shown::rendered(case, &ended),
        Ok(None) => run_decisions(case),
        Err(error) => json!(format!("{error:#}")),
    };
    let refused: BTreeSet<String> = list(&case.input, "/objects").flat_map(refused_fields).collect();
    if let (Value::Object(members), false) = (&mut answer, refused.is_empty()) {
        members.insert("notAdmissible".into(), json!(refused));
    }
    answer
}

/// The fields of an object that schema or webhooks refuse.
fn refused_fields(object: &Value) -> Vec<String> {
    match admission::answer(object, None) {
        Answer::Schema(errors) => errors.into_iter().map(|error| error.field).collect(),
        Answer::Webhook(decision, _) => decision.refusals().map(|finding| finding.path.to_string()).collect(),
        // Kinds of other projects.
        Answer::Undecodable(_) => Vec::new(),
    }
}

fn run_decisions(case: &Case) -> Value {
    let stored = CaseObjects::of(case);
    let Some(data) = stored.all::<Metal3Data>().pop() else {
        return json!("no Metal3Data");
    };
    let mut run = Run::of(&stored);
    run.ended.insert("ready".into(), false.into());
    if stored.has_unreadable::<Metal3DataTemplate>() {
        run.ended.insert("error".into(), true.into());
    } else {
        run.run_steps(case, &stored, &data);
    }
    run.show(case, &stored)
}

impl Run {
    /// The claims that exist already.
    fn of(stored: &CaseObjects) -> Self {
        let mut run = Self::default();
        let given = stored.all::<IPClaim>().into_iter().map(Box::new).map(NewClaim::Metal3);
        let other = stored
            .all::<IPAddressClaim>()
            .into_iter()
            .map(Box::new)
            .map(NewClaim::General);
        given.chain(other).for_each(|claim| run.make(claim));
        run
    }

    fn run_steps(&mut self, case: &Case, stored: &CaseObjects, data: &Metal3Data) {
        for _ in 0..MAX_STEPS {
            let plan = self.plan(case, stored, data);
            let is_ready = plan.actions.contains(&Action::StopAwaitingClaims);
            for action in plan.actions {
                match action {
                    Action::Claim(claim) => self.make(claim),
                    Action::CreateSecret(secret) => self.secrets.push(*secret),
                    Action::Patch(_) | Action::Release { .. } | Action::StopAwaitingClaims => {}
                }
            }
            match plan.next {
                Next::Requeue | Next::RequeueAfter(_) => {}
                Next::Waiting(waiting) if waiting.reason == reason::RENDERING_FAILED => return self.end("error"),
                Next::Waiting(_) => return self.end("waits"),
                Next::Done if is_ready => return self.end("ready"),
                Next::Done => return self.end("idle"),
            }
        }
        self.end("endless");
    }

    fn end(&mut self, how: &str) {
        self.ended.insert(how.into(), true.into());
    }

    fn plan(&self, case: &Case, stored: &CaseObjects, data: &Metal3Data) -> Plan {
        let name = |reference: Option<&Metal3ObjectRef>| reference.and_then(|reference| reference.name.clone());
        let template: Option<Metal3DataTemplate> = name(data.spec.template.as_ref()).and_then(|name| stored.get(&name));
        let claim: Option<Metal3DataClaim> = name(data.spec.claim.as_ref()).and_then(|name| stored.get(&name));
        let metal3_machine: Option<Metal3Machine> = claim
            .as_ref()
            .and_then(|claim| owner_name(claim, "Metal3Machine"))
            .and_then(|name| stored.get(&name));
        let machine: Option<Machine> = metal3_machine
            .as_ref()
            .and_then(|machine| owner_name(machine, "Machine"))
            .and_then(|name| stored.get(&name));
        let host: Option<BareMetalHost> = metal3_machine
            .as_ref()
            .and_then(host_name)
            .and_then(|name| stored.get(&name));
        let secrets = self.secrets.iter().map(|secret| &secret.metadata);
        let secrets = secrets.map(|metadata| (metadata.name.clone().unwrap_or_default(), metadata.clone()));
        let rendering = Rendering {
            template: template.map(Arc::new),
            claim: claim.map(Arc::new),
            metal3_machine: metal3_machine.map(Arc::new),
            machine: machine.map(Arc::new),
            host: host.map(Arc::new),
            secrets: stored.secrets().chain(secrets).collect(),
            claims: self.known(case, stored, data),
            deleting: Vec::new(),
            naming: naming(case),
        };
        render(data, &rendering)
    }

    fn known(&self, case: &Case, stored: &CaseObjects, data: &Metal3Data) -> KnownClaims {
        let metal3 = self.metal3.iter().map(|(name, claim)| {
            let (claim, address) = pools::answer(stored, claim.clone());
            (
                name.clone(),
                claims::metal3_state(&data.metadata, &claim, address.as_ref()),
            )
        });
        let general = self.general.iter().map(|(name, claim)| {
            let (claim, address) = pools::answer_elsewhere(stored, &case.input, claim.clone());
            (
                name.clone(),
                claims::general_state(&data.metadata, &claim, address.as_ref()),
            )
        });
        KnownClaims {
            metal3: metal3.collect(),
            general: general.collect(),
        }
    }

    fn make(&mut self, claim: NewClaim) {
        let name = |name: Option<&String>| ObjectName::parse(name.map_or("", String::as_str));
        match claim {
            NewClaim::Metal3(claim) => {
                if let Ok(name) = name(claim.metadata.name.as_ref()) {
                    self.metal3.insert(name, *claim);
                }
            }
            NewClaim::General(claim) => {
                if let Ok(name) = name(claim.metadata.name.as_ref()) {
                    self.general.insert(name, *claim);
                }
            }
        }
    }

    /// The answer with the members of the recorded one.
    fn show(self, case: &Case, stored: &CaseObjects) -> Value {
        let mut shown = self.ended.clone();
        for secret in &self.secrets {
            shown.insert(secret.part.key().to_owned(), secret.reveal().into());
        }
        if !self.secrets.is_empty() {
            let names: Vec<String> = self
                .secrets
                .iter()
                .filter_map(|secret| secret.metadata.name.clone())
                .collect();
            shown.insert("secrets".into(), json!(names));
        }
        if case.expect.get("secretObjects").is_some() {
            let objects = self.secrets.iter().map(|secret| {
                let mut object = json!(secret.to_object());
                object.as_object_mut().and_then(|object| object.remove("data"));
                object
            });
            shown.insert("secretObjects".into(), objects.collect());
        }
        let whole = case.expect.pointer("/claims/0/apiVersion").is_some();
        let mut claims: Vec<Value> = self
            .metal3
            .into_values()
            .map(|claim| show_claim(json!(claim), whole))
            .chain(self.general.into_values().map(|claim| {
                let (claim, _) = pools::answer_elsewhere(stored, &case.input, claim);
                show_claim(json!(claim), whole)
            }))
            .collect();
        claims.sort_by_key(|claim| claim.get("name").map(Value::to_string));
        if !claims.is_empty() {
            shown.insert("claims".into(), claims.into());
        }
        shown.into()
    }
}

pub(super) fn show_claim(claim: Value, whole: bool) -> Value {
    if whole {
        return claim;
    }
    let at = |place: &str| claim.pointer(place).cloned().unwrap_or_default();
    let (name, kind) = (at("/metadata/name"), at("/kind"));
    if kind == "IPClaim" {
        json!({ "name": name, "kind": kind, "pool": at("/spec/pool/name") })
    } else {
        json!({ "name": name, "kind": kind, "poolRef": at("/spec/poolRef") })
    }
}

fn naming(case: &Case) -> Naming {
    match case.input.pointer("/flags/enableBMHNameBasedPreallocation") {
        Some(Value::Bool(true)) => Naming::Host,
        _ => Naming::Data,
    }
}

fn owner_name(object: &impl Kind, kind: &str) -> Option<String> {
    let owner = object
        .meta()
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == kind)?;
    Some(owner.name.clone())
}

fn host_name(machine: &Metal3Machine) -> Option<String> {
    let text = machine.metadata.annotations.as_ref()?.get(HOST_ANNOTATION)?;
    Some(text.rsplit_once('/').map_or(text.as_str(), |(_, name)| name).to_owned())
}
