//! Labels, annotations and condition names of Cluster API.

/// API group of the core kinds.
pub const GROUP: &str = "cluster.x-k8s.io";
/// API group of control planes.
pub const CONTROL_PLANE_GROUP: &str = "controlplane.cluster.x-k8s.io";
/// API group of the general claims on addresses.
pub const IPAM_GROUP: &str = "ipam.cluster.x-k8s.io";

/// Label: the Cluster an object belongs to.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label on machines of a control plane.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label on machines: their MachineDeployment.
pub const DEPLOYMENT_NAME_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// Label: the manager that reconciles the object, when there are several.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Annotation that pauses an object, whatever its value.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Label, whatever its value: `clusterctl move` moves the object with every cluster of its namespace.
pub const MOVE_LABEL: &str = "clusterctl.cluster.x-k8s.io/move";
/// Annotation of `clusterctl move` on objects that it deletes; it has removed all other annotations by then.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation on cluster infrastructure that is managed externally.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Label of the objects that the topology controller makes from a ClusterClass.
pub const TOPOLOGY_OWNED_LABEL: &str = "topology.cluster.x-k8s.io/owned";
/// Annotation: the template an object was made from.
pub const CLONED_FROM_NAME_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-name";
/// Annotation: kind and group of the template an object was made from.
pub const CLONED_FROM_GROUP_KIND_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// Annotation on a MachineDeployment that the cluster autoscaler scales: the largest number of its machines.
pub const AUTOSCALER_MAX_SIZE_ANNOTATION: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";

/// Annotation on a Machine and its objects while Cluster API updates them in place.
pub const UPDATE_IN_PROGRESS_ANNOTATION: &str = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";

/// Older condition of a Cluster: its infrastructure is ready.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// Condition of a Machine: its owner replaced it, or has to.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
