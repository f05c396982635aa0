//! Permissions of roles, compared with their use.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::audit::{Target, UserCounts};

/// Permissions of a set of roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    targets: BTreeSet<Target>,
}

/// A role that cannot be compared with use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{role}: {what}: name each group, resource and verb; `*` grants more than declared")]
pub struct RoleError {
    role: String,
    what: String,
}

impl Grants {
    /// Adds the permissions of a `Role` or `ClusterRole`. Rules for non-resource paths are left out.
    ///
    /// # Errors
    /// When a rule has a wildcard, or lacks a list.
    pub fn add(&mut self, document: &Value) -> Result<(), RoleError> {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("/kind"), "Role" | "ClusterRole") {
            return Ok(());
        }
        let role = text("/metadata/name");
        let rules = document.pointer("/rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            if rule.get("nonResourceURLs").is_some() {
                continue;
            }
            let names = |member: &str| names(rule, member, role);
            let (groups, resources, verbs) = (names("apiGroups")?, names("resources")?, names("verbs")?);
            for group in &groups {
                for resource in &resources {
                    self.targets.extend(verbs.iter().map(|verb| Target {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Number of permissions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Granted and never used.
    pub fn unused<'a>(&'a self, counts: &'a UserCounts) -> impl Iterator<Item = &'a Target> {
        self.targets
            .iter()
            .filter(|target| !counts.requests.contains_key(*target))
    }

    /// Used and not granted: denied, or granted by an unknown role.
    pub fn missing<'a>(&'a self, counts: &'a UserCounts) -> impl Iterator<Item = &'a Target> {
        counts.requests.keys().filter(|target| !self.targets.contains(*target))
    }
}

fn names(rule: &Value, member: &str, role: &str) -> Result<Vec<String>, RoleError> {
    let refuse = |what: String| RoleError {
        role: role.to_owned(),
        what,
    };
    let list = rule
        .get(member)
        .and_then(Value::as_array)
        .ok_or_else(|| refuse(format!("a rule without {member}")))?;
    list.iter()
        .map(|name| match name.as_str() {
            Some("*") => Err(refuse(format!("`*` in {member}"))),
            Some(name) => Ok(name.to_owned()),
            None => Err(refuse(format!("{name} in {member}"))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Log;

    fn role(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    const POOLS: &str = "
kind: ClusterRole
metadata: { name: pools }
rules:
- { apiGroups: [ipam.metal3.io], resources: [ippools, ippools/status], verbs: [patch] }
- { nonResourceURLs: [/metrics], verbs: [get] }
";

    #[test]
    fn grants_and_use_are_compared_in_both_directions() {
        let mut grants = Grants::default();
        grants.add(&role(POOLS)).unwrap();
        let line = |id: u8, verb: &str| {
            format!(
                r#"{{"auditID":"{id}","verb":"{verb}","user":{{"username":"u"}},"objectRef":{{"resource":"ippools","apiGroup":"ipam.metal3.io"}},"annotations":{{"authorization.k8s.io/decision":"forbid"}}}}"#
            )
        };
        let counts = Log::read(&[line(1, "patch"), line(2, "get")].join("\n"))
            .unwrap()
            .counts_of("u");
        let texts = |targets: Vec<&Target>| targets.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(grants.unused(&counts).collect()),
            ["patch ippools/status.ipam.metal3.io"]
        );
        assert_eq!(texts(grants.missing(&counts).collect()), ["get ippools.ipam.metal3.io"]);
        assert_eq!(counts.forbidden.len(), 2);
    }

    #[test]
    fn a_wildcard_is_rejected_with_the_name_of_the_role() {
        let wide =
            role("{ kind: Role, metadata: { name: all }, rules: [{ apiGroups: ['*'], resources: [a], verbs: [b] }] }");
        let error = Grants::default().add(&wide).unwrap_err().to_string();
        assert!(error.starts_with("all: `*` in apiGroups: "), "{error}");
        let empty = role("{ kind: Role, metadata: { name: none }, rules: [{ resources: [a], verbs: [b] }] }");
        assert!(Grants::default().add(&empty).is_err());
    }

    #[test]
    fn other_documents_grant_nothing() {
        let mut grants = Grants::default();
        grants.add(&role("{ kind: ConfigMap, rules: [{}] }")).unwrap();
        assert!(grants.is_empty());
        assert_eq!(grants.len(), 0);
    }
}
