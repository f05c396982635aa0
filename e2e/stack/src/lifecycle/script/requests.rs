//! The products' requests during a script, from the audit log and Ironic's log.

use std::fs;

use metal3_ledger::Log;
use metal3_scenario::RequestCounts;

use super::super::env::TestEnv;
use super::super::{audit, requests};
use super::file::Script;

/// The names of the products in counts, in the order of the managers.
const PRODUCTS: [&str; 3] = ["machines", "addresses", "hosts"];

/// The lengths of both logs.
pub(super) struct Mark {
    audit: usize,
    ironic: usize,
}

impl Mark {
    pub(super) fn now(env: &TestEnv<'_>) -> anyhow::Result<Self> {
        let audit = fs::read_to_string(env.stack.places.log("audit"))?;
        // An incomplete line belongs to the time before.
        let whole = audit.rfind('\n').map_or(0, |end| end.saturating_add(1));
        Ok(Self {
            audit: whole,
            ironic: env.fleet.mark()?,
        })
    }

    pub(super) fn since(&self, env: &TestEnv<'_>, script: &Script) -> anyhow::Result<RequestCounts> {
        let audit = fs::read_to_string(env.stack.places.log("audit"))?;
        // Objects of the previous script are being deleted in another namespace.
        let log = Log::read(audit.get(self.audit..).unwrap_or_default())?.within(script.namespace());
        let mut counts = RequestCounts::default();
        let script = script.name.as_str();
        for (manager, product) in audit::MANAGERS.iter().zip(PRODUCTS) {
            for (target, number) in &log.counts_of(manager.account.user).requests {
                counts.count_api_request(script, product, (&target.verb, &target.resource), *number);
            }
        }
        for request in requests::of(&env.fleet.log_since(self.ironic)?).filter(|request| request.by_login) {
            counts.count_ironic_request(script, &request.method, &request.path, 1);
        }
        Ok(counts)
    }
}
