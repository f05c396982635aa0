//! The controllers of a test, as the program runs them.

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_hosts::agent_image;
use metal3_hosts::claims;
use metal3_hosts::data_image;
use metal3_hosts::ironics::{Ironics, USUAL_NAME};
use metal3_hosts::live;
use metal3_hosts::node::Ramdisks;
use metal3_hosts::reconciler::caches::Caches;
use metal3_hosts::reconciler::{DeprovisionBudget, Parts, controller};
use metal3_hosts::settings::Settings;
use metal3_hosts::subscription;
use metal3_hosts::switches;
use metal3_hosts::unserved;
use metal3_ironic::Client;
use metal3_ironic::endpoint::{Endpoint, Settings as IronicSettings};
use metal3_runtime::events::{EventQueue, EventRecorder};
use metal3_runtime::guard::{self, ForeignDeployment};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{Scope, WatchConfig};
use metal3_runtime::write::{Mode, Writer};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::env::{Configured, GoManagerCheck, Other, Wiring};
use crate::interceptor::Interceptor;

pub(crate) struct Program {
    pub(crate) client: kube::Client,
    pub(crate) interceptor: Interceptor,
    pub(crate) others: Vec<Other>,
    pub(crate) configured: Configured,
    pub(crate) wiring: Arc<Mutex<Wiring>>,
    pub(crate) observes: Arc<Mutex<bool>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inboxes: Arc<Mutex<Vec<EventQueue>>>,
    pub(crate) to_ironic: Arc<Mutex<Option<Client>>>,
    pub(crate) metrics: Arc<Mutex<Metrics>>,
    pub(crate) slots: usize,
    pub(crate) unserved: bool,
    pub(crate) subscriptions: bool,
    pub(crate) data_images: bool,
    pub(crate) agent_images: Option<Ramdisks>,
    pub(crate) switches: Option<switches::Outputs>,
    pub(crate) claims: bool,
    pub(crate) only: Option<&'static str>,
    pub(crate) plain_node_names: bool,
}

impl Program {
    /// Runs the controller, and starts it again after each crash.
    pub(crate) async fn run(self, mut killed: watch::Receiver<u64>, mut crashed: watch::Receiver<u64>) {
        loop {
            let _running = self.start();
            tokio::select! {
                _ = killed.changed() => {}
                _ = crashed.changed() => {}
            }
        }
    }

    /// Starts the controller. Dropping the result stops it.
    pub(crate) fn start(&self) -> JoinSet<()> {
        let (caches, stop) = (Caches::default(), CancellationToken::new());
        let (events, inbox) = EventRecorder::bounded(1000);
        self.inboxes.lock().push(inbox);
        self.interceptor.start();
        let ironics = self.ironics();
        *self.to_ironic.lock() = ironics.iter().next().map(|(_, client)| client.clone());
        let mut tasks = JoinSet::new();
        if self.unserved {
            self.start_unserved(&mut tasks, &caches, ironics.clone(), events.clone());
        }
        let of_switches = self.switches.clone().map(|outputs| switches::SecretsOfSwitches {
            caches: switches::Caches::default(),
            outputs,
        });
        if self.subscriptions {
            let switches = of_switches.clone();
            self.start_subscriptions(&mut tasks, (&caches, switches), ironics.clone(), events.clone());
        }
        if self.data_images {
            self.start_data_images(&mut tasks, &caches, ironics.clone(), events.clone());
        }
        if let Some(ramdisks) = &self.agent_images {
            self.start_agent_images(&mut tasks, &caches, ramdisks.clone());
        }
        if self.claims {
            self.start_claims(&mut tasks, (&caches, of_switches.clone()), events.clone());
        }
        if let Some(switches) = of_switches {
            self.start_switches(&mut tasks, &caches, switches);
        }
        let metrics = Metrics::new();
        self.metrics.lock().clone_from(&metrics);
        let parts = Parts {
            client: self.client.clone(),
            caches: caches.clone(),
            ironics,
            permit: Arc::new(|| Ok(())),
            clock: Arc::clone(&self.clock),
            events,
            metrics,
            settings: self.settings(),
            deprovision_budget: DeprovisionBudget::default(),
            slots: self.slots,
            workers: 8,
        };
        let mode = match *self.observes.lock() {
            true => Mode::ObserveOnly,
            false => Mode::Perform,
        };
        let running = controller(parts, Writer::new(self.client.clone(), mode));
        let watch_config = self.watch_config(&stop);
        let watches = match self.agent_images.is_some() {
            true => caches.watches_with_agent_images(&watch_config),
            false => caches.watches(&watch_config),
        };
        for task in watches.into_tasks() {
            tasks.spawn(task);
        }
        tasks.spawn(running.run(stop));
        tasks
    }

