//! A review without a request over the network, for an API server in the same process: the simulated one.
//!
//! The answers are those of the [`router`](crate::router), byte by byte. Its user has all rights, so that none is asked for.

use serde_json::{Value, json};

use crate::limits::Reviewed;
use crate::related_objects::RelatedObjects;
use crate::review;
use crate::table::Hook;

/// The `response` for the `request` of an `AdmissionReview`; null if that is no request.
#[must_use]
pub fn response(hook: &Hook, request: &Value, related_objects: &dyn RelatedObjects) -> Value {
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let parts = match review::admit(hook, review.to_string().as_bytes(), related_objects) {
        Ok(Reviewed::Answered(parts)) => parts,
        Ok(Reviewed::Asks(pending)) => pending.answer(&Ok(true)),
        Err(_) => return Value::Null,
    };
    let answer: Value = serde_json::from_slice(&parts.concat()).unwrap_or_default();
    answer.get("response").cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::related_objects::NoRelatedObjects;
    use crate::table::{HOSTS, Task};

    #[test]
    fn a_host_is_admitted_or_rejected_as_over_the_network() {
        let hooks = HOSTS.hooks().into_iter();
        let mut hosts = hooks.filter(|hook| hook.task == Task::Validate && hook.reviewer.kind == "BareMetalHost");
        let hook = hosts.next().unwrap();
        let response = |address: &str| {
            let host = json!({
                "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
                "metadata": { "name": "a", "namespace": "b" },
                "spec": { "online": true, "bmc": { "address": address, "credentialsName": "c" }, "bootMACAddress": "52:54:01:00:06:00" },
            });
            let request = json!({
                "uid": "1", "operation": "CREATE", "name": "a", "object": host,
                "resource": { "group": "metal3.io", "version": "v1alpha1", "resource": "baremetalhosts" },
            });
            response(&hook, &request, &NoRelatedObjects)
        };
        assert_eq!(response("ipmi://192.0.2.1")["allowed"], true);
        let denied = response("nonsense://192.0.2.1");
        assert_eq!(
            (&denied["allowed"], &denied["status"]["code"]),
            (&json!(false), &json!(422))
        );
        assert!(super::response(&hook, &Value::Null, &NoRelatedObjects).is_null());
    }
}
