//! What leases, the guard and the review of callers take for granted of an API server, checked on a real one.
//!
//! Prints `N claims hold`; a claim that does not hold is named and makes the exit code 1. The objects go into a
//! namespace of their own, which is deleted in the end.

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
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);
const MANAGER: &str = "capm3-controller-manager";

metal3_runtime::role! {
    /// What is tried here, in one role.
    struct Services {
        Lease: Get, Create, Update;
        Deployment: List, Watch;
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

struct World {
    client: Client,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    namespace: String,
}

type Running = JoinSet<()>;

impl World {
    fn contend(&self, running: &mut Running, lease: &str, identity: &str) -> Result<(Leadership, CancellationToken)> {
        let terms = LeaseTimings::new(SECOND * 5, SECOND * 3, SECOND)?;
        let place = LeaseTarget {
            namespace: self.namespace.clone(),
            name: lease.to_owned(),
            identity: identity.to_owned(),
        };
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let (contender, leadership) =
            LeaderElector::new::<Services>(client, place, terms, clock, self.metrics.lease(lease));
        let stop = CancellationToken::new();
        let token = stop.clone();
        running.spawn(async move {
            contender.run(token).await;
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

    fn passed(&self, since: Monotonic) -> Duration {
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

async fn a_lease_is_renewed_and_handed_over(world: &World) -> Result<()> {
    let mut running = Running::new();
    let (first, stop) = world.contend(&mut running, "handed-over", "first")?;
    timeout(LONG, first.acquired()).await?;
    let taken = world.record("handed-over").await?;
    sleep(SECOND * 4).await;
    let renewed = world.record("handed-over").await?;
    ensure!(
        first.check().is_ok() && renewed.renew_time > taken.renew_time,
        "it is renewed"
    );
    ensure!(
        renewed.acquire_time == taken.acquire_time,
        "it is held since it was taken"
    );

    let (second, _stop) = world.contend(&mut running, "handed-over", "second")?;
    sleep(SECOND * 2).await;
    let before = world.clock.monotonic();
    stop.cancel();
    timeout(LONG, second.acquired()).await?;
    ensure!(
        world.passed(before) < SECOND * 4,
        "a lease that was given up is free at once"
    );

    running.shutdown().await;
    let before = world.clock.monotonic();
    let (third, _stop) = world.contend(&mut running, "handed-over", "third")?;
    timeout(LONG, third.acquired()).await?;
    ensure!(
        world.passed(before) >= SECOND * 5,
        "the lease of one that crashed is waited out"
    );
    ensure!(second.check().is_err(), "one that crashed does not lead");
    let record = world.record("handed-over").await?;
    ensure!(
        record.lease_transitions == Some(2),
        "it changed hands twice: {record:?}"
    );
    Ok(())
}

async fn of_many_candidates_one_leads(world: &World) -> Result<()> {
    let mut running = Running::new();
    let mut candidates = Vec::new();
    for number in 0..6 {
        let (candidate, _stop) = world.contend(&mut running, "contended", &format!("candidate-{number}"))?;
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

async fn the_guard_follows_a_deployment(world: &World) -> Result<()> {
    let deployments: Api<Deployment> = world.here();
    let foreign = ForeignDeployment::at("capm3", (&world.namespace, MANAGER));
    let (sentry, guard) = DeploymentGuard::new::<Services>(world.client.clone(), foreign, Arc::clone(&world.clock));
    let mut running = Running::new();
    running.spawn(sentry.run());
    clear(&guard, "nobody is there").await?;
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
    blocked(&guard, "somebody is there").await?;
    let scaled = |replicas: u8| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let params = PatchParams::default();
    deployments.patch(MANAGER, &params, &scaled(0)).await?;
    clear(&guard, "it is scaled down").await?;
    deployments.patch(MANAGER, &params, &scaled(1)).await?;
    blocked(&guard, "it is back").await?;
    deployments.delete(MANAGER, &DeleteParams::default()).await?;
    clear(&guard, "it is deleted").await
}

/// A token of a new account, and the name of its bearer.
async fn account(world: &World) -> Result<(SecretString, String)> {
    let accounts: Api<ServiceAccount> = world.here();
    create(&accounts, json!({"metadata": {"name": "scraper"}})).await?;
    let request: TokenRequest = serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))?;
    let made = accounts
        .create_token_request("scraper", &PostParams::default(), &request)
        .await?;
    let token = made.status.context("a token")?.token;
    Ok((
        token.into(),
        format!("system:serviceaccount:{}:scraper", world.namespace),
    ))
}

async fn callers_are_told_apart(world: &World) -> Result<()> {
    let (token, user) = account(world).await?;
    let reviewer = ClusterReviewer::new::<Services>(&world.client);
    let stranger = reviewer
        .review(&SecretString::from("nobody"), "get", "/metrics")
        .await?;
    ensure!(stranger == AccessDecision::Unauthenticated, "a stranger: {stranger:?}");
    let known = reviewer.review(&token, "get", "/metrics").await?;
    ensure!(
        known == AccessDecision::Denied { user },
        "one without a role: {known:?}"
    );

    let name = world.namespace.as_str();
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    create(&roles, json!({"metadata": {"name": name}, "rules": rules})).await?;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": name}],
    });
    create(&bindings, binding).await?;
    // The server's authorizer learns of the binding by a watch of its own.
    let mut verdict = known;
    for _ in 0..50 {
        verdict = reviewer.review(&token, "get", "/metrics").await?;
        if verdict == AccessDecision::Allowed {
            break;
        }
        sleep(SECOND / 10).await;
    }
    let other = reviewer.review(&token, "put", "/debug/flags/v").await?;
    bindings.delete(name, &DeleteParams::default()).await?;
    roles.delete(name, &DeleteParams::default()).await?;
    ensure!(verdict == AccessDecision::Allowed, "one with a role: {verdict:?}");
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
    let world = World {
        namespace: format!("services-{}", std::process::id()),
        client,
        clock,
        metrics,
    };
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    create(&namespaces, json!({"metadata": {"name": world.namespace}})).await?;
    let (handed_over, contended, followed, told_apart) = tokio::join!(
        hold(
            "a lease is renewed and handed over",
            a_lease_is_renewed_and_handed_over(&world)
        ),
        hold("of many candidates one leads", of_many_candidates_one_leads(&world)),
        hold("the guard follows a Deployment", the_guard_follows_a_deployment(&world)),
        hold("callers are told apart", callers_are_told_apart(&world)),
    );
    namespaces.delete(&world.namespace, &DeleteParams::default()).await?;
    let outcomes = [handed_over, contended, followed, told_apart];
    let holding = outcomes.iter().filter(|holds| **holds).count();
    println!("{holding} claims hold");
    Ok(if holding == outcomes.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
