//! The webhook configurations, built from the same [`table`](crate::table) as the routes.
//!
//! They have no CA bundle: cert-manager injects it because of the annotation, or the manager does.

use serde_json::{Value, json};

use crate::table::{Hook, Suite, Task, operation_name};

/// cert-manager injects the CA of the certificate in this annotation.
pub const INJECTION_ANNOTATION: &str = "cert-manager.io/inject-ca-from";

/// The configurations of a suite: one for each task it has.
#[must_use]
pub fn configurations(suite: &Suite) -> Vec<Value> {
    [Task::Mutate, Task::Validate]
        .into_iter()
        .filter_map(|task| configuration(suite, task))
        .collect()
}

fn configuration(suite: &Suite, task: Task) -> Option<Value> {
    let hooks = suite.hooks().into_iter().filter(|hook| hook.task == task);
    let webhooks: Vec<Value> = hooks.map(|hook| webhook(suite, &hook)).collect();
    let mut metadata = json!({
        "name": suite.configuration(task),
        "annotations": { INJECTION_ANNOTATION: format!("{}/{}", suite.namespace, suite.named("serving-cert")) },
    });
    if let (Some(provider), Value::Object(members)) = (suite.provider, &mut metadata) {
        members.insert("labels".into(), json!({ "cluster.x-k8s.io/provider": provider }));
    }
    (!webhooks.is_empty()).then(|| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": match task {
                Task::Mutate => "MutatingWebhookConfiguration",
                Task::Validate => "ValidatingWebhookConfiguration",
            },
            "metadata": metadata,
            "webhooks": webhooks,
        })
    })
}

fn webhook(suite: &Suite, hook: &Hook) -> Value {
    let operations: Vec<&str> = hook.operations().iter().copied().map(operation_name).collect();
    json!({
        "name": hook.name(),
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": { "name": suite.service(), "namespace": suite.namespace, "path": hook.path() },
        },
        // A warning is worth no rejected request.
        "failurePolicy": if hook.reviewer.only_warns { "Ignore" } else { "Fail" },
        // The API server converts requests in another version first.
        "matchPolicy": "Equivalent",
        // Without status: only controllers write it, and no rule checks it.
        "rules": [{
            "apiGroups": [hook.reviewer.group],
            "apiVersions": [hook.reviewer.version],
            "operations": operations,
            "resources": [hook.reviewer.plural],
        }],
        "sideEffects": "None",
    })
}
