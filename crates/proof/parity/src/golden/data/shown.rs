//! Final objects of a case, in the form of the recorded answer.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::controllers::FinalState;
use super::render::show_claim;
use crate::golden::case::Case;
use crate::values::text;

/// Answer of a rendering case.
pub(super) fn rendered(case: &Case, state: &FinalState) -> Value {
    let mut shown = Map::new();
    let status = state
        .data
        .first()
        .and_then(|data| data.get("status"))
        .cloned()
        .unwrap_or_default();
    let is_ready = status.get("ready") == Some(&Value::Bool(true));
    shown.insert("ready".into(), is_ready.into());
    if !is_ready {
        let error = text(&status, "/errorMessage");
        // A wait that the user can end is reported as an error message.
        let how = if error.is_empty() || error.starts_with("waiting for") {
            "waits"
        } else {
            "error"
        };
        shown.insert(how.into(), true.into());
    }
    // Those of the input too: rendering must keep them.
    let made: Vec<&Value> = state.secrets.iter().collect();
    for secret in &made {
        for part in ["metaData", "networkData"] {
            if let Some(content) = secret.pointer(&format!("/data/{part}")).and_then(Value::as_str) {
                shown.insert(part.into(), plain(content).into());
            }
        }
    }
    if !made.is_empty() {
        let names: Vec<&str> = made.iter().map(|secret| text(secret, "/metadata/name")).collect();
        shown.insert("secrets".into(), json!(names));
    }
    if case.expect.get("secretObjects").is_some() {
        let objects = made.iter().map(|secret| {
            let mut object = (*secret).clone();
            object.as_object_mut().and_then(|object| object.remove("data"));
            object
        });
        shown.insert("secretObjects".into(), objects.collect());
    }
    let whole = case.expect.pointer("/claims/0/apiVersion").is_some();
    let claims = state.metal3_claims.iter().chain(&state.general_claims);
    let mut claims: Vec<Value> = claims.map(|claim| show_claim(claim.clone(), whole)).collect();
    claims.sort_by_key(|claim| claim.get("name").map(Value::to_string));
    if !claims.is_empty() {
        shown.insert("claims".into(), claims.into());
    }
    shown.into()
}

/// Content of a Secret as text.
fn plain(content: &str) -> String {
    let bytes: Result<ByteString, _> = serde_json::from_value(content.into());
    String::from_utf8_lossy(&bytes.unwrap_or_default().0).into_owned()
}

/// Answer of a naming case.
pub(super) fn numbered(state: &FinalState) -> Value {
    let mut refused = false;
    let mut claim = |claim: &Value| {
        let mut status = claim.get("status").cloned().unwrap_or_else(|| json!({}));
        let error = status.as_object_mut().and_then(|status| status.remove("errorMessage"));
        refused |= error.is_some();
        json!({
            "name": claim.pointer("/metadata/name"),
            "deleting": !text(claim, "/metadata/deletionTimestamp").is_empty(),
            "finalizers": claim.pointer("/metadata/finalizers"),
            "status": status,
        })
    };
    let claims: Vec<Value> = state.claims.iter().map(&mut claim).collect();
    let object = |object: &Value| {
        let mut object = object.clone();
        if let Some(members) = object.as_object_mut() {
            members.insert("status".into(), json!({}));
            // The server adds an empty spec.
            members.retain(|name, member| name != "spec" || *member != json!({}));
        }
        object
    };
    let mut shown = Map::new();
    shown.insert("claims".into(), claims.into());
    if !state.data.is_empty() {
        shown.insert("metal3Datas".into(), state.data.iter().map(object).collect());
    }
    if refused {
        shown.insert("error".into(), true.into());
    }
    let template = state.templates.first().cloned().unwrap_or_default();
    let indexes = template.pointer("/status/indexes").cloned();
    shown.insert("templateIndexes".into(), indexes.unwrap_or_else(|| json!([])));
    shown.insert(
        "templateOwnerReferences".into(),
        template
            .pointer("/metadata/ownerReferences")
            .cloned()
            .unwrap_or_default(),
    );
    shown.into()
}
