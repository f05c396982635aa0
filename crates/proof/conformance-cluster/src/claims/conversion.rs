//! Claims about kinds with a conversion webhook. They share one kind.
//!
//! A claim removes its object that does not convert: on the real server it breaks the version in all namespaces, even for
//! a while after its deletion. So these claims come last.

use serde_json::{Value, json};

use super::{DEFINITIONS, rows};
use crate::outcome::{CheckResult, Violation, expect};
use crate::webhook::PROVIDER_KIND;
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "conversion", "read", "an object is read, listed and watched in each version" => read;
        "conversion", "write", "a write in any version is stored pruned in the storage version and increments the generation once" => written;
        "conversion", "metadata", "a conversion can change labels and annotations and no other metadata" => metadata;
        "conversion", "apply", "managers in another version conflict with the field paths of that version" => applied;
        "conversion", "provider", "a Metal3Cluster is served in both versions" => provider;
        "conversion", "failure", "a watch sends no events after an object that does not convert" => silent;
        "conversion", "failure", "an object that does not convert is an internal error in that version only" => broken;
        "conversion", "failure", "a page with an object that does not convert is an internal error" => unlisted;
        "conversion", "failure", "a conversion that changes name or kind fails" => tamper;
    }
}

const NAME: &str = "wheels";
pub(crate) const WHEEL: &str = "Wheel";
/// A separate group, so that its versions do not affect other claims.
pub(crate) const GROUP: &str = "conversion.metal3.io";
pub(crate) const DEFINITION: &str = "wheels.conversion.metal3.io";

/// The CRD with this conversion.
pub(crate) fn definition(conversion: &Value) -> Value {
    let version = |name: &str, stored: bool, properties: Value| {
        json!({
            "name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }},
        })
    };
    let (integer, flag) = (json!({"type": "integer"}), json!({"type": "boolean"}));
    let tube = json!({"type": "string", "default": "inner"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": WHEEL, "plural": NAME},
            "conversion": conversion,
            "versions": [
                version("v1", true, json!({"inches": integer, "broken": flag})),
                version("v2", false, json!({"size": integer, "broken": flag, "tube": tube})),
            ],
        },
    })
}

fn path(s: &Subject, version: &str, rest: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/{}/{NAME}{rest}", s.namespace())
}

fn wheel(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": WHEEL, "metadata": {"name": name}, "spec": spec})
}

async fn make(s: &Subject, version: &str, wheel: &Value) -> Result<Reply, Violation> {
    s.post(&path(s, version, ""), wheel).await
}

async fn remove(s: &Subject, names: &[&str]) -> CheckResult {
    for name in names {
        let reply = s.delete(&path(s, "v1", &format!("/{name}")), &Value::Null).await?;
        expect("removed", reply.code, 200)?;
    }
    Ok(())
}

fn seen(event: Option<&Value>, at: &str) -> Value {
    event.and_then(|event| event.pointer(at)).cloned().unwrap_or_default()
}

async fn read(s: Subject) -> CheckResult {
    let made = make(&s, "v1", &wheel("v1", "a", json!({"inches": 20}))).await?;
    made.expect("made", 201, "/spec/inches", 20)?;
    for (version, spec) in [("v1", json!({"inches": 20})), ("v2", json!({"size": 20}))] {
        let read = s.get(&path(&s, version, "/a")).await?;
        read.holds("read", "/apiVersion", format!("{GROUP}/{version}"))?;
        read.holds("read", "/spec", spec.clone())?;
        let list = s.get(&path(&s, version, "")).await?;
        list.holds("listed", "/items/0/spec", spec.clone())?;
        let events = s.watch(&path(&s, version, "?watch=1"), "application/json", 1).await?;
        expect("watched", seen(events.first(), "/object/spec"), spec)?;
    }
    Ok(())
}

