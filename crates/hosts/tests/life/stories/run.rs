//! Runs one story, and shortens a story that fails.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::NodeRef;
use metal3_ironic::model::node::Node;
use metal3_ironic::version::Microversion;
use metal3_sim_ironic::{Machine, Pace};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::additions::has_labels;
use super::agents::{Builder, configured, violated_agents};
use super::discs::{DriveNow, violated_discs};
use super::disks;
use super::goal::{self, World};
use super::grammar::{
    AgentKind, DATA, HOST, IMAGES, IronicKind, LOGINS, METHODS, MIRROR, NETWORK, OTHER_DATA, REGISTRY_LOGIN, Step,
    Story,
};
use super::history::{History, annotation, by, is_deleting, is_external, is_paused};
use super::judge::{Order, origin, violation};
use super::services::violated_services;
use super::settings::{unexplained_setting, violated_settings};
use super::steps::with_mac;
use super::updates::{Sent, unmade_update, violated_updates};
use crate::env::{CONTROLLER_USER, PASSWORD, Setup, TestEnv, address, bmc, name};
use crate::interceptor::Observer;
use crate::ironics::B;

/// The longest time to reach the goal once nothing is broken any more: three failed attempts and their delays.
const PATIENCE: Duration = Duration::from_hours(20);
/// Until then an error of a node stays, and Ironic does not see that a person used the power button.
pub(super) const POWER_SYNC: Duration = Duration::from_secs(90);
/// A host at its goal stays there, without writes and requests, for this long.
const REST: Duration = Duration::from_mins(3);

/// A violated invariant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed(String);

impl Failed {
    /// The same without the details: a shortened story must fail in the same way.
    fn kind(&self) -> &str {
        self.0.split(": state").next().unwrap_or_default()
    }
}

/// Runs a story in a runtime of its own with paused time.
pub(super) fn run_story(story: &Story) -> Result<(), Failed> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let run = StoryRun::start(story).await;
            run.run(story).await.map_err(Failed)
        })
    }));
    result.unwrap_or_else(|_| Err(Failed("a panic, printed above".to_owned())))
}

/// Takes steps out as long as the story fails in the same way, and prints the rest.
pub(super) fn shorten(story: &Story, failure: &Failed) -> String {
    let (mut story, mut failure) = (story.clone(), failure.clone());
    // A step may be needed only by one that was taken out later.
    loop {
        let steps = story.steps.len();
        let mut at = 0;
        while at < story.steps.len() {
            let mut shorter = story.clone();
            shorter.steps.remove(at);
            match run_story(&shorter) {
                Err(found) if found.kind() == failure.kind() => (story, failure) = (shorter, found),
                _ => at += 1,
            }
        }
        if story.steps.len() == steps {
            break;
        }
    }
    let steps: Vec<_> = story.steps.iter().map(|step| format!("  {step:?}")).collect();
    format!(
        "story {}: {}\n  created with {}\n{}",
        story.seed,
        failure.0,
        story.created,
        steps.join("\n")
    )
}

/// The versions of the host, of its settings, of its updates, of its DataImage and of its policy.
type Histories<'a> = (
    &'a Arc<Mutex<History>>,
    &'a Arc<Mutex<History>>,
    &'a Arc<Mutex<History>>,
    &'a Arc<Mutex<History>>,
    &'a Arc<Mutex<History>>,
);

/// What the judge remembers of earlier requests.
#[derive(Default)]
pub(super) struct Marks {
    /// When the machine was last asked to shut down, unless it was switched on since.
    soft: Option<Instant>,
    /// When an operator gave the node to another instance.
    pub(super) assigned: Option<Instant>,
    /// Ironic is too old to abort a deployment.
    is_old: bool,
    /// The last order of updates of the firmware.
    updates: Option<Sent>,
    /// Nothing could eject an image when the node was last deleted.
    pub(super) is_stuck: bool,
}

pub(super) struct StoryRun {
    pub(super) env: TestEnv,
    pub(super) history: Arc<Mutex<History>>,
    settings: Arc<Mutex<History>>,
    updates: Arc<Mutex<History>>,
    pub(super) discs: Arc<Mutex<History>>,
    policies: Arc<Mutex<History>>,
    violated: Arc<Mutex<Option<String>>>,
    pub(super) builder: Builder,
    pub(super) marks: Arc<Mutex<Marks>>,
    pub(super) mac: String,
}

