//! The handle of a simulated Ironic, cheap to clone.
//!
//! One lock guards state, fault plan and counters; it is never held across an await. This layer waits where Ironic
//! waits, injects faults and handles headers; `core` computes the answers.

mod lists;
mod stored;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderName, Response};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_ironic::version::{self, Microversion, Range};
use metal3_sim_bmc::profile;
use metal3_sim_faults::{Call, Fault, Plan};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::audit::Audit;
use crate::bmc::Bmc;
use crate::core::{Answer, Context, Core, Failure, Now};
use crate::machine::Machine;
use crate::options::Options;
use crate::refusal::Refusal;
use crate::request::ApiRequest;
use lists::Lists;

const MINIMUM: HeaderName = HeaderName::from_static("x-openstack-ironic-api-minimum-version");
const MAXIMUM: HeaderName = HeaderName::from_static("x-openstack-ironic-api-maximum-version");
const USED: HeaderName = HeaderName::from_static("x-openstack-ironic-api-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// A simulated Ironic.
#[derive(Clone)]
pub struct Ironic(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    versions: Range,
}

struct State {
    core: Core,
    faults: Plan,
    audit: Audit,
    requests: u64,
    /// Connections fail until then.
    down_until: Option<Monotonic>,
    lists: Lists,
}

impl fmt::Debug for Ironic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ironic").finish_non_exhaustive()
    }
}

