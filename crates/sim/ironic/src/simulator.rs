//! The simulated Ironic as the outside holds it: a handle that is cheap to clone.
//!
//! One lock guards state, fault plan and counters; it is never held across an await. This shell waits where Ironic
//! waits, acts out the fault plan and speaks the headers; what is answered is decided in `core`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderName, Response};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use metal3_sim_faults::{Call, Fault, Plan};
use metal3_ironic::Client;
use metal3_ironic::endpoint::{Endpoint, EndpointError, Settings};
use metal3_ironic::version::{self, Microversion, Range};
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_sim_bmc::profile;
use serde_json::{Map, Value};

use crate::asked::Asked;
use crate::audit::Audit;
use crate::bmc::Bmc;
use crate::core::{Answer, Context, Core, Now, Stop};
use crate::machine::Machine;
use crate::options::Options;
use crate::refusal::Refusal;

const MINIMUM: HeaderName = HeaderName::from_static("x-openstack-ironic-api-minimum-version");
const MAXIMUM: HeaderName = HeaderName::from_static("x-openstack-ironic-api-maximum-version");
const SPOKEN: HeaderName = HeaderName::from_static("x-openstack-ironic-api-version");
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
    /// Until then nobody answers.
    down_until: Option<Monotonic>,
}

impl fmt::Debug for Ironic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ironic").finish_non_exhaustive()
    }
}

