//! The life cycle of one container: start, probes, end, restart, until the Pod stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::jiff::Timestamp;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use super::fetch::Fetcher;
use super::probing::{Report, Role, Target, run_probe};
use crate::clock;
use crate::context::Context;
use crate::events::EventType;
use crate::machine::process::{Process, exit_code};
use crate::plan::fields::Placement;
use crate::plan::probe::{Health, Schedule, check};
use crate::plan::pull::Reference;
use crate::plan::restart::{Backoff, Policy};
use crate::plan::sandbox::{Image, Inputs, Mount, Sandbox, plan};
use crate::plan::status::{ContainerView, End, Phase};
use crate::plan::{environment, image, user};

/// The retry interval of a blocked start.
const RETRY: Duration = Duration::from_secs(1);
/// That of an image, all of which is read each time.
const PULL_RETRY: Duration = Duration::from_secs(2);
const NOT_PULLED: &str = "ImagePullBackOff";

/// The stop request of a Pod, with the grace period of its containers.
pub(crate) type Stop = watch::Receiver<Option<Duration>>;

/// The inputs of a container's task.
pub(crate) struct ContainerTask {
    pub(crate) cx: Arc<Context>,
    pub(crate) pod: Arc<Pod>,
    pub(crate) spec: PodSpec,
    pub(crate) container: Container,
    pub(crate) index: usize,
    pub(crate) placement: Placement,
    pub(crate) holder: u32,
    pub(crate) folder: PathBuf,
    pub(crate) fetcher: Arc<Mutex<Fetcher>>,
    pub(crate) views: mpsc::UnboundedSender<(usize, ContainerView)>,
    pub(crate) stop: Stop,
}

/// Why a container cannot start.
struct Blocked {
    reason: &'static str,
    message: String,
}

/// A started container.
struct Started {
    process: Process,
    sandbox: Arc<Sandbox>,
}

impl ContainerTask {
    /// Runs until the Pod stops, or the restart policy ends the container.
    pub(crate) async fn run(mut self) {
        let mut view = ContainerView::waiting("ContainerCreating", "");
        let mut backoff = Backoff::new(self.cx.limits.backoff_first, self.cx.limits.backoff_limit);
        let policy = Policy::of(self.spec.restart_policy.as_deref());
        loop {
            let Some(started) = self.start(&mut view).await else {
                return;
            };
            let since = clock::now();
            let began = clock::instant();
            view.process = Some(started.process.number());
            let end = self.supervise(started, &mut view, since).await;
            let code = end.code;
            view.phase = Phase::Ended(end.clone());
            self.report(&view);
            if self.stopping() || !policy.restarts(code) {
                return;
            }
            let wait = backoff.after(began.elapsed());
            view.last = Some(end);
            let message = format!(
                "back-off {} s restarting failed container {}",
                wait.as_secs(),
                self.container.name
            );
            view.phase = Phase::Waiting {
                reason: "CrashLoopBackOff".to_owned(),
                message: message.clone(),
            };
            if !wait.is_zero() {
                self.report(&view);
                self.event(EventType::Warning, "BackOff", message).await;
            }
            if self.sleep_or_stop(wait).await {
                return;
            }
            view.restarts = view.restarts.saturating_add(1);
        }
    }

    /// Retries until the container runs; `None` when the Pod stops first.
    async fn start(&mut self, view: &mut ContainerView) -> Option<Started> {
        let mut reported = None;
        while !self.stopping() {
            let wait;
            match self.attempt(view.restarts).await {
                Ok(started) => {
                    let note = format!("Started container {}", self.container.name);
                    self.event(EventType::Normal, "Started", note).await;
                    return Some(started);
                }
                Err(Blocked { reason, message }) => {
                    view.phase = Phase::Waiting {
                        reason: reason.to_owned(),
                        message: message.clone(),
                    };
                    self.report(view);
                    wait = if reason == NOT_PULLED { PULL_RETRY } else { RETRY };
                    if reported.as_ref() != Some(&message) {
                        self.event(EventType::Warning, "Failed", message.clone()).await;
                        reported = Some(message);
                    }
                }
            }
            if self.sleep_or_stop(wait).await {
                break;
            }
        }
        None
    }

