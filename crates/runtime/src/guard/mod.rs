//! The guard: a group of kinds is served only while no other implementation serves it.
//!
//! Two managers must not serve one group. The guard *watches* the Deployment of the Go manager of the group by its
//! well-known name: while it wants or has replicas, the group is idle and reports that; when it is scaled down or
//! deleted, the group starts, and when it returns, the group stops. A flag overrides the guard.
//!
//! [`GuardStatus`] is the result, with a sentence for people; `readyz`, the log and an Event repeat it. *Absent*,
//! *present* and *unknown* are three results: a Deployment that may not be read, or cannot be reached, is unknown, and
//! unknown keeps a group idle as present does.
//!
//! A role without `List` and `Watch` on Deployments does not compile:
//!
//! ```compile_fail,E0277
//! # use metal3_runtime::guard::{ForeignDeployment, IPAM, DeploymentGuard};
//! # use k8s_openapi::api::apps::v1::Deployment;
//! metal3_runtime::role! {
//!     /// Lists, and does not watch.
//!     pub struct Listing {
//!         Deployment: List;
//!     }
//! }
//! # fn start(client: kube::Client, clock: std::sync::Arc<dyn metal3_domain::clock::Clock>) {
//! DeploymentGuard::new::<Listing>(client, ForeignDeployment::at("ipam", IPAM), clock);
//! # }
//! ```
//!
//! It does not read Pods, and it is no lock: the other manager may start between a check and a write. Leases and
//! preconditions protect against that.

mod handle;
mod status;
mod watch;

pub use handle::Guard;
pub use status::{ForeignDeployment, GuardStatus};
pub use watch::{DeploymentGuard, read_status};

/// The Deployment of the Go manager of clusters and machines, as its release installs it.
pub const CAPM3: (&str, &str) = ("capm3-system", "capm3-controller-manager");
/// The Deployment of the Go manager of IP addresses.
pub const IPAM: (&str, &str) = ("metal3-ipam-system", "ipam-controller-manager");
/// The same as release 1.9 of the Go manager of clusters and machines installs it, which includes that of addresses.
pub const IPAM_OF_CAPM3: (&str, &str) = ("capm3-system", "ipam-controller-manager");
/// The Deployment of the Go manager of hosts.
pub const HOSTS: (&str, &str) = ("baremetal-operator-system", "baremetal-operator-controller-manager");

/// The label on the Pod template of a Deployment of this project. Its manifests keep the names of the Deployments that
/// they replace, so that an upgrade leaves no second one; so the name alone does not identify the implementation.
pub const PART_OF_LABEL: (&str, &str) = ("app.kubernetes.io/part-of", "metal3-rs");

#[cfg(test)]
pub(crate) mod tests;
