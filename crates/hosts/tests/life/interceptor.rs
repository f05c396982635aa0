//! Intercepts the requests of the controller to Ironic: records all except those of the change feed, and injects
//! faults.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::{Ironic, describe_request};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Delay of a late response: longer than a poll of the change feed.
const LATE: Duration = Duration::from_secs(15);
/// How long a request is queued: longer than the controller waits for a response.
const QUEUED: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IronicFault {
    /// The controller crashes before Ironic receives the request.
    KilledBefore,
    /// The controller crashes after Ironic performed the request.
    KilledAfter,
    /// Ironic performs the request, and the connection breaks.
    ReplyLost,
    /// The connection breaks before Ironic receives the request.
    LostBefore,
    /// Ironic performs the request, and the connection breaks late.
    ReplyLostLate,
    Locked,
    /// Ironic rejects the request as invalid in this state.
    WrongState,
    /// Ironic fails without an effect.
    Failed,
    /// Ironic performs the request and responds late.
    Late,
    /// Ironic performs the request after the controller gave up waiting for its response.
    Queued,
}

impl IronicFault {
    pub(crate) const ALL: [Self; 8] = [
        Self::KilledBefore,
        Self::KilledAfter,
        Self::ReplyLost,
        Self::Locked,
        Self::WrongState,
        Self::Failed,
        Self::Late,
        Self::Queued,
    ];

