//! Dispatches a request to its handler.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::builtin::is_built_in_group;
use super::create::deprecation;
use super::kind::Kind;
use super::refusal::Refusal;
use super::request::{Call, Request, Target, Verb};
use super::{Answer, Store};

/// The largest body.
const LARGEST: usize = 3 << 20;

impl Store {
    /// Answers a request.
    pub(crate) fn handle(&mut self, request: &Request, now: DateTime<Utc>) -> Result<Answer, Refusal> {
        self.handle_lagging(request, now, 0)
    }

    /// Answers a request; a read shows the state of `lag` writes ago.
    pub(crate) fn handle_lagging(
        &mut self,
        request: &Request,
        now: DateTime<Utc>,
        lag: u64,
    ) -> Result<Answer, Refusal> {
        if request.body.len() > LARGEST {
            return Err(Refusal::too_large(LARGEST));
        }
        self.authorize(request)?;
        if let Some(answer) = self.discover(request) {
            return Ok(answer);
        }
        if let Some(answer) = self.openapi(request) {
            return Ok(answer);
        }
        if let Some(answer) = self.review(request) {
            return answer;
        }
        let call = self.call(request, now, lag)?;
        match call.target.subresource.as_str() {
            "scale" => return self.scale(&call),
            "log" | "exec" | "attach" | "portforward" => return self.of_containers(&call),
            _ => {}
        }
        let mut answer = match call.verb {
            Verb::Watch => return self.watch(&call),
            Verb::Create => return self.create(&call),
            Verb::Update => return self.replace(&call),
            Verb::Patch => return self.patch(&call),
            Verb::Get => self.get(&call),
            Verb::List => self.list(&call),
            Verb::Delete => self.delete(&call),
            Verb::DeleteCollection => self.delete_collection(&call),
        };
        if let Ok(Answer::Document { warnings, .. }) = &mut answer {
            warnings.extend(deprecation(&call));
        }
        answer
    }

    fn call<'a>(&self, request: &'a Request, now: DateTime<Utc>, lag: u64) -> Result<Call<'a>, Refusal> {
        let target = Target::parse(&request.path).ok_or_else(Refusal::no_such_path)?;
        let kind = self.kinds.get(&(target.group.clone(), target.resource.clone()));
        let served = kind.filter(|kind| kind.version(&target.version).is_some());
        let Some(kind) = served else {
            if is_built_in_group(&target.group) && kind.is_none() {
                return Err(Refusal::unsupported(&format!(
                    "the resource {:?} of group {:?}",
                    target.resource, target.group
                )));
            }
            return Err(Refusal::no_such_path());
        };
        check_method(request, &target, kind)?;
        let verb = request.verb(&target)?;
        let single = !target.name.is_empty() || verb == Verb::Create;
        if (!kind.namespaced && !target.namespace.is_empty())
            || (kind.namespaced && single && target.namespace.is_empty())
        {
            return Err(if kind.is_custom() {
                Refusal::no_such_path()
            } else {
                Refusal::no_such_resource()
            });
        }
        let call = Call {
            request,
            target,
            verb,
            kind: Arc::clone(kind),
            now,
            lag,
        };
        check_subresource(&call)?;
        Ok(call)
    }
}

impl Store {
    /// The answer to a request for a container: none runs, so that a Pod without a Node has an empty log.
    fn of_containers(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let name = &call.target.name;
        let Some(pod) = self.stored(&call.kind, &call.key()) else {
            return Err(Refusal::not_found(&call.kind, name));
        };
        if pod.pointer("/spec/nodeName").is_some() {
            return Err(Refusal::unsupported(
                "logs of Pods and connections to them: no containers run",
            ));
        }
        if call.target.subresource == "log" {
            let container = call.request.option("container");
            let kinds = ["initContainers", "containers", "ephemeralContainers"];
            let lists = kinds.iter().filter_map(|kind| pod.get("spec")?.get(*kind)?.as_array());
            let is_known = lists
                .flatten()
                .any(|one| one.get("name").is_some_and(|name| name == container));
            if !container.is_empty() && !is_known {
                let why = format!("container {container} is not valid for pod {name}");
                return Err(Refusal::bad_request(why));
            }
            return Ok(Answer::Text(""));
        }
        Err(Refusal::bad_request(format!(
            "pod {name} does not have a host assigned"
        )))
    }
}

/// Rejects methods that a path does not have. Custom kinds have one handler for all paths, which reads the name from the body.
fn check_method(request: &Request, target: &Target, kind: &Kind) -> Result<(), Refusal> {
    let (method, is_collection) = (request.method.as_str(), target.name.is_empty());
    let everywhere = kind.namespaced && target.namespace.is_empty();
    match method {
        "DELETE" if is_collection && everywhere && kind.is_custom() => Err(Refusal::no_such_path()),
        "DELETE" if is_collection && everywhere => Err(Refusal::method_not_allowed()),
        "PUT" | "PATCH" if is_collection && !kind.is_custom() => Err(Refusal::method_not_allowed()),
        "POST" if !is_collection && target.subresource.is_empty() && !kind.is_custom() => {
            Err(Refusal::method_not_allowed())
        }
        _ if matches!(target.name.as_str(), "." | "..") => {
            let name = &target.name;
            Err(Refusal::bad_request(format!(
                "Name parameter invalid: {name:?}: may not be '{name}'"
            )))
        }
        _ => Ok(()),
    }
}

/// Subresources of built-in kinds that are not simulated.
const OTHERS: [&str; 8] = [
    "approval",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "finalize",
    "proxy",
    "resize",
    "token",
];

fn check_subresource(call: &Call<'_>) -> Result<(), Refusal> {
    match call.target.subresource.as_str() {
        "" => Ok(()),
        "status" if call.has_status() => match call.verb {
            Verb::Get | Verb::Update | Verb::Patch => Ok(()),
            _ => Err(Refusal::method_not_allowed()),
        },
        "status" if call.kind.is_custom() => Err(Refusal::not_found(&call.kind, &call.target.name)),
        "log" | "exec" | "attach" | "portforward" if call.kind.plural == "pods" && !call.kind.is_custom() => Ok(()),
        "scale" if call.version().is_some_and(|version| version.scale.is_some()) => match call.verb {
            Verb::Get | Verb::Update | Verb::Patch => Ok(()),
            _ => Err(Refusal::method_not_allowed()),
        },
        "status" | "scale" if !call.kind.is_custom() => Err(Refusal::no_such_resource()),
        other if !call.kind.is_custom() && OTHERS.contains(&other) => {
            Err(Refusal::unsupported(&format!("the subresource {other:?}")))
        }
        _ if !call.kind.is_custom() => Err(Refusal::no_such_resource()),
        _ => Err(Refusal::not_found(&call.kind, &call.target.name)),
    }
}
