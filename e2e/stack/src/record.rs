//! The record of a running stack.

use std::fs;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::namespaces::{Started, process_start};
use crate::places::Places;

/// Written by `up` before the first process starts, and completed when all processes serve.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The process that holds the stack's namespaces, by the machine's id.
    pub(crate) holder: Started,
    /// Whether only etcd and the API server run.
    pub(crate) only_api: bool,
    /// The phases of the start, in milliseconds.
    pub(crate) phases: Vec<(String, u64)>,
}

const FILE: &str = "stack.json";

impl Record {
    pub(crate) fn write(&self, places: &Places) -> anyhow::Result<()> {
        let path = places.state_file(FILE);
        fs::write(&path, serde_json::to_vec_pretty(self)?).with_context(|| format!("writing {}", path.display()))
    }

    /// The record of a running stack. `None` when no stack runs, though its files may exist.
    pub(crate) fn of_running(places: &Places) -> anyhow::Result<Option<Self>> {
        let path = places.state_file(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // A truncated record belongs to a stack that never served.
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return Ok(None);
        };
        Ok(record.holder.is_alive().then_some(record))
    }

    /// The record, or an error with the command that starts a stack.
    pub(crate) fn required(places: &Places) -> anyhow::Result<Self> {
        let hint = || format!("stack `{}` is not up: `make stack` starts it", places.name);
        Self::of_running(places)?.with_context(hint)
    }
}

impl Started {
    /// Whether the process runs, and not another one with the same id.
    pub(crate) fn is_alive(self) -> bool {
        process_start(self.pid) == Some(self.start)
    }
}
