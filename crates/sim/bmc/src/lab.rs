//! The imperative shell around machines and agents: the clock, the requests to Ironic, the work behind commands.
//!
//! One task a machine applies what its BMC was asked for; one task a boot plays what came up. Locks are held only for
//! calls into the pure parts, never across an await.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent::{Agent, Failure, Parameters, Request, Want, Work, WorkKind, parameters},
    disk::{Content, Written},
    fault::Fault,
    identity::Number,
    image::{Desk, Fetched},
    inventory::root_disk,
    iso,
    machine::{At, Effect, Machine, Reset, Running, Timing},
    redfish::{Credentials, Sessions},
    store::Store,
};

/// A client that hangs longer than this would miss a power cycle.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const ISO_ATTEMPTS: u32 = 5;

/// One machine with all that runs on it.
#[derive(Debug)]
pub struct Host {
    /// Which one.
    pub number: Number,
    state: Mutex<State>,
    changed: Notify,
}

/// What a lock on a [`Host`] guards.
#[derive(Debug)]
pub struct State {
    /// The machine.
    pub machine: Machine,
    /// Its BMC's sessions.
    pub sessions: Sessions,
    /// The agent, while the deploy ramdisk runs.
    pub agent: Option<Arc<Player>>,
    boot: CancellationToken,
}

/// A running agent.
#[derive(Debug)]
pub struct Player {
    agent: Mutex<Agent>,
    changed: Notify,
}

impl Host {
    /// Locks the machine.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the machine's task that something was asked of it.
    pub fn touch(&self) {
        self.changed.notify_one();
    }
}

