//! BIOS settings, firmware components and virtual media of a node.

use serde_json::Value;

lenient! {
    /// One BIOS setting. Fields other than `name` and `value` are returned with `detail` only, and not by every driver.
    pub struct BiosSetting {
        required {
            /// Its name.
            pub name: String,
        }
        /// Its value; a string in every known driver.
        pub value: Value,
        /// Whether it is read-only.
        pub read_only: Option<bool>,
    }
}

/// One component with firmware.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct FirmwareComponent {
    /// `bios`, `bmc`, `nic:…`.
    pub component: String,
}

lenient! {
    /// An attached image.
    #[derive(Eq)]
    pub struct VirtualMedia {
        /// Whether an image is inserted.
        pub inserted: bool,
        /// The URL of the image.
        pub image: Option<String>,
    }
}