impl StoryRun {
    async fn start(story: &Story) -> Self {
        let env = TestEnv::new(setup(story));
        prepare(&env, story);
        env.admit();
        let [history, settings, updates, discs, policies] = std::array::from_fn(|_| Arc::<Mutex<History>>::default());
        let builder = Builder::start(&env, story.agent);
        record_versions(
            &env,
            (&history, &settings, &updates, &discs, &policies),
            builder.recorder(),
        );
        let violated = Arc::<Mutex<Option<String>>>::default();
        let marks = Arc::new(Mutex::new(Marks {
            is_old: story.ironic == IronicKind::Old,
            ..Marks::default()
        }));
        env.interceptor.observe(Self::judge(
            &env,
            (&history, &settings, &updates, &discs, &policies),
            (&violated, &builder),
            &marks,
        ));
        make_secrets(&env).await;
        if !env.others.is_empty() {
            // A new host waits for the lists of all of them at the start, at most as long as an outage takes to be reported.
            sleep(Duration::from_mins(3)).await;
        }
        let mac = env.machine(HOST, |machine| {
            machine.deploy_steps.extend(METHODS.map(str::to_owned));
            if disks::concern(story) {
                disks::fill(machine);
            }
            machine.macs().remove(0)
        });
        let created = with_mac(story.created.clone(), &mac);
        env.login(HOST).await;
        let created = serde_json::from_value(env.document(HOST, &created)).unwrap();
        let api = env.api::<BareMetalHost>();
        if api.create(&PostParams::default(), &created).await.is_err() {
            // Admission rejects these members.
            env.make::<BareMetalHost>(env.document(HOST, &json!({}))).await;
        }
        Self {
            env,
            history,
            settings,
            updates,
            discs,
            policies,
            violated,
            builder,
            marks,
            mac,
        }
    }

    fn judge(
        env: &TestEnv,
        (history, settings, updates, discs, policies): Histories<'_>,
        (violated, builder): (&Arc<Mutex<Option<String>>>, &Builder),
        marks: &Arc<Mutex<Marks>>,
    ) -> Arc<Observer> {
        let agents = builder.history();
        let (found, versions, ironic) = (Arc::clone(violated), Arc::clone(history), env.ironic.clone());
        let (marks, unbegun, settings) = (Arc::clone(marks), env.interceptor.unbegun(), Arc::clone(settings));
        let (updates, discs, policies) = (Arc::clone(updates), Arc::clone(discs), Arc::clone(policies));
        Arc::new(move |request, node| {
            let disk = ironic.machine_at(&address(HOST), disk).flatten();
            let mut marks = marks.lock();
            let mut order = Order::of(request, node, disk.as_deref(), marks.soft);
            order.is_early = *unbegun.lock() > 0;
            order.assigned = marks.assigned;
            order.is_old = marks.is_old;
            if let Some(broken) = violation(&order, &versions.lock()) {
                found.lock().get_or_insert(broken);
            }
            if let Some(broken) = violated_agents(&order, &versions.lock(), agents.as_ref()) {
                found.lock().get_or_insert(broken);
            }
            let bios = ironic.machine_at(&address(HOST), |machine| machine.bios.clone());
            if let Some(broken) = violated_settings(&order, &settings.lock(), &bios.unwrap_or_default()) {
                found.lock().get_or_insert(broken);
            }
            if let Some(broken) = violated_services(&order, &versions.lock(), &policies.lock()) {
                found.lock().get_or_insert(broken);
            }
            let made = ironic.machine_at(&address(HOST), |machine| machine.flashed.clone());
            let made = made.unwrap_or_default();
            if let Some(broken) = violated_updates(&order, &updates.lock(), &made, &mut marks.updates) {
                found.lock().get_or_insert(broken);
            }
            let drive = ironic.machine_at(&address(HOST), |machine| DriveNow {
                disc: machine.disc.clone(),
                is_whole: machine.has_drive && machine.ejects && machine.discs_refused == 0,
                is_stuck: !machine.has_drive || !machine.ejects,
            });
            let drive = drive.unwrap_or_default();
            if let Some(broken) = violated_discs(&order, &versions.lock(), &discs.lock(), &drive) {
                found.lock().get_or_insert(broken);
            }
            if order.is_node_deletion() && !order.node.is_null() {
                marks.is_stuck = drive.is_stuck;
            }
            marks.soft = order.soft_attempt();
        })
    }

