//! Roles, from what the code declared. There is no `*`: a verb on a resource is granted because a call site has it.

use std::collections::{BTreeMap, BTreeSet};

use metal3_manager::product::Product;
use metal3_runtime::access::Need;
use metal3_webhooks::table::Suite;
use serde_json::{Value, json};

use super::product::named;

/// The roles of a product and their bindings: what it needs anywhere, and what it needs in its own namespace.
pub(super) fn documents(suite: &Suite, product: &Product) -> Vec<Value> {
    let anywhere = (product.needs)();
    let at_home = (product.needs_at_home)();
    vec![
        role("Role", suite, "leader-election-role", &at_home),
        role("ClusterRole", suite, "manager-role", &anywhere),
        binding("Role", suite, "leader-election"),
        binding("ClusterRole", suite, "manager"),
    ]
}

fn role(kind: &str, suite: &Suite, name: &str, needs: &BTreeSet<Need>) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(kind, suite, name),
        "rules": rules(needs),
    })
}

fn binding(kind: &str, suite: &Suite, name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata(kind, suite, &format!("{name}-rolebinding")),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind,
            "name": suite.named(&format!("{name}-role")),
        },
        "subjects": [{ "kind": "ServiceAccount", "name": suite.named("manager"), "namespace": suite.namespace }],
    })
}

fn metadata(kind: &str, suite: &Suite, name: &str) -> Value {
    let mut metadata = named(suite, name);
    if let (true, Some(members)) = (kind == "ClusterRole", metadata.as_object_mut()) {
        members.remove("namespace");
    }
    metadata
}

/// One rule for all resources of a group that are granted the same verbs.
fn rules(needs: &BTreeSet<Need>) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for need in needs {
        let of = (need.group.as_str(), need.path());
        verbs.entry(of).or_default().insert(need.verb);
    }
    let mut rules: BTreeMap<(&str, BTreeSet<&str>), BTreeSet<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs)).or_default().insert(resource);
    }
    let rule = |((group, verbs), resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    rules.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(group: &str, resource: &str, subresource: &'static str, verb: &'static str) -> Need {
        Need {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource,
            verb,
        }
    }

    #[test]
    fn resources_with_the_same_verbs_share_a_rule() {
        let needs = BTreeSet::from([
            need("g", "as", "", "list"),
            need("g", "as", "", "watch"),
            need("g", "bs", "", "watch"),
            need("g", "bs", "", "list"),
            need("g", "bs", "status", "patch"),
            need("", "events", "", "create"),
        ]);
        let rules = Value::from(rules(&needs));
        assert_eq!(
            rules,
            json!([
                { "apiGroups": [""], "resources": ["events"], "verbs": ["create"] },
                { "apiGroups": ["g"], "resources": ["as", "bs"], "verbs": ["list", "watch"] },
                { "apiGroups": ["g"], "resources": ["bs/status"], "verbs": ["patch"] },
            ])
        );
    }
}