async fn written(s: Subject) -> CheckResult {
    let made = make(&s, "v2", &wheel("v2", "a", json!({"size": 20}))).await?;
    // v1 does not have the field that v2 defaults, so the response does not have it.
    made.expect("made", 201, "/spec", json!({"size": 20}))?;
    let version = made.text("/metadata/resourceVersion");
    let reply = s.merge(&path(&s, "v1", "/a"), &json!({"spec": {"inches": 20}})).await?;
    reply.holds("no change", "/metadata/resourceVersion", version.clone())?;
    let reply = s.merge(&path(&s, "v1", "/a"), &json!({"spec": {"inches": 26}})).await?;
    reply.holds("changed", "/spec", json!({"inches": 26}))?;
    reply.holds("changed", "/metadata/generation", 2)?;
    let watch = path(&s, "v2", &format!("?watch=1&resourceVersion={version}"));
    let events = s.watch(&watch, "application/json", 1).await?;
    expect("seen", seen(events.first(), "/object/spec"), json!({"size": 26}))?;
    let stored = s.get(&format!("{DEFINITIONS}/{DEFINITION}")).await?;
    stored.holds("stored", "/status/storedVersions", json!(["v1"]))
}

/// A v1 wheel with this `tamper` annotation.
async fn bad(s: &Subject, what: &str) -> Result<Reply, Violation> {
    let mut body = wheel("v1", what, json!({"inches": 1}));
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        metadata.insert("annotations".into(), json!({"tamper": what}));
    }
    make(s, "v1", &body).await?;
    s.get(&path(s, "v2", &format!("/{what}"))).await
}

async fn metadata(s: Subject) -> CheckResult {
    let reply = bad(&s, "metadata").await?;
    reply.expect("labels", 200, "/metadata/labels", json!({"from": "v2"}))?;
    reply.holds("finalizers", "/metadata/finalizers", Value::Null)
}

async fn tamper(s: Subject) -> CheckResult {
    let from = format!("conversion webhook for {GROUP}/v1, Kind={WHEEL} returned invalid object");
    let reply = bad(&s, "name").await?;
    let message = format!("{from}: must have the same name: name != another");
    reply.expect("name", 500, "/message", message)?;
    let reply = bad(&s, "kind").await?;
    let message = format!("{from} at index 0: invalid kind (expected {WHEEL}, received Another)");
    reply.expect("kind", 500, "/message", message)?;
    remove(&s, &["name", "kind"]).await
}

async fn broken(s: Subject) -> CheckResult {
    let reply = make(&s, "v2", &wheel("v2", "a", json!({"size": 1, "broken": true}))).await?;
    let message =
        |version: &str| format!("conversion webhook for {GROUP}/{version}, Kind={WHEEL} failed: it is broken");
    reply.expect("to be stored", 500, "/message", message("v2"))?;
    make(&s, "v1", &wheel("v1", "a", json!({"inches": 1, "broken": true}))).await?;
    expect("stored", s.get(&path(&s, "v1", "/a")).await?.code, 200)?;
    let reply = s.get(&path(&s, "v2", "/a")).await?;
    reply.expect("read", 500, "/message", message("v1"))?;
    let reply = s.delete(&path(&s, "v2", "/a"), &Value::Null).await?;
    reply.expect("deleted", 500, "/message", message("v1"))?;
    expect("gone", s.delete(&path(&s, "v1", "/a"), &Value::Null).await?.code, 200)
}

async fn unlisted(s: Subject) -> CheckResult {
    make(&s, "v1", &wheel("v1", "a", json!({"inches": 1, "broken": true}))).await?;
    let why = format!("conversion webhook for {GROUP}/v1, Kind={WHEEL} failed: it is broken");
    let reply = s.get(&path(&s, "v2", "?limit=5")).await?;
    reply.expect("page", 500, "/message", why)?;
    expect(
        "the other version",
        s.get(&path(&s, "v1", "")).await?.names(),
        vec!["a".to_owned()],
    )?;
    remove(&s, &["a"]).await
}

