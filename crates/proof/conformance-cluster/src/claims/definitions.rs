//! Claims about CRDs: rules, versions and deletion. Each claim has a separate CRD.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{DEFINITIONS, GROUP, rows};
use crate::outcome::{CheckResult, Violation, expect};
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "definitions", "rules", "a violated rule rejects the object with its message" => rule;
        "definitions", "rules", "a transition rule compares with the stored object" => transition;
        "definitions", "versions", "without conversion, versions differ only in name" => versions;
        "definitions", "versions", "exactly one version is the storage version" => one_storage;
        "definitions", "versions", "a former storage version stays in storedVersions and cannot be removed from the spec before" => stored_versions;
        "definitions", "provider", "every generated CRD of the provider is accepted" => provider;
        "definitions", "removal", "deleting a kind deletes its objects, and watches report it" => removal;
        "definitions", "removal", "a terminating kind waits for objects with finalizers and accepts no new ones" => held_back;
    }
}

/// The kind of one claim.
struct Gadget {
    plural: &'static str,
    base: String,
}

impl Gadget {
    async fn install(s: &Subject, plural: &'static str, versions: &[&str]) -> Result<Self, Violation> {
        let schema = json!({
            "type": "object",
            "properties": {"spec": {
                "type": "object",
                "properties": {
                    "least": {"type": "integer"},
                    "most": {"type": "integer", "x-kubernetes-validations": [
                        {"rule": "self >= oldSelf", "message": "never less than before"},
                    ]},
                },
                "x-kubernetes-validations": [
                    {"rule": "!has(self.least) || !has(self.most) || self.least <= self.most", "message": "least above most"},
                ],
            }},
        });
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(number, name)| {
                json!({
                    "name": name, "served": true, "storage": number == 0, "schema": {"openAPIV3Schema": schema},
                })
            })
            .collect();
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "versions": versions,
                "names": {"kind": kind(plural), "plural": plural},
            },
        });
        s.install(&definition).await?;
        let base = format!("/apis/{GROUP}/v1/namespaces/{}/{plural}", s.namespace());
        Ok(Self { plural, base })
    }

    async fn make(&self, s: &Subject, name: &str, finalizers: &[&str]) -> Result<String, Violation> {
        let reply = s.post(&self.base, &self.object(name, finalizers)).await?;
        expect("created", reply.code, 201)?;
        Ok(reply.text("/metadata/resourceVersion"))
    }

    fn object(&self, name: &str, finalizers: &[&str]) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind(self.plural),
            "metadata": {"name": name, "finalizers": finalizers}, "spec": {"least": 1, "most": 2},
        })
    }

    fn definition(&self) -> String {
        format!("{DEFINITIONS}/{}.{GROUP}", self.plural)
    }

    async fn remove(&self, s: &Subject) -> CheckResult {
        s.delete(&self.definition(), &Value::Null).await?;
        s.until("the kind is removed", &self.definition(), 404).await
    }
}

/// The kind of `gadgets` is `KindOfgadgets`.
fn kind(plural: &str) -> String {
    format!("KindOf{plural}")
}

async fn rule(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "ruled", &["v1"]).await?;
    let mut body = gadget.object("a", &[]);
    if let Some(spec) = body.get_mut("spec") {
        *spec = json!({"least": 3, "most": 2});
    }
    let reply = s.post(&gadget.base, &body).await?;
    let message = "KindOfruled.conformance.metal3.io \"a\" is invalid: spec: Invalid value: least above most";
    reply.expect("message", 422, "/message", message)?;
    gadget.make(&s, "a", &[]).await?;
    let reply = s
        .merge(&format!("{}/a", gadget.base), &json!({"spec": {"least": 9}}))
        .await?;
    reply.expect("update", 422, "/message", message)?;
    gadget.remove(&s).await
}

async fn transition(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "moved", &["v1"]).await?;
    gadget.make(&s, "a", &[]).await?;
    let one = format!("{}/a", gadget.base);
    let most = |most: u8| json!({"spec": {"most": most}});
    expect("up", s.merge(&one, &most(5)).await?.code, 200)?;
    let reply = s.merge(&one, &most(4)).await?;
    let message =
        "KindOfmoved.conformance.metal3.io \"a\" is invalid: spec.most: Invalid value: 4: never less than before";
    reply.expect("down", 422, "/message", message)?;
    gadget.remove(&s).await
}

async fn versions(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "versioned", &["v1", "v2"]).await?;
    let version = gadget.make(&s, "a", &[]).await?;
    let newer = gadget.base.replacen("/v1/", "/v2/", 1);
    let reply = s.get(&format!("{newer}/a")).await?;
    let seen = (
        reply.text("/apiVersion"),
        reply.text("/metadata/resourceVersion"),
        reply.at("/spec/most"),
    );
    expect("read", seen, (format!("{GROUP}/v2"), version.clone(), json!(2)))?;
    let reply = s.merge(&format!("{newer}/a"), &json!({"spec": {"most": 6}})).await?;
    reply.expect("written", 200, "/apiVersion", format!("{GROUP}/v2"))?;
    let list = s.get(&gadget.base).await?;
    list.holds("listed", "/items/0/apiVersion", format!("{GROUP}/v1"))?;
    list.holds("listed", "/items/0/spec/most", 6)?;
    let path = format!("{newer}?watch=1&resourceVersion={version}");
    let events = s.watch(&path, "application/json", 1).await?;
    let seen = events
        .first()
        .and_then(|event| event.pointer("/object/apiVersion"))
        .cloned();
    expect("watched", seen, Some(json!(format!("{GROUP}/v2"))))?;
    gadget.remove(&s).await
}

