//! Provision requests: checks, and the work that they begin.

use metal3_ironic::model::state::ProvisionState as S;
use metal3_ironic::version::ABORT_DEPLOYMENT;
use serde_json::{Value, json};

use super::{Answer, Context, Core, Failure, Now, Slot, steps, work};
use crate::life::{Event, Provision, step};
use crate::node::{Node, interfaces};
use crate::refusal::Refusal;
use crate::work::{Action, Kind, Script, deploy_steps};

/// A parsed provision request.
struct TransitionRequest<'a> {
    verb: &'a str,
    event: Event,
    steps: Vec<Value>,
    config_drive: Option<Value>,
}

impl Core {
    pub(super) fn provision(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let verb = body.get("target").and_then(Value::as_str).unwrap_or_default();
        let node = self.node(ident)?;
        let transition = if context.is_retry {
            // The first attempt passed the checks of the API.
            parse_transition(verb, &body).ok_or_else(|| refused(node, verb))?
        } else {
            checked_transition(node, verb, &body, context)?
        };
        let now = context.now;
        self.locked(ident, now, |core, serial| {
            core.begin_transition(serial, &transition, now)
        })?;
        Ok(self.accepted(ident))
    }

    /// Begins a transition with the node locked, as the conductor does.
    fn begin_transition(&mut self, serial: u64, transition: &TransitionRequest<'_>, now: Now) -> Result<(), Failure> {
        let node = self.nodes.get(&serial).ok_or_else(|| Refusal::not_found("Node", ""))?;
        let in_maintenance = |operation| Refusal::in_maintenance(operation, &node.uuid);
        match transition.event {
            Event::Deploy | Event::Rebuild if node.in_maintenance() => {
                return Err(in_maintenance("provisioning").into());
            }
            Event::Delete | Event::Rebuild if node.is_protected() => {
                return Err(Refusal::protected(&node.uuid).into());
            }
            Event::Clean if node.in_maintenance() => return Err(in_maintenance("cleaning").into()),
            Event::Service if node.in_maintenance() => return Err(in_maintenance("service").into()),
            Event::Inspect if !can_inspect(node) => {
                return Err(Refusal::unsupported(node.driver(), "inspect").into());
            }
            _ => {}
        }
        if transition.event == Event::Abort {
            return self.abort(serial, now);
        }
        let mut at = step(&node.provision, transition.event).ok_or_else(|| refused(node, transition.verb))?;
        if matches!(transition.event, Event::Deploy | Event::Rebuild) {
            deployable(node, transition)?;
        }
        if transition.event == Event::Clean {
            // Manual cleaning returns to manageable.
            at.target = Some(S::Manageable);
        }
        let work = self.work_of(node, transition);
        let Some((kind, script)) = work else {
            // A transition without work completes immediately.
            self.enter_stable(serial, at, now);
            return Ok(());
        };
        let node = self.node_mut(serial)?;
        node.enter(at, now.wall);
        node.last_error = None;
        if transition.event == Event::Service {
            node.service_steps = Some(transition.steps.clone());
        }
        if let (Some(drive), Some(Value::Object(info))) =
            (&transition.config_drive, node.fields.get_mut("instance_info"))
        {
            info.insert("configdrive".into(), drive.clone());
        }
        let resolved = if kind == Kind::Deploy {
            self.resolve_image(serial)
        } else {
            Ok(())
        };
        let script = match resolved {
            Ok(()) => script,
            Err(message) => Script::default().then(self.pace.fake_work, Action::Fail(message)),
        };
        self.begin(serial, Slot::Life, kind, script, now);
        Ok(())
    }

    fn work_of(&self, node: &Node, transition: &TransitionRequest<'_>) -> Option<(Kind, Script)> {
        let pace = &self.pace;
        Some(match transition.event {
            Event::Manage if node.provision.state == S::Enroll => (Kind::Verify, work::verify(node, pace)),
            Event::Inspect => (Kind::Inspect, work::inspect(node, pace)),
            Event::Provide => (Kind::Clean, work::clean(node, pace, None)),
            Event::Clean => (Kind::Clean, work::clean(node, pace, Some(transition.steps.clone()))),
            Event::Deploy | Event::Rebuild => (Kind::Deploy, work::deploy(node, pace, transition.steps.clone())),
            Event::Delete => (Kind::TearDown, work::tear_down(node, pace)),
            Event::Adopt => (Kind::Adopt, work::adopt(node, pace)),
            Event::Service => (Kind::Service, work::service(node, pace, transition.steps.clone())),
            _ => return None,
        })
    }

    fn enter_stable(&mut self, serial: u64, at: Provision, now: Now) {
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.enter(at, now.wall);
        }
        self.touch(serial, now);
    }

    /// Aborts work that waits for the ramdisk.
    fn abort(&mut self, serial: u64, now: Now) -> Result<(), Failure> {
        let node = self.node_mut(serial)?;
        if node.provision.state == S::ServiceFailed && node.in_maintenance() {
            let message = format!(
                "Can not abort service on node \"{}\" while it is in maintenance mode.",
                node.uuid
            );
            return Err(Refusal::conflict(message).into());
        }
        let at = step(&node.provision, Event::Abort).ok_or_else(|| refused(node, "abort"))?;
        let (field, message, kind) = match node.provision.state {
            S::InspectWait => ("", "Inspection was aborted by request.", Kind::Inspect),
            S::WaitCallBack => (
                "deploy_step",
                "By request, the deploy operation was aborted",
                Kind::Deploy,
            ),
            S::CleanWait => ("clean_step", "By request, the clean operation was aborted", Kind::Clean),
            _ => (
                "service_step",
                "By request, the service operation was aborted",
                Kind::Service,
            ),
        };
        // A step that is not abortable is marked, and the abort takes effect after it.
        if let Some(Value::Object(step)) = node.steps.get_mut(field)
            && step.get("abortable") != Some(&json!(true))
            && node.provision.state != S::ServiceFailed
        {
            step.insert("abort_after".into(), json!(true));
            return Ok(());
        }
        // Aborted servicing leaves the node active.
        let at = if at.state == S::ServiceFailed {
            Provision::stable(S::Active)
        } else {
            at
        };
        node.enter(at, now.wall);
        node.steps.remove(field);
        (node.clean_steps, node.service_steps) = (None, None);
        node.last_error = Some(message.to_owned());
        let script = match self.nodes.get(&serial) {
            Some(node) if kind != Kind::Service => work::switched_off(node, &self.pace),
            _ => Script::default(),
        };
        if kind == Kind::Service {
            self.prepare_instance(serial);
        }
        if kind == Kind::Inspect {
            self.note(serial, "ERROR", message.to_owned(), now);
        }
        self.begin(serial, Slot::Life, kind, script, now);
        Ok(())
    }
}