    async fn run(&self, story: &Story) -> Result<(), String> {
        for step in &story.steps {
            self.perform(step).await;
            self.require_unviolated()?;
            self.require_kept_disks()?;
        }
        self.require_no_silence().await?;
        self.repair().await;
        self.reach_goal().await?;
        self.require_good_login()?;
        self.require_kept_disks()?;
        self.require_free_slot().await?;
        self.require_deletion().await?;
        if !self.host().is_null() {
            return Ok(());
        }
        self.require_no_disc(story)?;
        self.require_no_agent_image().await?;
        self.require_no_object().await
    }

    /// What Ironic rejects for good is reported.
    async fn require_no_silence(&self) -> Result<(), String> {
        let Some((request, _)) = self.env.interceptor.log().rejected else {
            return Ok(());
        };
        sleep(Duration::from_hours(2)).await;
        let (host, world) = (self.host(), self.world().await);
        let is_reached = goal::check(&goal::of(&host, &world), &host, &world).is_ok();
        if is_reached || goal::is_explained(&host) {
            return Ok(());
        }
        Err(format!(
            "silence about {request}, which Ironic rejects: state {}",
            host["status"]
        ))
    }

    /// The login of a host without an error is one that its BMC accepted.
    fn require_good_login(&self) -> Result<(), String> {
        let host = self.host();
        let status = &host["status"];
        let is_served = !is_paused(&host) && !is_deleting(&host) && status["operationalStatus"] == "OK";
        if is_served && status["goodCredentials"] != status["triedCredentials"] {
            return Err(format!("the login is not known to be good: state {status}"));
        }
        Ok(())
    }

    /// A host that is not busy leaves the only slot to another one.
    async fn require_free_slot(&self) -> Result<(), String> {
        let forced = |host: &Value| {
            annotation(host, "baremetalhost.metal3.io/detached").is_some_and(|text| text.contains("force"))
        };
        let loads_network = |host: &Value| {
            let address = host["spec"]["bmc"]["address"].as_str();
            address.is_some_and(|address| address.starts_with("redfish:"))
        };
        let had_slot = |host: &Value| forced(host) || loads_network(host);
        if !self.history.lock().ever(Duration::MAX, had_slot) {
            return Ok(());
        }
        // The orders for the other host are not judged.
        let histories = (
            &self.history,
            &self.settings,
            &self.updates,
            &self.discs,
            &self.policies,
        );
        let unjudged = Self::judge(&self.env, histories, (&Arc::default(), &self.builder), &self.marks);
        self.env.interceptor.observe(unjudged);
        let other = format!("redfish://{}/redfish/v1/Systems/1", bmc(HOST + 1));
        let other = json!({ "address": other, "credentialsName": "bmc-2" });
        self.env.host(HOST + 1, json!({ "bmc": other })).await;
        sleep(Duration::from_mins(10)).await;
        let judge = Self::judge(&self.env, histories, (&self.violated, &self.builder), &self.marks);
        self.env.interceptor.observe(judge);
        let other = self
            .env
            .get(HOST + 1)
            .await
            .unwrap()
            .status
            .provisioning
            .state
            .to_string();
        if other == "available" {
            Ok(())
        } else {
            Err(format!("another host gets no slot: state {other}"))
        }
    }

    fn require_unviolated(&self) -> Result<(), String> {
        for other in &self.env.others {
            if let Some(change) = other
                .interceptor
                .log()
                .asked
                .iter()
                .find(|what| !what.starts_with("GET "))
            {
                return Err(format!("{change} to an Ironic that never had the host"));
            }
        }
        self.violated.lock().clone().map_or(Ok(()), Err)
    }

    fn require_kept_disks(&self) -> Result<(), String> {
        let history = self.history.lock();
        self.env.machine(HOST, |machine| disks::require_kept(&history, machine))
    }

    fn host(&self) -> Value {
        self.history.lock().newest().clone()
    }

    async fn world(&self) -> World {
        let secrets = self
            .env
            .api::<Secret>()
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        let secrets = secrets
            .items
            .into_iter()
            .filter_map(|secret| secret.metadata.name)
            .collect();
        let was_external = self.history.lock().ever(Duration::MAX, is_external);
        let node = self.env.node(HOST).await;
        let made = node
            .as_ref()
            .and_then(|node| node.raid_config.get("logical_disks")?.as_array());
        let volumes = made.into_iter().flatten().map(|disk| disk["raid_level"].clone());
        let volumes = volumes.collect();
        let ports = self.ports(node.as_ref()).await;
        self.env.machine(HOST, |machine| World {
            was_external,
            volumes,
            ports,
            is_on: machine.power == metal3_ironic::model::state::PowerState::On,
            disk: disk(machine),
            secrets,
        })
    }

