//! The host leaves: Ironic forgets it, then everything that waited for it is let go.

use crate::deletion::{forget, release};
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    forget(pass)?;
    release(pass)
}
