//! The claims about a run and their results.

use std::fmt::Display;

use anyhow::bail;

/// Counts of claims that hold and fail.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: usize,
    failed: usize,
}

impl Claims {
    /// Prints and counts the result of a claim.
    pub(crate) fn record(&mut self, claim: impl Display, result: anyhow::Result<()>) {
        match result {
            Ok(()) => {
                self.held = self.held.saturating_add(1);
                println!("holds  {claim}");
            }
            Err(error) => {
                self.failed = self.failed.saturating_add(1);
                println!("FAILS  {claim}: {error:#}");
            }
        }
    }

    /// Prints the last line.
    ///
    /// # Errors
    /// When a claim failed, or none was recorded.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        if self.failed > 0 || self.held == 0 {
            bail!("{} claims hold, {} do not", self.held, self.failed);
        }
        println!("{} claims hold", self.held);
        Ok(())
    }
}
