//! What impersonated users may do: the roles that are bound to them, as on a server with RBAC.
//!
//! Without impersonation every client is an administrator. The default roles of Kubernetes are not objects here; what they give to
//! every user is.

use serde_json::{Value, json};

use super::Store;
use super::refusal::Refusal;
use super::request::{Request, Target};
use super::user::{Identity, Wish};

/// Paths that every authenticated user may read.
pub(super) const DISCOVERED: [&str; 11] = [
    "/api/*",
    "/api",
    "/apis/*",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/*",
    "/openapi",
    "/readyz",
    "/version/",
    "/version",
];
/// The group that may do everything.
const ADMINISTRATORS: &str = "system:masters";
const GROUP: &str = "rbac.authorization.k8s.io";
/// Resources and groups that every authenticated user may create.
const REVIEWS: [(&str, &str); 3] = [
    ("selfsubjectreviews", "authentication.k8s.io"),
    ("selfsubjectaccessreviews", "authorization.k8s.io"),
    ("selfsubjectrulesreviews", "authorization.k8s.io"),
];

/// Whether a wish is granted, and why it may not be known.
pub(super) struct Decision {
    pub(super) allowed: bool,
    pub(super) reason: String,
}

impl Wish {
    fn of(request: &Request) -> Self {
        let method = request.method.to_lowercase();
        let Some(target) = Target::parse(&request.path) else {
            return Self {
                verb: method,
                path: request.path.clone(),
                ..Self::default()
            };
        };
        let verb = request.verb(&target).map_or(method, |verb| verb.name().to_owned());
        let resource = match target.subresource.as_str() {
            "" => target.resource.clone(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        // The server takes a Namespace for an object in itself.
        let namespace = if target.resource == "namespaces" {
            target.name.clone()
        } else {
            target.namespace
        };
        Self {
            verb,
            group: target.group,
            resource,
            namespace,
            name: target.name,
            path: String::new(),
        }
    }

    fn is_granted_by(&self, rule: &Value) -> bool {
        let has = |list: &str, wanted: &dyn Fn(&str) -> bool| texts(rule, list).any(wanted);
        let verb = |given: &str| given == "*" || given == self.verb;
        if !self.path.is_empty() {
            let path = |given: &str| match given.strip_suffix('*') {
                Some(start) => self.path.starts_with(start),
                None => given == self.path,
            };
            return has("verbs", &verb) && has("nonResourceURLs", &path);
        }
        let subresource = self.resource.split_once('/').map(|(_, name)| name);
        let resource = |given: &str| {
            let any = given.strip_prefix("*/").is_some_and(|name| Some(name) == subresource);
            given == "*" || given == self.resource || any
        };
        let is_named = texts(rule, "resourceNames").next().is_none()
            || texts(rule, "resourceNames").any(|name| name == self.name && !name.is_empty());
        has("verbs", &verb)
            && has("apiGroups", &|given| given == "*" || given == self.group)
            && has("resources", &resource)
            && is_named
    }
}

fn texts<'a>(rule: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let items = rule.get(list).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str)
}

impl Store {
    /// Rejects an impersonated request that no role allows.
    pub(super) fn authorize(&self, request: &Request) -> Result<(), Refusal> {
        let Some(identity) = &request.identity else {
            return Ok(());
        };
        let wish = Wish::of(request);
        if self.decide(&request.user, identity, &wish).allowed {
            return Ok(());
        }
        Err(Refusal::not_allowed(&request.user, &wish))
    }

    /// Whether a user may do something.
    pub(super) fn decide(&self, user: &str, identity: &Identity, wish: &Wish) -> Decision {
        let mut lost = Vec::new();
        let rules = self.rules_of(user, identity, &wish.namespace, &mut lost);
        let is_administrator = identity.groups.iter().any(|group| group == ADMINISTRATORS);
        let allowed = is_administrator || rules.iter().any(|rule| wish.is_granted_by(rule));
        let reason = if allowed { String::new() } else { lost.join(", ") };
        Decision {
            allowed,
            reason: if reason.is_empty() {
                reason
            } else {
                format!("RBAC: {reason}")
            },
        }
    }

    /// The rules that a user has in a namespace. `lost` gets the roles that do not exist.
    pub(super) fn rules_of(
        &self,
        user: &str,
        identity: &Identity,
        namespace: &str,
        lost: &mut Vec<String>,
    ) -> Vec<Value> {
        let mut rules = Vec::new();
        if identity.groups.iter().any(|group| group == "system:authenticated") {
            let review = |(resource, group): (&str, &str)| json!({ "verbs": ["create"], "apiGroups": [group], "resources": [resource] });
            rules.extend(REVIEWS.map(review));
            rules.push(json!({ "verbs": ["get"], "nonResourceURLs": DISCOVERED }));
        }
        for (plural, within) in [("clusterrolebindings", ""), ("rolebindings", namespace)] {
            let all = self
                .objects
                .get(&(GROUP.to_owned(), plural.to_owned()))
                .into_iter()
                .flatten();
            let here = all.filter(|(key, _)| key.0 == within && (plural != "rolebindings" || !within.is_empty()));
            for (key, binding) in here.filter(|(_, binding)| is_bound(binding, user, identity)) {
                let text = |name: &str| {
                    binding
                        .pointer(&format!("/roleRef/{name}"))
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                };
                let (roles, scope) = match text("kind") {
                    "ClusterRole" => ("clusterroles", ""),
                    _ => ("roles", key.0.as_str()),
                };
                let role = self.objects.get(&(GROUP.to_owned(), roles.to_owned()));
                match role.and_then(|roles| roles.get(&(scope.to_owned(), text("name").to_owned()))) {
                    Some(role) => rules.extend(
                        role.get("rules")
                            .and_then(Value::as_array)
                            .into_iter()
                            .flatten()
                            .cloned(),
                    ),
                    None => lost.push(format!(
                        "{}.{GROUP} {:?} not found",
                        text("kind").to_lowercase(),
                        text("name")
                    )),
                }
            }
        }
        rules
    }
}

fn is_bound(binding: &Value, user: &str, identity: &Identity) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().any(|subject| {
        let text = |name: &str| subject.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "User" => text("name") == user,
            "Group" => identity.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => user == format!("system:serviceaccount:{}:{}", text("namespace"), text("name")),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_from_the_name() {
        let groups = |user: &str, given: &[&str]| {
            Identity::of(
                user,
                given.iter().map(|name| (*name).to_owned()).collect(),
                String::new(),
            )
            .groups
        };
        assert_eq!(groups("bob", &["dev"]), ["dev", "system:authenticated"]);
        assert_eq!(
            groups("system:serviceaccount:a:b", &[]),
            [
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated"
            ]
        );
        assert_eq!(groups("system:anonymous", &[]), ["system:unauthenticated"]);
    }

    #[test]
    fn rule_grants_what_it_names() {
        let wish = |verb: &str, resource: &str, name: &str| Wish {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Wish::default()
        };
        let rule =
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"], "resourceNames": ["a"] });
        for (verb, resource, name, expected) in [
            ("get", "pods", "a", true),
            ("get", "pods", "b", false),
            ("get", "pods", "", false),
            ("list", "pods", "a", false),
            ("get", "pods/log", "a", false),
            ("get", "things/scale", "a", true),
        ] {
            assert_eq!(
                wish(verb, resource, name).is_granted_by(&rule),
                expected,
                "{verb} {resource} {name}"
            );
        }
    }
}