    /// What the program watches.
    fn watch_config(&self, stop: &CancellationToken) -> WatchConfig {
        let everywhere = WatchConfig::everywhere(&self.client, &self.clock, stop);
        match self.only {
            Some(only) => WatchConfig {
                scope: Scope::namespace(only),
                ..everywhere
            },
            None => everywhere,
        }
    }

    /// The clients of the configured Ironics.
    fn ironics(&self) -> Ironics {
        let client = |interceptor: &Interceptor, host: &str| {
            let settings = IronicSettings::new(Endpoint::parse(&format!("http://{host}.example")).unwrap());
            Client::over(Arc::new(interceptor.clone()), settings, Arc::clone(&self.clock))
        };
        let wiring = *self.wiring.lock();
        let named = |name: &&'static str| {
            let leads_to = match (wiring, self.others.first()) {
                (Wiring::Exchanged, Some(other)) if *name == USUAL_NAME => other.name,
                (Wiring::Exchanged, Some(other)) if *name == other.name => USUAL_NAME,
                (Wiring::One, _) => USUAL_NAME,
                _ => *name,
            };
            let other = self.others.iter().find(|other| other.name == leads_to);
            let interceptor = other.map_or(&self.interceptor, |other| &other.interceptor);
            let host = if wiring == Wiring::One { name } else { leads_to };
            (*name, client(interceptor, host))
        };
        let mut all: Vec<(&str, Client)> = self.configured.lock().iter().map(named).collect();
        let first = all.remove(0);
        Ironics::new(
            first,
            all.into_iter()
                .map(|(name, client)| (name.to_owned(), client))
                .collect(),
        )
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings {
            plain_node_names: self.plain_node_names,
            builds_agent_images: self.agent_images.is_some(),
            ..Settings::default()
        };
        settings.node.ramdisks = self.agent_images.clone().unwrap_or_default();
        settings
    }

    fn go_manager(&self) -> live::GoManagerCheck {
        let client = self.client.clone();
        Arc::new(move || {
            let foreign = ForeignDeployment::at("hosts", guard::HOSTS);
            Box::pin(guard::read_status::<GoManagerCheck>(client.clone(), foreign))
        })
    }

    fn start_subscriptions(
        &self,
        tasks: &mut JoinSet<()>,
        (of_hosts, switches): (&Caches, Option<switches::SecretsOfSwitches>),
        ironics: Ironics,
        events: EventRecorder,
    ) {
        let (caches, stop) = (subscription::Caches::default(), CancellationToken::new());
        let parts = subscription::Parts {
            client: self.client.clone(),
            caches: caches.clone(),
            of_hosts: of_hosts.clone(),
            ironics,
            permit: Arc::new(|| Ok(())),
            go_manager: self.go_manager(),
            switches,
            settings: self.settings(),
            clock: Arc::clone(&self.clock),
            events,
            metrics: Metrics::new(),
        };
        let controller = subscription::controller(parts, Writer::new(self.client.clone(), Mode::Perform));
        let watches = caches.watches(&WatchConfig::everywhere(&self.client, &self.clock, &stop));
        for task in watches.into_tasks() {
            tasks.spawn(task);
        }
        tasks.spawn(async move {
            controller.run(stop).await;
        });
    }

    fn start_claims(
        &self,
        tasks: &mut JoinSet<()>,
        (of_hosts, switches): (&Caches, Option<switches::SecretsOfSwitches>),
        events: EventRecorder,
    ) {
        let (caches, stop) = (claims::Caches::default(), CancellationToken::new());
        let parts = claims::Parts {
            client: self.client.clone(),
            caches: caches.clone(),
            only: self.only.map(str::to_owned),
            of_hosts: of_hosts.clone(),
            switches,
            clock: Arc::clone(&self.clock),
            events,
            metrics: Metrics::new(),
        };
        let controllers = claims::controllers(parts, Writer::new(self.client.clone(), Mode::Perform));
        let watches = caches.watches(&self.watch_config(&stop), self.only.is_none());
        for task in watches.into_tasks() {
            tasks.spawn(task);
        }
        tasks.spawn(async move {
            controllers.run(stop).await;
        });
    }

    fn start_data_images(&self, tasks: &mut JoinSet<()>, of_hosts: &Caches, ironics: Ironics, events: EventRecorder) {
        let parts = data_image::Parts {
            of_hosts: of_hosts.clone(),
            ironics,
            go_manager: self.go_manager(),
            plain_node_names: self.plain_node_names,
            clock: Arc::clone(&self.clock),
            events,
            metrics: Metrics::new(),
        };
        let controller = data_image::controller(parts, Writer::new(self.client.clone(), Mode::Perform));
        tasks.spawn(async move {
            controller.run(CancellationToken::new()).await;
        });
    }

    fn start_switches(&self, tasks: &mut JoinSet<()>, of_hosts: &Caches, switches: switches::SecretsOfSwitches) {
        let (caches, outputs, stop) = (switches.caches, switches.outputs, CancellationToken::new());
        let parts = switches::Parts {
            client: self.client.clone(),
            caches: caches.clone(),
            of_hosts: of_hosts.clone(),
            outputs,
            bmc_secrets: self.settings().bmc_secrets,
            clock: Arc::clone(&self.clock),
            metrics: Metrics::new(),
        };
        let controller = switches::controller(parts, Writer::new(self.client.clone(), Mode::Perform));
        let watches = caches.watches(&WatchConfig::everywhere(&self.client, &self.clock, &stop));
        for task in watches.into_tasks() {
            tasks.spawn(task);
        }
        tasks.spawn(async move {
            controller.run(stop).await;
        });
    }

    fn start_agent_images(&self, tasks: &mut JoinSet<()>, of_hosts: &Caches, ramdisks: Ramdisks) {
        let parts = agent_image::Parts {
            caches: of_hosts.clone(),
            ramdisks,
            clock: Arc::clone(&self.clock),
            metrics: Metrics::new(),
        };
        let controller = agent_image::controller(parts, Writer::new(self.client.clone(), Mode::Perform));
        tasks.spawn(async move {
            controller.run(CancellationToken::new()).await;
        });
    }

    fn start_unserved(&self, tasks: &mut JoinSet<()>, of_hosts: &Caches, ironics: Ironics, events: EventRecorder) {
        let (caches, stop) = (unserved::Caches::default(), CancellationToken::new());
        let parts = unserved::Parts {
            client: self.client.clone(),
            caches: caches.clone(),
            hosts: of_hosts.hosts.clone(),
            namespace: None,
            ironics,
            go_manager: self.go_manager(),
            plain_node_names: self.plain_node_names,
            builds_agent_images: self.agent_images.is_some(),
            serves_switches: self.switches.is_some(),
            serves_claims: self.claims,
            clock: Arc::clone(&self.clock),
            events,
            metrics: Metrics::new(),
        };
        let running = unserved::controllers(parts, &Writer::new(self.client.clone(), Mode::Perform));
        for task in caches
            .watches(&WatchConfig::everywhere(&self.client, &self.clock, &stop))
            .into_tasks()
        {
            tasks.spawn(task);
        }
        tasks.spawn(running.run(stop));
    }
}
