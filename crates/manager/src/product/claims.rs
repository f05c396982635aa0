//! HostClaims, wired: a controller of the product hosts, with `--hostclaims`.

use std::sync::Arc;

use metal3_hosts::claims::{self, Caches, Controllers};
use metal3_hosts::needs::Claims;
use metal3_hosts::reconciler::caches::Caches as HostCaches;
use metal3_hosts::switches::SecretsOfSwitches;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::write::Writer;

use super::WriteAccess;
use crate::hosts_config::HostsConfig;
use crate::session::Session;

/// A program of one namespace may not watch namespaces, which belong to none.
const fn watches_namespaces(only: Option<&str>) -> bool {
    only.is_none()
}

/// The watches, with the flag.
pub(super) fn watches(
    session: &Session,
    caches: &Caches,
    config: &WatchConfig,
    only: Option<&str>,
) -> Option<WatchSet<Claims>> {
    let is_served = session.options.serves_claims;
    is_served.then(|| caches.watches(config, watches_namespaces(only)))
}

/// The controllers, with the flag.
pub(super) fn controllers(
    (session, metal): (&Session, &HostsConfig),
    (of_hosts, caches): (&HostCaches, Caches),
    write_access: &WriteAccess,
    switches: Option<SecretsOfSwitches>,
    events: &EventRecorder,
) -> Option<Controllers> {
    if !session.options.serves_claims {
        return None;
    }
    let only = session.options.namespace.as_ref().or(metal.namespace.as_ref());
    let parts = claims::Parts {
        client: write_access.client.clone(),
        caches,
        only: only.cloned(),
        of_hosts: of_hosts.clone(),
        switches,
        clock: Arc::clone(&session.clock),
        events: events.clone(),
        metrics: session.metrics.clone(),
    };
    let writer: Writer<Claims> = Writer::new(write_access.client.clone(), session.mode());
    Some(claims::controllers(parts, writer))
}
