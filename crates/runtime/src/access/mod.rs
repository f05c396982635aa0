//! Declared needs: which verbs on which kinds a part of the program may use.
//!
//! A product declares them once, with [`role!`](crate::role). The declaration is a type; whatever talks to the API
//! server is generic over it and asks for [`Permits`], so a call that nobody declared does not compile. The table of the
//! same declaration ([`Role::permissions`]) is what role manifests are written from: what is granted is what may be used.
//!
//! It does **not** know whether the server grants anything, and it does not cover requests to paths that are no
//! resource: no controller makes any.
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
//! The same call for a verb that is not in the table is refused by the compiler:
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