    async fn attempt(&self, run: i32) -> Result<Started, Blocked> {
        let blocked = |reason, message| Blocked { reason, message };
        let image = self.image().await?;
        let sources = self.fetcher.lock().await.fetch(&self.cx, &self.pod).await;
        let sources = sources.map_err(|error| blocked("CreateContainerConfigError", format!("{error:#}")))?;
        super::worker::write_volumes(&self.pod, &self.placement, &self.folder, &sources, self.cx.users)
            .map_err(|message| blocked("CreateContainerConfigError", message))?;
        let variables = environment::variables(
            &self.pod,
            &self.container,
            &self.placement,
            &self.cx.server,
            &sources,
            &image.runs.variables,
        );
        let variables = variables.map_err(|missing| blocked("CreateContainerConfigError", missing.to_string()))?;
        let inputs = Inputs {
            root: self.folder.join("root").join(&self.container.name),
            volumes: &self.folder.join("volumes"),
            image,
            pod_address: &self.placement.pod_address,
            users: self.cx.users,
            log: crate::logs::path(&self.cx.logs, &self.pod, &self.container.name, run),
        };
        let sandbox = plan(&self.pod, &self.spec, &self.container, &variables, inputs);
        let process = Process::start(self.holder, &sandbox, &variables)
            .map_err(|error| blocked("RunContainerError", format!("{error:#}")))?;
        Ok(Started {
            process,
            sandbox: Arc::new(sandbox),
        })
    }

    async fn image(&self) -> Result<Image, Blocked> {
        let image = self.container.image.as_deref().unwrap_or_default();
        match Reference::of(image) {
            None => self.of_table(image),
            Some(Ok(reference)) => self.pulled(image, &reference).await,
            Some(Err(message)) => Err(Blocked {
                reason: "InvalidImageName",
                message,
            }),
        }
    }

    async fn pulled(&self, image: &str, reference: &Reference) -> Result<Image, Blocked> {
        let pulled = self.cx.pulled.get(reference).await;
        let (pulled, is_new) = pulled.map_err(|error| Blocked {
            reason: NOT_PULLED,
            message: format!("pulling {image}: {error:#}"),
        })?;
        if is_new {
            let note = format!("Successfully pulled image {image}: {} bytes", pulled.size);
            self.event(EventType::Normal, "Pulled", note).await;
        }
        if let Some(message) = user::refusal(&self.spec, &self.container, self.cx.users, pulled.runs.user) {
            let reason = "CreateContainerConfigError";
            return Err(Blocked { reason, message });
        }
        Ok(Image {
            binary: None,
            files: pulled.files.clone(),
            runs: pulled.runs.clone(),
        })
    }

    /// The table is read for each attempt, so that a new row starts a waiting container.
    fn of_table(&self, image: &str) -> Result<Image, Blocked> {
        let blocked = |message| Blocked {
            reason: "NoBinaryForImage",
            message,
        };
        let table = std::fs::read_to_string(&self.cx.images)
            .map_err(|error| blocked(format!("reading {}: {error}", self.cx.images.display())))?;
        let content = image::content_of(&table, image);
        let content = content.ok_or_else(|| blocked(format!("no binary for image {image}")))?;
        let paths = content.files.iter().map(|(_, from)| *from).chain([content.binary]);
        if let Some(path) = paths.into_iter().find(|path| !Path::new(path).is_file()) {
            return Err(blocked(format!("no binary for image {image}: {path} is not a file")));
        }
        let mount = |(to, from): &(&str, &str)| Mount {
            from: from.into(),
            to: (*to).to_owned(),
            read_only: true,
        };
        Ok(Image {
            binary: Some(content.binary.into()),
            files: content.files.iter().map(mount).collect(),
            ..Image::default()
        })
    }