/// The versions of a gadget, one of which is the storage version.
fn storing(definition: &Value, names: &[&str], storage: &str) -> Value {
    let schema = definition
        .pointer("/spec/versions/0/schema")
        .cloned()
        .unwrap_or_default();
    let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == storage, "schema": schema});
    json!({"spec": {"versions": names.iter().map(version).collect::<Vec<_>>()}})
}

async fn one_storage(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "single", &["v1"]).await?;
    let path = gadget.definition();
    let definition = s.get(&path).await?.body;
    for (names, storage) in [(["v1", "v2"].as_slice(), ""), (&["v1", "v1"], "v1")] {
        let reply = s.merge(&path, &storing(&definition, names, storage)).await?;
        let seen = (reply.code, reply.text("/details/causes/0/field"));
        expect(&format!("{names:?}"), seen, (422, "spec.versions".into()))?;
    }
    gadget.remove(&s).await
}

async fn stored_versions(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "remembered", &["v1"]).await?;
    let path = gadget.definition();
    let stored = |reply: &Reply| (reply.code, reply.at("/status/storedVersions"));
    let definition = s.get(&path).await?.body;
    let both = storing(&definition, &["v1", "v2"], "v2");
    let reply = s.merge(&path, &both).await?;
    expect("added", stored(&reply), (200, json!(["v1", "v2"])))?;
    let alone = storing(&definition, &["v2"], "v2");
    let reply = s.merge(&path, &alone).await?;
    let message = "CustomResourceDefinition.apiextensions.k8s.io \"remembered.conformance.metal3.io\" is invalid: \
                   status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage \
                   version, and must remain in spec.versions until a storage migration ensures no data remains \
                   persisted in v1 and removes v1 from status.storedVersions";
    reply.expect("removed", 422, "/message", message)?;
    let forgotten = json!({"status": {"storedVersions": ["v2"]}});
    let reply = s.merge(&path, &forgotten).await?;
    expect("not by the object's path", stored(&reply), (200, json!(["v1", "v2"])))?;
    let status = format!("{path}/status");
    expect(
        "forgotten",
        stored(&s.merge(&status, &forgotten).await?),
        (200, json!(["v2"])),
    )?;
    expect(
        "removed then",
        stored(&s.merge(&path, &alone).await?),
        (200, json!(["v2"])),
    )?;
    let none = json!({"status": {"storedVersions": []}});
    expect(
        "never none",
        stored(&s.merge(&status, &none).await?),
        (200, json!(["v2"])),
    )?;
    gadget.remove(&s).await
}

async fn provider(s: Subject) -> CheckResult {
    for definition in metal3_api::catalog::definitions() {
        let reply = s
            .post(&format!("{DEFINITIONS}?dryRun=All"), &definition.manifest())
            .await?;
        expect(
            &definition.name(),
            (reply.code, reply.text("/message")),
            (201, String::new()),
        )?;
    }
    Ok(())
}

async fn removal(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "removed", &["v1"]).await?;
    gadget.make(&s, "a", &[]).await?;
    let version = gadget.make(&s, "b", &[]).await?;
    let path = format!("{}?watch=1&resourceVersion={version}", gadget.base);
    let (events, removed) = futures::join!(s.watch(&path, "application/json", 2), gadget.remove(&s));
    removed?;
    let text = |event: &Value, at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seen: BTreeSet<String> = events?
        .iter()
        .map(|event| format!("{} {}", text(event, "/type"), text(event, "/object/metadata/name")))
        .collect();
    expect(
        "events",
        seen,
        BTreeSet::from(["DELETED a".to_owned(), "DELETED b".to_owned()]),
    )?;
    s.until("the kind is not served", &gadget.base, 404).await
}

async fn held_back(s: Subject) -> CheckResult {
    let gadget = Gadget::install(&s, "held", &["v1"]).await?;
    gadget.make(&s, "a", &["example.org/hold"]).await?;
    let reply = s.delete(&gadget.definition(), &Value::Null).await?;
    reply.expect("answer", 200, "/kind", "CustomResourceDefinition")?;
    let finalizers = json!(["customresourcecleanup.apiextensions.k8s.io"]);
    reply.holds("finalizers", "/metadata/finalizers", finalizers)?;
    let (all, other) = (format!("{}?dryRun=All", gadget.base), gadget.object("b", &[]));
    s.until_matches(
        "new objects are refused",
        || s.post(&all, &other),
        |reply| reply.code == 403,
    )
    .await?;
    let message = "held.conformance.metal3.io \"b\" is forbidden: create not allowed while custom resource definition is \
                   terminating";
    expect("message", s.post(&all, &other).await?.text("/message"), message.into())?;
    let one = format!("{}/a", gadget.base);
    let marked = |reply: &Reply| !reply.text("/metadata/deletionTimestamp").is_empty();
    s.until_matches("the object is marked", || s.get(&one), marked).await?;
    expect("definition", s.get(&gadget.definition()).await?.code, 200)?;
    s.merge(&one, &json!({"metadata": {"finalizers": null}})).await?;
    s.until("the kind is removed", &gadget.definition(), 404).await
}
