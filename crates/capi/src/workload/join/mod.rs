//! What a machine needs to join a workload cluster, as the API server of the cluster answers now. Nothing is written.
//!
//! Two clients ask: one with the credentials of the kubeconfig, at the address in it; and one without credentials, at the
//! endpoint of the Cluster, as kubeadm does on a new machine. Credentials never go to the second address.
//!
//! A requisite is absent only where the server states it. A refusal, an error and silence are unknown. Texts of the server are
//! texts of a tenant: they reach no result.

mod anonymous;
mod sent;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::role;
use metal3_runtime::work::Category;
use metal3_runtime::write::{NoCache, Writable, Writer};
use tokio::time::{Instant, timeout_at};

use super::connect::{NoAccess, kubeconfig_of, secret_of};
use super::remote::Remote;
use super::requests::{Place, Reconciled};
use super::waiter::Waiter;
use super::{Request, WakeFn};
pub use sent::SentConfig;
use sent::{Keys, SentBinding, SentClusterBinding, SentLease, SentNamespace};

/// How long all requests of one look take at most: a worker waits for them.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

role! {
    /// Permissions in workload clusters, with the credentials of their own kubeconfigs. The manager's role does not grant
    /// them.
    pub struct JoinReader {
        SentConfig: Get;
        SentBinding: Get;
        SentClusterBinding: Get;
        SentLease: Get;
        SentNamespace: Get;
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requisite {
    /// The namespace `kube-system`, of every cluster: whether the credentials are accepted.
    Namespace,
    /// What a new machine reads of the cluster first, without credentials.
    ClusterInfo,
    /// The configuration of the cluster.
    KubeadmConfig,
    /// The configuration of kubelets.
    KubeletConfig,
    /// Bootstrap tokens may read the configuration of the cluster.
    ReadKubeadmConfig,
    /// Bootstrap tokens may read the configuration of kubelets.
    ReadKubeletConfig,
    /// Bootstrap tokens may request a certificate.
    RequestCertificate,
    /// Certificates of bootstrap tokens are approved.
    ApproveCertificate,
    /// Bootstrap tokens may read Nodes, to detect one of the same name.
    GetNodes,
    /// A scheduler.
    Scheduler,
}

impl Requisite {
    /// What `kubeadm join` needs, and Pods after it.
    pub const OF_KUBEADM: [Self; 9] = [
        Self::ClusterInfo,
        Self::KubeadmConfig,
        Self::KubeletConfig,
        Self::ReadKubeadmConfig,
        Self::ReadKubeletConfig,
        Self::RequestCertificate,
        Self::ApproveCertificate,
        Self::GetNodes,
        Self::Scheduler,
    ];

    /// Namespace and name of its object.
    #[must_use]
    pub const fn object(self) -> (&'static str, &'static str) {
        match self {
            Self::Namespace => ("", "kube-system"),
            Self::ClusterInfo => ("kube-public", "cluster-info"),
            Self::KubeadmConfig => ("kube-system", "kubeadm-config"),
            Self::KubeletConfig => ("kube-system", "kubelet-config"),
            Self::ReadKubeadmConfig => ("kube-system", "kubeadm:nodes-kubeadm-config"),
            Self::ReadKubeletConfig => ("kube-system", "kubeadm:kubelet-config"),
            Self::RequestCertificate => ("", "kubeadm:kubelet-bootstrap"),
            Self::ApproveCertificate => ("", "kubeadm:node-autoapprove-bootstrap"),
            Self::GetNodes => ("", "kubeadm:get-nodes"),
            Self::Scheduler => ("kube-system", "kube-scheduler"),
        }
    }

    fn key(self) -> Key {
        let (namespace, name) = self.object();
        Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// What is asked of a workload cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinQuestion {
    /// The Cluster.
    pub cluster: Key,
    /// Its endpoint, if it has one.
    pub endpoint: Option<(String, u16)>,
    /// Whether its machines join with kubeadm. Of others only endpoint and credentials are known to matter.
    pub is_kubeadm: bool,
}

/// The API server of the kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// It answers.
    Answers,
    /// There is no kubeconfig, or it cannot be used: what to correct.
    NoAccess(String),
    /// It does not answer.
    Silent,
}

/// The endpoint of the Cluster, for a machine without credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// It sends what a new machine reads first.
    SendsInfo,
    /// It states that there is none.
    HasNoInfo,
    /// It refuses requests without credentials.
    Refuses,
    /// It answers with an error.
    Fails,
    /// It does not answer, or its certificate is not of the kubeconfig's authority.
    Silent,
}

/// What a workload cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinReport {
    /// The API server of the kubeconfig.
    pub server: Server,
    /// The endpoint; `None` when it was not asked.
    pub endpoint: Option<Endpoint>,
    /// What was looked for. One that was not asked about is unknown.
    pub requisites: BTreeMap<Requisite, Observed<()>>,
}

