//! `capm3 preflight`: what a switch from the Go managers to this program, or back, would meet. It only reads.
//!
//! The rules are `metal3_preflight`'s. This module reads what they need with the viewer's own rights. What may not be read
//! is named with the missing right, and then the decision is not known to be good.

mod arguments;
mod environment;
mod reader;

use anyhow::Result;
use kube::Client;
use metal3_domain::yaml;
use metal3_preflight::{Facts, KINDS, Objects, Report, render, report};

pub use arguments::{Preflight, parse};

use crate::output::Output;
use reader::Reader;

impl Preflight {
    /// Reads what the rules need, and applies them.
    pub async fn report(&self, client: &Client) -> Report {
        let mut reader = Reader::new(client.clone(), self.namespace.clone());
        let deployments = reader.deployments().await;
        let crds = reader.crds().await;
        let mut objects = Objects::default();
        for kind in KINDS {
            objects.insert(*kind, reader.objects(kind, &crds).await);
        }
        let secrets = reader.host_secrets(&objects).await;
        let environment = environment::findings(&mut reader, &deployments).await;
        report(Facts {
            direction: self.direction,
            deployments,
            crds,
            objects,
            secrets,
            environment,
            not_read: reader.not_read,
        })
    }

    /// Reports, and returns the output with the exit code.
    ///
    /// # Errors
    /// When the report cannot be encoded.
    pub async fn run(&self, client: &Client) -> Result<(String, u8)> {
        let report = self.report(client).await;
        let output = match self.output {
            Output::Text => render(&report),
            Output::Json => format!("{:#}\n", serde_json::to_value(&report)?),
            Output::Yaml => yaml::text(&serde_json::to_value(&report)?),
        };
        Ok((output, report.exit_code()))
    }
}
