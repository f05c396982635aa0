//! Declared permissions: which verbs on which kinds a part of the program may use.
//!
//! A product declares them once, with [`role!`](crate::role). The declaration is a type. Code that sends requests is
//! generic over it and requires [`Permits`], so an undeclared request does not compile. Role manifests are generated
//! from the table of the same declaration ([`Role::permissions`]): what is granted is what the program uses.
//!
//! It does **not** know whether the server grants a permission, and it does not cover non-resource paths: no controller
//! requests any.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use metal3_runtime::access::{Permits, Role, verb};
//! use metal3_runtime::role;
//!
//! role! {
//!     /// What the copying controller does.
//!     pub struct Copying {
//!         ConfigMap: List, Watch, Create, Patch;
//!         Secret: Get;
//!     }
//! }
//!
//! fn patch<R: Permits<verb::Patch, K>, K>() {}
//!
//! patch::<Copying, ConfigMap>();
//! assert_eq!(Copying::permissions().len(), 5);
//! ```
//!
//! The same request for an undeclared verb does not compile:
//!
//! ```compile_fail,E0277
//! # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! # use metal3_runtime::access::{Permits, Role, verb};
//! # use metal3_runtime::role;
//! #
//! # role! {
//! #     /// What the copying controller does.
//! #     pub struct Copying {
//! #         ConfigMap: List, Watch, Create, Patch;
//! #         Secret: Get;
//! #     }
//! # }
//! #
//! # fn patch<R: Permits<verb::Patch, K>, K>() {}
//! #
//! patch::<Copying, Secret>();
//! ```

mod permission;
mod role;
pub mod verb;

pub use permission::{GroupResource, Permission, Permits, Role};
pub use verb::Verb;

#[cfg(test)]
mod tests;