/// Values that are false in Python: such a config-drive is not stored.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == json!({}) || *value == json!("")
}

fn refused(node: &Node, verb: &str) -> Refusal {
    Refusal::wrong_state(verb, &node.uuid, node.provision.state.as_str())
}

/// The conductor's checks before a deployment.
fn deployable(node: &Node, transition: &TransitionRequest<'_>) -> Result<(), Refusal> {
    if transition.event == Event::Rebuild && !node.has_image("image_source") {
        // A defect of Ironic 39: only a deployment sets the variable, so rebuilding a live image always fails.
        return Err(Refusal::failed(
            "cannot access local variable 'auto_lessee' where it is not associated with a value",
        ));
    }
    let missing = node
        .missing_image()
        .map(|field| format!("some parameters were missing: {field}"));
    match missing.or_else(|| deploy_steps::refused(&transition.steps)) {
        None => Ok(()),
        Some(message) => Err(Refusal::invalid(format!(
            "Failed to validate deploy or power info for node {}: {message}",
            node.uuid
        ))),
    }
}

fn can_inspect(node: &Node) -> bool {
    !node.text("inspect_interface").is_none_or(interfaces::is_empty)
}

fn parse_transition<'a>(verb: &'a str, body: &Value) -> Option<TransitionRequest<'a>> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let event = Event::of_verb(verb)?;
    let steps = match event {
        Event::Clean => list("clean_steps"),
        Event::Service => list("service_steps"),
        _ => list("deploy_steps"),
    };
    let config_drive = body.get("configdrive").filter(|drive| !is_nothing(drive)).cloned();
    Some(TransitionRequest {
        verb,
        event,
        steps,
        config_drive,
    })
}

/// The error of steps for another transition, or of missing ones.
fn misplaced_steps(event: Event, body: &Value) -> Option<String> {
    let is_given = |key: &str| {
        body.get(key)
            .is_some_and(|steps| !steps.is_null() && steps != &json!([]))
    };
    for (key, of) in [("clean_steps", Event::Clean), ("service_steps", Event::Service)] {
        let what = match (is_given(key), event == of) {
            (true, false) => "only valid",
            (false, true) => "required",
            _ => continue,
        };
        let to = of.as_str();
        return Some(format!(
            "\"{key}\" is {what} when setting target provision state to {to}"
        ));
    }
    let deploys = matches!(event, Event::Deploy | Event::Rebuild);
    (is_given("deploy_steps") && !deploys)
        .then(|| "\"deploy_steps\" is only valid when setting target provision state to active or rebuild".to_owned())
}

/// The checks of the API, in Ironic's order.
fn checked_transition<'a>(
    node: &Node,
    verb: &'a str,
    body: &Value,
    context: Context<'_>,
) -> Result<TransitionRequest<'a>, Failure> {
    let invalid = |message: String| Err(Refusal::invalid(message).into());
    if matches!(verb, "active" | "rebuild") && node.in_maintenance() {
        return Err(Refusal::in_maintenance("provisioning", &node.uuid).into());
    }
    let Some(transition) =
        parse_transition(verb, body).filter(|transition| step(&node.provision, transition.event).is_some())
    else {
        // A locked node is reported as locked rather than in the wrong state.
        return Err(match node.lock {
            Some(_) => Refusal::locked(&node.uuid, super::HOST).into(),
            None => refused(node, verb).into(),
        });
    };
    let deploys = matches!(transition.event, Event::Deploy | Event::Rebuild);
    if let Some(message) = misplaced_steps(transition.event, body) {
        return invalid(message);
    }
    match transition.event {
        Event::Abort if node.provision.state == S::WaitCallBack && context.microversion < ABORT_DEPLOYMENT => {
            return Err(Refusal::newer_argument().into());
        }
        Event::Rescue | Event::Unrescue => return Err(Refusal::not_simulated("rescue").into()),
        Event::Hold | Event::Unhold => return Err(Refusal::not_simulated("a hold").into()),
        Event::Inspect if node.is_fake() && node.text("inspect_interface") != Some("fake") => {
            return Err(Refusal::not_simulated("inspection of fake hardware by an agent").into());
        }
        _ => {}
    }
    let malformed = if deploys {
        deploy_steps::malformed(&transition.steps)
    } else {
        steps::malformed(transition.event.as_str(), &transition.steps)
    };
    if let Some(message) = malformed {
        return invalid(message);
    }
    if let Some(what) = deploy_steps::beyond(node, &transition.steps).filter(|_| deploys) {
        return Err(Refusal::not_simulated(what).into());
    }
    Ok(transition)
}
