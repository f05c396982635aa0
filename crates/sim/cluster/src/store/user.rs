//! A user and what he wants to do, as requests and refusals name them.

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
        if let Some((namespace, _)) = user
            .strip_prefix("system:serviceaccount:")
            .and_then(|rest| rest.split_once(':'))
            && groups.is_empty()
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let last = if user == "system:anonymous" {
            "system:unauthenticated"
        } else {
            "system:authenticated"
        };
        if !groups.iter().any(|group| group == last) {
            groups.push(last.to_owned());
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
