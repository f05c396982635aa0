//! Checks on a real API server the behaviour that leases, the guard and the review of callers depend on.
//!
//! Prints `N claims hold`; a claim that does not hold is named and makes the exit code 1. The objects go into a
//! separate namespace, which is deleted in the end.

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use metal3_domain::clock::{Clock, Monotonic, SystemClock};
use metal3_runtime::admin::{AccessDecision, ClusterReviewer, Reviewer as _};
use metal3_runtime::client::{ClientFactory, Settings, load_config};
use metal3_runtime::guard::{DeploymentGuard, ForeignDeployment, Guard};
use metal3_runtime::lease::{LeaderElector, Leadership, LeaseTarget, LeaseTimings};
use metal3_runtime::metrics::Metrics;
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Parser)]
struct Arguments {
    /// The server to examine.
    #[arg(long)]
    kubeconfig: PathBuf,
}

const SECOND: Duration = Duration::from_secs(1);
/// Upper bound of each step on a busy machine.
const LONG: Duration = Duration::from_secs(30);
const MANAGER: &str = "capm3-controller-manager";

metal3_runtime::role! {
    /// All requests of this program, in one role.
    struct Services {
        Lease: Get, Watch, Create, Update;
        Deployment: List, Watch;
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

struct TestEnv {
    client: Client,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    namespace: String,
}

type Running = JoinSet<()>;

impl TestEnv {
    fn campaign(&self, running: &mut Running, lease: &str, identity: &str) -> Result<(Leadership, CancellationToken)> {
        let terms = LeaseTimings::new(SECOND * 5, SECOND * 3, SECOND)?;
        let place = LeaseTarget {
            namespace: self.namespace.clone(),
            name: lease.to_owned(),
            identity: identity.to_owned(),
        };
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let (elector, leadership) =
            LeaderElector::new::<Services>(client, place, terms, clock, self.metrics.lease(lease));
        let stop = CancellationToken::new();
        let token = stop.clone();
        running.spawn(async move {
            elector.run(token).await;
        });
        Ok((leadership, stop))
    }

    async fn record(&self, lease: &str) -> Result<LeaseSpec> {
        let leases: Api<Lease> = self.here();
        leases.get(lease).await?.spec.context("a record")
    }

    fn here<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn elapsed(&self, since: Monotonic) -> Duration {
        self.clock.monotonic().since(since)
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    Ok(())
}

async fn a_lease_is_renewed_and_handed_over(env: &TestEnv) -> Result<()> {
    let mut running = Running::new();
    let (first, stop) = env.campaign(&mut running, "handed-over", "first")?;
    timeout(LONG, first.acquired()).await?;
    let taken = env.record("handed-over").await?;
    sleep(SECOND * 4).await;
    let renewed = env.record("handed-over").await?;
    ensure!(
        first.check().is_ok() && renewed.renew_time > taken.renew_time,
        "it is renewed"
    );
    ensure!(
        renewed.acquire_time == taken.acquire_time,
        "it is held since it was taken"
    );

    let (second, _stop) = env.campaign(&mut running, "handed-over", "second")?;
    sleep(SECOND * 2).await;
    let before = env.clock.monotonic();
    stop.cancel();
    timeout(LONG, second.acquired()).await?;
    ensure!(env.elapsed(before) < SECOND * 4, "a released lease is free at once");

    running.shutdown().await;
    let before = env.clock.monotonic();
    let (third, _stop) = env.campaign(&mut running, "handed-over", "third")?;
    timeout(LONG, third.acquired()).await?;
    ensure!(
        env.elapsed(before) >= SECOND * 5,
        "the lease of a crashed leader expires first"
    );
    ensure!(second.check().is_err(), "a crashed leader does not lead");
    let record = env.record("handed-over").await?;
    ensure!(
        record.lease_transitions == Some(2),
        "the holder changed twice: {record:?}"
    );
    Ok(())
}

async fn one_of_many_candidates_leads(env: &TestEnv) -> Result<()> {
    let mut running = Running::new();
    let mut candidates = Vec::new();
    for number in 0..6 {
        let (candidate, _stop) = env.campaign(&mut running, "contended", &format!("candidate-{number}"))?;
        candidates.push(candidate);
    }
    sleep(SECOND * 2).await;
    for _ in 0..50 {
        let leading = candidates.iter().filter(|candidate| candidate.check().is_ok()).count();
        ensure!(leading == 1, "{leading} lead");
        sleep(SECOND / 10).await;
    }
    Ok(())
}

async fn clear(guard: &Guard, why: &'static str) -> Result<()> {
    timeout(LONG, guard.clear()).await.context(why)
}

async fn blocked(guard: &Guard, why: &'static str) -> Result<()> {
    timeout(LONG, guard.blocked()).await.context(why)
}

async fn the_guard_follows_a_deployment(env: &TestEnv) -> Result<()> {
    let deployments: Api<Deployment> = env.here();
    let foreign = ForeignDeployment::at("capm3", (&env.namespace, MANAGER));
    let (runner, guard) = DeploymentGuard::new::<Services>(env.client.clone(), foreign, Arc::clone(&env.clock));
    let mut running = Running::new();
    running.spawn(runner.run());
    clear(&guard, "no Deployment exists").await?;
    let labels = json!({"app": "manager"});
    let deployment = json!({
        "metadata": {"name": MANAGER},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "m", "image": "m"}]}},
        },
    });
    create(&deployments, deployment).await?;
    blocked(&guard, "a Deployment exists").await?;
    let scaled = |replicas: u8| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let params = PatchParams::default();
    deployments.patch(MANAGER, &params, &scaled(0)).await?;
    clear(&guard, "it is scaled down").await?;
    deployments.patch(MANAGER, &params, &scaled(1)).await?;
    blocked(&guard, "it is scaled up").await?;
    deployments.delete(MANAGER, &DeleteParams::default()).await?;
    clear(&guard, "it is deleted").await
}

