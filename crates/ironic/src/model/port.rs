//! Network ports of a node, and port groups.

use metal3_domain::ids::NodeUuid;

lenient! {
    /// A network port.
    #[derive(Eq)]
    pub struct Port {
        required {
            /// Its UUID.
            pub uuid: String,
            /// The node of the port.
            pub node_uuid: NodeUuid,
            /// Its MAC address, in lower case.
            pub address: String,
        }
        /// Whether it may boot from the network. Absent in short listings.
        pub pxe_enabled: Option<bool>,
    }

    /// A bond of ports.
    #[derive(Eq)]
    pub struct PortGroup {
        required {
            /// Its UUID.
            pub uuid: String,
        }
        /// Its name.
        pub name: Option<String>,
        /// Its MAC address.
        pub address: Option<String>,
        /// The node of the group. Absent in short lists.
        pub node_uuid: Option<NodeUuid>,
    }
}