impl JoinReport {
    /// A report about a cluster without a way into it.
    #[must_use]
    pub const fn of(server: Server) -> Self {
        Self {
            server,
            endpoint: None,
            requisites: BTreeMap::new(),
        }
    }
}

/// Looks at workload clusters before machines join them.
pub trait JoinChecks: Send + Sync + 'static {
    /// Sets the function that enqueues waiting keys, and the number of workers that reconcile them.
    fn set_wake(&self, wake: WakeFn, workers: usize);

    /// Held during the reconcile of `waiter`, so that its requests have one place until it ends.
    fn reconciled(&self, waiter: &Key) -> Reconciled;

    /// Ends the wait of `waiter`.
    fn remove_waiter(&self, waiter: &Key);

    /// Asks. An error means that no request was sent, because [others are under way](super::is_busy).
    fn look<'a>(&'a self, question: &'a JoinQuestion, waiter: &'a Key) -> Request<'a, JoinReport>;
}

/// The way of the controller of machines into workload clusters, with limits of its own.
pub struct Joins<R: Role + Permits<verb::Get, Secret>>(Arc<Remote<R>>);

impl<R: Role + Permits<verb::Get, Secret>> Joins<R> {
    /// Uses the kubeconfigs of `remote`.
    #[must_use]
    pub const fn new(remote: Arc<Remote<R>>) -> Self {
        Self(remote)
    }
}

impl<R: Role + Permits<verb::Get, Secret>> JoinChecks for Joins<R> {
    fn set_wake(&self, wake: WakeFn, workers: usize) {
        self.0.wakes().set_of_clusters(wake);
        self.0.of_clusters().set_workers(workers);
    }

    fn reconciled(&self, waiter: &Key) -> Reconciled {
        Reconciled::new(self.0.of_clusters(), waiter)
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.0.end_wait(&Waiter::Cluster(waiter.clone()));
    }

    fn look<'a>(&'a self, question: &'a JoinQuestion, waiter: &'a Key) -> Request<'a, JoinReport> {
        Box::pin(async move {
            let op = || format!("look at the workload cluster of {}", question.cluster);
            let place = self.0.of_clusters().begin(&question.cluster, waiter, op)?;
            Ok(self.report(question, place).await)
        })
    }
}

impl<R: Role + Permits<verb::Get, Secret>> Joins<R> {
    async fn report(&self, question: &JoinQuestion, place: Place<'_>) -> JoinReport {
        let (reader, open) = self.0.source();
        let config = match kubeconfig_of(reader, &question.cluster).await {
            Ok((_, config)) => config,
            Err(NoAccess::Missing(secret)) => {
                let why = format!("Secret {secret} does not exist; the provider of the control plane writes it");
                return JoinReport::of(Server::NoAccess(why));
            }
            // The message of a failed read contains a text of this API server only.
            Err(why) => return JoinReport::of(Server::NoAccess(why.to_string())),
        };
        let look = Look {
            place,
            until: Instant::now() + LOOK_TIMEOUT,
            mode: reader.mode(),
        };
        let endpoint = question.endpoint.as_ref();
        let anonymous = endpoint.and_then(|(host, port)| anonymous::kubeconfig(&config, host, *port));
        let asked: &[Requisite] = match question.is_kubeadm {
            true => &Requisite::OF_KUBEADM,
            false => &[Requisite::Namespace],
        };
        let mut report = match look.connect(open(config)).await {
            Ok(client) => look.requisites(&client, asked).await,
            Err(Some(why)) => {
                let secret = secret_of(&question.cluster).name;
                JoinReport::of(Server::NoAccess(format!("Secret {secret}: {why}")))
            }
            Err(None) => JoinReport::of(Server::Silent),
        };
        // A server that is away takes the time, and the address of the endpoint is usually the same.
        if let Some(config) = anonymous.filter(|_| report.server == Server::Answers) {
            report.endpoint = Some(match look.connect(open(config)).await {
                Ok(client) => look.endpoint(&client).await,
                Err(Some(_)) => Endpoint::Fails,
                Err(None) => Endpoint::Silent,
            });
        }
        report
    }
}

/// One look: its place, and when it ends.
struct Look<'a> {
    place: Place<'a>,
    until: Instant,
    mode: metal3_runtime::write::Mode,
}

