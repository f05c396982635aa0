//! Expectations about why objects wait, and their check.

use anyhow::{Result, ensure};
use metal3_explain::offline::explain_objects;
use metal3_explain::{Explanation, Link, ObjectId};
use serde::Deserialize;
use serde_json::Value;

use crate::expectation::text;

/// Expectation that a number of objects wait for a cause: the last link of their explanation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCause {
    /// Their kind.
    pub kind: String,
    /// Only the object with this name.
    pub name: Option<String>,
    /// Number of the objects that wait for it; 1 by default.
    pub count: Option<usize>,
    /// The kind of the object at the end.
    pub at: String,
    /// Its reason.
    pub reason: String,
    /// A text that occurs in its message.
    #[serde(default)]
    pub says: String,
}

impl ExpectedCause {
    /// Checks all objects of the namespace.
    ///
    /// # Errors
    /// The number of objects that wait for it, and the explanations.
    pub fn check(&self, objects: &[Value]) -> Result<()> {
        let all = self.explained(objects);
        let found = all.iter().filter(|one| self.is_end_of(one));
        let (found, wanted) = (found.count(), self.count.unwrap_or(1));
        let shown: Vec<String> = all.iter().map(show).collect();
        ensure!(
            found == wanted,
            "{found} of {} end at the cause, not {wanted}:\n{}",
            all.len(),
            shown.join("\n")
        );
        Ok(())
    }

    /// The explanations of the objects that it is about.
    #[must_use]
    pub fn explained(&self, objects: &[Value]) -> Vec<Explanation> {
        let selected = objects.iter().filter(|object| {
            let is_name = |name: &String| name == text(object, "/metadata/name");
            text(object, "/kind") == self.kind && self.name.as_ref().is_none_or(is_name)
        });
        selected
            .map(|object| explain_objects(&id_of(object), objects))
            .collect()
    }

    /// Whether an explanation ends at the cause.
    #[must_use]
    pub fn is_end_of(&self, explanation: &Explanation) -> bool {
        explanation.chain.last().is_some_and(|last| self.is_end(last))
    }

    fn is_end(&self, last: &Link) -> bool {
        last.object.kind == self.at && last.reason.as_ref() == Some(&self.reason) && last.message.contains(&self.says)
    }
}

fn id_of(object: &Value) -> ObjectId {
    let group = text(object, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    ObjectId::foreign(group, text(object, "/kind"), text(object, "/metadata/name"))
}

/// An explanation in the form of a failure message.
fn show(explanation: &Explanation) -> String {
    let links = explanation.chain.iter().map(|link| {
        let reason = link.reason.as_deref().unwrap_or(&link.title);
        format!("{}: {reason} {}", link.object, link.message)
    });
    let links: Vec<String> = links.collect();
    format!("  {}: {}", explanation.object, links.join(" -> "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_link_is_compared_with_the_cause() {
        let host = |name: &str, message: &str| {
            json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name },
                "spec": { "online": true }, "status": { "operationalStatus": "error", "errorType": "provisioning error",
                "errorMessage": message, "errorCount": 1, "poweredOn": false,
                "provisioning": { "state": "provisioning", "ID": "", "image": { "url": "" } } } })
        };
        let objects = [host("a", "checksum"), host("b", "no")];
        let check = |text: &str| serde_saphyr::from_str::<ExpectedCause>(text).unwrap().check(&objects);
        for right in [
            "{ kind: BareMetalHost, count: 2, at: BareMetalHost, reason: ProvisioningError }",
            "{ kind: BareMetalHost, at: BareMetalHost, reason: ProvisioningError, says: checksum }",
            "{ kind: BareMetalHost, name: b, at: BareMetalHost, reason: ProvisioningError }",
            "{ kind: Machine, count: 0, at: BareMetalHost, reason: ProvisioningError }",
        ] {
            assert!(check(right).is_ok(), "{right}");
        }
        for wrong in [
            "{ kind: BareMetalHost, at: BareMetalHost, reason: ProvisioningError }",
            "{ kind: BareMetalHost, name: b, at: BareMetalHost, reason: ProvisioningError, says: checksum }",
            "{ kind: BareMetalHost, name: b, at: BareMetalHost, reason: RegistrationError }",
            "{ kind: BareMetalHost, name: b, at: Secret, reason: ProvisioningError }",
        ] {
            let why = check(wrong).unwrap_err().to_string();
            assert!(why.contains("ProvisioningError"), "{wrong}: {why}");
        }
    }
}
