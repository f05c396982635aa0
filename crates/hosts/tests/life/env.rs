//! The test environment: a simulated API server, a simulated Ironic with machines, and the controller.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_hosts::ironics::USUAL_NAME;
use metal3_hosts::node::Ramdisks;
use metal3_hosts::switches;
use metal3_ironic::Client;
use metal3_ironic::model::node::Node;
use metal3_ironic::version::Microversion;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::events::EventQueue;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::apply;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_ironic::{Ironic, Machine, Options as IronicOptions, Pace};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::interceptor::Interceptor;
use crate::program::Program;

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const CONTROLLER_USER: &str = "hosts";
/// A password that no message, event or status may contain.
pub(crate) const PASSWORD: &str = "canary-hunter2";

#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// The number of busy-host slots.
    pub(crate) slots: usize,
    pub(crate) pace: Pace,
    /// The newest microversion that Ironic supports, if not the simulator's.
    pub(crate) newest: Option<Microversion>,
    /// Whether the controllers of kinds without a controller run, too.
    pub(crate) unserved: bool,
    /// Whether the controller of event subscriptions runs, too.
    pub(crate) subscriptions: bool,
    /// Whether the controller of DataImages runs, too.
    pub(crate) data_images: bool,
    /// The configured agents, with `--build-preprov-image`; the controller of images runs, too.
    pub(crate) agent_images: Option<Ramdisks>,
    /// Where switches are written; the controller of switches runs, too.
    pub(crate) switches: Option<switches::Outputs>,
    /// Whether the controller of HostClaims runs, too.
    pub(crate) claims: bool,
    /// The only namespace that the program watches.
    pub(crate) only: Option<&'static str>,
    /// Whether a node with the name of the host alone is the host's.
    pub(crate) plain_node_names: bool,
    /// How far the clock of Ironic is ahead.
    pub(crate) ironic_ahead: TimeDelta,
    /// The names of further Ironics.
    pub(crate) others: Vec<&'static str>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            slots: 20,
            pace: Pace::default(),
            newest: None,
            unserved: false,
            subscriptions: false,
            data_images: false,
            agent_images: None,
            switches: None,
            claims: false,
            only: None,
            plain_node_names: false,
            ironic_ahead: TimeDelta::zero(),
            others: Vec::new(),
        }
    }
}

/// A clock that is ahead of another one.
#[derive(Debug)]
struct Ahead(Arc<dyn Clock>, TimeDelta);

impl Clock for Ahead {
    fn now(&self) -> DateTime<Utc> {
        self.0.now() + self.1
    }

    fn monotonic(&self) -> Monotonic {
        self.0.monotonic()
    }
}

metal3_runtime::role! {
    /// Reading the Deployment of the Go manager.
    pub struct GoManagerCheck {
        Deployment: List;
    }
}

/// A further Ironic, with machines of its own.
#[derive(Clone)]
pub(crate) struct Other {
    pub(crate) name: &'static str,
    pub(crate) ironic: Ironic,
    pub(crate) interceptor: Interceptor,
}

/// Where the names of the Ironics lead to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Wiring {
    #[default]
    Right,
    /// Those of the first two are exchanged.
    Exchanged,
    /// All lead to the first one, by URLs that differ.
    One,
}

/// The names of the Ironics that the controller is configured with at its next start, the first one first.
pub(crate) type Configured = Arc<Mutex<Vec<&'static str>>>;

pub(crate) struct TestEnv {
    pub(crate) cluster: Cluster,
    pub(crate) ironic: Ironic,
    pub(crate) others: Vec<Other>,
    pub(crate) configured: Configured,
    /// At the next start of the controller.
    pub(crate) wiring: Arc<Mutex<Wiring>>,
    /// Whether the controller only observes after its next start.
    pub(crate) observes: Arc<Mutex<bool>>,
    /// Between the controller and Ironic.
    pub(crate) interceptor: Interceptor,
    /// The events of every start of the controller.
    inboxes: Arc<Mutex<Vec<EventQueue>>>,
    /// The client of the running controller.
    to_ironic: Arc<Mutex<Option<Client>>>,
    /// The metrics of the running controller.
    pub(crate) metrics: Arc<Mutex<Metrics>>,
    user: kube::Client,
    /// Dropping it stops the controller.
    _tasks: JoinSet<()>,
}

