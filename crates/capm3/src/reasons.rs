//! Reasons of Events and waits that no condition of the group has. Those of data are in [`crate::data::reason`].

/// Of Metal3Clusters.
pub mod cluster {
    use metal3_domain::reasons;

    reasons! {
        /// Wait: an object of the cluster cannot be decoded.
        pub UNREADABLE = "ObjectUnreadable";
        /// Wait: the first list of the source of the endpoint is not complete.
        pub SOURCE_PENDING = "EndpointSourcePending";
    }
}

/// Of Metal3Machines.
pub mod machine {
    use metal3_domain::reasons;

    reasons! {
        /// Wait: an object of the machine cannot be decoded.
        pub UNREADABLE = "ObjectUnreadable";
        /// Event: the host runs the image, and the provider ID is known.
        pub PROVISIONED = "Provisioned";
        /// Event: the API server does not let this program remove the machine from the owners of its host.
        pub HOST_OWNER_KEPT = "HostOwnerKept";
    }
}

/// Of Metal3MachineTemplates.
pub mod template {
    use metal3_domain::reasons;

    reasons! {
        /// Wait: the selector of hosts cannot be read.
        pub INVALID_SELECTOR = "InvalidHostSelector";
        /// Wait: a host of the namespace cannot be decoded.
        pub HOST_UNREADABLE = "HostUnreadable";
        /// Wait: machines of the template get no host for their Metal3Cluster.
        pub CLUSTER_UNUSABLE = "Metal3ClusterUnusable";
        /// Wait: the installed CustomResourceDefinition has no status.
        pub STATUS_NOT_SERVED = "StatusNotServed";
    }
}

/// Of Metal3Remediations.
pub mod remediation {
    use metal3_domain::reasons;

    reasons! {
        /// Event: the first attempt begins.
        pub STARTED = "RemediationStarted";
        /// Event: another attempt begins.
        pub RETRIED = "RemediationRetried";
        /// Event: every attempt failed.
        pub GIVEN_UP = "RemediationGivenUp";
        /// Event: the host is powered on although its Node is not fenced.
        pub NOT_FENCED = "NodeNotFenced";
        /// Event: the Node has not its former labels and annotations.
        pub NOT_RESTORED = "NodeNotRestored";
        /// Condition of the Machine: its owner replaces it.
        pub WAITING_FOR_REMEDIATION = "WaitingForRemediation";
    }
}
