//! What a running stack says about itself, and how to tell it from one that was killed.

use std::fs;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::namespaces::{Started, process_start};
use crate::places::Places;

/// Written by `up` before the first process starts, and completed when all of them serve.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Holds the stack's namespaces; seen from the machine.
    pub(crate) holder: Started,
    /// Whether it is etcd and the API server alone.
    pub(crate) only_api: bool,
    /// What was started, with the milliseconds that it took.
    pub(crate) phases: Vec<(String, u64)>,
}

const FILE: &str = "stack.json";

impl Record {
    pub(crate) fn write(&self, places: &Places) -> anyhow::Result<()> {
        let path = places.state_file(FILE);
        fs::write(&path, serde_json::to_vec_pretty(self)?).with_context(|| format!("writing {}", path.display()))
    }

    /// The record of a stack whose processes are there. None: there is no stack, though files of one may be.
    pub(crate) fn of_running(places: &Places) -> anyhow::Result<Option<Self>> {
        let path = places.state_file(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // A record cut short by a crash is of a stack that never served.
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return Ok(None);
        };
        Ok(record.holder.is_alive().then_some(record))
    }

    /// The record, or an error that says how to get a stack.
    pub(crate) fn required(places: &Places) -> anyhow::Result<Self> {
        let hint = || format!("stack `{}` is not up: `make stack` starts it", places.name);
        Self::of_running(places)?.with_context(hint)
    }
}

impl Started {
    /// The same process, not another one with its number.
    pub(crate) fn is_alive(self) -> bool {
        process_start(self.pid) == Some(self.start)
    }
}
