//! Applies the destination that the resource and its Secrets say, on each change of them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use metal3_ironic::Client;
use metal3_ironic::endpoint::Settings;
use metal3_runtime::object_reader::{Erased, ObjectReader};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Fault;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::destination::{Missing, Secrets, secrets, settings};
use super::{Caches, Followed};
use crate::needs::IronicResource;

/// The pause after a failed read of a Secret. No event reports that it can be read again.
const RETRY: Duration = Duration::from_secs(5);

/// What [`follow`] uses.
pub struct Parts {
    /// The API server.
    pub client: kube::Client,
    /// The caches.
    pub caches: Caches,
    /// The client of Ironic whose destination is set.
    pub ironic: Client,
    /// The resource.
    pub followed: Followed,
}

/// Sets the destination until `stop`.
pub async fn follow(parts: Parts, stop: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let (of_ironic, of_secret) = (Arc::clone(&changed), Arc::clone(&changed));
    parts.caches.ironics.subscribe(move |_| of_ironic.notify_one());
    parts.caches.secrets.subscribe(move |_| of_secret.notify_one());
    let secrets = ObjectReader::new(parts.client.clone(), &parts.caches.secrets);
    let mut follower = Follower {
        parts,
        secrets,
        applied: None,
        reported: None,
        held: Vec::new(),
    };
    let work = async {
        follower.parts.caches.ironics.synced().await;
        follower.parts.caches.secrets.synced().await;
        loop {
            match follower.apply().await {
                Ok(true) => changed.notified().await,
                // A certificate of the client may be replaced right now, and no event reports that.
                Ok(false) => tokio::select! {
                    () = changed.notified() => {}
                    () = sleep(RETRY) => {}
                },
                Err(fault) => {
                    tracing::warn!(%fault, "a Secret of the Ironic resource cannot be read");
                    sleep(RETRY).await;
                }
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

struct Follower {
    parts: Parts,
    secrets: ObjectReader<IronicResource, Secret>,
    /// The destination in use. `Err`: why there is none.
    applied: Option<Result<Settings, String>>,
    /// What the log says: why there is none, or that there is one.
    reported: Option<Option<String>>,
    /// The Secrets in use, so that another change next to them does not read them again.
    held: Vec<Arc<Erased<Secret>>>,
}

impl Follower {
    /// Whether what is wanted is in use.
    async fn apply(&mut self) -> Result<bool, Fault> {
        let wanted = match self.wanted().await? {
            Ok(settings) => Ok(settings),
            Err(Missing::NotReady(why)) => Err(why),
            Err(Missing::Unknown(why)) if self.applied.is_none() => Err(why),
            Err(Missing::Unknown(why)) => {
                tracing::warn!(why, "Ironic stays where it was");
                return Ok(true);
            }
        };
        if self.applied.as_ref() == Some(&wanted) {
            return Ok(true);
        }
        let is_set = self.set(wanted.clone()).await;
        self.applied = is_set.then_some(wanted);
        Ok(is_set)
    }

    /// Whether it can be used. The log has each change of the reason once.
    async fn set(&mut self, wanted: Result<Settings, String>) -> bool {
        let at = self.parts.followed.resource.to_string();
        let why = wanted.as_ref().err().cloned();
        let failed = self.parts.ironic.change_destination(wanted).await.err();
        let is_set = failed.is_none();
        let report = failed.map(|error| format!("Ironic resource {at}: {error}")).or(why);
        if self.reported.as_ref() == Some(&report) {
            return is_set;
        }
        match &report {
            None => tracing::info!(ironic = at, "Ironic is ready"),
            Some(why) => tracing::warn!(why, "nothing is sent to Ironic"),
        }
        if let (false, Some(why)) = (is_set, &report) {
            // Without settings nothing is read, so this does not fail.
            drop(self.parts.ironic.change_destination(Err(why.clone())).await);
        }
        self.reported = Some(report);
        is_set
    }

    async fn wanted(&mut self) -> Result<Result<Settings, Missing>, Fault> {
        let ironic = self.parts.caches.ironics.find(&self.parts.followed.resource);
        match secrets(&self.parts.followed, borrowed(&ironic, |ironic| ironic)) {
            Ok(named) => self.settings(&named).await,
            Err(missing) => Ok(Err(missing)),
        }
    }

    async fn settings(&mut self, named: &Secrets) -> Result<Result<Settings, Missing>, Fault> {
        let login = self.secrets.get(&named.login).await?;
        let certificate = match &named.certificate {
            Some(key) => Some(self.secrets.get(key).await?),
            None => None,
        };
        let of_certificate = certificate.as_ref().map(|found| borrowed(found, |found| &**found));
        let settings = settings(
            &self.parts.followed,
            named,
            borrowed(&login, |found| &**found),
            of_certificate,
        );
        let found = [login.into_present(), certificate.and_then(Observed::into_present)];
        self.held = found.into_iter().flatten().collect();
        Ok(settings)
    }
}

fn borrowed<'a, A, B>(observed: &'a Observed<Arc<A>>, inner: impl Fn(&'a A) -> &'a B) -> Observed<&'a B> {
    match observed {
        Observed::Present(object) => Observed::Present(inner(object)),
        Observed::Absent => Observed::Absent,
        Observed::Unknown(why) => Observed::Unknown(why.clone()),
    }
}
