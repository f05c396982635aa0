//! A user and what he wants to do, as requests and refusals name them.

use metal3_schema::{label_violations, subdomain_violations};

/// The group of all users with a login.
pub(super) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all clients without a login.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Who an impersonated request is from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// All groups, with those that follow from the name.
    pub groups: Vec<String>,
    /// The uid; mostly empty.
    pub uid: String,
}

impl Identity {
    /// The identity of a user with these groups.
    #[must_use]
    pub fn of(user: &str, mut groups: Vec<String>, uid: String) -> Self {
        let account = user.strip_prefix("system:serviceaccount:");
        if let Some((namespace, name)) = account.and_then(|rest| rest.split_once(':'))
            && label_violations(namespace).is_empty()
            && subdomain_violations(name).is_empty()
            && groups.is_empty()
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let has = |name: &str| groups.iter().any(|group| group == name);
        let (is_known, is_unknown) = (has(AUTHENTICATED), has(UNAUTHENTICATED));
        if user == "system:anonymous" {
            groups.extend((!is_unknown).then(|| UNAUTHENTICATED.to_owned()));
        } else if !is_known && !is_unknown {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { groups, uid }
    }
}

/// What a user wants to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wish {
    pub(super) verb: String,
    pub(super) group: String,
    /// With the subresource after a slash.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// A path, if it is not about a resource.
    pub(super) path: String,
}
