//! What roles grant, to be held against what was used.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::audit::{Tally, Target};

/// What a set of roles grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    targets: BTreeSet<Target>,
}

/// A role that cannot be held against use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{role}: {what}: name each group, resource and verb; `*` grants what nobody declared")]
pub struct TooWide {
    role: String,
    what: String,
}

impl Grants {
    /// Adds what a document grants, if it is a `Role` or `ClusterRole`. Rules for paths that are no resource are left
    /// out.
    ///
    /// # Errors
    /// When a rule has a wildcard or no list where one belongs.
    pub fn add(&mut self, document: &Value) -> Result<(), TooWide> {
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether nothing is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Granted, and never asked for.
    pub fn unused<'a>(&'a self, tally: &'a Tally) -> impl Iterator<Item = &'a Target> {
        self.targets.iter().filter(|target| !tally.asked.contains_key(*target))
    }

    /// Asked for, and granted by no role: forbidden, or allowed by a role nobody knows of.
    pub fn missing<'a>(&'a self, tally: &'a Tally) -> impl Iterator<Item = &'a Target> {
        tally.asked.keys().filter(|target| !self.targets.contains(*target))
    }
}

fn names(rule: &Value, member: &str, role: &str) -> Result<Vec<String>, TooWide> {
    let refuse = |what: String| TooWide {
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
    fn granted_and_used_are_compared_both_ways() {
        let mut grants = Grants::default();
        grants.add(&role(POOLS)).unwrap();
        let line = |id: u8, verb: &str| {
            format!(
                r#"{{"auditID":"{id}","verb":"{verb}","user":{{"username":"u"}},"objectRef":{{"resource":"ippools","apiGroup":"ipam.metal3.io"}},"annotations":{{"authorization.k8s.io/decision":"forbid"}}}}"#
            )
        };
        let tally = Log::read(&[line(1, "patch"), line(2, "get")].join("\n"))
            .unwrap()
            .of("u");
        let texts = |targets: Vec<&Target>| targets.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(grants.unused(&tally).collect()),
            ["patch ippools/status.ipam.metal3.io"]
        );
        assert_eq!(texts(grants.missing(&tally).collect()), ["get ippools.ipam.metal3.io"]);
        assert_eq!(tally.forbidden.len(), 2);
    }

    #[test]
    fn a_wildcard_is_refused_with_the_name_of_the_role() {
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