    async fn ports(&self, node: Option<&Node>) -> Vec<String> {
        let Some(node) = node else { return Vec::new() };
        let call = metal3_ironic::calls::port::of_node(&NodeRef::Uuid(node.uuid.clone()), None);
        let page = self.env.ironic.client().unwrap().send(&call).await;
        let ports = page.map(|page| page.value.items).unwrap_or_default();
        ports.into_iter().map(|port| port.address).collect()
    }

    async fn reach_goal(&self) -> Result<(), String> {
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_secs(5));
        loop {
            self.require_unviolated()?;
            let (host, world) = (self.host(), self.world().await);
            let goal = goal::of(&host, &world);
            match goal::check(&goal, &host, &world) {
                Ok(()) => break,
                Err(_) if goal::has_given_up(&host) => break,
                Err(differs) if waited >= PATIENCE => return Err(differs),
                Err(_) => {}
            }
            sleep(pause).await;
            waited += pause;
            pause = (pause * 2).min(Duration::from_mins(10));
        }
        self.require_rest().await
    }

    /// At its goal the host costs nothing.
    async fn require_rest(&self) -> Result<(), String> {
        // A lost database is noticed, and a creation that waits for a lost response is over.
        sleep(Duration::from_mins(3)).await;
        let writes = |resource| self.env.cluster.audit().of(CONTROLLER_USER, "patch", resource);
        let of_host = || writes("baremetalhosts/status");
        let of_disc = || writes("dataimages/status");
        let of_agent = || writes("preprovisioningimages") + writes("preprovisioningimages/status");
        let before_of_agent = of_agent();
        let (before, before_of_disc, asked) = (of_host(), of_disc(), self.env.interceptor.log().asked.len());
        sleep(REST).await;
        self.require_unviolated()?;
        let (host, world) = (self.host(), self.world().await);
        let goal = goal::of(&host, &world);
        if !goal::has_given_up(&host) {
            goal::check(&goal, &host, &world).map_err(|differs| format!("it does not stay: {differs}"))?;
        }
        // What the host is blocked by comes first.
        let is_blocked = goal::is_blocked(&host, &world) || goal::is_undecided(&host);
        let is_judged = matches!(goal, goal::Goal::State(..)) && !is_blocked;
        if is_judged && goal::check(&goal, &host, &world).is_ok() {
            let bios = self.env.machine(HOST, |machine| machine.bios.clone());
            unexplained_setting(&host, self.settings.lock().newest(), &bios)?;
            let made = self.env.machine(HOST, |machine| machine.flashed.clone());
            unmade_update(&host, self.updates.lock().newest(), &made)?;
        }
        let mut asked = self.env.interceptor.log().asked.split_off(asked);
        let (mut written_discs, written) = (of_disc() - before_of_disc, of_host() - before);
        // A deleted image is looked for while it may be in the drive, and a wait that lasts is reported once.
        if is_deleting(self.discs.lock().newest()) {
            asked.retain(|one| !one.starts_with("GET"));
            written_discs = written_discs.saturating_sub(1);
        }
        let mut written_agents = of_agent() - before_of_agent;
        if is_deleting(&self.builder.newest()) {
            written_agents = written_agents.saturating_sub(1);
        }
        let is_written = written > 0 || written_discs > 0 || written_agents > 0;
        if !goal::is_blocked(&host, &world) && (is_written || !asked.is_empty()) {
            return Err(format!(
                "a host at rest is written {written} times, its DataImage too often {written_discs} times, and its agent \
                 too often {written_agents} times: {asked:?}"
            ));
        }
        // The images of spec and status are compared by their URLs, with a login in them.
        let status = &host["status"];
        let events = self.env.events();
        let settings = self.settings.lock().newest()["status"].clone();
        let updates = self.updates.lock().newest()["status"]["conditions"].clone();
        let shown = format!(
            "{} {} {events} {settings} {updates} {}",
            status["errorMessage"],
            status["conditions"],
            self.discs.lock().newest()["status"]["error"]
        );
        if shown.contains(PASSWORD) {
            Err("the password is shown".to_owned())
        } else {
            Ok(())
        }
    }

    /// A host that is neither paused nor detached can be deleted.
    async fn require_deletion(&self) -> Result<(), String> {
        let free = json!({ "baremetalhost.metal3.io/paused": null, "baremetalhost.metal3.io/detached": null });
        if is_paused(&self.host()) && is_deleting(&self.host()) {
            // Paused until its deletion is how a move looks.
            return Ok(());
        }
        self.edit(&json!({ "metadata": { "annotations": free } })).await;
        sleep(Duration::from_secs(5)).await;
        self.delete().await;
        let mut waited = Duration::ZERO;
        while !self.host().is_null() {
            self.require_unviolated()?;
            if waited > PATIENCE {
                return Err(format!("the deletion does not end: state {}", self.host()["status"]));
            }
            sleep(Duration::from_mins(1)).await;
            waited += Duration::from_mins(1);
        }
        self.require_unviolated()
    }
}

