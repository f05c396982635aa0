//! The declaration as a type and as a table.

use std::collections::BTreeSet;
use std::fmt;

use kube_core::Resource;

use super::verb::Verb;

/// A resource of the API, by group and name.
///
/// Every typed kind is one. For a kind without a type, declare an empty type and implement it.
pub trait GroupResource {
    /// API group; empty for the core group.
    fn group() -> String;
    /// Name of the resource in URLs.
    fn resource() -> String;
}

impl<K: Resource<DynamicType = ()>> GroupResource for K {
    fn group() -> String {
        K::group(&()).into_owned()
    }

    fn resource() -> String {
        K::plural(&()).into_owned()
    }
}

/// A part of the program with permissions of its own. Declared with [`role!`](crate::role).
pub trait Role: fmt::Debug + Clone + Copy + Send + Sync + 'static {
    /// Name of the part.
    const NAME: &'static str;

    /// All declared permissions.
    #[must_use]
    fn permissions() -> BTreeSet<Permission>;
}

/// The role has declared that it uses verb `V` on `K`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has not declared that it uses `{V}` on `{K}`",
    label = "undeclared use of the API",
    note = "declare the verb in the `role!` of the role: roles are granted from there"
)]
pub trait Permits<V: Verb, K>: Role {}

/// One rule: a verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// API group; empty for the core group.
    pub group: String,
    /// Name of the resource in URLs.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: &'static str,
    /// As RBAC rules spell it.
    pub verb: &'static str,
}

impl Permission {
    /// The rule for a verb on a kind.
    #[must_use]
    pub fn of<V: Verb, K: GroupResource>() -> Self {
        Self {
            group: K::group(),
            resource: K::resource(),
            subresource: V::SUBRESOURCE,
            verb: V::NAME,
        }
    }

    /// The resource as rules and audit logs name it: `ippools`, `ippools/status`.
    #[must_use]
    pub fn path(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}
