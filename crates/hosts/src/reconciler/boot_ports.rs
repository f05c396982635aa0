//! The ports of boot MAC addresses, as far as this process has seen them.
//!
//! Ports are separate records that the change feed does not show. The port of a network card that an inspection found
//! follows from the inventory; for another boot MAC address the ports are read once per process.

use std::collections::BTreeMap;

use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;

use super::observations::Observations;
use crate::facts::FoundNode;
use crate::node::ports;

#[derive(Default)]
pub(super) struct BootPorts(Mutex<BTreeMap<Key, (NodeUuid, MacAddress)>>);

impl BootPorts {
    /// Whether the node has the port of the boot MAC address. Stores it when the ports were read.
    pub(super) fn exists(&self, host: &Key, observed: &Observations) -> bool {
        let (Observed::Present(FoundNode::Own(node, _)), Ok(Some(boot))) =
            (&observed.node, ports::boot_address(&observed.host))
        else {
            return false;
        };
        let seen = (node.uuid.clone(), boot);
        let mut known = self.0.lock();
        if let Observed::Present(found) = &observed.ports
            && found.iter().any(|port| ports::has_address(port, &boot))
        {
            known.insert(host.clone(), seen);
            return true;
        }
        known.get(host) == Some(&seen)
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}
