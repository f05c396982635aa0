//! The guard: nobody else serves a group of kinds while we do.
//!
//! Before a group is led, somebody has to know that the Go manager of that group does not run. Its Deployment is
//! *watched*, by its well-known name: while it wants or has replicas, the group stays idle and says so; when it is
//! scaled down or deleted, the group begins, and when it comes back, the group stops. A flag overrides.
//!
//! [`GuardStatus`] is the answer, with a sentence for people; `readyz`, the log and an Event repeat it. Three things are
//! told apart: *absent*, *present*, and *unknown*. What is forbidden to look at, or cannot be reached, is unknown, and
//! unknown keeps a group idle just as present does.
//!
//! Who did not declare that it looks cannot look:
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
//! It does not look at Pods, and it is no lock: between a look and a write somebody may start the other manager. That
//! is what leases and preconditions are for.

mod status;
mod watch;

pub use status::{ForeignDeployment, GuardStatus};
pub use watch::{DeploymentGuard, Guard};

/// The Deployment of the Go manager of clusters and machines, as its release installs it.
pub const CAPM3: (&str, &str) = ("capm3-system", "capm3-controller-manager");
/// The Deployment of the Go manager of IP addresses.
pub const IPAM: (&str, &str) = ("metal3-ipam-system", "ipam-controller-manager");
/// The Deployment of the Go manager of hosts.
pub const HOSTS: (&str, &str) = ("baremetal-operator-system", "baremetal-operator-controller-manager");

/// The label, on the Pods of a Deployment, by which ours are known. Our manifests keep the names of the Deployments that
/// they replace, or an upgrade would leave both behind; so a name alone does not tell whose it is.
pub const OURS: (&str, &str) = ("app.kubernetes.io/part-of", "metal3-rs");

#[cfg(test)]
pub(crate) mod tests;
