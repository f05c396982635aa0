//! Sentences about a run, and what came of each.

use std::fmt::Display;

use anyhow::bail;

/// What was proved so far.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: usize,
    failed: usize,
}

impl Claims {
    /// Says whether a sentence holds.
    pub(crate) fn judge(&mut self, says: impl Display, found: anyhow::Result<()>) {
        match found {
            Ok(()) => {
                self.held = self.held.saturating_add(1);
                println!("holds  {says}");
            }
            Err(error) => {
                self.failed = self.failed.saturating_add(1);
                println!("FAILS  {says}: {error:#}");
            }
        }
    }

    /// The last line.
    ///
    /// # Errors
    /// When a sentence did not hold, or there was none.
    pub(crate) fn sum(&self) -> anyhow::Result<()> {
        if self.failed > 0 || self.held == 0 {
            bail!("{} claims hold, {} do not", self.held, self.failed);
        }
        println!("{} claims hold", self.held);
        Ok(())
    }
}
