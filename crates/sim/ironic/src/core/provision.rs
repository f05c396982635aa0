//! Asking for a transition: what is refused, and which work it begins.

use http::StatusCode;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_ironic::version::ABORT_DEPLOYMENT;
use serde_json::{Value, json};

use super::{Answer, Context, Core, Now, Slot, Stop, steps, work};
use crate::asked::Asked;
use crate::life::{At, Event, step};
use crate::node::{Node, interfaces};
use crate::refusal::Refusal;
use crate::work::{Kind, Script};

/// Arguments of the verbs.
struct Wish<'a> {
    verb: &'a str,
    event: Event,
    steps: Vec<Value>,
    config_drive: Option<Value>,
}

impl Core {
    pub(super) fn provision(&mut self, ident: &str, asked: &Asked, context: Context) -> Result<Answer, Stop> {
        let body = asked.json()?;
        let verb = body.get("target").and_then(Value::as_str).unwrap_or_default();
        let node = self.node(ident)?;
        let wish = if context.again {
            // What the API looks at was in order when the request came.
            wished(verb, &body).ok_or_else(|| refused(node, verb))?
        } else {
            sensible(node, verb, &body, context)?
        };
        let now = context.now;
        self.locked(ident, now, |core, serial| core.begin_transition(serial, &wish, now))?;
        Ok(Answer::empty(StatusCode::ACCEPTED).at(format!("{}/v1/nodes/{ident}/states", self.base)))
    }

    /// What the conductor makes of a wish, with the node in its hand.
    fn begin_transition(&mut self, serial: u64, wish: &Wish<'_>, now: Now) -> Result<(), Stop> {
        let node = self.nodes.get(&serial).ok_or_else(|| Refusal::not_found("Node", ""))?;
        let in_maintenance = |operation| Refusal::in_maintenance(operation, &node.uuid);
        match wish.event {
            Event::Deploy | Event::Rebuild if node.in_maintenance() => {
                return Err(in_maintenance("provisioning").into());
            }
            Event::Clean if node.in_maintenance() => return Err(in_maintenance("cleaning").into()),
            Event::Service if node.in_maintenance() => return Err(in_maintenance("service").into()),
            Event::Inspect if !can_inspect(node) => {
                return Err(Refusal::unsupported(node.driver(), "inspect").into());
            }
            _ => {}
        }
        if wish.event == Event::Abort {
            return self.abort(serial, now);
        }
        let mut at = step(&node.at, wish.event).ok_or_else(|| refused(node, wish.verb))?;
        if matches!(wish.event, Event::Deploy | Event::Rebuild) {
            deployable(node, wish.event)?;
        }
        if wish.event == Event::Clean {
            // Manual cleaning ends where it began.
            at.target = Some(S::Manageable);
        }
        let work = self.work_of(node, wish);
        let Some((kind, script)) = work else {
            // Nothing is to be done: the node is there at once.
            self.rests(serial, at, now);
            return Ok(());
        };
        let node = self.node_mut(serial)?;
        node.moves(at, now.wall);
        node.last_error = None;
        if let (Some(drive), Some(Value::Object(info))) = (&wish.config_drive, node.fields.get_mut("instance_info")) {
            info.insert("configdrive".into(), drive.clone());
        }
        self.begin(serial, Slot::Life, kind, script, now);
        Ok(())
    }

    fn work_of(&self, node: &Node, wish: &Wish<'_>) -> Option<(Kind, Script)> {
        let pace = &self.pace;
        Some(match wish.event {
            Event::Manage if node.at.state == S::Enroll => (Kind::Verify, work::verify(node, pace)),
            Event::Inspect => (Kind::Inspect, work::inspect(node, pace)),
            Event::Provide => (Kind::Clean, work::clean(node, pace, None)),
            Event::Clean => (Kind::Clean, work::clean(node, pace, Some(wish.steps.clone()))),
            Event::Deploy | Event::Rebuild => (Kind::Deploy, work::deploy(node, pace)),
            Event::Delete => (Kind::TearDown, work::tear_down(node, pace)),
            Event::Adopt => (Kind::Adopt, work::adopt(node, pace)),
            Event::Service => (Kind::Service, work::service(node, pace, wish.steps.clone())),
            _ => return None,
        })
    }

