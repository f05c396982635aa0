//! Hosts, wired.

use std::sync::Arc;

use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::GROUP;
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch, HostClaim, HostDeployPolicy};
use metal3_grants::Admission;
use metal3_hosts::agent_image::{self, ImageReconciler};
use metal3_hosts::claims::{Caches as ClaimCaches, Controllers};
use metal3_hosts::data_image;
use metal3_hosts::ironic_resource;
use metal3_hosts::needs::{AgentImages, DataImages, Hosts, Subscriptions, Switches, UnservedKinds};
use metal3_hosts::reconciler::caches::Caches;
use metal3_hosts::reconciler::{Parts, controller};
use metal3_hosts::subscription;
use metal3_hosts::switches::{self, SecretsOfSwitches, SwitchReconciler};
use metal3_hosts::unserved;
use metal3_runtime::admin::SubjectReviewer;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard;
use metal3_runtime::lease::HOSTS_LEASE;
use metal3_runtime::watch::Scope;
use metal3_runtime::work::{Controller, Reconciler};
use metal3_runtime::write::Writer;
use metal3_webhooks::destinations::Destinations;
use metal3_webhooks::guarded::AccessQuestion;
use metal3_webhooks::related_objects::{Decision, Observation, RelatedObjects};
use metal3_webhooks::table::HOSTS;
use tokio_util::sync::CancellationToken;

use super::{EVENTS, Product, Running, Task, WriteAccess, claims, other_namespace};
use crate::drain_events::run_then_drain;
use crate::error::RunError;
use crate::hosts_config::HostsConfig;
use crate::served::Kind;
use crate::session::Session;
use metal3_flags::Owner;

const fn own_kind(plural: &'static str) -> Kind {
    Kind::new(GROUP, "v1alpha1", plural, "hosts-components.yaml")
}

/// Hosts.
pub(super) const PRODUCT: Product = Product {
    owner: Owner::Hosts,
    suite: HOSTS,
    kinds: &[own_kind("baremetalhosts"), own_kind("hardwaredata")],
    lease: HOSTS_LEASE,
    replaces: &[guard::HOSTS],
    begin,
};

fn begin(session: &Session, write_access: WriteAccess) -> Result<Running, RunError> {
    let metal = session.hosts.clone().ok_or(RunError::NoIronic)?;
    let caches = Caches::default();
    let mut watch_config = session.watch_config();
    if let (None, Some(namespace)) = (&session.options.namespace, &metal.namespace) {
        watch_config.scope = Scope::namespace(namespace);
    }
    let only = session.options.namespace.clone().or_else(|| metal.namespace.clone());
    let known = caches.hosts.clone();
    let mut others = OtherCaches::default();
    let of_hosts = match metal.settings.builds_agent_images {
        true => caches.watches_with_agent_images(&watch_config),
        false => caches.watches(&watch_config),
    };
    let watches = of_hosts
        .chain(others.subscriptions.watches(&watch_config))
        .chain(others.unserved.watches(&watch_config));
    let watches = watches.chain(others.ironics.watches(&watch_config, &metal.ironic_resources));
    let watches = match &metal.switches {
        Some(_) => watches.chain(others.switches.watches(&watch_config)),
        None => watches,
    };
    let watches = match claims::watches(session, &others.claims, &watch_config, only.as_deref()) {
        Some(of_claims) => watches.chain(of_claims),
        None => watches,
    };
    let serves_switches = metal.switches.is_some();
    let task = controllers(session, (caches, others), write_access, metal);
    let reviewed_by = ReviewedBy {
        rights: SubjectReviewer::new::<Admission>(&session.client),
        destinations: session.destinations(),
        hosts: KnownHosts { known, only },
        serves_switches,
        serves_claims: session.options.serves_claims,
    };
    Ok(Running {
        related_objects: Arc::new(reviewed_by),
        ..Running::new(watches, task)
    })
}

/// The caches of the kinds that the controller of hosts does not read.
#[derive(Default)]
struct OtherCaches {
    subscriptions: subscription::Caches,
    switches: switches::Caches,
    unserved: unserved::Caches,
    ironics: ironic_resource::AllCaches,
    claims: ClaimCaches,
}

/// The rights of users and the allowed destinations, for the webhook of hosts. A replica that does not lead reviews them
/// too.
struct ReviewedBy {
    rights: SubjectReviewer,
    destinations: Destinations,
    hosts: KnownHosts,
    /// Whether switches are configured (`IRONIC_NETWORKING_ENABLED`).
    serves_switches: bool,
    /// Whether HostClaims are served (`--hostclaims`).
    serves_claims: bool,
}

/// The hosts, for the webhook of attachments.
struct KnownHosts {
    known: SharedCache<BareMetalHost>,
    /// The watched namespace; `None` for all.
    only: Option<String>,
}