/// The world of a story.
fn setup(story: &Story) -> Setup {
    Setup {
        seed: story.seed,
        slots: 1,
        newest: (story.ironic == IronicKind::Old).then(|| Microversion::minor(109)),
        pace: Pace {
            bmc: Duration::from_millis(300),
            boot: Duration::from_secs(2),
            work: Duration::from_secs(1),
            ramdisk_timeout: Duration::from_secs(20),
            power_sync: POWER_SYNC,
            ..Pace::default()
        },
        // It is away until the label is removed, so that no host goes there and the only machine is that of the first one.
        others: if has_labels(story) { vec![B] } else { Vec::new() },
        data_images: story.steps.iter().any(|step| matches!(step, Step::Disc(_))),
        agent_images: configured(story.agent),
        unserved: story.agent != AgentKind::Usual,
        ..Setup::default()
    }
}

/// Records each version of the host and of its firmware objects that the API server stores.
fn record_versions(
    env: &TestEnv,
    (history, settings, updates, discs, policies): Histories<'_>,
    record_agent: impl Fn(&Value, bool) + Send + 'static,
) {
    let (versions, of_settings, of_updates) = (Arc::clone(history), Arc::clone(settings), Arc::clone(updates));
    let (of_discs, of_policies) = (Arc::clone(discs), Arc::clone(policies));
    env.cluster.observe_writes(move |write| {
        let of_kind = match write.object["kind"].as_str() {
            Some("BareMetalHost") => &versions,
            Some("HostFirmwareSettings") => &of_settings,
            Some("HostFirmwareComponents") => &of_updates,
            Some("DataImage") => &of_discs,
            Some("HostUpdatePolicy") => &of_policies,
            Some("PreprovisioningImage") => return record_agent(write.object, write.deleted),
            _ => return,
        };
        if write.object["metadata"]["name"] == name(HOST) {
            let stored = (!write.deleted).then(|| write.object.clone());
            of_kind.lock().record(stored.unwrap_or_default());
        }
    });
}

/// What differs between the Ironics of stories.
fn prepare(env: &TestEnv, story: &Story) {
    match story.ironic {
        IronicKind::Redirects => env.ironic.redirect_image(IMAGES[1], MIRROR),
        IronicKind::Converts => env.ironic.download_images(),
        IronicKind::Plain | IronicKind::Old => {}
    }
    for other in &env.others {
        other.interceptor.hang(true);
    }
    env.ironic.require_login("registry.example", REGISTRY_LOGIN);
}

/// The Secrets that the host may name, each with a content of its own.
async fn make_secrets(env: &TestEnv) {
    for secret in [DATA, OTHER_DATA, NETWORK] {
        let from = if secret == NETWORK {
            "{}".to_owned()
        } else {
            origin(secret).to_string()
        };
        env.make::<Secret>(
            json!({ "metadata": { "name": secret, "labels": { "environment.metal3.io": "baremetal" } },
            "stringData": { "userData": secret, "value": "{}", "networkData": from, "metaData": from } }),
        )
        .await;
    }
    let (username, password) = REGISTRY_LOGIN.split_once(':').unwrap();
    let config = json!({ "auths": { "registry.example": { "username": username, "password": password } } });
    let logins = json!({ ".dockerconfigjson": config.to_string() });
    env.make::<Secret>(
        json!({ "metadata": { "name": LOGINS }, "type": "kubernetes.io/dockerconfigjson", "stringData": logins }),
    )
    .await;
}

/// The URL of the live image that the machine boots, or of the image on the disk, before a redirect, and the deploy step that installed it.
fn disk(machine: &mut Machine) -> Option<String> {
    if let Some(live) = &machine.live {
        return Some(live.source.clone());
    }
    let disk = machine.disk.as_ref()?;
    let source = if disk.source == MIRROR { IMAGES[1] } else { &disk.source };
    Some(by(source, disk.step.as_deref().unwrap_or_default()))
}
