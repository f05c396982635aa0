//! The I/O of machines and agents: the clock, requests to Ironic, background work of commands.
//!
//! One task per machine applies requests of its BMC; one task per boot runs the booted system. Locks are held only for
//! calls into the pure modules, never across an await.

mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent::{Action, Agent, Parameters, Request},
    boot::agent_of,
    disk::Content,
    fault::Fault,
    identity::Number,
    machine::{AgentImage, At, Effect, Machine, Reset, Running, Timing},
    redfish::{Credentials, Sessions},
    store::Store,
};

/// A longer request would outlast a power cycle.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const ISO_ATTEMPTS: u32 = 5;

/// A machine with its BMC and agent.
#[derive(Debug)]
pub struct Host {
    /// The machine number.
    pub number: Number,
    state: Mutex<State>,
    changed: Notify,
}

/// The state of a [`Host`].
#[derive(Debug)]
pub struct State {
    /// The machine.
    pub machine: Machine,
    /// Its BMC's sessions.
    pub sessions: Sessions,
    /// The agent, while the deploy ramdisk runs.
    pub agent: Option<Arc<RunningAgent>>,
    boot: CancellationToken,
}

/// A running agent.
#[derive(Debug)]
pub struct RunningAgent {
    agent: Mutex<Agent>,
    changed: Notify,
}

impl Host {
    /// Locks the machine.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Wakes up the machine's task.
    pub fn touch(&self) {
        self.changed.notify_one();
    }
}

impl RunningAgent {
    /// Locks the agent.
    pub fn lock(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock()
    }
}

/// All machines and their shared parts.
#[derive(Debug)]
pub struct Lab {
    /// The machines.
    pub hosts: BTreeMap<Number, Arc<Host>>,
    /// The login of all BMCs and of the control endpoint.
    pub credentials: Credentials,
    /// The durations of operations.
    pub timing: Timing,
    /// The content of disks.
    pub store: Store,
    /// The root of the agents' callback addresses.
    pub agents_url: String,
    /// The certificate that Ironic must trust for agents.
    pub certificate: Arc<str>,
    /// The client for Ironic and its file server.
    pub client: reqwest::Client,
    /// All tasks.
    pub tasks: TaskTracker,
    /// Cancels them.
    pub stop: CancellationToken,
    /// Checksums that are accepted for any content: of images that are not available here.
    pub trusted_checksums: BTreeSet<String>,
    /// The start of the lab.
    pub epoch: Instant,
}

impl Lab {
    /// Creates the hosts of machines, for [`Lab::hosts`].
    pub fn hosts(machines: impl IntoIterator<Item = Machine>) -> BTreeMap<Number, Arc<Host>> {
        let host = |machine: Machine| {
            let number = machine.number;
            let state = Mutex::new(State {
                machine,
                sessions: Sessions::default(),
                agent: None,
                boot: CancellationToken::new(),
            });
            let changed = Notify::new();
            let host = Host { number, state, changed };
            (number, Arc::new(host))
        };
        machines.into_iter().map(host).collect()
    }

    /// The time since the start of the lab.
    #[must_use]
    pub fn now(&self) -> At {
        self.epoch.elapsed()
    }

    /// Starts the machines' tasks.
    pub fn start(self: &Arc<Self>) {
        for host in self.hosts.values() {
            self.tasks.spawn(Arc::clone(self).run_machine(Arc::clone(host)));
        }
    }

    async fn run_machine(self: Arc<Self>, host: Arc<Host>) {
        loop {
            let due = {
                let mut state = host.lock();
                for effect in state.machine.settle(self.now()) {
                    self.perform(&host, &mut state, effect);
                }
                state.machine.due()
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = host.changed.notified() => {}
                () = self.until(due) => {}
            }
        }
    }

    async fn until(&self, at: Option<At>) {
        match at {
            Some(at) => sleep_until(self.epoch + at).await,
            None => std::future::pending().await,
        }
    }

    fn perform(self: &Arc<Self>, host: &Arc<Host>, state: &mut State, effect: Effect) {
        if let Effect::Fetch { task, url } = effect {
            let (lab, host) = (Arc::clone(self), Arc::clone(host));
            self.tasks.spawn(async move {
                let file = lab.fetch_firmware(&url).await;
                host.lock().machine.firmware.read(task, file);
            });
            return;
        }
        state.boot.cancel();
        state.agent = None;
        if let Effect::Boot { boot, iso } = effect {
            state.boot = self.stop.child_token();
            let powered_off = state.boot.clone();
            let (lab, host) = (Arc::clone(self), Arc::clone(host));
            self.tasks.spawn(async move {
                tokio::select! {
                    () = powered_off.cancelled() => {}
                    () = lab.run_boot(&host, boot, &iso) => {}
                }
            });
        }
    }

