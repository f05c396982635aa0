//! What impersonated users may do: the roles that are bound to them, as on a server with RBAC.
//!
//! Without impersonation every client is an administrator. The default roles of Kubernetes are not objects here; what they give to
//! every user is.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Store;
use super::refusal::Refusal;
use super::request::{Request, Target};
use super::user::{AUTHENTICATED, Identity, UNAUTHENTICATED, Wish};

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
/// Paths that clients without a login may read, too.
pub(super) const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version/", "/version"];
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

impl Identity {
    pub(super) fn is_administrator(&self) -> bool {
        self.groups.iter().any(|group| group == ADMINISTRATORS)
    }
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
        let name = match target.name.as_str() {
            "" => selected_name(request.option("fieldSelector")).to_owned(),
            name => name.to_owned(),
        };
        // The server takes a Namespace for an object in itself.
        let namespace = if target.resource == "namespaces" {
            name.clone()
        } else {
            target.namespace
        };
        Self {
            verb,
            group: target.group,
            resource,
            namespace,
            name,
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

/// The one name that a field selector permits, or an empty text.
fn selected_name(selector: &str) -> &str {
    let names = selector
        .split(',')
        .filter_map(|term| term.strip_prefix("metadata.name="));
    let mut names = names.map(|name| name.strip_prefix('=').unwrap_or(name));
    names.next().unwrap_or_default()
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
        self.require(&request.user, identity, &wish)?;
        let writes = ["create", "update", "patch"].contains(&wish.verb.as_str());
        if wish.group == GROUP && writes && !identity.is_administrator() {
            // The server compares what is granted with what the user has.
            return Err(Refusal::unsupported(
                "writes of roles and bindings by an impersonated user",
            ));
        }
        Ok(())
    }

    /// Rejects an apply that creates its object for a user who may only patch.
    pub(super) fn authorize_creation(&self, request: &Request) -> Result<(), Refusal> {
        let Some(identity) = &request.identity else {
            return Ok(());
        };
        let verb = "create".to_owned();
        self.require(
            &request.user,
            identity,
            &Wish {
                verb,
                ..Wish::of(request)
            },
        )
    }

    fn require(&self, user: &str, identity: &Identity, wish: &Wish) -> Result<(), Refusal> {
        let decision = self.decide(user, identity, wish);
        match decision.allowed {
            true => Ok(()),
            false => Err(Refusal::not_allowed(user, wish, &decision.reason)),
        }
    }

    /// Whether a user may do something.
    pub(super) fn decide(&self, user: &str, identity: &Identity, wish: &Wish) -> Decision {
        let mut lost = Vec::new();
        let rules = self.rules_of(user, identity, &wish.namespace, &mut lost);
        let allowed = identity.is_administrator() || rules.iter().any(|rule| wish.is_granted_by(rule));
        let mut named = BTreeSet::new();
        lost.retain(|role| named.insert(role.clone()));
        let reason = match lost.as_slice() {
            _ if allowed => String::new(),
            [] => String::new(),
            [role] => format!("RBAC: {role}"),
            roles => format!("RBAC: [{}]", roles.join(", ")),
        };
        Decision { allowed, reason }
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
        let is_in = |name: &str| identity.groups.iter().any(|group| group == name);
        if is_in(AUTHENTICATED) {
            let review = |(resource, group): (&str, &str)| json!({ "verbs": ["create"], "apiGroups": [group], "resources": [resource] });
            rules.extend(REVIEWS.map(review));
            rules.push(json!({ "verbs": ["get"], "nonResourceURLs": DISCOVERED }));
        }
        if is_in(AUTHENTICATED) || is_in(UNAUTHENTICATED) {
            rules.push(json!({ "verbs": ["get"], "nonResourceURLs": PUBLIC }));
        }
        for (plural, within) in [("clusterrolebindings", ""), ("rolebindings", namespace)] {
            let all = self
                .objects
                .get(&(GROUP.to_owned(), plural.to_owned()))
                .into_iter()
                .flatten();
            let here = all.filter(|(key, _)| key.0 == within && (plural != "rolebindings" || !within.is_empty()));
            for (key, binding) in here.filter(|(key, binding)| is_bound(binding, user, identity, &key.0)) {
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

/// `namespace`: that of the binding.
fn is_bound(binding: &Value, user: &str, identity: &Identity, namespace: &str) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().any(|subject| {
        let text = |name: &str| subject.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "User" => text("name") == user,
            "Group" => identity.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => {
                let namespace = Some(text("namespace"))
                    .filter(|text| !text.is_empty())
                    .unwrap_or(namespace);
                user == format!("system:serviceaccount:{namespace}:{}", text("name"))
            }
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
        assert_eq!(groups("bob", &["system:unauthenticated"]), ["system:unauthenticated"]);
        assert_eq!(
            groups("system:anonymous", &["system:authenticated"]),
            ["system:authenticated", "system:unauthenticated"]
        );
        assert_eq!(groups("system:serviceaccount:A_b:x", &[]), ["system:authenticated"]);
    }

    #[test]
    fn account_of_a_binding_is_in_its_namespace_if_it_names_none() {
        let binding = |namespace: Value| json!({ "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": namespace }] });
        let user = "system:serviceaccount:a:robot";
        for (namespace, of, expected) in [
            (Value::Null, "a", true),
            (Value::Null, "b", false),
            (json!("a"), "b", true),
            (json!("b"), "a", false),
        ] {
            let bound = is_bound(&binding(namespace.clone()), user, &Identity::default(), of);
            assert_eq!(bound, expected, "{namespace} {of}");
        }
    }

    #[test]
    fn a_selector_may_permit_one_name() {
        for (selector, expected) in [
            ("metadata.name=a", "a"),
            ("type=x,metadata.name==a", "a"),
            ("metadata.name!=a", ""),
            ("", ""),
        ] {
            assert_eq!(selected_name(selector), expected, "{selector}");
        }
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
