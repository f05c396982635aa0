//! Fields of the built-in kinds, except for Pods and Deployments.

use super::form::Form::{
    Bytes, Flag, Int, IntOrText, Keyed, Many, Map, MicroTime, One, Quantity, SetFlag, SetInt, SetText, Text, Time,
    Union,
};
use super::form::{Field, Message, messages};
use super::meta::{CONDITION, LABEL_SELECTOR, OBJECT_META};

messages! {
    NAMESPACE_SPEC { 1 finalizers Many(&Text) }
    NAMESPACE_CONDITION { 1 type SetText, 2 status SetText, 4 lastTransitionTime Time, 5 reason Text, 6 message Text }
    NAMESPACE_STATUS { 1 phase Text, 2 conditions Keyed("type", &NAMESPACE_CONDITION) }
    NAMESPACE { 1 metadata One(&OBJECT_META), 2 spec One(&NAMESPACE_SPEC), 3 status One(&NAMESPACE_STATUS) }
    TAINT { 1 key SetText, 2 value Text, 3 effect SetText, 4 timeAdded Time }
    CONFIG_MAP_NODE_CONFIG_SOURCE {
        1 namespace SetText, 2 name SetText, 3 uid Text, 4 resourceVersion Text, 5 kubeletConfigKey SetText,
    }
    NODE_CONFIG_SOURCE { 2 configMap One(&CONFIG_MAP_NODE_CONFIG_SOURCE) }
    NODE_POD_PREEMPTION_POLICY { 1 disableResizePreemption Many(&Text) }
    NODE_SPEC {
        1 podCIDR Text, 7 podCIDRs Union(&Text), 3 providerID Text, 4 unschedulable Flag, 5 taints Many(&One(&TAINT)),
        6 configSource One(&NODE_CONFIG_SOURCE), 2 externalID Text,
        8 podPreemptionPolicy One(&NODE_POD_PREEMPTION_POLICY),
    }
    NODE_CONDITION {
        1 type SetText, 2 status SetText, 3 lastHeartbeatTime Time, 4 lastTransitionTime Time, 5 reason Text,
        6 message Text,
    }
    NODE_ADDRESS { 1 type SetText, 2 address SetText }
    DAEMON_ENDPOINT { 1 Port SetInt }
    NODE_DAEMON_ENDPOINTS { 1 kubeletEndpoint One(&DAEMON_ENDPOINT) }
    NODE_SWAP_STATUS { 1 capacity SetInt }
    NODE_SYSTEM_INFO {
        1 machineID SetText, 2 systemUUID SetText, 3 bootID SetText, 4 kernelVersion SetText, 5 osImage SetText,
        6 containerRuntimeVersion SetText, 7 kubeletVersion SetText, 8 kubeProxyVersion SetText,
        9 operatingSystem SetText, 10 architecture SetText, 11 swap One(&NODE_SWAP_STATUS),
    }
    CONTAINER_IMAGE { 1 names Many(&Text), 2 sizeBytes Int }
    ATTACHED_VOLUME { 1 name SetText, 2 devicePath SetText }
    NODE_CONFIG_STATUS {
        1 assigned One(&NODE_CONFIG_SOURCE), 2 active One(&NODE_CONFIG_SOURCE),
        3 lastKnownGood One(&NODE_CONFIG_SOURCE), 4 error Text,
    }
    NODE_RUNTIME_HANDLER_FEATURES { 1 recursiveReadOnlyMounts SetFlag, 2 userNamespaces SetFlag }
    NODE_RUNTIME_HANDLER { 1 name SetText, 2 features One(&NODE_RUNTIME_HANDLER_FEATURES) }
    NODE_FEATURES { 1 supplementalGroupsPolicy SetFlag }
    NODE_STATUS {
        1 capacity Map(&Quantity), 2 allocatable Map(&Quantity), 3 phase Text,
        4 conditions Keyed("type", &NODE_CONDITION), 5 addresses Keyed("type", &NODE_ADDRESS),
        6 daemonEndpoints One(&NODE_DAEMON_ENDPOINTS), 7 nodeInfo One(&NODE_SYSTEM_INFO),
        8 images Many(&One(&CONTAINER_IMAGE)), 9 volumesInUse Many(&Text),
        10 volumesAttached Many(&One(&ATTACHED_VOLUME)), 11 config One(&NODE_CONFIG_STATUS),
        12 runtimeHandlers Many(&One(&NODE_RUNTIME_HANDLER)), 13 features One(&NODE_FEATURES),
        14 declaredFeatures Many(&Text),
    }
    NODE { 1 metadata One(&OBJECT_META), 2 spec One(&NODE_SPEC), 3 status One(&NODE_STATUS) }
    SECRET {
        1 metadata One(&OBJECT_META), 5 immutable SetFlag, 2 data Map(&Bytes), 4 stringData Map(&Text), 3 type Text,
    }
    CONFIG_MAP { 1 metadata One(&OBJECT_META), 4 immutable SetFlag, 2 data Map(&Text), 3 binaryData Map(&Bytes) }
    OBJECT_REFERENCE {
        1 kind Text, 2 namespace Text, 3 name Text, 4 uid Text, 5 apiVersion Text, 6 resourceVersion Text,
        7 fieldPath Text,
    }
    EVENT_SOURCE { 1 component Text, 2 host Text }
    EVENT_SERIES { 1 count Int, 2 lastObservedTime MicroTime }
    EVENT {
        1 metadata One(&OBJECT_META), 2 involvedObject One(&OBJECT_REFERENCE), 3 reason Text, 4 message Text,
        5 source One(&EVENT_SOURCE), 6 firstTimestamp Time, 7 lastTimestamp Time, 8 count Int, 9 type Text,
        10 eventTime MicroTime, 11 series One(&EVENT_SERIES), 12 action Text, 13 related One(&OBJECT_REFERENCE),
        14 reportingComponent SetText, 15 reportingInstance SetText,
    }
    SERVICE_PORT {
        1 name Text, 2 protocol Text, 6 appProtocol SetText, 3 port SetInt, 4 targetPort IntOrText, 5 nodePort Int,
    }
    CLIENT_IP_CONFIG { 1 timeoutSeconds SetInt }
    SESSION_AFFINITY_CONFIG { 1 clientIP One(&CLIENT_IP_CONFIG) }
    SERVICE_SPEC {
        1 ports Keyed("port", &SERVICE_PORT), 2 selector Map(&Text), 3 clusterIP Text, 18 clusterIPs Many(&Text),
        4 type Text, 5 externalIPs Many(&Text), 7 sessionAffinity Text, 8 loadBalancerIP Text,
        9 loadBalancerSourceRanges Many(&Text), 10 externalName Text, 11 externalTrafficPolicy Text,
        12 healthCheckNodePort Int, 13 publishNotReadyAddresses Flag,
        14 sessionAffinityConfig One(&SESSION_AFFINITY_CONFIG), 19 ipFamilies Many(&Text), 17 ipFamilyPolicy SetText,
        20 allocateLoadBalancerNodePorts SetFlag, 21 loadBalancerClass SetText, 22 internalTrafficPolicy SetText,
        23 trafficDistribution SetText,
    }
    PORT_STATUS { 1 port SetInt, 2 protocol SetText, 3 error SetText }
    LOAD_BALANCER_INGRESS { 1 ip Text, 2 hostname Text, 3 ipMode SetText, 4 ports Many(&One(&PORT_STATUS)) }
    LOAD_BALANCER_STATUS { 1 ingress Many(&One(&LOAD_BALANCER_INGRESS)) }
    SERVICE_STATUS { 1 loadBalancer One(&LOAD_BALANCER_STATUS), 2 conditions Keyed("type", &CONDITION) }
    SERVICE { 1 metadata One(&OBJECT_META), 2 spec One(&SERVICE_SPEC), 3 status One(&SERVICE_STATUS) }
    LOCAL_OBJECT_REFERENCE { 1 name Text }
    SERVICE_ACCOUNT {
        1 metadata One(&OBJECT_META), 2 secrets Keyed("name", &OBJECT_REFERENCE),
        3 imagePullSecrets Many(&One(&LOCAL_OBJECT_REFERENCE)), 4 automountServiceAccountToken SetFlag,
    }
    ENDPOINT_CONDITIONS { 1 ready SetFlag, 2 serving SetFlag, 3 terminating SetFlag }
    FOR_ZONE { 1 name SetText }
    FOR_NODE { 1 name SetText }
    ENDPOINT_HINTS { 1 forZones Many(&One(&FOR_ZONE)), 2 forNodes Many(&One(&FOR_NODE)) }
    ENDPOINT {
        1 addresses Many(&Text), 2 conditions One(&ENDPOINT_CONDITIONS), 3 hostname SetText,
        4 targetRef One(&OBJECT_REFERENCE), 5 deprecatedTopology Map(&Text), 6 nodeName SetText, 7 zone SetText,
        8 hints One(&ENDPOINT_HINTS),
    }
    ENDPOINT_PORT { 1 name SetText, 2 protocol SetText, 3 port SetInt, 4 appProtocol SetText }
    ENDPOINT_SLICE {
        1 metadata One(&OBJECT_META), 4 addressType SetText, 2 endpoints Many(&One(&ENDPOINT)),
        3 ports Many(&One(&ENDPOINT_PORT)),
    }
    VOLUME_ATTACHMENT_SOURCE { 1 persistentVolumeName SetText }
    VOLUME_ATTACHMENT_SPEC { 1 attacher SetText, 2 source One(&VOLUME_ATTACHMENT_SOURCE), 3 nodeName SetText }
    VOLUME_ERROR { 1 time Time, 2 message Text, 3 errorCode SetInt }
    VOLUME_ATTACHMENT_STATUS {
        1 attached SetFlag, 2 attachmentMetadata Map(&Text), 3 attachError One(&VOLUME_ERROR),
        4 detachError One(&VOLUME_ERROR),
    }
    VOLUME_ATTACHMENT {
        1 metadata One(&OBJECT_META), 2 spec One(&VOLUME_ATTACHMENT_SPEC), 3 status One(&VOLUME_ATTACHMENT_STATUS),
    }
    SCOPED_SELECTOR_REQUIREMENT { 1 scopeName SetText, 2 operator SetText, 3 values Many(&Text) }
    SCOPE_SELECTOR { 1 matchExpressions Many(&One(&SCOPED_SELECTOR_REQUIREMENT)) }
    RESOURCE_QUOTA_SPEC { 1 hard Map(&Quantity), 2 scopes Many(&Text), 3 scopeSelector One(&SCOPE_SELECTOR) }
    RESOURCE_QUOTA_STATUS { 1 hard Map(&Quantity), 2 used Map(&Quantity) }
    RESOURCE_QUOTA {
        1 metadata One(&OBJECT_META), 2 spec One(&RESOURCE_QUOTA_SPEC), 3 status One(&RESOURCE_QUOTA_STATUS),
    }
    LIMIT_RANGE_ITEM {
        1 type SetText, 2 max Map(&Quantity), 3 min Map(&Quantity), 4 default Map(&Quantity),
        5 defaultRequest Map(&Quantity), 6 maxLimitRequestRatio Map(&Quantity),
    }
    LIMIT_RANGE_SPEC { 1 limits Many(&One(&LIMIT_RANGE_ITEM)) }
    LIMIT_RANGE { 1 metadata One(&OBJECT_META), 2 spec One(&LIMIT_RANGE_SPEC) }
    POLICY_RULE {
        1 verbs Many(&Text), 2 apiGroups Many(&Text), 3 resources Many(&Text), 4 resourceNames Many(&Text),
        5 nonResourceURLs Many(&Text),
    }
    ROLE { 1 metadata One(&OBJECT_META), 2 rules Many(&One(&POLICY_RULE)) }
    AGGREGATION_RULE { 1 clusterRoleSelectors Many(&One(&LABEL_SELECTOR)) }
    CLUSTER_ROLE {
        1 metadata One(&OBJECT_META), 2 rules Many(&One(&POLICY_RULE)), 3 aggregationRule One(&AGGREGATION_RULE),
    }
    SUBJECT { 1 kind SetText, 2 apiGroup Text, 3 name SetText, 4 namespace Text }
    ROLE_REF { 1 apiGroup SetText, 2 kind SetText, 3 name SetText }
    ROLE_BINDING { 1 metadata One(&OBJECT_META), 2 subjects Many(&One(&SUBJECT)), 3 roleRef One(&ROLE_REF) }
    CLUSTER_ROLE_BINDING { 1 metadata One(&OBJECT_META), 2 subjects Many(&One(&SUBJECT)), 3 roleRef One(&ROLE_REF) }
    LEASE_SPEC {
        1 holderIdentity SetText, 2 leaseDurationSeconds SetInt, 3 acquireTime MicroTime, 4 renewTime MicroTime,
        5 leaseTransitions SetInt, 6 strategy SetText, 7 preferredHolder SetText,
    }
    LEASE { 1 metadata One(&OBJECT_META), 2 spec One(&LEASE_SPEC) }
    RESOURCE_ATTRIBUTES {
        1 namespace Text, 2 verb Text, 3 group Text, 4 version Text, 5 resource Text, 6 subresource Text, 7 name Text,
    }
    NON_RESOURCE_ATTRIBUTES { 1 path Text, 2 verb Text }
    SELF_SUBJECT_ACCESS_REVIEW_SPEC {
        1 resourceAttributes One(&RESOURCE_ATTRIBUTES), 2 nonResourceAttributes One(&NON_RESOURCE_ATTRIBUTES),
    }
    SUBJECT_ACCESS_REVIEW_STATUS { 1 allowed SetFlag, 4 denied Flag, 2 reason Text, 3 evaluationError Text }
    SELF_SUBJECT_ACCESS_REVIEW {
        1 metadata One(&OBJECT_META), 2 spec One(&SELF_SUBJECT_ACCESS_REVIEW_SPEC),
        3 status One(&SUBJECT_ACCESS_REVIEW_STATUS),
    }
    SELF_SUBJECT_RULES_REVIEW_SPEC { 1 namespace Text }
    RESOURCE_RULE { 1 verbs Many(&Text), 2 apiGroups Many(&Text), 3 resources Many(&Text), 4 resourceNames Many(&Text) }
    NON_RESOURCE_RULE { 1 verbs Many(&Text), 2 nonResourceURLs Many(&Text) }
    SUBJECT_RULES_REVIEW_STATUS {
        1 resourceRules Many(&One(&RESOURCE_RULE)), 2 nonResourceRules Many(&One(&NON_RESOURCE_RULE)),
        3 incomplete SetFlag, 4 evaluationError Text,
    }
    SELF_SUBJECT_RULES_REVIEW {
        1 metadata One(&OBJECT_META), 2 spec One(&SELF_SUBJECT_RULES_REVIEW_SPEC),
        3 status One(&SUBJECT_RULES_REVIEW_STATUS),
    }
    USER_INFO { 1 username Text, 2 uid Text, 3 groups Many(&Text), 4 extra Map(&Many(&Text)) }
    SELF_SUBJECT_REVIEW_STATUS { 1 userInfo One(&USER_INFO) }
    SELF_SUBJECT_REVIEW { 1 metadata One(&OBJECT_META), 2 status One(&SELF_SUBJECT_REVIEW_STATUS) }
}