    async fn run_boot(self: &Arc<Self>, host: &Arc<Host>, boot: u64, iso: &str) {
        sleep(self.timing.boot).await;
        if host.lock().machine.faults.has(Fault::NoBoot) {
            return;
        }
        let Some(image) = self.fetch_iso(host.number, iso).await else {
            return;
        };
        if let Some((parameters, agent)) = agent_of(&image) {
            drop(image);
            if let Some(running_agent) = self.start_agent(host, boot, parameters, agent) {
                self.run_agent(host, &running_agent).await;
            }
            return;
        }
        match self.store.put(&format!("{}-iso", host.number), &image).await {
            Ok(content) => {
                host.lock().machine.booted(boot, Running::Iso { content });
            }
            Err(error) => self.log(host.number, &format!("cannot keep {iso}: {error}")),
        }
    }

    /// The text of a file of firmware. It is read at once: Ironic boots the machine as soon as the task runs, and a boot before the
    /// end of the read would write nothing.
    async fn fetch_firmware(&self, url: &str) -> Result<String, String> {
        let answer = self.client.get(url).timeout(REQUEST_TIMEOUT).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let text = async { answer?.text().await };
        text.await.map_err(|error| format!("the file cannot be read: {error}"))
    }

    async fn fetch_iso(&self, number: Number, iso: &str) -> Option<Vec<u8>> {
        for attempt in 1..=ISO_ATTEMPTS {
            let answer = self.client.get(iso).timeout(REQUEST_TIMEOUT).send().await;
            match answer.and_then(reqwest::Response::error_for_status) {
                Ok(answer) => match answer.bytes().await {
                    Ok(bytes) => return Some(bytes.into()),
                    Err(error) => self.log(number, &format!("{iso}: {error}")),
                },
                Err(error) => self.log(number, &format!("{iso}: {error}")),
            }
            sleep(Duration::from_secs(1) * attempt).await;
        }
        None
    }

    fn start_agent(
        &self,
        host: &Host,
        boot: u64,
        parameters: Parameters,
        image: AgentImage,
    ) -> Option<Arc<RunningAgent>> {
        let mut state = host.lock();
        if !state.machine.booted(boot, Running::Ramdisk) {
            return None;
        }
        state.machine.agent = Some(image);
        let callback = format!("{}/agents/{}", self.agents_url, host.number);
        let agent = Agent::new(
            &state.machine,
            parameters,
            callback,
            Arc::clone(&self.certificate),
            self.now(),
        );
        let running_agent = Arc::new(RunningAgent {
            agent: Mutex::new(agent),
            changed: Notify::new(),
        });
        state.agent = Some(Arc::clone(&running_agent));
        Some(running_agent)
    }

    async fn run_agent(&self, host: &Host, running_agent: &RunningAgent) {
        loop {
            let faults = host.lock().machine.faults.clone();
            let next_action = running_agent.lock().next_action(self.now(), &faults);
            match next_action {
                Action::Send(request) => {
                    let (status, body) = self.send(host.number, request).await;
                    running_agent
                        .lock()
                        .answered(status, &body, self.now(), self.timing.beat);
                }
                Action::Until(at) => {
                    tokio::select! {
                        () = self.until(Some(at)) => {}
                        () = running_agent.changed.notified() => {}
                    }
                }
                Action::Idle => running_agent.changed.notified().await,
            }
        }
    }

    async fn send(&self, number: Number, request: Request) -> (Option<u16>, Value) {
        const VERSION: &str = "X-OpenStack-Ironic-API-Version";
        // The lowest API version with all used fields. Inspection data needs none.
        let (what, request) = match request {
            Request::Inspection { url, body } => ("inspection data", self.client.post(url).json(&body)),
            Request::Lookup { url } => ("lookup", self.client.get(url).header(VERSION, "1.62")),
            Request::Heartbeat { url, body } => {
                ("heartbeat", self.client.post(url).header(VERSION, "1.68").json(&body))
            }
        };
        match request.timeout(REQUEST_TIMEOUT).send().await {
            Ok(answer) => {
                let status = answer.status().as_u16();
                let body = answer.json().await.unwrap_or_default();
                if status >= 400 && !matches!(status, 404 | 409) {
                    self.log(number, &format!("{what}: {status} {body}"));
                }
                (Some(status), body)
            }
            Err(error) => {
                self.log(number, &format!("{what}: {}", error.without_url()));
                (None, Value::Null)
            }
        }
    }

    fn reset(&self, host: &Host, reset: Reset) {
        host.lock().machine.reset(reset, self.now(), self.timing.power);
        host.touch();
    }

    fn log(&self, number: Number, message: &str) {
        eprintln!("{:9.3} machine {number}: {message}", self.now().as_secs_f64());
    }

    /// Ends all tasks, waiting at most `limit`.
    pub async fn shut_down(&self, limit: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(limit, self.tasks.wait()).await;
    }

    /// Reads disk content.
    ///
    /// # Errors
    /// Any error of the file system.
    pub async fn read(&self, content: &Content) -> std::io::Result<Vec<u8>> {
        tokio::fs::read(self.store.path(content)).await
    }
}
