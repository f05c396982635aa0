//! The verbs, as types. Each belongs to the object itself or to one subresource of it.

/// A verb of the API, with the subresource it is used on.
pub trait Verb {
    /// As RBAC rules spell it.
    const NAME: &'static str;
    /// Empty for the object itself.
    const SUBRESOURCE: &'static str = "";
}

macro_rules! verbs {
    ($($(#[$doc:meta])+ $verb:ident = $name:literal $(on $subresource:literal)?;)+) => {
        $(
            $(#[$doc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $verb {}

            impl Verb for $verb {
                const NAME: &'static str = $name;
                $(const SUBRESOURCE: &'static str = $subresource;)?
            }
        )+
    };
}

verbs! {
    /// Read one object.
    Get = "get";
    /// Read all objects.
    List = "list";
    /// Watch for changes.
    Watch = "watch";
    /// Create an object.
    Create = "create";
    /// Change an object, without its status.
    Patch = "patch";
    /// Replace an object. Leases only: replacing drops fields that are not modelled.
    Update = "update";
    /// Delete an object.
    Delete = "delete";
    /// Change the status of an object.
    PatchStatus = "patch" on "status";
    /// Name an object as an owner whose deletion waits for its dependents; the server requires it for
    /// `blockOwnerDeletion`.
    UpdateFinalizers = "update" on "finalizers";
    /// Set the annotations of a host that restore a status or name a former instance. No object has this subresource:
    /// admission asks for the permission.
    UpdateRestore = "update" on "restore";
}