impl KnownHosts {
    fn of(&self, namespace: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        if let Some(only) = self.only.as_deref().filter(|only| *only != namespace) {
            return Observation::Unknown(other_namespace(only));
        }
        let known = self.known.read(|cache| {
            let hosts = cache.objects().map(|(_, host)| Arc::clone(host));
            cache.synced().then(|| hosts.collect())
        });
        let not_listed = || Observation::Unknown("baremetalhosts not listed yet; /readyz says why".to_owned());
        known.map_or_else(not_listed, Observation::Known)
    }
}

impl RelatedObjects for ReviewedBy {
    fn hosts(&self, namespace: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        self.hosts.of(namespace)
    }

    fn destinations(&self) -> Option<&Destinations> {
        Some(&self.destinations)
    }

    fn serves(&self, kind: &str) -> bool {
        let is_of_claims = kind == HostClaim::KIND || kind == HostDeployPolicy::KIND;
        (self.serves_switches && kind == BareMetalSwitch::KIND) || (self.serves_claims && is_of_claims)
    }

    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Decision<'a> {
        Box::pin(async {
            let decision = self.rights.may(question.user.clone(), question.right.clone()).await;
            decision.map_err(|error| {
                tracing::warn!(%error, "the right of a user is not known, so the request is rejected");
                "the API server did not review it".to_owned()
            })
        })
    }
}

/// The controller of images of agents, with `--build-preprov-image`.
fn image_controller(
    session: &Session,
    caches: &Caches,
    write_access: &WriteAccess,
    metal: &HostsConfig,
) -> Option<Controller<ImageReconciler>> {
    let parts = metal.settings.builds_agent_images.then(|| agent_image::Parts {
        caches: caches.clone(),
        ramdisks: metal.settings.node.ramdisks.clone(),
        clock: Arc::clone(&session.clock),
        metrics: session.metrics.clone(),
    });
    let writer: Writer<AgentImages> = Writer::new(write_access.client.clone(), session.mode());
    parts.map(|parts| agent_image::controller(parts, writer))
}

/// The controller of switches, with `IRONIC_NETWORKING_ENABLED`.
fn switch_controller(
    session: &Session,
    (of_hosts, caches): (&Caches, switches::Caches),
    write_access: &WriteAccess,
    metal: &HostsConfig,
) -> Option<Controller<SwitchReconciler>> {
    let parts = switches::Parts {
        client: write_access.client.clone(),
        caches,
        of_hosts: of_hosts.clone(),
        outputs: metal.switches.clone()?,
        bmc_secrets: metal.settings.bmc_secrets,
        clock: Arc::clone(&session.clock),
        metrics: session.metrics.clone(),
    };
    let writer: Writer<Switches> = Writer::new(write_access.client.clone(), session.mode());
    Some(switches::controller(parts, writer))
}

/// What no subscription may send, if switches are configured.
fn secrets_of_switches(metal: &HostsConfig, caches: &switches::Caches) -> Option<SecretsOfSwitches> {
    let (outputs, caches) = (metal.switches.clone()?, caches.clone());
    Some(SecretsOfSwitches { caches, outputs })
}

async fn run_if_any<C: Reconciler>(controller: Option<Controller<C>>, stop: CancellationToken) {
    if let Some(controller) = controller {
        controller.run(stop).await;
    }
}

async fn run_claims(controllers: Option<Controllers>, stop: CancellationToken) {
    if let Some(controllers) = controllers {
        controllers.run(stop).await;
    }
}

async fn follow_all(parts: Vec<ironic_resource::Parts>, stop: CancellationToken) {
    let all = parts.into_iter();
    futures::future::join_all(all.map(|parts| ironic_resource::follow(parts, stop.clone()))).await;
}

fn subscription_parts(
    session: &Session,
    (of_hosts, (caches, switches)): (&Caches, (subscription::Caches, &switches::Caches)),
    write_access: &WriteAccess,
    metal: &HostsConfig,
    events: EventRecorder,
) -> subscription::Parts {
    subscription::Parts {
        client: write_access.client.clone(),
        caches,
        of_hosts: of_hosts.clone(),
        ironics: metal.ironics.clone(),
        permit: Arc::clone(&write_access.permit),
        go_manager: Arc::clone(&write_access.go_manager),
        switches: secrets_of_switches(metal, switches),
        settings: metal.settings.clone(),
        clock: Arc::clone(&session.clock),
        events,
        metrics: session.metrics.clone(),
    }
}

fn data_image_parts(
    session: &Session,
    caches: &Caches,
    write_access: &WriteAccess,
    metal: &HostsConfig,
    events: EventRecorder,
) -> data_image::Parts {
    data_image::Parts {
        of_hosts: caches.clone(),
        ironics: metal.ironics.clone(),
        go_manager: Arc::clone(&write_access.go_manager),
        plain_node_names: metal.settings.plain_node_names,
        clock: Arc::clone(&session.clock),
        events,
        metrics: session.metrics.clone(),
    }
}

