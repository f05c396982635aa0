//! The subresource `scale`: the replicas of an object in a form that is the same for all kinds.

use metal3_schema::FieldError;
use serde_json::{Map, Value, json};

use super::object;
use super::patch::Patch;
use super::refusal::Refusal;
use super::request::{Call, Request, Verb};
use super::{Answer, Store};

impl Store {
    /// Reads or writes the replicas of an object.
    pub(super) fn scale(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let current = self.current(call)?;
        let before = scale_of(call, &current);
        let wanted = match call.verb {
            Verb::Get => return Ok(Answer::ok(self.represented(call, before)?)),
            Verb::Patch => Patch::parse(&call.request.content_type, &call.request.body, &call.kind)?.apply(&before)?,
            _ => serde_json::from_slice(&call.request.body).map_err(|error| Refusal::bad_request(error.to_string()))?,
        };
        let replicas = match wanted.pointer("/spec/replicas") {
            None | Some(Value::Null) => 0,
            Some(replicas) => {
                let whole = replicas.as_i64().filter(|number| i32::try_from(*number).is_ok());
                whole.ok_or_else(|| {
                    Refusal::bad_request(format!("json: cannot unmarshal {replicas} into spec.replicas"))
                })?
            }
        };
        if replicas < 0 {
            let detail = "must be greater than or equal to 0";
            let error = FieldError::invalid("spec.replicas", replicas, detail);
            return Err(Refusal::invalid("Scale", "autoscaling", &call.target.name, &[error]));
        }
        let version = object::text(&wanted, "resourceVersion");
        if !version.is_empty() && version != object::text(&current, "resourceVersion") {
            return Err(Refusal::modified(&call.kind, &call.target.name));
        }
        let path = call.request.path.trim_end_matches("/scale").to_owned();
        let request = Request {
            method: "PATCH".to_owned(),
            path,
            content_type: "application/merge-patch+json".to_owned(),
            accept: String::new(),
            body: replaced(call, replicas).to_string().into_bytes(),
            ..call.request.clone()
        };
        let answer = self.handle(&request, call.now)?;
        let Answer::Document { body, warnings, .. } = answer else {
            return Ok(answer);
        };
        Ok(Answer::Document {
            code: 200,
            body: self.represented(call, scale_of(call, &body))?,
            warnings,
        })
    }
}

/// The patch of an object that sets its replicas.
fn replaced(call: &Call<'_>, replicas: i64) -> Value {
    let scale = call.version().and_then(|version| version.scale.as_ref());
    let pointer = scale.map(|scale| scale.wanted.as_str()).unwrap_or_default();
    let names = pointer.rsplit('/').filter(|name| !name.is_empty());
    names.fold(json!(replicas), |inner, name| json!({ name: inner }))
}

fn scale_of(call: &Call<'_>, object: &Value) -> Value {
    let scale = call.version().and_then(|version| version.scale.as_ref());
    let at = |pointer: Option<&str>| pointer.and_then(|pointer| object.pointer(pointer));
    let number = |pointer: Option<&str>| at(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        metadata.extend(object::member(object, name).map(|value| (name.to_owned(), value.clone())));
    }
    let mut status = json!({ "replicas": number(scale.map(|scale| scale.found.as_str())) });
    let selector = match at(scale.and_then(|scale| scale.selector.as_deref())) {
        Some(Value::String(text)) => text.clone(),
        Some(selector) => selected(selector),
        None => String::new(),
    };
    if !selector.is_empty() {
        object::as_map(&mut status).insert("selector".to_owned(), selector.into());
    }
    let mut spec = Map::new();
    let wanted = number(scale.map(|scale| scale.wanted.as_str()));
    // Like each number that is omitted when it is zero.
    spec.extend((wanted != 0).then(|| ("replicas".to_owned(), wanted.into())));
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

/// The labels of a selector as text.
fn selected(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    let texts: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    texts.join(",")
}
