//! Kinds that need not be installed, and that need not be permitted, in the whole process.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use metal3_manager::run::Ended;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::{Ironic, Options};
use serde_json::json;

use crate::capm3::{self, HOSTS, User};
use crate::environment::{Replica, TestCluster, options, until};
use crate::hosts;

/// How a kind is withheld from the process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Withheld {
    NotServed,
    NotPermitted,
}

const WAYS: [Withheld; 2] = [Withheld::NotServed, Withheld::NotPermitted];

impl Withheld {
    async fn apply(self, world: &TestCluster, (plural, group): (&str, &str)) {
        match self {
            Self::NotServed => {
                let name = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
                let user = User(world.cluster.client("admin"));
                user.send("DELETE", &name, &json!({})).await;
            }
            Self::NotPermitted => {
                let refused = ["list", "watch"].map(|verb| Rule::random(1000, Fault::refused(403)).verb(verb));
                let plan = refused.into_iter().map(|rule| rule.resource(plural));
                world.cluster.inject(plan.fold(Plan::seeded(1), Plan::with));
            }
        }
    }

    /// Long enough for a restart by the liveness probe.
    async fn assert_alive(self, replica: Replica, kind: &str) {
        tokio::time::sleep(Duration::from_mins(20)).await;
        let (alive, text) = replica.probe("/healthz").await;
        assert_eq!(alive, StatusCode::OK, "{self:?} {text}");
        let (ready, text) = replica.probe("/readyz?verbose").await;
        let note = format!(
            "may not list and watch {kind}, so these objects are unknown, and what needs them waits; apply the roles"
        );
        assert_eq!(
            (ready, text.contains(&note)),
            (StatusCode::OK, self == Self::NotPermitted),
            "{self:?} {text}"
        );
        assert_eq!(replica.end().await, Ended::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn machine_gets_a_host_of_a_server_without_machine_deployments() {
    for withheld in WAYS {
        let (world, user) = capm3::world().await;
        withheld.apply(&world, ("machinedeployments", "cluster.x-k8s.io")).await;
        let replica = world.start_options("a", options("--controllers=capm3"), None, capm3::products());
        until("an image on the host", async || {
            let host = user.get(HOSTS, "baremetalhosts/h0").await;
            host.pointer("/spec/image/url").is_some()
        })
        .await;
        withheld.assert_alive(replica, "MachineDeployment").await;
    }
}

#[tokio::test(start_paused = true)]
async fn host_is_enrolled_without_the_kinds_of_its_firmware_and_its_events() {
    hosts::install_tls();
    for (plural, kind) in [
        ("hostfirmwaresettings", "HostFirmwareSettings"),
        ("hostfirmwarecomponents", "HostFirmwareComponents"),
        ("bmceventsubscriptions", "BMCEventSubscription"),
    ] {
        for withheld in WAYS {
            let world = hosts::world().await;
            let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
            hosts::enrol(&world).await;
            withheld.apply(&world, (plural, "metal3.io")).await;
            let metal = hosts::wired(&world, &ironic, hosts::CONTROLLERS).await;
            let replica = world.start_options("a", options(hosts::CONTROLLERS), Some(metal), hosts::products());
            until("available", async || hosts::state(&world).await == "available").await;
            withheld.assert_alive(replica, kind).await;
        }
    }
}