fn unserved_parts(
    session: &Session,
    (of_hosts, caches): (&Caches, unserved::Caches),
    write_access: &WriteAccess,
    metal: &HostsConfig,
    events: EventRecorder,
) -> unserved::Parts {
    unserved::Parts {
        client: write_access.client.clone(),
        caches,
        hosts: of_hosts.hosts.clone(),
        namespace: session.options.namespace.clone().or_else(|| metal.namespace.clone()),
        ironics: metal.ironics.clone(),
        go_manager: Arc::clone(&write_access.go_manager),
        plain_node_names: metal.settings.plain_node_names,
        builds_agent_images: metal.settings.builds_agent_images,
        serves_switches: metal.switches.is_some(),
        serves_claims: session.options.serves_claims,
        clock: Arc::clone(&session.clock),
        events,
        metrics: session.metrics.clone(),
    }
}

fn ironic_parts(
    caches: &ironic_resource::AllCaches,
    write_access: &WriteAccess,
    metal: &HostsConfig,
) -> Vec<ironic_resource::Parts> {
    let followed = metal.ironic_resources.iter().filter_map(|followed| {
        Some(ironic_resource::Parts {
            client: write_access.client.clone(),
            caches: caches.of(followed)?,
            ironic: metal.ironics.client(&followed.resource.name)?.clone(),
            followed: followed.clone(),
        })
    });
    followed.collect()
}

fn controllers(
    session: &Session,
    (caches, others): (Caches, OtherCaches),
    write_access: WriteAccess,
    metal: HostsConfig,
) -> Task {
    let (events, inbox) = EventRecorder::bounded(EVENTS);
    let writer: Writer<Hosts> = Writer::new(write_access.client.clone(), session.mode());
    let its_secrets = secrets_of_switches(&metal, &others.switches);
    let of_claims = claims::controllers(
        (session, &metal),
        (&caches, others.claims),
        &write_access,
        its_secrets,
        &events,
    );
    let its_caches = (others.subscriptions, &others.switches);
    let of_subscriptions = subscription_parts(session, (&caches, its_caches), &write_access, &metal, events.clone());
    let of_data_images = data_image_parts(session, &caches, &write_access, &metal, events.clone());
    let of_unserved = unserved_parts(
        session,
        (&caches, others.unserved),
        &write_access,
        &metal,
        events.clone(),
    );
    let of_ironics = ironic_parts(&others.ironics, &write_access, &metal);
    let agent_images = image_controller(session, &caches, &write_access, &metal);
    let of_switches = switch_controller(session, (&caches, others.switches), &write_access, &metal);
    let subscription_writer: Writer<Subscriptions> = Writer::new(write_access.client.clone(), session.mode());
    let data_image_writer: Writer<DataImages> = Writer::new(write_access.client.clone(), session.mode());
    let unserved_writer: Writer<UnservedKinds> = Writer::new(write_access.client.clone(), session.mode());
    let clock = Arc::clone(&session.clock);
    let publisher = Publisher::new(inbox, writer.clone(), Arc::clone(&clock), "metal3-baremetal-controller");
    let parts = Parts {
        client: write_access.client,
        caches,
        ironics: metal.ironics,
        permit: write_access.permit,
        clock,
        events,
        metrics: session.metrics.clone(),
        settings: metal.settings,
        deprovision_budget: metal.deprovision_budget,
        slots: metal.slots,
        workers: metal.workers,
    };
    // Subscribes before any cache is filled.
    let controller = controller(parts, writer);
    let subscriptions = subscription::controller(of_subscriptions, subscription_writer);
    let data_images = data_image::controller(of_data_images, data_image_writer);
    let unserved = unserved::controllers(of_unserved, &unserved_writer);
    Box::new(move |stop| {
        let of_hosts = futures::future::join3(
            controller.run(stop.clone()),
            subscriptions.run(stop.clone()),
            data_images.run(stop.clone()),
        );
        let of_images = futures::future::join3(
            run_if_any(agent_images, stop.clone()),
            run_if_any(of_switches, stop.clone()),
            run_claims(of_claims, stop.clone()),
        );
        let follow_ironic = follow_all(of_ironics, stop.clone());
        let work = futures::future::join4(of_hosts, of_images, follow_ironic, unserved.run(stop));
        Box::pin(run_then_drain(work, publisher.run()))
    })
}

#[cfg(test)]
mod tests {
    use metal3_runtime::version::ResourceVersion;

    use super::*;

    #[test]
    fn hosts_of_the_watched_namespace_are_known_to_the_webhook_of_attachments() {
        let seen = |only: Option<&str>, is_listed: bool| {
            let known = SharedCache::default();
            if is_listed {
                known.listed(Vec::new(), ResourceVersion::parse("1").unwrap()).unwrap();
            }
            let only = only.map(str::to_owned);
            KnownHosts { known, only }.of("there")
        };
        for only in [None, Some("there")] {
            assert_eq!(seen(only, true), Observation::Known(Vec::new()));
            assert!(matches!(seen(only, false), Observation::Unknown(why) if why.contains("not listed")));
        }
        assert!(matches!(seen(Some("here"), true), Observation::Unknown(why) if why.contains("--namespace")));
    }
}
