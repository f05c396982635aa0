//! The simulated machines, which pages of the console break and mend.

use std::sync::Arc;

use metal3_console::lab::{Acted, Lab, Offer};
use serde_json::json;

use super::world::{Fault, Faults, World, host_number};

const BREAK: Offer = Offer {
    action: "lab-break",
    what: "Break the BMC",
    consequence: "the simulated BMC refuses its login: what is next asked of the machine fails",
};
const MEND: Offer = Offer {
    action: "lab-mend",
    what: "Mend the BMC",
    consequence: "the simulated BMC accepts its login again: what failed is tried again after a while, or with the next change of the host",
};

/// The machines of a world.
pub struct Machines(pub Arc<World>);

impl std::fmt::Debug for Machines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machines").finish_non_exhaustive()
    }
}

impl Machines {
    /// The number of a host of this world, and whether its machine is broken.
    fn find(&self, namespace: &str, name: &str) -> Option<(u32, bool)> {
        let number = host_number(name).filter(|_| namespace == self.0.namespace())?;
        let is_broken = self.0.machine(number, |machine| machine.faults != Faults::default())?;
        Some((number, is_broken))
    }

    async fn set(&self, namespace: &str, name: &str, action: &str) -> Result<(), String> {
        let (number, _) = self
            .find(namespace, name)
            .ok_or("This world has no machine of that host.")?;
        let faults: Faults = match action {
            _ if action == BREAK.action => [Fault::WrongPassword].into_iter().collect(),
            _ if action == MEND.action => Faults::default(),
            _ => return Err("This cannot be done to a simulated machine.".to_owned()),
        };
        let is_mended = faults == Faults::default();
        self.0.machine(number, |machine| machine.faults = faults);
        if !is_mended {
            return Ok(());
        }
        // Controllers try a new login at once, and a BMC that failed at their next attempt.
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("{name}-bmc"), "namespace": namespace },
            "stringData": { "password": "another" },
        });
        self.0.apply(&secret).await.map_err(|error| error.to_string())
    }
}

impl Lab for Machines {
    fn offers(&self, namespace: &str, name: &str) -> Vec<Offer> {
        match self.find(namespace, name) {
            Some((_, true)) => vec![MEND],
            Some((_, false)) => vec![BREAK],
            None => Vec::new(),
        }
    }

    fn act<'a>(&'a self, namespace: &'a str, name: &'a str, action: &'a str) -> Acted<'a> {
        Box::pin(self.set(namespace, name, action))
    }
}
