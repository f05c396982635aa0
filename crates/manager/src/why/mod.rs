//! `capm3 why KIND/NAME`: why an object waits, down to the last cause, and what to do. It only reads.
//!
//! The explanation is `metal3_explain`'s. It asks for objects as it follows them; this module reads them with the viewer's
//! own rights, and an object that may not be read is named with the missing right.

mod arguments;
mod reader;

use anyhow::{Result, bail};
use kube::Client;
use metal3_api::meta::Time;
use metal3_domain::yaml;
use metal3_explain::{Explanation, Snapshot, State, explain, text};

pub use arguments::{Output, Why, parse};

use reader::Reader;

/// More rounds of reads than any chain needs.
const ROUNDS: usize = 64;

impl Why {
    /// Reads what the explanation needs.
    ///
    /// # Errors
    /// When the explanation does not end.
    pub async fn explain(&self, client: &Client, namespace: &str) -> Result<Explanation> {
        let reader = Reader {
            client: client.clone(),
            namespace: namespace.to_owned(),
        };
        let mut snapshot = Snapshot::default();
        for _ in 0..ROUNDS {
            let wanted = match explain(&self.object, &snapshot) {
                Ok(explanation) => return Ok(explanation),
                Err(wanted) => wanted,
            };
            for read in wanted {
                let answer = reader.read(&read).await;
                snapshot.insert(read, answer);
            }
        }
        bail!(
            "the explanation of {} does not end after {ROUNDS} rounds of reads",
            self.object
        )
    }

    /// Explains the object, and returns the output with the state for the exit code.
    ///
    /// # Errors
    /// When the explanation does not end.
    pub async fn run(&self, client: &Client, namespace: &str, now: Time) -> Result<(String, State)> {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let explanation = self.explain(client, namespace).await?;
        let output = match self.output {
            Output::Text => text::render(&explanation, namespace, now),
            Output::Json => format!("{:#}\n", serde_json::to_value(&explanation)?),
            Output::Yaml => yaml::text(&serde_json::to_value(&explanation)?),
        };
        Ok((output, explanation.state))
    }
}
