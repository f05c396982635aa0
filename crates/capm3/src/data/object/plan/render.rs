//! The plan of a live Metal3Data: wait, claim addresses, create Secrets, or nothing.
//!
//! Claims precede Secrets, metadata precede network data, and each missing object is reported by name. An existing
//! Secret is never changed; when all exist, neither the machine nor the template is needed.
//!
//! Invariant: once a Secret is rendered or the host has an image, no claim is released, so that a later Secret contains
//! the same addresses.

use std::time::Duration;

use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::meta::SecretReference;
use metal3_capi::owner;
use metal3_domain::derived::RenderedPart;
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::Key;
use metal3_runtime::patch::{MergePatch, with_finalizer};
use metal3_runtime::plan::{Observed, PlannedEvent};
use metal3_runtime::work::Next;

use super::addresses::{grants, in_template};
use super::waiting::{Stop, Waiting};
use crate::data::index::referred;
use crate::data::object::action::{Action, Plan, Read, only, then_requeue};
use crate::data::object::facts::{Facts, Rejection, Rendering};
use crate::data::pools::Grants;
use crate::data::secrets::{self, NewSecret, SecretAction};
use crate::data::subject::{Subject, is_uid_match, name_of};
use crate::data::{DataError, Problem, meta_data, network_data, reason, truncated};
use crate::diff::{changes, version};
use crate::machine::facts::check_host;

/// The time until a claim is created again whose kind was not served.
const UNSERVED_RECHECK: Duration = Duration::from_mins(1);

struct Part {
    part: RenderedPart,
    secret: ObjectName,
    action: SecretAction,
    /// Whether this Metal3Data rendered it, from any version of the template.
    is_rendered: bool,
}

/// The plan of a live Metal3Data.
pub(super) fn plan(facts: &Facts<'_>, data: &Metal3Data) -> Plan {
    if let Some(rejection) = &facts.responses.rejection {
        return rejected(data, rejection);
    }
    let rendering = &facts.rendering;
    // A stored object has a version.
    let Some(at) = version(&data.metadata) else {
        return Plan::default();
    };
    if referred(data.spec.template.as_ref()).is_empty() || is_complete(data, rendering) {
        return Plan::default();
    }
    if let Some(unreadable) = &facts.unreadable {
        // differs (`template-unreadable`): the Go manager renders what is left of such an object.
        let error = reason::to_correct(unreadable).map(ToOwned::to_owned);
        return Plan {
            status: error.and_then(|error| status(data, false, Some(error))),
            ..only(unreadable)
        };
    }
    if let Some(claim) = rendering.claim.as_deref()
        && let Err(why) = is_named(data, claim)
    {
        let message = format!("Metal3DataClaim {} {why}", name_of(&claim.metadata));
        return Plan::waiting(reason::NOT_NAMED, message);
    }
    // A claim that is not in the cache yet may name another Metal3Data: nothing is written before it is known.
    let is_claim_known = rendering.claim.is_some() || referred(data.spec.claim.as_ref()).is_empty();
    if let Some(patch) = changes(data, &with_finalizer_and_secrets(data, rendering)).main
        && is_claim_known
    {
        return then_requeue(vec![Action::Patch(patch.with_precondition(&at))]);
    }
    confirmed(facts, data, render(data, rendering))
}

/// The plan, once live reads confirm the release of a claim: the cached Metal3Data may be an earlier one of its name,
/// and the host may be provisioned with the address.
fn confirmed(facts: &Facts<'_>, data: &Metal3Data, plan: Plan) -> Plan {
    let is_release = |action: &Action| matches!(action, Action::Release { .. });
    let host = facts.rendering.host.as_deref().map(Key::of);
    if !plan.actions.iter().any(is_release) {
        return plan;
    }
    match &facts.responses.data {
        Observed::Unknown(_) => Plan::reading(vec![Read::Data]),
        Observed::Present(found) if found.uid == data.metadata.uid => match host {
            Some(host) if facts.responses.host.as_ref() != Some(&host) => Plan::reading(vec![Read::Host(host)]),
            Some(_) | None => plan,
        },
        // The change enqueues the key.
        Observed::Present(_) | Observed::Absent => Plan::default(),
    }
}

/// A rejected object is created again after a change of an input, or, when its kind is not served, each minute.
fn rejected(data: &Metal3Data, rejection: &Rejection) -> Plan {
    let Rejection { message, is_unserved } = rejection;
    Plan {
        status: status(data, false, Some(message.clone())),
        next: match is_unserved {
            true => Next::waiting_with_recheck(reason::WAITING, message.clone(), UNSERVED_RECHECK),
            false => Next::Done,
        },
        ..Plan::default()
    }
}