    fn rests(&mut self, serial: u64, at: At, now: Now) {
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.moves(at, now.wall);
        }
        self.touch(serial, now);
    }

    /// Gives up what a node waits for.
    fn abort(&mut self, serial: u64, now: Now) -> Result<(), Stop> {
        let node = self.node_mut(serial)?;
        if node.at.state == S::ServiceFailed && node.in_maintenance() {
            let words = format!(
                "Can not abort service on node \"{}\" while it is in maintenance mode.",
                node.uuid
            );
            return Err(Refusal::conflict(words).into());
        }
        let at = step(&node.at, Event::Abort).ok_or_else(|| refused(node, "abort"))?;
        let (field, words, kind) = match node.at.state {
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
        // A step that cannot be broken off is only marked, and the abort takes effect behind it.
        if let Some(Value::Object(step)) = node.steps.get_mut(field)
            && step.get("abortable") != Some(&json!(true))
            && node.at.state != S::ServiceFailed
        {
            step.insert("abort_after".into(), json!(true));
            return Ok(());
        }
        // Servicing that is given up leaves a machine in use.
        let at = if at.state == S::ServiceFailed {
            At::rest(S::Active)
        } else {
            at
        };
        node.moves(at, now.wall);
        node.steps.remove(field);
        node.last_error = Some(words.to_owned());
        let script = match self.nodes.get(&serial) {
            Some(node) if kind != Kind::Service => work::switched_off(node, &self.pace),
            _ => Script::default(),
        };
        if kind == Kind::Inspect {
            self.note(serial, "ERROR", words.to_owned(), now);
        }
        self.begin(serial, Slot::Life, kind, script, now);
        Ok(())
    }
}

/// What Python takes for false: such a config-drive is not stored.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == json!({}) || *value == json!("")
}

fn refused(node: &Node, verb: &str) -> Refusal {
    Refusal::wrong_state(verb, &node.uuid, node.at.state.as_str())
}

/// What the conductor checks before it deploys.
fn deployable(node: &Node, event: Event) -> Result<(), Refusal> {
    if event == Event::Rebuild && !node.has_image("image_source") {
        // An error of Ironic 39: only a first deployment sets the variable. The rebuild of a live image meets it always.
        return Err(Refusal::failed(
            "cannot access local variable 'auto_lessee' where it is not associated with a value",
        ));
    }
    match node.missing_image() {
        None => Ok(()),
        Some(field) => Err(Refusal::invalid(format!(
            "Failed to validate deploy or power info for node {}: some parameters were missing: {field}",
            node.uuid
        ))),
    }
}

fn can_inspect(node: &Node) -> bool {
    !node.text("inspect_interface").is_none_or(interfaces::is_empty)
}

fn wished<'a>(verb: &'a str, body: &Value) -> Option<Wish<'a>> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let event = Event::of_verb(verb)?;
    let steps = match event {
        Event::Clean => list("clean_steps"),
        Event::Service => list("service_steps"),
        _ => list("deploy_steps"),
    };
    let config_drive = body.get("configdrive").filter(|drive| !is_nothing(drive)).cloned();
    Some(Wish {
        verb,
        event,
        steps,
        config_drive,
    })
}

/// What the API looks at before any conductor does, in its order.
fn sensible<'a>(node: &Node, verb: &'a str, body: &Value, context: Context) -> Result<Wish<'a>, Stop> {
    let invalid = |words: String| Err(Refusal::invalid(words).into());
    if matches!(verb, "active" | "rebuild") && node.in_maintenance() {
        return Err(Refusal::in_maintenance("provisioning", &node.uuid).into());
    }
    let Some(wish) = wished(verb, body).filter(|wish| step(&node.at, wish.event).is_some()) else {
        // A node that is just at work says so rather than that it is in the wrong state.
        return Err(match node.lock {
            Some(_) => Refusal::locked(&node.uuid, super::HOST).into(),
            None => refused(node, verb).into(),
        });
    };
    for (key, event) in [("clean_steps", Event::Clean), ("service_steps", Event::Service)] {
        let given = body
            .get(key)
            .is_some_and(|steps| !steps.is_null() && steps != &json!([]));
        if given && wish.event != event {
            return invalid(format!(
                "\"{key}\" is only valid when setting target provision state to {}",
                event.as_str()
            ));
        }
        if !given && wish.event == event {
            return invalid(format!(
                "\"{key}\" is required when setting target provision state to {}",
                event.as_str()
            ));
        }
    }
    match wish.event {
        Event::Abort if node.at.state == S::WaitCallBack && context.speaks < ABORT_DEPLOYMENT => {
            return Err(Refusal::newer_argument().into());
        }
        Event::Rescue | Event::Unrescue => return Err(Refusal::not_simulated("rescue").into()),
        Event::Hold | Event::Unhold => return Err(Refusal::not_simulated("a hold").into()),
        Event::Inspect
            if !node.is_fake() && !matches!(node.text("inspect_interface"), Some("agent" | "no-inspect")) =>
        {
            return Err(Refusal::not_simulated("inspection by the BMC").into());
        }
        Event::Inspect if node.is_fake() && node.text("inspect_interface") != Some("fake") => {
            return Err(Refusal::not_simulated("inspection of fake hardware by an agent").into());
        }
        _ => {}
    }
    if let Some(words) = steps::malformed(wish.event.as_str(), &wish.steps) {
        return invalid(words);
    }
    if steps::not_simulated(&wish.steps) {
        return Err(Refusal::not_simulated("a firmware update").into());
    }
    Ok(wish)
}
