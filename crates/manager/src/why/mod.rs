//! `capm3 why KIND/NAME`: why an object waits, down to the last cause, and what to do. It only reads.
//!
//! The explanation is `metal3_explain`'s. It asks for objects as it follows them; they are read with the viewer's own
//! rights, and an object that may not be read is named with the missing right.

mod arguments;

use anyhow::Result;
use kube::Client;
use metal3_api::meta::Time;
use metal3_explain::history::with_history;
use metal3_explain::{Explanation, State, explain, text, with_background};

pub use crate::output::Output;
pub use arguments::{Why, parse};

use crate::plugin::{self, document};
use crate::reader::Reader;

impl Why {
    /// Reads what the explanation needs.
    ///
    /// # Errors
    /// When the explanation does not end.
    pub async fn explain(&self, client: &Client, namespace: &str) -> Result<Explanation> {
        let mut reader = Reader::new(client, Some(namespace));
        let question = |snapshot: &_| with_background(explain(&self.object, snapshot)?, snapshot);
        reader.ask(question).await
    }

    /// Explains the object, and returns the output with the state for the exit code.
    ///
    /// # Errors
    /// When the explanation does not end.
    pub async fn run(&self, client: &Client, namespace: &str, now: Time) -> Result<(String, State)> {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let history = plugin::history(self.ironic_history.as_deref())?;
        let explanation = with_history(self.explain(client, namespace).await?, &history);
        let output = match self.output {
            Output::Text => text::render(&explanation, namespace, now),
            Output::Json | Output::Yaml => document(&explanation, self.output)?,
        };
        Ok((output, explanation.state))
    }
}
