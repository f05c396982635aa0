//! Drivers and conductors.

lenient! {
    /// A hardware type that a live conductor supports.
    #[derive(Eq)]
    pub struct Driver {
        required {
            /// `redfish`, `ipmi` and others.
            pub name: String,
        }
        /// The conductors that support it.
        pub hosts: Vec<String>,
    }

    /// A conductor.
    #[derive(Eq)]
    pub struct Conductor {
        required {
            /// Its name.
            pub hostname: String,
        }
        /// Whether it sent a heartbeat recently. False for a while after its start.
        pub alive: bool,
    }
}
