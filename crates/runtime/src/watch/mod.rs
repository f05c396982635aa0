//! List and watch: one task for each cache.
//!
//! It uses the client directly, because a cache needs the version of a list, and because an object that cannot be
//! decoded must become unreadable instead of failing its page. It makes no decision about objects and retries no write.
//!
//! Invariants:
//! - A list enters the cache as a whole, and never one that a lagging server made older than the cache.
//! - After a list the cache receives every version that the server sends, in order: a watch resumes where the last one
//!   ended, and where it cannot, a new list begins.
//! - A silent watch is not trusted: silence has a limit.
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
//! It does not use streaming lists: a page bounds the memory of both sides as well, the version of the list comes with
//! it, and one method works with every server.
//!
//! Requests: one list, in pages, and one watch for each kind at the start; then one watch for each [`WATCH_DURATION`].
//! A write with an unknown outcome, or one that failed because the cached object was out of date, costs one more list,
//! of its object alone.

mod backoff;
pub mod decode;
mod error;
mod health;
mod limits;
mod on_demand;
mod refresh;
mod scope;
mod task;
mod watch_set;

pub use decode::DecodeError;
pub use error::WatchError;
pub use health::{Failing, SILENCE_LIMIT, WatchHealth, WatchStats};
pub use on_demand::{OnDemand, WakeFn, WatchSource, WatchedCache};
pub use scope::Scope;
pub use task::{PAGE_SIZE, WATCH_DURATION, Watch};
pub use watch_set::{WatchConfig, WatchSet};
