//! The admission plugin `OwnerReferencesPermissionEnforcement`, if a test switches it on.
//!
//! Who changes the owners of an object, also by removing one, must be allowed to delete the object. Who adds an owner whose
//! deletion is blocked must be allowed to update the finalizers of that owner. A create needs only the second.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Store;
use super::object;
use super::refusal::Refusal;
use super::request::Call;

/// A permission that the plugin asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// User name.
    pub user: &'a str,
    /// Verb.
    pub verb: &'a str,
    /// API group; `*` for all.
    pub group: &'a str,
    /// Resource with its subresource, such as `ippools/finalizers`.
    pub resource: &'a str,
}

/// Whether a user has a permission, in place of RBAC.
pub type May = dyn Fn(&Access<'_>) -> bool + Send + Sync;

/// The plugin: `None` is switched off.
#[derive(Clone, Default)]
pub(crate) struct OwnerPermissions(Option<Arc<May>>);

impl OwnerPermissions {
    pub(crate) fn enforce(&mut self, may: Arc<May>) {
        self.0 = Some(may);
    }
}

impl Store {
    pub(super) fn check_owners(&self, call: &Call<'_>, old: Option<&Value>, new: &Value) -> Result<(), Refusal> {
        let Some(may) = &self.owner_permissions.0 else {
            return Ok(());
        };
        let (before, after) = (old.map(owners).unwrap_or_default(), owners(new));
        if before.len() == after.len() && before.iter().zip(&after).all(|(one, other)| is_same(one, other)) {
            return Ok(());
        }
        let is_allowed = |verb: &str, group: &str, resource: &str| {
            let user = &call.request.user;
            may(&Access {
                user,
                verb,
                group,
                resource,
            })
        };
        let forbidden = |why: &str| Err(Refusal::forbidden(&call.kind, object::text(new, "name"), why));
        let resource = match call.target.subresource.as_str() {
            "" => call.kind.plural.clone(),
            subresource => format!("{}/{subresource}", call.kind.plural),
        };
        if old.is_some() && !is_allowed("delete", &call.kind.group, &resource) {
            return forbidden("cannot set an ownerRef on a resource you can't delete: , <nil>");
        }
        let blocking: Vec<&Value> = after.iter().copied().filter(|one| blocks_now(one, &before)).collect();
        if blocking.is_empty() || is_allowed("update", "*", "*/finalizers") {
            return Ok(());
        }
        for owner in blocking {
            let Some((group, plural)) = self.resource_of(owner) else {
                return forbidden(&format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {} Kind {}: \
                     no matches for kind",
                    member(owner, "apiVersion"),
                    member(owner, "kind")
                ));
            };
            if !is_allowed("update", group, &format!("{plural}/finalizers")) {
                return forbidden(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
                );
            }
        }
        Ok(())
    }

    fn resource_of(&self, owner: &Value) -> Option<(&str, &str)> {
        let group = member(owner, "apiVersion")
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        let mut kinds = self.kinds.values();
        let found = kinds.find(|kind| kind.group == group && kind.kind == member(owner, "kind"))?;
        Some((&found.group, &found.plural))
    }
}

fn owners(object: &Value) -> Vec<&Value> {
    let owners = object::member(object, "ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().collect()
}

/// A member that is null is absent.
fn is_same(one: &Value, other: &Value) -> bool {
    let members = |owner: &Value| {
        let members = owner.as_object().into_iter().flatten();
        let given = members.filter(|(_, value)| !value.is_null());
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    members(one) == members(other)
}

fn member<'a>(owner: &'a Value, name: &str) -> &'a str {
    owner.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an owner blocks its deletion, and did not before.
fn blocks_now(owner: &Value, before: &[&Value]) -> bool {
    let blocks = |owner: &Value| owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
    // The last of several with one UID counts.
    let was = before.iter().rfind(|one| member(one, "uid") == member(owner, "uid"));
    blocks(owner) && !was.is_some_and(|one| blocks(one))
}