impl Look<'_> {
    /// A client; an error with what to correct, or without when the time is over.
    async fn connect(
        &self,
        opening: impl Future<Output = Result<kube::Client, String>>,
    ) -> Result<Writer<JoinReader>, Option<String>> {
        let opened = timeout_at(self.until, opening).await.map_err(|_| None)?;
        Ok(Writer::new(opened.map_err(Some)?, self.mode))
    }

    async fn requisites(&self, client: &Writer<JoinReader>, asked: &[Requisite]) -> JoinReport {
        let mut requisites: BTreeMap<_, _> = asked
            .iter()
            .map(|one| (*one, Observed::Unknown(UnknownReason::NotRead)))
            .collect();
        for requisite in asked {
            match self.requisite(client, *requisite).await {
                Some(found) => drop(requisites.insert(*requisite, found)),
                None if requisites.values().all(is_not_read) => return JoinReport::of(Server::Silent),
                // It stopped answering: the rest stays unknown.
                None => break,
            }
        }
        JoinReport {
            server: Server::Answers,
            endpoint: None,
            requisites,
        }
    }

    /// Whether a requisite is there; `None` when the server does not answer.
    async fn requisite(&self, client: &Writer<JoinReader>, requisite: Requisite) -> Option<Observed<()>> {
        let found = match requisite {
            Requisite::Namespace => self.read::<SentNamespace>(client, requisite, |_| true).await,
            Requisite::ClusterInfo => self.config(client, requisite, |keys| keys.has_kubeconfig).await,
            Requisite::KubeadmConfig => self.config(client, requisite, |keys| keys.has_cluster).await,
            Requisite::KubeletConfig => self.config(client, requisite, |keys| keys.has_kubelet).await,
            Requisite::ReadKubeadmConfig | Requisite::ReadKubeletConfig => {
                self.read::<SentBinding>(client, requisite, |_| true).await
            }
            Requisite::RequestCertificate | Requisite::ApproveCertificate | Requisite::GetNodes => {
                self.read::<SentClusterBinding>(client, requisite, |_| true).await
            }
            Requisite::Scheduler => self.read::<SentLease>(client, requisite, |_| true).await,
        };
        match found {
            Ok(true) => Some(Observed::Present(())),
            Ok(false) => Some(Observed::Absent),
            Err(category) if category == Category::UNREACHABLE.as_str() => None,
            Err(category) if category == Category::FORBIDDEN.as_str() => {
                Some(Observed::Unknown(UnknownReason::NotPermitted))
            }
            Err(category) => Some(Observed::Unknown(UnknownReason::Unreadable(category.to_owned()))),
        }
    }

    /// Asks for the information that kubeadm reads first.
    async fn endpoint(&self, client: &Writer<JoinReader>) -> Endpoint {
        let info = Requisite::ClusterInfo;
        match self.config(client, info, |keys| keys.has_kubeconfig).await {
            Ok(true) => Endpoint::SendsInfo,
            Ok(false) => Endpoint::HasNoInfo,
            Err(category) if category == Category::FORBIDDEN.as_str() => Endpoint::Refuses,
            Err(category) if category == Category::UNREACHABLE.as_str() => Endpoint::Silent,
            Err(_) => Endpoint::Fails,
        }
    }

    /// Whether a ConfigMap exists and has a key, or the category of the error.
    async fn config(
        &self,
        client: &Writer<JoinReader>,
        requisite: Requisite,
        has_key: fn(Keys) -> bool,
    ) -> Result<bool, &'static str> {
        let has_key = |config: &SentConfig| has_key(config.keys());
        self.read(client, requisite, has_key).await
    }

    /// Whether an object exists and matches, or the category of the error.
    async fn read<K: Writable>(
        &self,
        client: &Writer<JoinReader>,
        requisite: Requisite,
        matches: impl Fn(&K) -> bool,
    ) -> Result<bool, &'static str>
    where
        JoinReader: Permits<verb::Get, K>,
    {
        let key = requisite.key();
        let read = self.place.measured(client.read::<K>(&NoCache, &key));
        match timeout_at(self.until, read).await {
            // What answers is no API server, or one that answers another question.
            Ok(Ok(Some(found))) if found.meta().name.as_ref() != Some(&key.name) => Err(Category::UNREADABLE.as_str()),
            Ok(Ok(found)) => Ok(found.is_some_and(|found| matches(&found))),
            Ok(Err(fault)) => Err(fault.category()),
            Err(_) => Err(Category::UNREACHABLE.as_str()),
        }
    }
}

fn is_not_read(found: &Observed<()>) -> bool {
    matches!(found, Observed::Unknown(UnknownReason::NotRead))
}

#[cfg(test)]
mod tests;
