//! What keeps a cache up to date: one task that lists once and then watches.
//!
//! It talks to the client directly, because a cache needs the version of the list, and because an object that cannot be
//! decoded must become known as such instead of failing the page it is on. It makes no decision about objects and
//! retries no write.
//!
//! Invariants:
//! - The cache sees a list only as a whole, and never one that a lagging server made older than what the cache has seen.
//! - From a list on, the cache sees every version that the server tells, in order: a watch resumes where the last one
//!   ended, and where it cannot, a list starts anew.
//! - A watch that says nothing is not trusted: silence has a longest duration.
//!
//! A role that did not declare `List` and `Watch` on a kind cannot watch it:
//!
//! ```compile_fail,E0277
//! # use metal3_runtime::cache::SharedCache;
//! # use metal3_runtime::watch::{Scope, Watch};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! metal3_runtime::role! {
//!     /// Lists, and does not watch.
//!     pub struct Listing {
//!         ConfigMap: List;
//!     }
//! }
//! # fn start(client: kube::Client, cache: SharedCache<ConfigMap>, clock: std::sync::Arc<dyn metal3_domain::clock::Clock>) {
//! Watch::whole::<Listing>(client, cache, &(), Scope::everywhere(), clock);
//! # }
//! ```
//!
//! It does not use the streaming form of lists: a page bounds the memory of both sides as well, the version of the list
//! comes with it, and there is one way for every server.
//!
//! Requests: one list, in pages, and one watch for each kind at the start; then one watch for each [`WATCH_DURATION`], and
//! nothing else while the server is well. A write whose outcome is not known, or that our old view made fail, costs one
//! more list, of its object alone.

mod backoff;
mod decode;
mod health;
mod on_demand;
mod refresh;
mod scope;
mod task;
mod watch_set;

pub use decode::DecodeError;
pub use health::{Failing, WatchHealth, WatchStats};
pub use on_demand::{OnDemand, WakeFn, WatchSource, WatchedCache};
pub use scope::Scope;
pub use task::{PAGE_SIZE, SILENCE_LIMIT, WATCH_DURATION, Watch, WatchError};
pub use watch_set::{WatchConfig, WatchSet};
