//! What the products asked for while a script ran, by the audit log and by Ironic's.

use std::fs;

use metal3_ledger::Log;
use metal3_scenario::Asked;

use super::super::{Scene, audit, requests};
use super::Script;

/// What the products are in counts, in the order of the managers.
const CALLED: [&str; 3] = ["machines", "addresses", "hosts"];

/// How long both logs were.
pub(super) struct Mark {
    audit: usize,
    ironic: usize,
}

impl Mark {
    pub(super) fn now(scene: &Scene<'_>) -> anyhow::Result<Self> {
        let audit = fs::read_to_string(scene.world.places.log("audit"))?;
        // A line that is half written was begun before.
        let whole = audit.rfind('\n').map_or(0, |end| end.saturating_add(1));
        Ok(Self {
            audit: whole,
            ironic: scene.fleet.mark()?,
        })
    }

    pub(super) fn since(&self, scene: &Scene<'_>, script: &Script) -> anyhow::Result<Asked> {
        let audit = fs::read_to_string(scene.world.places.log("audit"))?;
        // What the script before left is deleted meanwhile, in its own namespace.
        let log = Log::read(audit.get(self.audit..).unwrap_or_default())?.within(script.namespace());
        let mut asked = Asked::default();
        let script = script.name.as_str();
        for (manager, product) in audit::MANAGERS.iter().zip(CALLED) {
            for (target, number) in &log.of(manager.account.user).asked {
                asked.of_server(script, product, (&target.verb, &target.resource), *number);
            }
        }
        for request in requests::of(&scene.fleet.said_since(self.ironic)?).filter(|request| request.by_login) {
            asked.of_ironic(script, &request.method, &request.path, 1);
        }
        Ok(asked)
    }
}