    /// The fault of the simulator; `None`: the interceptor injects it.
    const fn fault(self) -> Option<Fault> {
        match self {
            Self::Locked => Some(Fault::Conflict),
            Self::WrongState => Some(Fault::Refused {
                code: 409,
                retry_after: None,
            }),
            Self::Failed => Some(Fault::Refused {
                code: 500,
                retry_after: None,
            }),
            Self::KilledBefore
            | Self::KilledAfter
            | Self::ReplyLost
            | Self::LostBefore
            | Self::ReplyLostLate
            | Self::Late
            | Self::Queued => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    pub(crate) asked: Vec<String>,
    /// How often Ironic performed each request.
    pub(crate) done: BTreeMap<String, usize>,
    /// The number of the request, counted from 1, and its fault.
    pub(crate) fault: Option<(usize, IronicFault)>,
    pub(crate) injected: bool,
    /// Every request whose description begins so gets a response with this status.
    pub(crate) rejected: Option<(&'static str, u16)>,
    /// Every request is refused for its login, those of the change feed too.
    pub(crate) refuses_login: bool,
    /// The response to every request whose description begins so is late.
    pub(crate) late: Option<&'static str>,
}

impl RequestLog {
    fn ask(&mut self, what: &str) -> Option<IronicFault> {
        self.asked.push(what.to_owned());
        let (at, fault) = self.fault?;
        (at == self.asked.len()).then(|| {
            self.injected = true;
            fault
        })
    }
}

/// Receives each request that changes something, before Ironic does, with the node that it names: null if there is none.
pub(crate) type Observer = dyn Fn(&Request<Vec<u8>>, &Value) + Send + Sync;

/// The number of changes that Ironic has not begun with.
pub(crate) type Unbegun = Arc<Mutex<usize>>;

/// The transport of the controller's client.
#[derive(Clone)]
pub(crate) struct Interceptor {
    ironic: Ironic,
    log: Arc<Mutex<RequestLog>>,
    kills: watch::Sender<u64>,
    observer: Arc<Mutex<Option<Arc<Observer>>>>,
    /// The requests that Ironic has not begun with.
    queued: Arc<Mutex<JoinSet<()>>>,
    /// How many changes of them the running controller sent.
    unbegun: Unbegun,
    /// Whether no request gets a response.
    hangs: Arc<Mutex<bool>>,
}

impl Interceptor {
    pub(crate) fn on(ironic: Ironic) -> Self {
        Self {
            ironic,
            log: Arc::default(),
            kills: watch::Sender::new(0),
            observer: Arc::default(),
            queued: Arc::default(),
            unbegun: Arc::default(),
            hangs: Arc::default(),
        }
    }

    /// No further request gets a response, the change feed's included.
    pub(crate) fn hang(&self, hangs: bool) {
        *self.hangs.lock() = hangs;
    }

    /// The same of another Ironic: a crash of the controller is one for both.
    pub(crate) fn to(&self, ironic: Ironic) -> Self {
        Self {
            kills: self.kills.clone(),
            unbegun: Arc::clone(&self.unbegun),
            ..Self::on(ironic)
        }
    }

    /// Calls the observer for each further request.
    pub(crate) fn observe(&self, observer: Arc<Observer>) {
        *self.observer.lock() = Some(observer);
    }

    async fn report(&self, request: &Request<Vec<u8>>) {
        let observer = self.observer.lock().clone();
        let Some(observer) = observer.filter(|_| request.method() != Method::GET) else {
            return;
        };
        let path: Vec<_> = request.uri().path().split('/').take(4).collect();
        let mut read = Request::get(path.join("/")).body(Vec::new()).unwrap();
        *read.headers_mut() = request.headers().clone();
        let answer = self.ironic.exchange(read).await;
        let node = answer
            .ok()
            .filter(|answer| answer.status().is_success() && path.len() == 4);
        let node = node.and_then(|answer| serde_json::from_slice::<Value>(answer.body()).ok());
        let mut node = node.unwrap_or_default();
        // Of two images that differ in what Ironic masks.
        let uuid = node.get("uuid").and_then(Value::as_str);
        let stored = uuid.and_then(|uuid| self.ironic.stored(uuid, "instance_info"));
        let source = stored.as_ref().and_then(|info| info.get("image_source"));
        if let (Some(source), Some(shown)) = (source, node.pointer_mut("/instance_info/image_source")) {
            *shown = source.clone();
        }
        observer(request, &node);
    }

    pub(crate) fn unbegun(&self) -> Unbegun {
        Arc::clone(&self.unbegun)
    }

    /// A controller that starts knows nothing of the requests of an earlier one.
    pub(crate) fn start(&self) {
        *self.unbegun.lock() = 0;
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, RequestLog> {
        self.log.lock()
    }

    /// Changes with every crash.
    pub(crate) fn kills(&self) -> watch::Receiver<u64> {
        self.kills.subscribe()
    }

    pub(crate) fn kill(&self) {
        self.kills.send_modify(|kills| *kills += 1);
    }

    async fn perform(&self, what: String, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let answer = self.ironic.exchange(request).await;
        if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
            *self.log().done.entry(what).or_default() += 1;
        }
        answer
    }

    fn queue(&self, what: String, request: Request<Vec<u8>>) {
        let ironic = self.clone();
        let is_change = usize::from(request.method() != Method::GET);
        *self.unbegun.lock() += is_change;
        self.queued.lock().spawn(async move {
            sleep(QUEUED).await;
            {
                let mut unbegun = ironic.unbegun.lock();
                *unbegun = unbegun.saturating_sub(is_change);
            }
            drop(ironic.perform(what, request).await);
        });
    }

    async fn forward(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let described = describe_request(&request);
        if *self.hangs.lock() {
            self.log().asked.extend(described);
            return pending().await;
        }
        if self.log().refuses_login {
            let body = json!({ "error_message": "Incorrect username or password" }).to_string();
            return Ok(Response::builder().status(401).body(body.into_bytes()).unwrap());
        }
        let Some(what) = described else {
            return self.ironic.exchange(request).await;
        };
        self.report(&request).await;
        let is_late = self.log().late.is_some_and(|begin| what.starts_with(begin));
        let fault = self.log().ask(&what).or(is_late.then_some(IronicFault::Late));
        if fault == Some(IronicFault::LostBefore) {
            return Err(ConnectionBroken("the connection broke".to_owned()));
        }
        if let Some((_, status)) = self.log().rejected.filter(|(begin, _)| what.starts_with(begin)) {
            let body = json!({ "error_message": "the driver does not support this" }).to_string();
            return Ok(Response::builder().status(status).body(body.into_bytes()).unwrap());
        }
        if fault == Some(IronicFault::KilledBefore) {
            self.kill();
            return pending().await;
        }
        if fault == Some(IronicFault::Queued) {
            self.queue(what, request);
            return pending().await;
        }
        if let Some(fault) = fault.and_then(IronicFault::fault) {
            // Applies to the next request, which is this one: nothing runs in between.
            self.ironic.inject(Plan::none().with(Rule::at(1, fault)));
        }
        let answer = self.perform(what, request).await;
        match fault {
            Some(IronicFault::KilledAfter) => {
                self.kill();
                pending().await
            }
            Some(IronicFault::ReplyLost) => Err(ConnectionBroken("the connection broke".to_owned())),
            Some(IronicFault::ReplyLostLate) => {
                sleep(LATE).await;
                Err(ConnectionBroken("the connection broke".to_owned()))
            }
            Some(IronicFault::Late) => {
                sleep(LATE).await;
                answer
            }
            _ => answer,
        }
    }
}

impl fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interceptor").finish_non_exhaustive()
    }
}

impl Transport for Interceptor {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        Box::pin(self.forward(request))
    }
}
