//! Output that is no picture: a line for each change.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_runtime::cache::Key;

use super::snapshot::Snapshot;

/// The last printed lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rows: Rows,
    waits: Vec<String>,
}

type Rows = BTreeMap<(&'static str, Key), String>;

/// One line for each host and machine.
pub(super) fn rows(snapshot: &Snapshot) -> Rows {
    let rows = snapshot.rows().into_iter();
    rows.map(|(kind, key, row)| ((kind, key), row)).collect()
}

impl Lines {
    /// After a picture that has shown all of it.
    pub(super) fn after(snapshot: &Snapshot, waits: &[String]) -> Self {
        Self {
            rows: rows(snapshot),
            waits: waits.to_vec(),
        }
    }

    /// Prints what differs from the last lines.
    pub(super) fn print(&mut self, rows: Rows, waits: &[String], elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let is_new = |(place, row): &(&(&'static str, Key), &String)| self.rows.get(*place) != Some(*row);
        rows.iter()
            .filter(is_new)
            .for_each(|(_, row)| say!("{seconds:6.1} s  {row}"));
        waits
            .iter()
            .filter(|wait| !self.waits.contains(wait))
            .for_each(|wait| say!("{seconds:6.1} s  waits    {wait}"));
        self.rows = rows;
        self.waits = waits.to_vec();
    }
}
