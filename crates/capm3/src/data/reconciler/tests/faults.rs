//! The controllers of data under fault injection: every write of their scenarios with every fault.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate};
use metal3_domain::clock::Clock;
use metal3_harness::{Instance, State, TestEnv};
use metal3_sim_cluster::Cluster;
use serde_json::json;
use tokio::task::JoinSet;

use super::invariants::{paths, unowned_claims, violations, wrong_indexes};
use super::lab::{self, User, both_pools, kinds, without_pools};
use super::start;
use crate::data::index::referred;
use crate::data::subject::name_of;
use crate::tests::sweep;

/// Actions of users and other controllers.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Cluster, a pool and a template, with or without pools in it.
    Begin {
        pools: bool,
    },
    Machine(&'static str),
    /// Another IPAM provider serves its claims.
    Provide,
    /// The user deletes the claim on the Metal3 pool.
    DropAddress,
    /// The user deletes the claim on the other pool.
    DropOtherAddress,
    /// The user removes the data of a machine, and their finalizers, by force.
    Forget(&'static str),
    GiveBack(&'static str),
    LetGo(&'static str),
    DropTemplate,
}

struct Scenario {
    name: &'static str,
    stages: &'static [&'static [Step]],
    /// The Metal3Data at the end, each with its claim.
    end: &'static [(&'static str, &'static str)],
    has_template: bool,
}

impl Scenario {
    fn has_step(&self, is_one: impl Fn(&Step) -> bool) -> bool {
        self.stages.iter().any(|stage| stage.iter().any(&is_one))
    }

    fn has_pools(&self) -> bool {
        self.has_step(|step| matches!(step, Step::Begin { pools: true }))
    }
}

impl Step {
    async fn take(self, user: &User) {
        match self {
            Self::Begin { pools } => {
                user.cluster().await;
                user.pool(4).await;
                user.template(if pools { both_pools() } else { without_pools() }).await;
            }
            Self::Machine(name) => user.machine(name).await,
            Self::Provide => user.provide().await,
            Self::DropAddress => user.delete(lab::IPAM, "ipclaims/tpl-0-pool").await,
            Self::DropOtherAddress => user.delete(lab::CLUSTER_IPAM, "ipaddressclaims/tpl-0-far").await,
            Self::Forget(name) => forget(user, name).await,
            Self::GiveBack(name) => user.give_back(name).await,
            Self::LetGo(name) => user.let_go(name).await,
            Self::DropTemplate => user.delete(lab::INFRASTRUCTURE, "metal3datatemplates/tpl").await,
        }
    }
}

/// Deletes the claim of a machine, and the Metal3Data `tpl-0` before it.
async fn forget(user: &User, claim: &str) {
    let none = json!({ "metadata": { "finalizers": null } });
    user.delete(lab::INFRASTRUCTURE, "metal3datas/tpl-0").await;
    user.change(lab::INFRASTRUCTURE, "metal3datas/tpl-0", none.clone())
        .await;
    let claim = format!("metal3dataclaims/{claim}");
    user.change(lab::INFRASTRUCTURE, &claim, none).await;
    user.delete(lab::INFRASTRUCTURE, &claim).await;
}

impl TestEnv for Scenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn background(&self, cluster: &Cluster, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        if self.has_pools() {
            lab::address_management(&cluster.client("addresses"), clock)
        } else {
            JoinSet::new()
        }
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        for step in self.stages[stage] {
            step.take(&User(user.clone())).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        paths()
    }

    fn violations(&self, state: &State) -> Vec<String> {
        let mut wrong = violations(state);
        if self.has_step(|step| matches!(step, Step::DropAddress)) {
            // The user deletes the claim on a pool; the controller does not release it.
            wrong.retain(|wrong| !wrong.contains("releases addresses"));
        }
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let mut missing = Vec::new();
        let data = state.of::<Metal3Data>();
        let found: Vec<_> = data
            .iter()
            .map(|data| (name_of(&data.metadata), referred(data.spec.claim.as_ref())))
            .collect();
        if found != self.end {
            missing.push(format!("ends with {found:?}"));
        }
        let unready = data.iter().filter(|data| data.status.ready != Some(true));
        missing.extend(unready.map(|data| format!("{} is not ready: {:?}", name_of(&data.metadata), data.status)));
        for claim in state.of::<Metal3DataClaim>() {
            if claim.status.rendered_data.is_none() {
                missing.push(format!(
                    "claim {} has no answer: {:?}",
                    name_of(&claim.metadata),
                    claim.status
                ));
            }
        }
        missing.extend(unowned_claims(state, &data));
        let templates = state.of::<Metal3DataTemplate>();
        if templates.len() != usize::from(self.has_template) {
            missing.push(format!("{} templates", templates.len()));
        }
        missing.extend(templates.iter().filter_map(|template| wrong_indexes(template, &data)));
        missing
    }
}

#[tokio::test(start_paused = true)]
async fn machine_gets_and_releases_its_data_under_every_fault() {
    let report = sweep(Scenario {
        name: "data with pools",
        stages: &[
            &[Step::Begin { pools: true }, Step::Machine("w-0")],
            &[Step::Provide],
            &[Step::GiveBack("w-0")],
            &[Step::LetGo("w-0")],
        ],
        end: &[],
        has_template: true,
    })
    .await;
    assert!(report.effects.len() > 10, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn template_is_deleted_after_its_machines_under_every_fault() {
    let report = sweep(Scenario {
        name: "data without pools, to the end",
        stages: &[
            &[Step::Begin { pools: false }, Step::Machine("w-0"), Step::Machine("w-1")],
            &[Step::DropTemplate, Step::GiveBack("w-1"), Step::GiveBack("w-0")],
            &[Step::LetGo("w-0"), Step::LetGo("w-1")],
        ],
        end: &[],
        has_template: false,
    })
    .await;
    assert!(report.effects.len() > 10, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn address_claim_deleted_before_the_secret_is_created_again_under_every_fault() {
    let report = sweep(Scenario {
        name: "data whose address claim is deleted by hand",
        stages: &[
            &[Step::Begin { pools: true }, Step::Machine("w-0")],
            &[Step::DropAddress],
            &[Step::Provide],
        ],
        end: &[("tpl-0", "w-0")],
        has_template: true,
    })
    .await;
    let claimed = |effect: &&String| effect.starts_with("POST") && effect.ends_with("/ipclaims");
    assert_eq!(
        report.effects.iter().filter(claimed).count(),
        2,
        "{:#?}",
        report.effects
    );
}

#[tokio::test(start_paused = true)]
async fn address_claims_of_an_earlier_object_of_the_name_are_released_under_every_fault() {
    let report = sweep(Scenario {
        name: "data whose name an earlier object had, which was removed by force",
        stages: &[
            &[Step::Begin { pools: true }, Step::Machine("w-0")],
            &[Step::Forget("w-0"), Step::Machine("w-1")],
            // Those of the new object are deleted by hand, and made a third time.
            &[Step::DropAddress, Step::DropOtherAddress],
            &[Step::Provide],
        ],
        end: &[("tpl-0", "w-1")],
        has_template: true,
    })
    .await;
    let claimed = |effect: &&String| effect.starts_with("POST") && effect.ends_with("/ipclaims");
    assert_eq!(
        report.effects.iter().filter(claimed).count(),
        3,
        "{:#?}",
        report.effects
    );
}
