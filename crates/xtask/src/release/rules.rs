//! Converts declared permissions into rules of a role.

use std::collections::{BTreeMap, BTreeSet};

use metal3_runtime::access::Permission;
use serde_json::{Value, json};

/// One rule per group and set of verbs; without names, for every object. Rules contain no wildcards.
pub(super) fn rules(needs: &BTreeSet<Permission>, names: &[String]) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for need in needs {
        verbs.entry((&need.group, need.path())).or_default().insert(need.verb);
    }
    let mut resources: BTreeMap<(&str, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
    for ((group, path), verbs) in verbs {
        resources.entry((group, verbs)).or_default().push(path);
    }
    let rule = |((group, verbs), resources): ((&str, BTreeSet<&str>), Vec<String>)| {
        let mut rule = json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
        if let (false, Value::Object(members)) = (names.is_empty(), &mut rule) {
            members.insert("resourceNames".into(), json!(names));
        }
        rule
    };
    resources.into_iter().map(rule).collect()
}

/// What of them a process needs that writes nothing: it reads, and asks whether a caller may have its metrics.
pub(super) fn reading(needs: BTreeSet<Permission>) -> BTreeSet<Permission> {
    let is_review =
        |need: &Permission| ["authentication.k8s.io", "authorization.k8s.io"].contains(&need.group.as_str());
    let reads = |need: &Permission| ["get", "list", "watch"].contains(&need.verb) || is_review(need);
    needs.into_iter().filter(reads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(group: &str, resource: &str, subresource: &'static str, verb: &'static str) -> Permission {
        Permission {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource,
            verb,
        }
    }

    #[test]
    fn only_resources_with_equal_verbs_share_a_rule() {
        let needs = BTreeSet::from([
            need("g", "apples", "", "get"),
            need("g", "pears", "", "get"),
            need("g", "pears", "status", "patch"),
            need("h", "apples", "", "get"),
        ]);
        let expected = [
            json!({ "apiGroups": ["g"], "resources": ["apples", "pears"], "verbs": ["get"] }),
            json!({ "apiGroups": ["g"], "resources": ["pears/status"], "verbs": ["patch"] }),
            json!({ "apiGroups": ["h"], "resources": ["apples"], "verbs": ["get"] }),
        ];
        assert_eq!(rules(&needs, &[]), expected);
    }

    #[test]
    fn a_permission_for_one_object_names_it() {
        let needs = BTreeSet::from([need("apps", "deployments", "", "list")]);
        let expected = json!({
            "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"], "resourceNames": ["one"],
        });
        assert_eq!(rules(&needs, &["one".to_owned()]), [expected]);
    }
}