impl TestEnv {
    /// Starts the controller, and restarts it after each crash.
    pub(crate) fn new(setup: Setup) -> Self {
        let cluster = prepared_cluster().fork(&Options::seeded(setup.seed).clock);
        cluster.reseed(setup.seed);
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let ironic_clock = Arc::new(Ahead(Arc::clone(&clock), setup.ironic_ahead));
        let start = |seed: u64| {
            let clock: Arc<dyn Clock> = Arc::<Ahead>::clone(&ironic_clock);
            let mut options = IronicOptions::new(seed, clock);
            options.pace = setup.pace.clone();
            options.versions.maximum = setup.newest.unwrap_or(options.versions.maximum);
            Ironic::start(options)
        };
        let ironic = start(setup.seed);
        let interceptor = Interceptor::on(ironic.clone());
        let others = others(&setup, &interceptor, start);
        let names = std::iter::once(USUAL_NAME).chain(setup.others);
        let configured: Configured = Arc::new(Mutex::new(names.collect()));
        let (wiring, observes): (Arc<Mutex<Wiring>>, Arc<Mutex<bool>>) = Default::default();
        let (inboxes, to_ironic, mut tasks) = (Arc::default(), Arc::default(), JoinSet::new());
        let metrics: Arc<Mutex<Metrics>> = Arc::default();
        let program = Program {
            client: cluster.client(CONTROLLER_USER),
            interceptor: interceptor.clone(),
            others: others.clone(),
            configured: Arc::clone(&configured),
            wiring: Arc::clone(&wiring),
            observes: Arc::clone(&observes),
            clock,
            inboxes: Arc::clone(&inboxes),
            to_ironic: Arc::clone(&to_ironic),
            metrics: Arc::clone(&metrics),
            slots: setup.slots,
            unserved: setup.unserved,
            subscriptions: setup.subscriptions,
            data_images: setup.data_images,
            agent_images: setup.agent_images,
            switches: setup.switches,
            claims: setup.claims,
            only: setup.only,
            plain_node_names: setup.plain_node_names,
        };
        tasks.spawn(program.run(interceptor.kills(), cluster.crashes()));
        let user = cluster.client("user");
        Self {
            cluster,
            ironic,
            others,
            configured,
            wiring,
            observes,
            interceptor,
            inboxes,
            to_ironic,
            metrics,
            user,
            _tasks: tasks,
        }
    }

    /// Runs the rules of admission, as the webhooks do.
    pub(crate) fn admit(&self) {
        for reviewer in metal3_api::metal3::reviewers() {
            self.cluster.review(reviewer);
        }
    }

    /// The client that the controller sends with.
    pub(crate) fn to_ironic(&self) -> Client {
        self.to_ironic.lock().clone().unwrap()
    }

