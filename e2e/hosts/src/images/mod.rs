//! Images of each kind, and what belongs to a host besides its image, on the real Ironic. Each scenario has a host of its own,
//! whose life is repeated with a kill after each order of the program.

mod agents;
mod architectures;
mod data_image;
mod deploy_step;
mod deployed;
mod fast_inspection;
mod live_iso;
mod lives;
mod named_agent;
mod oci;
mod redirect;
mod subscription;

use anyhow::ensure;
use clap::ValueEnum;
use metal3_ironic_life::Level;
use metal3_sim_bmc::identity::Number;

use crate::Arguments;
use crate::claims::Claims;
use crate::env::{Setup, Special, TestEnv};

/// The only host of most scenarios.
const ONE: Number = Number(1);

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    LiveIso,
    DataImage,
    Subscription,
    FastInspection,
    NamedAgent,
    Redirect,
    Oci,
    DeployStep,
    Architectures,
}

/// Starts the environment of a scenario.
struct Start<'a> {
    arguments: &'a Arguments,
    setup: Setup,
}

impl Start<'_> {
    async fn env(&self, special: Special) -> anyhow::Result<TestEnv> {
        TestEnv::start_with(self.arguments, self.setup, special).await
    }
}

/// Tries what the command line names, or everything.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "agents write the images: use level 3");
    let start = Start {
        arguments,
        setup: Setup { hosts: 1, ..setup },
    };
    let named = arguments.images.as_deref().unwrap_or_default();
    let scenarios = if named.is_empty() {
        Scenario::value_variants()
    } else {
        named
    };
    for scenario in scenarios {
        let outcome = match scenario {
            Scenario::LiveIso => live_iso::run(&start, claims).await,
            Scenario::DataImage => data_image::run(&start, claims).await,
            Scenario::Subscription => subscription::run(&start, claims).await,
            Scenario::FastInspection => fast_inspection::run(&start, claims).await,
            Scenario::NamedAgent => named_agent::run(&start, claims).await,
            Scenario::Redirect => redirect::run(&start, claims).await,
            Scenario::Oci => oci::run(&start, claims).await,
            Scenario::DeployStep => deploy_step::run(&start, claims).await,
            Scenario::Architectures => architectures::run(&start, claims).await,
        };
        // The others are tried, too.
        if outcome.is_err() {
            claims.record(format!("{scenario:?} is tried to its end"), outcome);
        }
    }
    Ok(())
}
