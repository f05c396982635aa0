//! Every write of claiming an address, writing it back and filling it in, struck by every fault there is.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_domain::clock::Clock;
use metal3_harness::{Blow, Instance, State, World};
use metal3_simcluster::Cluster as Server;
use serde_json::json;
use tokio::task::JoinSet;

use super::super::program::start;
use super::super::site::kinds;
use super::pool::{CORE, cluster_with, pooled, said_by, template, vips};
use crate::controller::data::tests::lab::{CLUSTER_API, INFRASTRUCTURE, User, address_management};
use crate::tests::survives;

/// The lives of an endpoint: it is claimed, fixed, its template changes, and it goes.
struct Life;

impl World for Life {
    fn name(&self) -> &'static str {
        "an endpoint is claimed, filled in, and given back"
    }

    fn install(&self, server: &Server) {
        server.install(&kinds()).unwrap();
    }

    fn neighbours(&self, server: &Server, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        address_management(&server.client("addresses"), clock)
    }

    fn acts(&self) -> usize {
        4
    }

    async fn act(&self, act: usize, user: kube::Client) {
        let user = User(user);
        match act {
            0 => {
                vips(&user, 2).await;
                template(&user, "one ${HOST}:${PORT}").await;
                cluster_with(&user, pooled()).await;
            }
            1 => {
                let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.50", "port": 8443 } } });
                drop(user.change(CLUSTER_API, "clusters/edge", endpoint).await);
            }
            2 => {
                let text = json!({ "data": { "vip.yaml": "two ${HOST}:${PORT}" } });
                drop(user.change(CORE, "configmaps/vip", text).await);
            }
            _ => user.delete(INFRASTRUCTURE, "metal3clusters/edge").await,
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, false);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![
            State::path::<Metal3Cluster>(),
            State::path::<Cluster>(),
            State::path::<IPClaim>(),
            State::path::<IPAddress>(),
            State::path::<Secret>(),
        ]
    }

    /// There is never a second address, nor an endpoint but the one that was granted, nor a Secret that says another.
    fn violations(&self, state: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        let addresses = state.of::<IPAddress>();
        if addresses.len() > 1 || state.of::<IPClaim>().len() > 1 {
            wrong.push(format!("{} addresses", addresses.len()));
        }
        for object in state.of::<Metal3Cluster>() {
            let host = object.spec.control_plane_endpoint.and_then(|one| one.host);
            wrong.extend(host.filter(|host| host != "192.0.2.50"));
        }
        let odd = |said: &String| !["one 192.0.2.50:8443", "two 192.0.2.50:8443"].contains(&said.as_str());
        wrong.extend(state.of::<Secret>().iter().map(said_by).filter(odd));
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        left.extend(
            state
                .of::<Metal3Cluster>()
                .into_iter()
                .filter_map(|one| one.metadata.name),
        );
        left.extend(state.of::<IPClaim>().into_iter().filter_map(|one| one.metadata.name));
        left.extend(state.of::<IPAddress>().into_iter().filter_map(|one| one.metadata.name));
        left.extend(state.of::<Secret>().into_iter().filter_map(|one| one.metadata.name));
        left
    }
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_pool_survives_every_blow_to_every_write_and_leaves_nothing() {
    let report = survives(Life).await;
    assert_eq!(report.blows, Blow::ALL.len());
    let made = report
        .effects
        .iter()
        .filter(|effect| effect.contains("ipclaims") || effect.contains("secrets"));
    assert_eq!(
        made.count(),
        3,
        "a claim, a Secret, and its change: {:#?}",
        report.effects
    );
}