impl Ironic {
    /// Starts one without nodes.
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
        };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            clock: options.clock,
            versions: options.versions,
        }))
    }

    /// A client that talks to it without sockets.
    ///
    /// # Errors
    /// Never in practice: the address is a constant.
    pub fn client(&self) -> Result<Client, EndpointError> {
        let settings = Settings::new(Endpoint::parse("http://ironicsim")?);
        Ok(Client::over(
            Arc::new(self.clone()),
            settings,
            Arc::clone(&self.0.clock),
        ))
    }

    /// Puts so many manageable nodes with machines in, without a request each. They changed a minute apart, long ago.
    /// `None` for a driver that is not simulated.
    #[must_use]
    pub fn enrol(&self, count: u32, driver: &str) -> Option<Vec<NodeUuid>> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            let uuids = state.core.enrol(count, driver, now)?;
            uuids.into_iter().map(|uuid| NodeUuid::parse(uuid).ok()).collect()
        })
    }

    /// Puts a node in as a real Ironic showed it, whole, with its ports; its machine becomes what the record says of it.
    /// Work under way goes on to a good end.
    ///
    /// # Errors
    /// In Ironic's words, when this Ironic cannot have such a node: the name is taken, or the driver is not simulated.
    pub fn restore(&self, node: &Map<String, Value>, ports: &[Value]) -> Result<(), String> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.restore(node, ports, now).map_err(|no| no.words().to_owned())
        })
    }

    /// From now on requests suffer these faults. Verbs are methods (`GET`), resources are paths without names
    /// (`nodes/{node}/states/power`). Faults of watches mean nothing here: a request that one strikes gets 501.
    pub fn inject(&self, faults: Plan) {
        self.with(|state| state.faults = faults);
    }

    /// How many requests the present faults have struck.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.with(|state| state.faults.injected())
    }

    /// The counters so far.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.with(|state| state.audit.clone())
    }

    /// Starts counting anew.
    pub fn reset_audit(&self) {
        self.with(|state| state.audit = Audit::default());
    }

    /// Plays the world outside: looks at a machine, or changes it, by the address of its BMC as a host or a node writes
    /// it. There is a machine behind every address, before any node names it and after none does any more. `None` only
    /// where [`Options::profiles`] has nothing to make it of.
    pub fn machine_at<T>(&self, bmc: &str, change: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.machine_at(&Bmc::at(bmc)).map(change)
        })
    }

    /// The same by a node's name or identity. `None` when there is no such node or it has no machine.
    pub fn machine<T>(&self, node: &str, change: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.machine_of(node).map(change)
        })
    }

    /// Empties the database. The machines stay as they are: on or off, with what their disks hold.
    pub fn lose_database(&self) {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.lose_database();
        });
    }

    /// Restarts it: connections break for a while, and work that only the conductor could have gone on with fails.
    pub fn restart(&self, down: Duration) {
        let now = self.now();
        self.with(|state| {
            state.core.advance(now);
            state.core.restart(now);
            state.down_until = Some(now.monotonic.after(down));
        });
    }

    /// When something happens next without being asked for: for whoever moves the time by hand.
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
        // A panic inside leaves a test that fails anyway; the state itself is written in small whole steps.
        work(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_base(&self, base: String) {
        self.with(|state| state.core.base = base);
    }

    /// Answers a request as Ironic would, in its time.
    pub(crate) async fn answer(&self, request: http::Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let asked = Asked::read(&request);
        let (resource, method) = (asked.resource(), asked.method.as_str().to_owned());
        let (fault, number, pause, down) = self.with(|state| {
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
        self.strike(fault, &asked, number).await
    }

    /// Acts out what the fault plan has for a request.
    async fn strike(&self, fault: Option<Fault>, asked: &Asked, number: u64) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let broken = || Err(ConnectionBroken("the connection broke".to_owned()));
        let refused = |refusal, retry_after| Ok(self.respond(asked, number, Err(refusal), retry_after));
        match fault {
            None => {
                let answer = self.decide(asked).await;
                Ok(self.respond(asked, number, answer, None))
            }
            Some(Fault::Delay(later)) => {
                let answer = self.decide(asked).await;
                tokio::time::sleep(later).await;
                Ok(self.respond(asked, number, answer, None))
            }
            Some(Fault::CrashBefore) => broken(),
            Some(Fault::CrashAfter | Fault::ReplyLost) => {
                drop(self.decide(asked).await);
                broken()
            }
            Some(Fault::Conflict) => {
                let node = asked.path.get(1).map_or("", String::as_str);
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

    /// What the answer is, waiting for a locked node as long as Ironic does.
    async fn decide(&self, asked: &Asked) -> Result<Answer, Refusal> {
        let speaks = self.speaks(asked)?;
        let (attempts, pause) = self.with(|state| (state.core.pace.lock_attempts.max(1), state.core.pace.lock_pause));
        let mut attempt = 1;
        loop {
            let now = self.now();
            let context = Context {
                now,
                speaks,
                again: attempt > 1,
            };
            let answer = self.with(|state| {
                state.core.advance(now);
                state.core.answer(asked, context)
            });
            match answer {
                Ok(answer) => {
                    tokio::time::sleep(answer.late).await;
                    return Ok(answer);
                }
                Err(Stop::Refused(refusal)) => return Err(refusal),
                Err(Stop::BmcError(after, refusal)) => {
                    tokio::time::sleep(after).await;
                    return Err(refusal);
                }
                Err(Stop::Locked(refusal)) if attempt >= attempts => return Err(refusal),
                Err(Stop::Locked(_)) => {
                    attempt = attempt.saturating_add(1);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// The dialect of a request. The root answers in any.
    fn speaks(&self, asked: &Asked) -> Result<Microversion, Refusal> {
        let Range { minimum, maximum } = self.0.versions;
        match &asked.version {
            Err(text) => Err(Refusal::no_such_version(format!("Invalid version {text}"))),
            Ok(Some(speaks)) if (minimum..=maximum).contains(speaks) => {
                if *speaks < version::MINIMUM && !asked.path.is_empty() {
                    return Err(Refusal::not_simulated(&format!("the dialect {speaks}")));
                }
                Ok(*speaks)
            }
            Ok(Some(speaks)) => Err(Refusal::no_such_version(format!(
                "Version {speaks} was requested but the minor version is not supported by this service. The supported \
                 version range is: [{minimum}, {maximum}]."
            ))),
            Ok(None) if asked.path.is_empty() => Ok(minimum),
            Ok(None) => Err(Refusal::not_simulated("a request without a dialect")),
        }
    }

    pub(crate) fn respond(
        &self,
        asked: &Asked,
        number: u64,
        answer: Result<Answer, Refusal>,
        retry_after: Option<u32>,
    ) -> Response<Vec<u8>> {
        let mut response = Response::new(Vec::new());
        let (status, body, location) = match answer {
            Ok(answer) => (answer.status, answer.body, answer.location),
            Err(refusal) => (refusal.status, Some(refusal.body()), None),
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
        // A refused login learns nothing.
        if status != http::StatusCode::UNAUTHORIZED {
            set(MINIMUM, self.0.versions.minimum.to_string());
            set(MAXIMUM, self.0.versions.maximum.to_string());
            if let Ok(Some(speaks)) = &asked.version {
                set(SPOKEN, speaks.to_string());
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
            *response.body_mut() = body.to_string().into_bytes();
        }
        response
    }
}

impl Transport for Ironic {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_> {
        Box::pin(self.answer(request))
    }
}
