//! Addresses and login of a lab: written by `labhosts` when it is ready, read by drivers.

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use serde::{Deserialize, Serialize};

use crate::identity::Number;

/// A running lab.
#[derive(Clone, Serialize, Deserialize)]
pub struct Endpoint {
    /// The address of control and agents.
    pub control_url: String,
    /// The trusted certificate, also of BMCs.
    pub ca: String,
    /// The login of BMCs and control.
    pub username: String,
    /// Its password.
    pub password: String,
    /// Process id.
    pub pid: u32,
    /// The machines.
    pub machines: Vec<Place>,
}

/// One machine of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    /// The machine number.
    pub number: Number,
    /// The name of the profile.
    pub profile: String,
    /// The address of the BMC.
    pub redfish_address: String,
    /// The path of the Redfish system.
    pub redfish_system_id: String,
    /// The MAC addresses.
    pub macs: Vec<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = (&self.control_url, &self.machines);
        f.debug_tuple("Endpoint").field(&shown.0).field(&shown.1).finish()
    }
}

impl Endpoint {
    /// Writes the file atomically, readable by its owner only.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let draft = path.with_extension("new");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        std::fs::rename(draft, path)
    }
}