    pub(crate) fn events(&self) -> String {
        let mut inboxes = self.inboxes.lock();
        let events: Vec<_> = inboxes.iter_mut().flat_map(EventQueue::take).collect();
        format!("{events:?}")
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    /// Creates a machine, the Secret of its BMC, and its host.
    pub(crate) async fn host(&self, number: u32, spec: Value) {
        self.login(number).await;
        self.make::<BareMetalHost>(self.document(number, &spec)).await;
    }

    /// Creates the Secret of a BMC.
    pub(crate) async fn login(&self, number: u32) {
        let login = json!({ "metadata": { "name": format!("bmc-{number}"), "labels": { "environment.metal3.io": "baremetal" } },
            "stringData": { "username": "admin", "password": PASSWORD } });
        self.make::<Secret>(login).await;
    }

    /// A host with these members of its spec.
    pub(crate) fn document(&self, number: u32, spec: &Value) -> Value {
        let mac = self.machine(number, |machine| machine.macs().remove(0));
        for other in &self.others {
            // Created in the same order, the machine has the same address there.
            let there = other
                .ironic
                .machine_at(&address(number), |machine| machine.macs().remove(0));
            assert_eq!(there.as_ref(), Some(&mac));
        }
        let mut whole = json!({
            "online": true,
            "bootMACAddress": mac,
            "bmc": { "address": address(number), "credentialsName": format!("bmc-{number}") },
        });
        let members = spec.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(members);
        json!({ "metadata": { "name": name(number) }, "spec": whole })
    }

    pub(crate) fn machine<T>(&self, number: u32, read: impl FnOnce(&mut Machine) -> T) -> T {
        self.ironic.machine_at(&address(number), read).unwrap()
    }

    pub(crate) fn set_faults(&self, number: u32, faults: &[Fault]) {
        self.machine(number, |machine| machine.faults = faults.iter().copied().collect());
    }

    pub(crate) async fn make<K>(&self, document: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(document).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Changes a host as a user. Replaces the object, so that faults on patches hit the controller only.
    #[expect(
        clippy::disallowed_methods,
        reason = "no field of a host is unknown in this environment"
    )]
    pub(crate) async fn edit(&self, number: u32, change: Value) {
        let api = self.api::<BareMetalHost>();
        loop {
            let mut document = serde_json::to_value(api.get(&name(number)).await.unwrap()).unwrap();
            apply(&change, &mut document);
            let host = serde_json::from_value(document).unwrap();
            match api.replace(&name(number), &PostParams::default(), &host).await {
                Err(kube::Error::Api(refused)) if refused.is_conflict() => {}
                other => return drop(other.unwrap()),
            }
        }
    }

    pub(crate) async fn delete(&self, number: u32) {
        let api = self.api::<BareMetalHost>();
        api.delete(&name(number), &DeleteParams::default()).await.unwrap();
    }

    /// How often the controller wrote the status of a host.
    pub(crate) fn status_writes(&self) -> u64 {
        self.cluster
            .audit()
            .of(CONTROLLER_USER, "patch", "baremetalhosts/status")
    }

    pub(crate) async fn get(&self, number: u32) -> Option<BareMetalHost> {
        self.api::<BareMetalHost>().get_opt(&name(number)).await.unwrap()
    }

    pub(crate) async fn node(&self, number: u32) -> Option<Node> {
        use metal3_ironic::calls::{NodeRef, node};
        let named = NodeRef::Name(format!("{NAMESPACE}~{}", name(number)));
        self.ironic
            .client()
            .unwrap()
            .send(&node::get(&named))
            .await
            .ok()
            .map(|answered| answered.value)
    }
}

/// The further Ironics of a setup, each with a seed of its own: no two nodes have the same UUID.
fn others(setup: &Setup, first: &Interceptor, start: impl Fn(u64) -> Ironic) -> Vec<Other> {
    let others = (1..).zip(&setup.others).map(|(number, name)| {
        let ironic = start(setup.seed + 1_000_000 * number);
        Other {
            name,
            interceptor: first.to(ironic.clone()),
            ironic,
        }
    });
    others.collect()
}

/// A server with the kinds, to be copied: generating their schemas takes longer than most tests.
fn prepared_cluster() -> &'static Cluster {
    static PREPARED: OnceLock<Cluster> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let cluster = Cluster::start(&Options::seeded(0));
        cluster.install(&metal3_api::metal3::definitions()).unwrap();
        cluster
    })
}

pub(crate) fn name(number: u32) -> String {
    format!("host-{number}")
}

pub(crate) fn bmc(number: u32) -> String {
    format!("10.0.{}.{}", number / 250, number % 250 + 1)
}

pub(crate) fn address(number: u32) -> String {
    format!("redfish-virtualmedia://{}/redfish/v1/Systems/1", bmc(number))
}