impl Player {
    /// Locks the agent.
    pub fn lock(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All machines and what they share.
#[derive(Debug)]
pub struct Lab {
    /// The machines.
    pub hosts: BTreeMap<Number, Arc<Host>>,
    /// The login of every BMC and of the control endpoint.
    pub credentials: Credentials,
    /// How long things take.
    pub timing: Timing,
    /// What disks hold.
    pub store: Store,
    /// The root of the agents' callback addresses.
    pub agents_url: String,
    /// What Ironic must trust to call an agent.
    pub certificate: Arc<str>,
    /// Reaches Ironic and its file server.
    pub client: reqwest::Client,
    /// Every task of the lab.
    pub tasks: TaskTracker,
    /// Ends them.
    pub stop: CancellationToken,
    /// Digests of images that are not here: what is at the address of such an image is taken for it.
    pub believed: BTreeSet<String>,
    /// When time began.
    pub epoch: Instant,
}

impl Lab {
    /// Hosts out of machines, for [`Lab::hosts`].
    pub fn hosts(machines: impl IntoIterator<Item = Machine>) -> BTreeMap<Number, Arc<Host>> {
        let host = |machine: Machine| {
            let number = machine.number;
            let state = State {
                machine,
                sessions: Sessions::default(),
                agent: None,
                boot: CancellationToken::new(),
            };
            (
                number,
                Arc::new(Host {
                    number,
                    state: Mutex::new(state),
                    changed: Notify::new(),
                }),
            )
        };
        machines.into_iter().map(host).collect()
    }

    /// Time since the lab began.
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
        state.boot.cancel();
        state.agent = None;
        if let Effect::Boot { boot, iso } = effect {
            state.boot = self.stop.child_token();
            let gone = state.boot.clone();
            let (lab, host) = (Arc::clone(self), Arc::clone(host));
            self.tasks.spawn(async move {
                tokio::select! {
                    () = gone.cancelled() => {}
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
        if let Some(parameters) = ramdisk_of(&image) {
            drop(image);
            if let Some(player) = self.bring_up(host, boot, parameters) {
                self.play(host, &player).await;
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

    fn bring_up(&self, host: &Host, boot: u64, parameters: Parameters) -> Option<Arc<Player>> {
        let mut state = host.lock();
        if !state.machine.booted(boot, Running::Ramdisk) {
            return None;
        }
        let callback = format!("{}/agents/{}", self.agents_url, host.number);
        let agent = Agent::new(
            &state.machine,
            parameters,
            callback,
            Arc::clone(&self.certificate),
            self.now(),
        );
        let player = Arc::new(Player {
            agent: Mutex::new(agent),
            changed: Notify::new(),
        });
        state.agent = Some(Arc::clone(&player));
        Some(player)
    }

    async fn play(&self, host: &Host, player: &Player) {
        loop {
            let faults = host.lock().machine.faults.clone();
            let want = player.lock().want(self.now(), &faults);
            match want {
                Want::Send(request) => {
                    let (status, body) = self.send(host.number, request).await;
                    player.lock().answered(status, &body, self.now(), self.timing.beat);
                }
                Want::Until(at) => {
                    tokio::select! {
                        () = self.until(Some(at)) => {}
                        () = player.changed.notified() => {}
                    }
                }
                Want::Idle => player.changed.notified().await,
            }
        }
    }

    async fn send(&self, number: Number, request: Request) -> (Option<u16>, Value) {
        const VERSION: &str = "X-OpenStack-Ironic-API-Version";
        // The lowest version in which all that is sent or read exists. Inspection data takes none.
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

    /// Does the work behind a command and tells the agent.
    pub fn work(self: &Arc<Self>, host: &Arc<Host>, player: &Arc<Player>, work: Work) {
        let (lab, host, player) = (Arc::clone(self), Arc::clone(host), Arc::clone(player));
        let gone = host.lock().boot.clone();
        self.tasks.spawn(async move {
            let outcome = tokio::select! {
                () = gone.cancelled() => return,
                outcome = lab.carry_out(&host, &player, &work.kind) => outcome,
            };
            if let Err(failure) = &outcome {
                lab.log(host.number, &format!("{}: {}", failure.message, failure.details));
            }
            player
                .lock()
                .finished(&work.id, outcome.map(|()| work.result), lab.now());
            player.changed.notify_one();
        });
    }

    async fn carry_out(&self, host: &Host, player: &Player, kind: &WorkKind) -> Result<(), Failure> {
        match kind {
            WorkKind::PowerOff => self.reset(host, Reset::ForceOff),
            WorkKind::Reboot => self.reset(host, Reset::Restart),
            WorkKind::Pass => sleep(self.timing.step).await,
            WorkKind::Erase => {
                sleep(self.timing.step).await;
                host.lock().machine.erase();
            }
            WorkKind::Fail(failure) => {
                sleep(self.timing.step).await;
                return Err(failure.clone());
            }
            WorkKind::WriteImage(order) => {
                sleep(self.timing.step).await;
                let (root, corrupt) = {
                    let machine = &host.lock().machine;
                    let root = root_disk(&machine.profile).filter(|_| !machine.faults.has(Fault::DiskTooSmall));
                    (
                        root.ok_or_else(no_root_disk)?,
                        machine.faults.has(Fault::ChecksumMismatch),
                    )
                };
                let name = format!("{}-image", host.number);
                let desk = Desk {
                    client: &self.client,
                    store: &self.store,
                    name: &name,
                    corrupt,
                    takes_md5: player.lock().takes_md5(),
                    believed: &self.believed,
                };
                let Fetched { image, config_drive } = desk.carry_out(order, root.2).await?;
                let written = Written {
                    content: image,
                    url: order.url.clone(),
                    node: order.node.clone(),
                };
                host.lock().machine.write(&root.1, written, config_drive);
            }
        }
        Ok(())
    }

    fn reset(&self, host: &Host, reset: Reset) {
        host.lock().machine.reset(reset, self.now(), self.timing.power);
        host.touch();
    }

    fn log(&self, number: Number, message: &str) {
        eprintln!("{:9.3} machine {number}: {message}", self.now().as_secs_f64());
    }

    /// Ends every task, at most after `patience`.
    pub async fn shut_down(&self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(patience, self.tasks.wait()).await;
    }

    /// Reads content that a disk holds.
    ///
    /// # Errors
    /// Any error of the file system.
    pub async fn read(&self, content: &Content) -> std::io::Result<Vec<u8>> {
        tokio::fs::read(self.store.path(content)).await
    }
}

fn ramdisk_of(image: &[u8]) -> Option<Parameters> {
    let grub = iso::file(image, "EFI/BOOT/grub.cfg").ok()??;
    parameters(&String::from_utf8_lossy(grub))
}

fn no_root_disk() -> Failure {
    Failure {
        kind: "DeviceNotFound",
        message: "Error finding the disk to deploy the image onto",
        details: "no root device hints were given and every disk is smaller than 4 GiB".into(),
    }
}
