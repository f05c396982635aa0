//! This project's webhooks as functions of the simulated API server, under the names that a user of a real one sees.
//!
//! What depends on other objects is checked as if there were none: the server is locked during a review.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_cluster::{Admission, Cluster, Denial, Operation, provider_conversion};
use metal3_webhooks::in_process;
use metal3_webhooks::related_objects::{Decision, Observation, RelatedObjects};
use metal3_webhooks::table::{Hook, SUITES, Suite, Task};
use serde_json::{Value, json};

/// No other objects, and a user with all rights.
#[derive(Debug, Clone, Copy)]
pub struct NoOthers;

impl RelatedObjects for NoOthers {
    fn hosts(&self, _: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        Observation::Known(Vec::new())
    }

    fn granted(&self, _: &str, _: &str) -> Observation<Vec<String>> {
        Observation::Known(Vec::new())
    }

    fn may<'a>(&'a self, _: &'a metal3_webhooks::guarded::AccessQuestion) -> Decision<'a> {
        Box::pin(async { Ok(true) })
    }
}

/// Installs the webhooks of all groups.
pub(super) fn install(cluster: &Cluster) {
    for hook in SUITES.iter().flat_map(Suite::hooks) {
        let (name, group, kind) = (hook.name(), hook.reviewer.group, hook.reviewer.kind);
        match hook.task {
            Task::Mutate => {
                let mutate = move |admission: &Admission<'_>, object: &mut Value| mutate(&hook, admission, object);
                cluster.mutate(&name, group, kind, Arc::new(mutate));
            }
            Task::Validate => {
                let validate = move |admission: &Admission<'_>| review(&hook, admission).map(|found| warnings(&found));
                cluster.validate(&name, group, kind, Arc::new(validate));
            }
        }
    }
}

fn mutate(hook: &Hook, admission: &Admission<'_>, object: &mut Value) -> Result<(), Denial> {
    let response = review(hook, admission)?;
    let Some(patch) = response.get("patch").and_then(Value::as_str) else {
        return Ok(());
    };
    let broken = |problem: String| Denial::forbidden(format!("its patch does not apply: {problem}"));
    let patch = STANDARD.decode(patch).map_err(|error| broken(error.to_string()))?;
    let patch: json_patch::Patch = serde_json::from_slice(&patch).map_err(|error| broken(error.to_string()))?;
    let mut patched = in_version(object, hook.reviewer.version)?;
    json_patch::patch(&mut patched, &patch).map_err(|error| broken(error.to_string()))?;
    *object = in_version(&patched, admission.version)?;
    Ok(())
}

/// The response of a review that is not denied.
fn review(hook: &Hook, admission: &Admission<'_>) -> Result<Value, Denial> {
    let (operation, reviewed) = match admission.operation {
        Operation::Create => ("CREATE", metal3_api::rules::Operation::Create),
        Operation::Update => ("UPDATE", metal3_api::rules::Operation::Update),
        Operation::Delete => ("DELETE", metal3_api::rules::Operation::Delete),
    };
    if !hook.operations().contains(&reviewed) {
        return Ok(Value::Null);
    }
    let version = hook.reviewer.version;
    let document = |given: Option<&Value>| given.map(|given| in_version(given, version)).transpose();
    let named = admission.new.or(admission.old);
    let name = named.and_then(|object| object.pointer("/metadata/name")).cloned();
    let request = json!({
        "uid": "in-process", "operation": operation, "name": name.unwrap_or_else(|| "".into()),
        "resource": { "group": hook.reviewer.group, "version": version, "resource": hook.reviewer.plural },
        "userInfo": { "username": admission.user },
        "object": document(admission.new)?, "oldObject": document(admission.old)?,
    });
    let response = in_process::response(hook, &request, &NoOthers);
    if response.get("allowed") == Some(&Value::Bool(true)) {
        return Ok(response);
    }
    Err(denial(response.get("status").unwrap_or(&Value::Null)))
}

/// The object as the hook reads it: the API server converts it for the hook.
fn in_version(object: &Value, version: &str) -> Result<Value, Denial> {
    let found = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if found.rsplit('/').next() == Some(version) {
        return Ok(object.clone());
    }
    provider_conversion(object, version).map_err(Denial::forbidden)
}

fn denial(status: &Value) -> Denial {
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = status.get("code").and_then(Value::as_u64);
    Denial {
        code: code.and_then(|code| u16::try_from(code).ok()).unwrap_or(403),
        reason: match text("reason") {
            "Invalid" => "Invalid",
            "BadRequest" => "BadRequest",
            _ => "Forbidden",
        },
        message: text("message").to_owned(),
        details: status.get("details").cloned(),
    }
}

fn warnings(response: &Value) -> Vec<String> {
    let all = response.get("warnings").and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use metal3_sim_cluster::Options;

    use super::*;
    use crate::world::definitions;

    async fn create(cluster: &Cluster, path: &str, body: &Value) -> Result<Value, String> {
        let request = http::Request::builder().method(Method::POST).uri(path);
        let request = request.body(body.to_string().into_bytes()).unwrap();
        let answer = cluster.client("user").request(request).await;
        answer.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn objects_are_defaulted_and_rejected_in_each_version() {
        let cluster = Cluster::start(&Options::seeded(1));
        cluster.install(&definitions()).unwrap();
        install(&cluster);
        for version in ["v1beta1", "v1beta2"] {
            let path = format!("/apis/infrastructure.cluster.x-k8s.io/{version}/namespaces/default/metal3machines");
            let machine = |image: Value| {
                json!({
                    "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "Metal3Machine",
                    "metadata": { "name": version }, "spec": { "image": image },
                })
            };
            let image = json!({ "url": "http://a/b", "checksum": "d41d8cd98f00b204e9800998ecf8427e" });
            let refused = create(
                &cluster,
                &path,
                &machine(json!({ "url": "http://a/b", "checksum": "" })),
            )
            .await
            .unwrap_err();
            assert!(refused.contains("validation.metal3machine.infrastructure"), "{refused}");
            create(&cluster, &path, &machine(image)).await.unwrap();
        }
    }
}