async fn silent(s: Subject) -> CheckResult {
    let list = s.get(&path(&s, "v2", "")).await?;
    let start = list.text("/metadata/resourceVersion");
    make(&s, "v1", &wheel("v1", "a", json!({"inches": 1, "broken": true}))).await?;
    make(&s, "v1", &wheel("v1", "b", json!({"inches": 1}))).await?;
    let watch = format!("?watch=1&timeoutSeconds=2&resourceVersion={start}");
    let events = s.watch(&path(&s, "v1", &watch), "application/json", 2).await?;
    expect("in the other version", events.len(), 2)?;
    expect(
        "events",
        s.watch(&path(&s, "v2", &watch), "application/json", 1).await?,
        Vec::new(),
    )?;
    remove(&s, &["a", "b"]).await
}

async fn applied(s: Subject) -> CheckResult {
    let (old, new) = (path(&s, "v1", "/a"), path(&s, "v2", "/a"));
    let made = s.apply(&old, "one", &wheel("v1", "a", json!({"inches": 20}))).await?;
    expect("made", made.code, 201)?;
    let reply = s.apply(&new, "two", &wheel("v2", "a", json!({"size": 21}))).await?;
    let message = "Apply failed with 1 conflict: conflict with \"one\": .spec.inches";
    reply.expect("conflict", 409, "/message", message)?;
    let reply = s
        .apply(
            &format!("{new}?force=true"),
            "two",
            &wheel("v2", "a", json!({"size": 21})),
        )
        .await?;
    reply.holds("forced", "/spec", json!({"size": 21}))?;
    let owner = reply.at("/metadata/managedFields/0");
    let fields = owner.get("fieldsV1").cloned().unwrap_or_default();
    expect(
        "owner",
        (seen(Some(&owner), "/manager"), fields),
        (json!("two"), json!({"f:spec": {"f:size": {}}})),
    )?;
    // The next apply uses another version: the fields of the first apply are recognized.
    let reply = s
        .apply(&old, "two", &wheel("v1", "a", json!({"broken": false})))
        .await?;
    reply.expect("removed", 200, "/spec", json!({"broken": false}))
}

async fn provider(s: Subject) -> CheckResult {
    let (group, kind) = PROVIDER_KIND;
    let definitions = metal3_api::catalog::definitions();
    let found = definitions
        .iter()
        .find(|definition| definition.group == group && definition.kind == kind);
    let Some(definition) = found else {
        return Err(Violation(format!("there is no definition of {kind}")));
    };
    let mut manifest = definition.manifest();
    if let Some(conversion) = manifest.pointer_mut("/spec/conversion") {
        *conversion = s.conversion();
    }
    s.install(&manifest).await?;
    let all = |version: &str| {
        format!(
            "/apis/{group}/{version}/namespaces/{}/{}",
            s.namespace(),
            definition.plural
        )
    };
    let body = json!({
        "apiVersion": format!("{group}/v1beta1"), "kind": kind, "metadata": {"name": "a"},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}, "noCloudProvider": true},
    });
    let made = s.post(&all("v1beta1"), &body).await?;
    made.expect("made", 201, "/spec/noCloudProvider", true)?;
    let read = s.get(&format!("{}/a", all("v1beta2"))).await?;
    let spec = (
        read.at("/spec/cloudProviderEnabled"),
        read.text("/spec/controlPlaneEndpoint/host"),
    );
    expect("read", spec, (json!(false), "10.0.0.1".into()))?;
    let patch = json!({"spec": {"controlPlaneEndpoint": {"port": 443}}});
    let patched = s.merge(&format!("{}/a", all("v1beta2")), &patch).await?;
    expect("patched", patched.code, 200)?;
    let list = s.get(&all("v1beta1")).await?;
    let spec = (
        list.at("/items/0/spec/noCloudProvider"),
        list.at("/items/0/spec/controlPlaneEndpoint/port"),
    );
    expect("listed", spec, (json!(true), json!(443)))?;
    let definition = format!("{DEFINITIONS}/{}.{group}", definition.plural);
    s.delete(&definition, &Value::Null).await?;
    s.until("the kind is removed", &definition, 404).await
}