/// A token of a new account, and the name of its bearer.
async fn account(env: &TestEnv) -> Result<(SecretString, String)> {
    let accounts: Api<ServiceAccount> = env.here();
    create(&accounts, json!({"metadata": {"name": "scraper"}})).await?;
    let request: TokenRequest = serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))?;
    let made = accounts
        .create_token_request("scraper", &PostParams::default(), &request)
        .await?;
    let token = made.status.context("a token")?.token;
    Ok((token.into(), format!("system:serviceaccount:{}:scraper", env.namespace)))
}

async fn callers_are_distinguished(env: &TestEnv) -> Result<()> {
    let (token, user) = account(env).await?;
    let reviewer = ClusterReviewer::new::<Services>(&env.client);
    let unknown = reviewer
        .review(&SecretString::from("unknown"), "get", "/metrics")
        .await?;
    ensure!(
        unknown == AccessDecision::Unauthenticated,
        "an unknown token: {unknown:?}"
    );
    let known = reviewer.review(&token, "get", "/metrics").await?;
    ensure!(
        known == AccessDecision::Denied { user },
        "one without a role: {known:?}"
    );

    let name = env.namespace.as_str();
    let roles: Api<ClusterRole> = Api::all(env.client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(env.client.clone());
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    create(&roles, json!({"metadata": {"name": name}, "rules": rules})).await?;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": name}],
    });
    create(&bindings, binding).await?;
    // The authorizer of the server reads the binding by a watch.
    let mut decision = known;
    for _ in 0..50 {
        decision = reviewer.review(&token, "get", "/metrics").await?;
        if decision == AccessDecision::Allowed {
            break;
        }
        sleep(SECOND / 10).await;
    }
    let other = reviewer.review(&token, "put", "/debug/flags/v").await?;
    bindings.delete(name, &DeleteParams::default()).await?;
    roles.delete(name, &DeleteParams::default()).await?;
    ensure!(decision == AccessDecision::Allowed, "one with a role: {decision:?}");
    ensure!(
        matches!(other, AccessDecision::Denied { .. }),
        "for another path: {other:?}"
    );
    Ok(())
}

async fn hold(name: &str, claim: impl Future<Output = Result<()>>) -> bool {
    let outcome = claim.await;
    if let Err(error) = &outcome {
        println!("broken: {name}: {error:#}");
    }
    outcome.is_ok()
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let metrics = Metrics::new();
    let settings = Settings::new("services-real", "v0");
    let connector = ClientFactory::new(settings, Arc::clone(&clock), metrics.requests());
    let client = connector.connect(load_config(Some(&arguments.kubeconfig)).await?)?;
    let env = TestEnv {
        namespace: format!("services-{}", std::process::id()),
        client,
        clock,
        metrics,
    };
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    create(&namespaces, json!({"metadata": {"name": env.namespace}})).await?;
    let (handed_over, contended, followed, distinguished) = tokio::join!(
        hold(
            "a lease is renewed and handed over",
            a_lease_is_renewed_and_handed_over(&env)
        ),
        hold("one of many candidates leads", one_of_many_candidates_leads(&env)),
        hold("the guard follows a Deployment", the_guard_follows_a_deployment(&env)),
        hold("callers are distinguished", callers_are_distinguished(&env)),
    );
    namespaces.delete(&env.namespace, &DeleteParams::default()).await?;
    let outcomes = [handed_over, contended, followed, distinguished];
    let holding = outcomes.iter().filter(|holds| **holds).count();
    println!("{holding} claims hold");
    Ok(if holding == outcomes.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