    /// Supervises the container from start to end: probes, liveness, and the stop request.
    async fn supervise(&mut self, started: Started, view: &mut ContainerView, since: Timestamp) -> End {
        let Started { mut process, sandbox } = started;
        let (reports, mut changes) = mpsc::unbounded_channel();
        let mut probes = JoinSet::new();
        let has_startup = self.container.startup_probe.is_some();
        let has_readiness = self.container.readiness_probe.is_some();
        let first_probes: &[Role] = if has_startup {
            &[Role::Startup]
        } else {
            &[Role::Readiness, Role::Liveness]
        };
        let target = |process: &Process| Target {
            cx: self.cx.clone(),
            address: self.placement.pod_address.clone(),
            sandbox: sandbox.clone(),
            number: process.number(),
        };
        self.probe(&mut probes, first_probes, &target(&process), &reports);
        view.phase = Phase::Running {
            since,
            started: !has_startup,
            ready: !has_startup && !has_readiness,
        };
        self.report(view);
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                status = process.wait() => return end(status, since),
                grace = stop_requested(&mut stop) => return self.terminate(&mut process, grace, since).await,
                Some(report) = changes.recv() => {
                    let Report { role, health, message } = report;
                    if health == Health::Unhealthy {
                        let note = format!("{} probe failed: {message}", role.name());
                        self.event(EventType::Warning, "Unhealthy", note).await;
                    }
                    match (role, health) {
                        (Role::Readiness, health) => {
                            view.phase = Phase::Running { since, started: true, ready: health == Health::Healthy };
                        }
                        (Role::Startup, Health::Healthy) => {
                            probes.abort_all();
                            self.probe(&mut probes, &[Role::Readiness, Role::Liveness], &target(&process), &reports);
                            view.phase = Phase::Running { since, started: true, ready: !has_readiness };
                        }
                        (Role::Liveness, Health::Healthy) => {}
                        (Role::Startup | Role::Liveness, Health::Unhealthy) => {
                            let note = format!("Container {} failed its {} probe and is restarted", self.container.name, role.name());
                            self.event(EventType::Normal, "Killing", note).await;
                            return self.terminate(&mut process, self.grace(), since).await;
                        }
                    }
                    self.report(view);
                }
            }
        }
    }

    fn probe(
        &self,
        probes: &mut JoinSet<()>,
        roles: &[Role],
        target: &Target,
        reports: &mpsc::UnboundedSender<Report>,
    ) {
        for role in roles {
            let probe = match role {
                Role::Startup => &self.container.startup_probe,
                Role::Readiness => &self.container.readiness_probe,
                Role::Liveness => &self.container.liveness_probe,
            };
            // Unsupported probes are refused before the Pod starts.
            let Some((probe, Ok(check))) = probe.as_ref().map(|probe| (probe, check(probe, &self.container))) else {
                continue;
            };
            probes.spawn(run_probe(
                target.clone(),
                *role,
                check,
                Schedule::of(probe),
                reports.clone(),
            ));
        }
    }

    async fn terminate(&self, process: &mut Process, grace: Duration, since: Timestamp) -> End {
        process.terminate();
        if let Ok(status) = tokio::time::timeout(grace, process.wait()).await {
            return end(status, since);
        }
        process.kill();
        end(process.wait().await, since)
    }

    fn grace(&self) -> Duration {
        let seconds = self
            .spec
            .termination_grace_period_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        Duration::from_secs(seconds.unwrap_or(30))
    }

    fn stopping(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Returns whether the Pod stops.
    async fn sleep_or_stop(&mut self, duration: Duration) -> bool {
        tokio::time::timeout(duration, self.stop.wait_for(Option::is_some))
            .await
            .is_ok()
    }

    fn report(&self, view: &ContainerView) {
        // Fails when the worker has ended, which needs no view.
        self.views.send((self.index, view.clone())).unwrap_or_default();
    }

    async fn event(&self, kind: EventType, reason: &str, note: String) {
        self.cx.event(&self.pod, kind, reason, note).await;
    }
}

/// Waits for the stop request. Without a worker there is no grace period.
async fn stop_requested(stop: &mut Stop) -> Duration {
    stop.wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|grace| *grace)
        .unwrap_or_default()
}

fn end(status: anyhow::Result<std::process::ExitStatus>, started: Timestamp) -> End {
    let (code, message) = match status {
        Ok(status) => (exit_code(status), String::new()),
        Err(error) => (255, format!("{error:#}")),
    };
    let reason = if code == 0 { "Completed" } else { "Error" };
    End {
        code,
        reason: reason.to_owned(),
        message,
        started,
        finished: clock::now(),
    }
}