impl Ironic {
    /// Starts an Ironic without nodes.
    #[must_use]
    pub fn start(options: Options) -> Self {
        let now = Now {
            wall: options.clock.now(),
            monotonic: options.clock.monotonic(),
        };
        let profiles = if options.profiles.is_empty() {
            let mut built_in = profile::parse(profile::BUILT_IN).unwrap_or_default();
            built_in.remove("small").into_iter().collect()
        } else {
            options.profiles
        };
        let state = State {
            core: Core::new(options.seed, options.pace, options.versions, profiles, now),
            faults: Plan::none(),
            audit: Audit::default(),
            requests: 0,
            down_until: None,
            lists: Lists::default(),
        };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            clock: options.clock,
            versions: options.versions,
        }))
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.0.clock)
    }

    /// Adds manageable nodes with machines, without requests. Their last changes are a minute apart, at least an hour
    /// ago. `None` for a driver that is not simulated.
    #[must_use]
    pub fn enrol(&self, count: u32, driver: &str) -> Option<Vec<NodeUuid>> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            let uuids = state.core.enrol(count, driver, now)?;
            uuids.into_iter().map(|uuid| NodeUuid::parse(uuid).ok()).collect()
        })
    }

    /// Adds a node from a complete record of a real Ironic, with its ports. Its machine gets the recorded state, and
    /// unfinished work continues and succeeds.
    ///
    /// # Errors
    /// With Ironic's message when the name exists or the driver is not simulated.
    pub fn restore(&self, node: &Map<String, Value>, ports: &[Value]) -> Result<(), String> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state
                .core
                .restore(node, ports, now)
                .map_err(|refusal| refusal.message().to_owned())
        })
    }

    /// Replaces the fault plan. Verbs are methods (`GET`), resources are paths without names
    /// (`nodes/{node}/states/power`). A watch fault answers 501.
    pub fn inject(&self, faults: Plan) {
        self.with(|state| state.faults = faults);
    }

    /// The number of faults that the current plan injected.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.with(|state| state.faults.injected())
    }

    /// The counters so far.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.with(|state| state.audit.clone())
    }

    /// Resets the counters.
    pub fn reset_audit(&self) {
        self.with(|state| state.audit = Audit::default());
    }

    /// Reads or changes the machine with this BMC address, in the form of a host or a node. Every address has a
    /// machine, also without a node. `None` only when there is no profile.
    pub fn machine_at<T>(&self, bmc: &str, change: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.machine_at(&Bmc::at(bmc)).map(change)
        })
    }

    /// The same by a node's name or UUID. `None` when the node does not exist or has no machine.
    pub fn machine<T>(&self, node: &str, change: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.machine_of(node).map(change)
        })
    }

    /// Lets the URL of an image redirect to another one.
    pub fn redirect_image(&self, url: &str, target: &str) {
        self.with(|state| state.core.redirect_image(url.to_owned(), target.to_owned()));
    }

    /// Lets a registry require a login, as `image_pull_secret` has it.
    pub fn require_login(&self, registry: &str, login: &str) {
        self.with(|state| state.core.require_login(registry.to_owned(), login.to_owned()));
    }

    /// Sets `image_download_source=local`: the conductor downloads and converts images.
    pub fn download_images(&self) {
        self.with(|state| state.core.download_images());
    }

    /// Empties the database. The machines keep power and disks.
    pub fn lose_database(&self) {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.lose_database();
        });
    }

    /// Restarts Ironic: connections fail for a while, and work that the conductor held in memory fails.
    pub fn restart(&self, down: Duration) {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.restart(now);
            state.down_until = Some(now.monotonic.after(down));
        });
    }

    /// When the next timer fires, for tests that advance time by hand.
    #[must_use]
    pub fn next_due(&self) -> Option<Monotonic> {
        self.with(|state| state.core.next_due())
    }

    fn now(&self) -> Now {
        Now {
            wall: self.0.clock.now(),
            monotonic: self.0.clock.monotonic(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.0.state.lock();
        state.lists.forget();
        work(&mut state)
    }

    /// The same for what changes no node by itself.
    fn with_same_nodes<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.state.lock())
    }

    pub(crate) fn set_base(&self, base: String) {
        self.with(|state| state.core.base = base);
    }

    /// Answers a request as Ironic does, with its delays.
    pub(crate) async fn answer(&self, request: http::Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let api_request = ApiRequest::read(&request);
        let (resource, method) = (api_request.resource(), api_request.method.as_str().to_owned());
        let (fault, number, pause, down) = self.with_same_nodes(|state| {
            state.audit.count(&method, resource.clone());
            state.requests = state.requests.saturating_add(1);
            let call = Call {
                verb: &method,
                resource: &resource,
            };
            let now = self.now().monotonic;
            let down = state.down_until.is_some_and(|until| now < until);
            (
                state.faults.fault_for(&call),
                state.requests,
                state.core.pace.request,
                down,
            )
        });
        if down {
            return Err(ConnectionBroken("connection refused".to_owned()));
        }
        tokio::time::sleep(pause).await;
        self.respond_with_fault(fault, &api_request, number).await
    }

    /// Handles a request with the fault of the plan.
    async fn respond_with_fault(
        &self,
        fault: Option<Fault>,
        api_request: &ApiRequest,
        number: u64,
    ) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let broken = || Err(ConnectionBroken("the connection broke".to_owned()));
        let refused = |refusal, retry_after| Ok(self.respond(api_request, number, Err(refusal), retry_after));
        match fault {
            None => {
                let answer = self.handle(api_request).await;
                Ok(self.respond(api_request, number, answer, None))
            }
            Some(Fault::Delay(later)) => {
                let answer = self.handle(api_request).await;
                tokio::time::sleep(later).await;
                Ok(self.respond(api_request, number, answer, None))
            }
            Some(Fault::CrashBefore) => broken(),
            Some(Fault::CrashAfter | Fault::ReplyLost) => {
                drop(self.handle(api_request).await);
                broken()
            }
            Some(Fault::Conflict) => {
                let node = api_request.path.get(1).map_or("", String::as_str);
                refused(Refusal::locked(node, crate::core::HOST), None)
            }
            Some(Fault::Refused { code, retry_after }) => refused(Refusal::ordered(code), retry_after),
            Some(
                Fault::WatchDropped { .. }
                | Fault::WatchFrozen { .. }
                | Fault::DuplicateEvents
                | Fault::StaleRead { .. },
            ) => refused(Refusal::not_simulated("this fault"), None),
        }
    }

    /// Computes the answer; retries a locked node as long as Ironic does.
    async fn handle(&self, api_request: &ApiRequest) -> Result<Answer, Refusal> {
        let microversion = self.negotiate(api_request)?;
        let (attempts, pause) =
            self.with_same_nodes(|state| (state.core.pace.lock_attempts.max(1), state.core.pace.lock_pause));
        let mut attempt = 1;
        loop {
            let now = self.now();
            let context = Context {
                request: api_request,
                now,
                microversion,
                is_retry: attempt > 1,
            };
            let answer = self.with_same_nodes(|state| state.answer(context));
            match answer {
                Ok(answer) => {
                    tokio::time::sleep(answer.delay).await;
                    return Ok(answer);
                }
                Err(Failure::Refused(refusal)) => return Err(refusal),
                Err(Failure::Bmc(after, refusal)) => {
                    tokio::time::sleep(after).await;
                    return Err(refusal);
                }
                Err(Failure::Locked(refusal)) if attempt >= attempts => return Err(refusal),
                Err(Failure::Locked(_)) => {
                    attempt = attempt.saturating_add(1);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// The microversion of a request. The root accepts any.
    fn negotiate(&self, api_request: &ApiRequest) -> Result<Microversion, Refusal> {
        let Range { minimum, maximum } = self.0.versions;
        match &api_request.version {
            Err(text) => Err(Refusal::no_such_version(format!("Invalid version {text}"))),
            Ok(Some(microversion)) if (minimum..=maximum).contains(microversion) => {
                if *microversion < version::MINIMUM && !api_request.path.is_empty() {
                    return Err(Refusal::not_simulated(&format!("the microversion {microversion}")));
                }
                Ok(*microversion)
            }
            Ok(Some(microversion)) => Err(Refusal::no_such_version(format!(
                "Version {microversion} was requested but the minor version is not supported by this service. The supported \
                 version range is: [{minimum}, {maximum}]."
            ))),
            Ok(None) if api_request.path.is_empty() => Ok(minimum),
            Ok(None) => Err(Refusal::not_simulated("a request without a microversion")),
        }
    }

    pub(crate) fn respond(
        &self,
        api_request: &ApiRequest,
        number: u64,
        answer: Result<Answer, Refusal>,
        retry_after: Option<u32>,
    ) -> Response<Vec<u8>> {
        let mut response = Response::new(Vec::new());
        let (status, body, location) = match answer {
            Ok(answer) => (answer.status, answer.body, answer.location),
            Err(refusal) => (refusal.status, Some(refusal.body().to_string().into()), None),
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        };
        set(REQUEST_ID, format!("req-{number:08x}-0000-4000-8000-000000000000"));
        set(
            header::DATE,
            self.0.clock.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        );
        // An unauthorized response has no version headers.
        if status != http::StatusCode::UNAUTHORIZED {
            set(MINIMUM, self.0.versions.minimum.to_string());
            set(MAXIMUM, self.0.versions.maximum.to_string());
            if let Ok(Some(microversion)) = &api_request.version {
                set(USED, microversion.to_string());
            }
        }
        if let Some(location) = location {
            set(header::LOCATION, location);
        }
        if let Some(seconds) = retry_after {
            set(header::RETRY_AFTER, seconds.to_string());
        }
        if let Some(body) = body {
            set(header::CONTENT_TYPE, "application/json".to_owned());
            *response.body_mut() = body.as_bytes().to_vec();
        }
        response
    }
}

impl Transport for Ironic {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_> {
        Box::pin(self.answer(request))
    }
}