/// Whether a Metal3Data is ready and its Secrets exist, so that no other object is needed.
#[must_use]
pub fn is_complete(data: &Metal3Data, rendering: &Rendering) -> bool {
    let mut secrets = [&data.spec.meta_data, &data.spec.network_data].into_iter().flatten();
    let exists = |name: Option<&str>| {
        let found = rendering.secrets.get(name.unwrap_or_default());
        secrets::action(data, found) == SecretAction::Keep
    };
    data.status.ready == Some(true) && secrets.all(|secret| exists(secret.name.as_deref()))
}

/// Whether the claim of a Metal3Data names it. Two replicas may create two Metal3Data for one claim; only one is named.
///
/// # Errors
/// The reason, when it does not.
pub fn is_named(data: &Metal3Data, claim: &Metal3DataClaim) -> Result<(), &'static str> {
    let made_for = owner::first::<Metal3DataClaim>(&data.metadata);
    if claim.metadata.deletion_timestamp.is_some() {
        Err("is being deleted")
    } else if made_for.is_some_and(|owner| !is_uid_match(owner, &claim.metadata)) {
        Err("has another UID than the owner reference")
    } else if referred(claim.status.rendered_data.as_ref()) != name_of(&data.metadata) {
        Err("does not name this Metal3Data")
    } else {
        Ok(())
    }
}

/// The Metal3Data as required before any object is created for it: with the finalizer and the names of its Secrets.
fn with_finalizer_and_secrets(data: &Metal3Data, rendering: &Rendering) -> Metal3Data {
    let mut after = with_finalizer(data.clone(), DATA_FINALIZER);
    let (Some(template), Some(machine)) = (&rendering.template, &rendering.metal3_machine) else {
        return after;
    };
    let reference = |part| {
        let name = secrets::name(data, part, name_of(&machine.metadata)).ok()?;
        Some(SecretReference {
            name: Some(name.to_string()),
            namespace: data.metadata.namespace.clone(),
        })
    };
    if template.spec.meta_data.is_some() && data.spec.meta_data.is_none() {
        after.spec.meta_data = reference(RenderedPart::MetaData);
    }
    if template.spec.network_data.is_some() && data.spec.network_data.is_none() {
        after.spec.network_data = reference(RenderedPart::NetworkData);
    }
    after
}

/// The plan of a Metal3Data with the finalizer, which its claim names.
#[must_use]
pub fn render(data: &Metal3Data, rendering: &Rendering) -> Plan {
    match decide(data, rendering) {
        Ok(plan) => plan,
        Err(Stop::Wait(waiting)) => {
            let message = waiting.needs_user_action().then(|| waiting.to_string());
            Plan {
                status: status(data, false, message),
                ..Plan::waiting(reason::WAITING, waiting.to_string())
            }
        }
        Err(Stop::Fail(error)) => failed(data, &error),
        Err(Stop::First(plan)) => *plan,
    }
}

fn failed(data: &Metal3Data, error: &DataError) -> Plan {
    let message = error.to_string();
    let status = status(data, false, Some(message.clone()));
    let event = PlannedEvent::warning(reason::RENDERING_FAILED, message.clone());
    Plan {
        events: status.iter().map(|_| event.clone()).collect(),
        status,
        ..Plan::waiting(reason::RENDERING_FAILED, message)
    }
}

/// The status, if it changes.
fn status(data: &Metal3Data, ready: bool, error: Option<String>) -> Option<MergePatch> {
    let mut after = data.clone();
    if ready != data.status.ready.unwrap_or_default() {
        after.status.ready = Some(ready);
    }
    after.status.error_message = error.as_deref().map(truncated);
    Some(
        changes(data, &after)
            .status?
            .with_precondition(&version(&data.metadata)?),
    )
}

fn decide(data: &Metal3Data, rendering: &Rendering) -> Result<Plan, Stop> {
    let name = referred(data.spec.template.as_ref());
    if name.is_empty() {
        return Ok(Plan::default());
    }
    let template = rendering.template.as_deref();
    let template = template.ok_or_else(|| Waiting::Template(name.to_owned()))?;
    let metal3_machine = metal3_machine(data, rendering)?;
    let parts = parts(data, rendering, template, name_of(&metal3_machine.metadata))?;
    if parts.iter().all(|part| part.action == SecretAction::Keep) {
        return Ok(ready(data));
    }
    if let Some(part) = parts.iter().find(|part| part.action == SecretAction::Wait) {
        return Err(Waiting::Secret(part.secret.to_string()).into());
    }
    check_template(metal3_machine, name, data)?;
    let subject = subject(data, rendering, metal3_machine)?;
    let rendered = parts.iter().find(|part| part.is_rendered).map(|part| &part.secret);
    let grants = grants((data, rendering), template, &subject, rendered)?;
    Ok(create(data, &parts, template, &subject, &grants))
}

