//! The document about one host: its row, why it waits, what it is made of, what happened, and the object itself.

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_domain::uri::public_text;
use metal3_domain::yaml;
use metal3_explain::text::missing;
use metal3_explain::view::{Content, HostRow, View};
use metal3_explain::{ObjectId, explain, with_background};
use serde_json::{Value, json};

use crate::shared::Shared;
use crate::{actions, objects};

/// The document. Without the host, it says that it does not exist.
pub(crate) fn document(shared: &Shared, namespace: &str, name: &str, now: Time) -> Value {
    let id = ObjectId::of::<BareMetalHost>(name);
    let host = shared.read(|objects| objects.get(&id, namespace, name));
    let explained = shared.ask(namespace, |snapshot| with_background(explain(&id, snapshot)?, snapshot));
    let view = View::Timeline(name.to_owned(), Vec::new());
    let timeline = shared.ask(namespace, |snapshot| view.report(snapshot, now));
    let notices = explained.iter().flat_map(|explanation| &explanation.not_read);
    let notices = notices.map(|one| missing(one, Some(namespace)).trim_end().to_owned());
    let moments = timeline.and_then(|report| match report.content {
        Content::Timeline(moments) => Some(moments),
        _ => None,
    });
    json!({
        "namespace": namespace, "name": name, "now": now,
        "exists": host.is_some(),
        "row": host.as_deref().and_then(|host| HostRow::read(host).ok()),
        "text": explained.as_ref().map(|explanation| explanation.state.as_str()),
        "explanation": explained,
        "notices": notices.collect::<Vec<_>>(),
        "timeline": moments.unwrap_or_default(),
        "conditions": host.as_deref().map(conditions),
        "hardware": hardware(shared, host.as_deref(), namespace, name),
        "labels": host.as_deref().and_then(|host| host.pointer("/metadata/labels")),
        "yaml": host.as_deref().map(text),
        "uid": host.as_deref().map(|host| objects::text(host, "/metadata/uid")),
        "why": format!("kubectl metal3 why baremetalhost/{name} -n {namespace}"),
        "actions": host.as_deref().map(actions::of),
    })
}

/// The conditions, whose messages repeat URLs.
fn conditions(host: &Value) -> Vec<Value> {
    let conditions = host.pointer("/status/conditions").and_then(Value::as_array);
    let plain = |condition: &Value| {
        let part = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        json!({
            "type": part("type"), "status": part("status"), "reason": part("reason"),
            "message": public_text(part("message")), "since": part("lastTransitionTime"),
        })
    };
    conditions.into_iter().flatten().map(plain).collect()
}

/// What inspection found: in its own object, or in the status of the host.
fn hardware(shared: &Shared, host: Option<&Value>, namespace: &str, name: &str) -> Value {
    let id = ObjectId::of::<HardwareData>(name);
    let own = shared.read(|objects| objects.get(&id, namespace, name));
    let own = own.as_deref().and_then(|data| data.pointer("/spec/hardware"));
    let found = own.or_else(|| host?.pointer("/status/hardware"));
    found.cloned().unwrap_or_default()
}

/// The object as text, without logins and queries of URLs.
fn text(host: &Value) -> String {
    let text = yaml::text(host);
    let lines = text.lines().map(|line| public_text(line) + "\n");
    lines.collect()
}
