//! Deployments: the selector must not be empty and must match the template.

use metal3_schema::FieldError;
use serde_json::{Value, json};

/// Errors of a Deployment: of its selector, its replicas, its strategy, and of a template without containers.
pub(super) fn errors(deployment: &Value) -> Vec<FieldError> {
    let at = |pointer: &str| deployment.pointer(pointer);
    let mut errors = selector_errors(deployment);
    if let Some(replicas) = at("/spec/replicas")
        .and_then(Value::as_i64)
        .filter(|replicas| *replicas < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", replicas, detail));
    }
    let is_recreated = at("/spec/strategy/type") == Some(&json!("Recreate"));
    if is_recreated && at("/spec/strategy/rollingUpdate").is_some_and(|rolling| !rolling.is_null()) {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", detail));
    }
    let containers = at("/spec/template/spec/containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.template.spec.containers", ""));
    }
    errors
}

/// Errors of the selector.
fn selector_errors(deployment: &Value) -> Vec<FieldError> {
    let labels = deployment
        .pointer("/spec/template/metadata/labels")
        .cloned()
        .unwrap_or_default();
    let mismatch = || {
        let detail = "`selector` does not match template `labels`";
        FieldError::invalid("spec.template.metadata.labels", labels.clone(), detail)
    };
    let selector = match deployment.pointer("/spec/selector") {
        None | Some(Value::Null) => return vec![FieldError::required("spec.selector", ""), mismatch()],
        Some(selector) => without_empty(selector),
    };
    if selector == json!({}) {
        let detail = "empty selector is invalid for deployment";
        return vec![FieldError::invalid("spec.selector", selector, detail)];
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let (mut errors, mut selected) = (Vec::new(), selects(selector.get("matchLabels"), &labels));
    for (number, expression) in expressions.into_iter().flatten().enumerate() {
        match holds(
            &format!("spec.selector.matchExpressions[{number}]"),
            expression,
            &labels,
        ) {
            Ok(holds) => selected &= holds,
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        errors.push(FieldError::invalid("spec.selector", selector, "invalid label selector"));
    } else if !selected {
        errors.push(mismatch());
    }
    errors
}

/// The selector without empty members.
fn without_empty(selector: &Value) -> Value {
    let mut selector = selector.clone();
    if let Value::Object(map) = &mut selector {
        map.retain(|_, value| !(value.is_null() || *value == json!({}) || *value == json!([])));
    }
    selector
}

fn selects(wanted: Option<&Value>, labels: &Value) -> bool {
    let mut wanted = wanted.and_then(Value::as_object).into_iter().flatten();
    wanted.all(|(name, value)| labels.get(name) == Some(value))
}

/// Whether labels match an expression; an error when the expression is invalid.
fn holds(at: &str, expression: &Value, labels: &Value) -> Result<bool, FieldError> {
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array);
    let none = values.is_none_or(Vec::is_empty);
    let found = labels.get(text("key"));
    let listed = found.is_some_and(|found| values.is_some_and(|values| values.contains(found)));
    let at_values = format!("{at}.values");
    match text("operator") {
        "In" | "NotIn" if none => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            Err(FieldError::required(at_values, detail))
        }
        "Exists" | "DoesNotExist" if !none => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Err(FieldError::forbidden(at_values, detail))
        }
        "In" => Ok(listed),
        "NotIn" => Ok(!listed),
        "Exists" => Ok(found.is_some()),
        "DoesNotExist" => Ok(found.is_none()),
        other => {
            let detail = "not a valid selector operator";
            Err(FieldError::invalid(format!("{at}.operator"), other, detail))
        }
    }
}