/// The machine that owns the claim.
fn metal3_machine<'a>(data: &Metal3Data, rendering: &'a Rendering) -> Result<&'a Metal3Machine, Stop> {
    let name = referred(data.spec.claim.as_ref());
    if name.is_empty() {
        return Err(Problem::Unset.of("spec.claim.name").into());
    }
    let claim = rendering
        .claim
        .as_ref()
        .ok_or_else(|| Waiting::Claim(name.to_owned()))?;
    let owner = owner::first::<Metal3Machine>(&claim.metadata);
    let owner = owner.ok_or_else(|| Problem::NoOwner.of(format!("Metal3DataClaim {name} metadata.ownerReferences")))?;
    let machine = rendering.metal3_machine.as_deref();
    machine.ok_or_else(|| Waiting::Metal3Machine(owner.name.clone()).into())
}

/// The inputs of the templates.
fn subject<'a>(
    data: &'a Metal3Data,
    rendering: &'a Rendering,
    metal3_machine: &Metal3Machine,
) -> Result<Subject<'a>, Stop> {
    let name = || name_of(&metal3_machine.metadata).to_owned();
    if rendering.machine.is_none() {
        return Err(Waiting::Machine(name()).into());
    }
    check_host(metal3_machine).map_err(|error| Problem::Host(error).of(format!("Metal3Machine {}", name())))?;
    let subject = rendering.subject(data).ok_or_else(|| Waiting::Host(name()))?;
    data.spec.index.ok_or_else(|| Problem::Unset.of("spec.index"))?;
    Ok(subject)
}

/// Checks that the machine names the template of the Metal3Data, as long as a part is not rendered.
fn check_template(machine: &Metal3Machine, wanted: &str, data: &Metal3Data) -> Result<(), DataError> {
    let reference = machine.spec.data_template.as_ref();
    let found = referred(reference);
    let namespace = reference.and_then(|template| template.namespace.as_deref());
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let is_here = namespace.is_none_or(|namespace| Some(namespace) == data.metadata.namespace.as_deref());
    if found == wanted && is_here {
        return Ok(());
    }
    let field = format!("Metal3Machine {} spec.dataTemplate", name_of(&machine.metadata));
    Err(match namespace.filter(|_| found == wanted) {
        Some(found) => Problem::ForeignNamespace {
            found: found.to_owned(),
            own: data.metadata.namespace.clone().unwrap_or_default(),
        }
        .of(format!("{field}.namespace")),
        None => Problem::OtherTemplate {
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        }
        .of(field),
    })
}

fn parts(
    data: &Metal3Data,
    rendering: &Rendering,
    template: &Metal3DataTemplate,
    machine: &str,
) -> Result<Vec<Part>, DataError> {
    let has = [
        (RenderedPart::MetaData, template.spec.meta_data.is_some()),
        (RenderedPart::NetworkData, template.spec.network_data.is_some()),
    ];
    let part = |(part, _)| {
        let secret = secrets::name(data, part, machine)?;
        let found = rendering.secrets.get(secret.as_str());
        let action = secrets::action(data, found);
        let uid = data.metadata.uid.as_deref();
        let is_rendered = action == SecretAction::Keep && found.is_some_and(|secret| owner::is_owned_by(secret, uid));
        Ok(Part {
            part,
            secret,
            action,
            is_rendered,
        })
    };
    has.into_iter().filter(|(_, has)| *has).map(part).collect()
}

fn ready(data: &Metal3Data) -> Plan {
    let status = status(data, true, None);
    let event = PlannedEvent::normal(reason::RENDERED, "metadata and network data are rendered");
    Plan {
        actions: vec![Action::StopAwaitingClaims],
        events: status.iter().map(|_| event.clone()).collect(),
        status,
        ..Plan::default()
    }
}

/// Creates the missing Secrets, up to the first one that cannot be rendered.
fn create(
    data: &Metal3Data,
    parts: &[Part],
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    grants: &Grants,
) -> Plan {
    let mut actions = Vec::new();
    for part in parts.iter().filter(|part| part.action == SecretAction::Write) {
        match text(part.part, template, subject, grants) {
            Ok(text) => {
                let cluster = &subject.machine.spec.cluster_name;
                let secret = NewSecret::new(data, part.part, &part.secret, cluster, text);
                actions.push(Action::CreateSecret(Box::new(secret)));
            }
            Err(error) => {
                let error = in_template(error, name_of(&template.metadata));
                return Plan {
                    actions,
                    ..failed(data, &error)
                };
            }
        }
    }
    then_requeue(actions)
}

fn text(
    part: RenderedPart,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    grants: &Grants,
) -> Result<String, DataError> {
    let spec = &template.spec;
    match part {
        RenderedPart::MetaData => meta_data::render(&spec.meta_data.clone().unwrap_or_default(), subject, grants),
        RenderedPart::NetworkData => {
            network_data::render(&spec.network_data.clone().unwrap_or_default(), subject, grants)
        }
    }
}
