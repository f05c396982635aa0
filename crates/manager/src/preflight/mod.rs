//! `capm3 preflight`: what a switch from the Go managers to this program, or back, would meet. It only reads.
//!
//! The rules are `metal3_preflight`'s. This module reads what they need with the viewer's own rights. What may not be read
//! is named with the missing right, and then the decision is not known to be good. In addition the controllers run for a while in a
//! dry run, whose first changes are part of the report.

mod arguments;
mod dry_run;
mod environment;
mod reader;
mod rights;
mod target;

use std::collections::BTreeMap;

use anyhow::Result;
use kube::Client;
use metal3_api::catalog;
use metal3_domain::yaml;
use metal3_flags::Owner;
use metal3_preflight::{
    Decision, Direction, Facts, Finding, KINDS, Manager, NotRead, Objects, Report, found, render, report,
};

pub use arguments::{Preflight, parse};
pub use dry_run::Surroundings;

use crate::output::Output;
use crate::product;
use crate::served::{self, Kind};
use reader::Reader;

/// The definitions of this project that each product waits for.
fn required() -> BTreeMap<&'static str, Vec<String>> {
    let known = catalog::definitions();
    let is_own = |kind: &&Kind| {
        known
            .iter()
            .any(|one| (one.group, one.plural) == (kind.group, kind.plural))
    };
    let of = |owner: Owner| {
        let kinds = product::find(owner).kinds.iter().filter(is_own);
        let names = kinds.map(|kind| format!("{}.{}", kind.plural, kind.group));
        (owner.name(), names.collect())
    };
    Owner::ALL.into_iter().map(of).collect()
}

/// Kinds of Cluster API that the controllers in the place of these managers need in another version. Discovery needs no right.
async fn of_cluster_api(reader: &mut Reader, client: &Client, managers: &[Manager]) -> Vec<Finding> {
    let known = catalog::definitions();
    let is_foreign = |kind: &&Kind| {
        !known
            .iter()
            .any(|one| one.group == kind.group && one.plural == kind.plural)
    };
    let replaced = managers.iter().filter(|manager| !manager.is_this_program);
    let mut findings = Vec::new();
    for manager in replaced {
        let owners = Owner::ALL.into_iter();
        let owners = owners.filter(|owner| manager.controllers.contains(&owner.name()));
        let kinds: Vec<Kind> = owners
            .flat_map(|owner| product::find(owner).kinds.iter().filter(is_foreign))
            .copied()
            .collect();
        match served::ask(client, &kinds).await {
            Ok(found) => findings.extend(served::missing(&kinds, &found).into_iter().map(|what| {
                let object = format!("Deployment {}", manager.deployment);
                let cure = "upgrade Cluster API to 1.11 or newer before the switch: without it these controllers would only wait";
                Finding::new(Decision::No, object, what, cure)
            })),
            Err(error) => reader.not_read.push(NotRead {
                what: "which versions of Cluster API are served".to_owned(),
                why: brief(&error.to_string()),
            }),
        }
    }
    findings
}

/// The sentence of an error of the API server, without the answer that the library appends.
fn brief(error: &str) -> String {
    let sentence = error.split(" (Status {").next().unwrap_or_default();
    sentence.trim_start_matches("ApiError: ").to_owned()
}

impl Preflight {
    /// Reads what the rules need, runs the controllers in a dry run if it is given their surroundings, and applies the rules.
    pub async fn report(&self, client: &Client, surroundings: Option<&Surroundings>) -> Report {
        let mut reader = Reader::new(client.clone(), self.namespace.clone());
        let deployments = reader.deployments().await;
        let crds = reader.crds().await;
        let mut objects = Objects::default();
        for kind in KINDS {
            objects.insert(*kind, reader.objects(kind, &crds).await);
        }
        let secrets = reader.host_secrets(&objects).await;
        let providers = reader.providers().await;
        let managers = found(&deployments);
        let (given, mut environment) = environment::read(&mut reader, &deployments, &managers).await;
        let is_forward = self.direction == Direction::ToThisProgram;
        if is_forward {
            environment.extend(of_cluster_api(&mut reader, client, &managers).await);
        }
        // Objects that cannot be converted stop a switch; those of the way back are of the newer version.
        environment.append(&mut reader.findings);
        let accounts = match is_forward {
            true => rights::accounts(client, &deployments, &managers).await,
            false => Vec::new(),
        };
        let surroundings = surroundings.filter(|_| is_forward && !self.dry_run.is_zero());
        let dry_run = match surroundings {
            Some(surroundings) => {
                let run = dry_run::Run {
                    client,
                    surroundings,
                    namespace: self.namespace.as_deref(),
                    limit: self.dry_run,
                };
                Some(run.observe(&target::targets(&managers, &given)).await)
            }
            None => None,
        };
        report(Facts {
            direction: self.direction,
            deployments,
            crds,
            required: required(),
            objects,
            secrets,
            environment,
            given,
            accounts,
            providers,
            dry_run,
            not_read: reader.not_read,
        })
    }

    /// Reports, and returns the output with the exit code.
    ///
    /// # Errors
    /// When the report cannot be encoded.
    pub async fn run(&self, client: &Client, surroundings: Option<&Surroundings>) -> Result<(String, u8)> {
        let report = self.report(client, surroundings).await;
        let output = match self.output {
            Output::Text => render(&report),
            Output::Json => format!("{:#}\n", serde_json::to_value(&report)?),
            Output::Yaml => yaml::text(&serde_json::to_value(&report)?),
        };
        Ok((output, report.exit_code()))
    }
}
