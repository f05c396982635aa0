//! Fields of Pods and Deployments.

use super::form::Form::{
    Flag, Inline, Int, IntOrText, Keyed, Many, Map, One, Quantity, SetFlag, SetInt, SetText, Text, Time,
};
use super::form::{Field, Message, messages};
use super::kinds::LOCAL_OBJECT_REFERENCE;
use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::volumes::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR, VOLUME};

messages! {
    CONTAINER_PORT { 1 name Text, 2 hostPort Int, 3 containerPort SetInt, 4 protocol Text, 5 hostIP Text }
    CONFIG_MAP_ENV_SOURCE { 1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 optional SetFlag }
    SECRET_ENV_SOURCE { 1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 optional SetFlag }
    ENV_FROM_SOURCE { 1 prefix Text, 2 configMapRef One(&CONFIG_MAP_ENV_SOURCE), 3 secretRef One(&SECRET_ENV_SOURCE) }
    CONFIG_MAP_KEY_SELECTOR {
        1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 key SetText, 3 optional SetFlag,
    }
    SECRET_KEY_SELECTOR { 1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 key SetText, 3 optional SetFlag }
    FILE_KEY_SELECTOR { 1 volumeName SetText, 2 path SetText, 3 key SetText, 4 optional SetFlag }
    ENV_VAR_SOURCE {
        1 fieldRef One(&OBJECT_FIELD_SELECTOR), 2 resourceFieldRef One(&RESOURCE_FIELD_SELECTOR),
        3 configMapKeyRef One(&CONFIG_MAP_KEY_SELECTOR), 4 secretKeyRef One(&SECRET_KEY_SELECTOR),
        5 fileKeyRef One(&FILE_KEY_SELECTOR),
    }
    ENV_VAR { 1 name SetText, 2 value Text, 3 valueFrom One(&ENV_VAR_SOURCE) }
    RESOURCE_CLAIM { 1 name SetText, 2 request Text }
    RESOURCE_REQUIREMENTS { 1 limits Map(&Quantity), 2 requests Map(&Quantity), 3 claims Many(&One(&RESOURCE_CLAIM)) }
    CONTAINER_RESIZE_POLICY { 1 resourceName SetText, 2 restartPolicy SetText }
    CONTAINER_RESTART_RULE_ON_EXIT_CODES { 1 operator Text, 2 values Many(&Int) }
    CONTAINER_RESTART_RULE { 1 action Text, 2 exitCodes One(&CONTAINER_RESTART_RULE_ON_EXIT_CODES) }
    VOLUME_MOUNT {
        1 name SetText, 2 readOnly Flag, 7 recursiveReadOnly SetText, 3 mountPath SetText, 4 subPath Text,
        5 mountPropagation SetText, 6 subPathExpr Text, 8 bindMountOptions Many(&Text),
    }
    VOLUME_DEVICE { 1 name SetText, 2 devicePath SetText }
    EXEC_ACTION { 1 command Many(&Text) }
    HTTP_HEADER { 1 name SetText, 2 value SetText }
    HTTP_GET_ACTION {
        1 path Text, 2 port IntOrText, 3 host Text, 4 scheme Text, 5 httpHeaders Many(&One(&HTTP_HEADER)),
        6 protocol SetText,
    }
    TCP_SOCKET_ACTION { 1 port IntOrText, 2 host Text }
    GRPC_ACTION { 1 port SetInt, 2 service SetText, 3 mode SetText }
    PROBE_HANDLER {
        1 exec One(&EXEC_ACTION), 2 httpGet One(&HTTP_GET_ACTION), 3 tcpSocket One(&TCP_SOCKET_ACTION),
        4 grpc One(&GRPC_ACTION),
    }
    PROBE {
        1 handler Inline(&PROBE_HANDLER), 2 initialDelaySeconds Int, 3 timeoutSeconds Int, 4 periodSeconds Int,
        5 successThreshold Int, 6 failureThreshold Int, 7 terminationGracePeriodSeconds SetInt,
    }
    SLEEP_ACTION { 1 seconds SetInt }
    LIFECYCLE_HANDLER {
        1 exec One(&EXEC_ACTION), 2 httpGet One(&HTTP_GET_ACTION), 3 tcpSocket One(&TCP_SOCKET_ACTION),
        4 sleep One(&SLEEP_ACTION),
    }
    LIFECYCLE { 1 postStart One(&LIFECYCLE_HANDLER), 2 preStop One(&LIFECYCLE_HANDLER), 3 stopSignal SetText }
    CAPABILITIES { 1 add Many(&Text), 2 drop Many(&Text) }
    SE_LINUX_OPTIONS { 1 user Text, 2 role Text, 3 type Text, 4 level Text }
    WINDOWS_SECURITY_CONTEXT_OPTIONS {
        1 gmsaCredentialSpecName SetText, 2 gmsaCredentialSpec SetText, 3 runAsUserName SetText,
        4 hostProcess SetFlag,
    }
    SECCOMP_PROFILE { 1 type SetText, 2 localhostProfile SetText }
    APP_ARMOR_PROFILE { 1 type SetText, 2 localhostProfile SetText }
    SECURITY_CONTEXT {
        1 capabilities One(&CAPABILITIES), 2 privileged SetFlag, 3 seLinuxOptions One(&SE_LINUX_OPTIONS),
        10 windowsOptions One(&WINDOWS_SECURITY_CONTEXT_OPTIONS), 4 runAsUser SetInt, 8 runAsGroup SetInt,
        5 runAsNonRoot SetFlag, 6 readOnlyRootFilesystem SetFlag, 7 allowPrivilegeEscalation SetFlag,
        9 procMount SetText, 11 seccompProfile One(&SECCOMP_PROFILE), 12 appArmorProfile One(&APP_ARMOR_PROFILE),
    }
    CONTAINER {
        1 name SetText, 2 image Text, 3 command Many(&Text), 4 args Many(&Text), 5 workingDir Text,
        6 ports Keyed("containerPort", &CONTAINER_PORT), 19 envFrom Many(&One(&ENV_FROM_SOURCE)),
        7 env Keyed("name", &ENV_VAR), 8 resources One(&RESOURCE_REQUIREMENTS),
        23 resizePolicy Many(&One(&CONTAINER_RESIZE_POLICY)), 24 restartPolicy SetText,
        25 restartPolicyRules Many(&One(&CONTAINER_RESTART_RULE)), 9 volumeMounts Keyed("mountPath", &VOLUME_MOUNT),
        21 volumeDevices Keyed("devicePath", &VOLUME_DEVICE), 10 livenessProbe One(&PROBE),
        11 readinessProbe One(&PROBE), 22 startupProbe One(&PROBE), 12 lifecycle One(&LIFECYCLE),
        13 terminationMessagePath Text, 20 terminationMessagePolicy Text, 14 imagePullPolicy Text,
        15 securityContext One(&SECURITY_CONTEXT), 16 stdin Flag, 17 stdinOnce Flag, 18 tty Flag,
    }
    EPHEMERAL_CONTAINER { 1 EphemeralContainerCommon Inline(&CONTAINER), 2 targetContainerName Text }
    SYSCTL { 1 name SetText, 2 value SetText }
    POD_SECURITY_CONTEXT {
        1 seLinuxOptions One(&SE_LINUX_OPTIONS), 8 windowsOptions One(&WINDOWS_SECURITY_CONTEXT_OPTIONS),
        2 runAsUser SetInt, 6 runAsGroup SetInt, 3 runAsNonRoot SetFlag, 4 supplementalGroups Many(&Int),
        12 supplementalGroupsPolicy SetText, 5 fsGroup SetInt, 7 sysctls Many(&One(&SYSCTL)),
        9 fsGroupChangePolicy SetText, 10 seccompProfile One(&SECCOMP_PROFILE),
        11 appArmorProfile One(&APP_ARMOR_PROFILE), 13 seLinuxChangePolicy SetText,
    }
    NODE_SELECTOR_REQUIREMENT { 1 key SetText, 2 operator SetText, 3 values Many(&Text) }
    NODE_SELECTOR_TERM {
        1 matchExpressions Many(&One(&NODE_SELECTOR_REQUIREMENT)),
        2 matchFields Many(&One(&NODE_SELECTOR_REQUIREMENT)),
    }
    NODE_SELECTOR { 1 nodeSelectorTerms Many(&One(&NODE_SELECTOR_TERM)) }
    PREFERRED_SCHEDULING_TERM { 1 weight SetInt, 2 preference One(&NODE_SELECTOR_TERM) }
    NODE_AFFINITY {
        1 requiredDuringSchedulingIgnoredDuringExecution One(&NODE_SELECTOR),
        2 preferredDuringSchedulingIgnoredDuringExecution Many(&One(&PREFERRED_SCHEDULING_TERM)),
    }
    POD_AFFINITY_TERM {
        1 labelSelector One(&LABEL_SELECTOR), 2 namespaces Many(&Text), 3 topologyKey SetText,
        4 namespaceSelector One(&LABEL_SELECTOR), 5 matchLabelKeys Many(&Text), 6 mismatchLabelKeys Many(&Text),
    }
    WEIGHTED_POD_AFFINITY_TERM { 1 weight SetInt, 2 podAffinityTerm One(&POD_AFFINITY_TERM) }
    POD_AFFINITY {
        1 requiredDuringSchedulingIgnoredDuringExecution Many(&One(&POD_AFFINITY_TERM)),
        2 preferredDuringSchedulingIgnoredDuringExecution Many(&One(&WEIGHTED_POD_AFFINITY_TERM)),
    }
    POD_ANTI_AFFINITY {
        1 requiredDuringSchedulingIgnoredDuringExecution Many(&One(&POD_AFFINITY_TERM)),
        2 preferredDuringSchedulingIgnoredDuringExecution Many(&One(&WEIGHTED_POD_AFFINITY_TERM)),
    }
    AFFINITY {
        1 nodeAffinity One(&NODE_AFFINITY), 2 podAffinity One(&POD_AFFINITY),
        3 podAntiAffinity One(&POD_ANTI_AFFINITY),
    }
    TOLERATION { 1 key Text, 2 operator Text, 3 value Text, 4 effect Text, 5 tolerationSeconds SetInt }
    HOST_ALIAS { 1 ip SetText, 2 hostnames Many(&Text) }
    POD_DNS_CONFIG_OPTION { 1 name Text, 2 value SetText }
    POD_DNS_CONFIG { 1 nameservers Many(&Text), 2 searches Many(&Text), 3 options Many(&One(&POD_DNS_CONFIG_OPTION)) }
    POD_READINESS_GATE { 1 conditionType SetText }
    TOPOLOGY_SPREAD_CONSTRAINT {
        1 maxSkew SetInt, 2 topologyKey SetText, 3 whenUnsatisfiable SetText, 4 labelSelector One(&LABEL_SELECTOR),
        5 minDomains SetInt, 6 nodeAffinityPolicy SetText, 7 nodeTaintsPolicy SetText, 8 matchLabelKeys Many(&Text),
    }
    POD_OS { 1 name SetText }
    POD_SCHEDULING_GATE { 1 name SetText }
    POD_RESOURCE_CLAIM { 1 name SetText, 3 resourceClaimName SetText, 4 resourceClaimTemplateName SetText }
    POD_SCHEDULING_GROUP { 1 podGroupName SetText }
    EVICTION_RESPONDER { 1 name SetText, 2 priority SetInt }
    POD_SPEC {
        1 volumes Keyed("name", &VOLUME), 20 initContainers Keyed("name", &CONTAINER),
        2 containers Keyed("name", &CONTAINER), 34 ephemeralContainers Keyed("name", &EPHEMERAL_CONTAINER),
        3 restartPolicy Text, 4 terminationGracePeriodSeconds SetInt, 5 activeDeadlineSeconds SetInt,
        6 dnsPolicy Text, 7 nodeSelector Map(&Text), 8 serviceAccountName Text, 9 serviceAccount Text,
        21 automountServiceAccountToken SetFlag, 10 nodeName Text, 11 hostNetwork Flag, 12 hostPID Flag,
        13 hostIPC Flag, 27 shareProcessNamespace SetFlag, 14 securityContext One(&POD_SECURITY_CONTEXT),
        15 imagePullSecrets Keyed("name", &LOCAL_OBJECT_REFERENCE), 16 hostname Text, 17 subdomain Text,
        18 affinity One(&AFFINITY), 19 schedulerName Text, 22 tolerations Many(&One(&TOLERATION)),
        23 hostAliases Keyed("ip", &HOST_ALIAS), 24 priorityClassName Text, 25 priority SetInt,
        26 dnsConfig One(&POD_DNS_CONFIG), 28 readinessGates Many(&One(&POD_READINESS_GATE)),
        29 runtimeClassName SetText, 30 enableServiceLinks SetFlag, 31 preemptionPolicy SetText,
        32 overhead Map(&Quantity), 33 topologySpreadConstraints Keyed("topologyKey", &TOPOLOGY_SPREAD_CONSTRAINT),
        35 setHostnameAsFQDN SetFlag, 36 os One(&POD_OS), 37 hostUsers SetFlag,
        38 schedulingGates Keyed("name", &POD_SCHEDULING_GATE), 39 resourceClaims Keyed("name", &POD_RESOURCE_CLAIM),
        40 resources One(&RESOURCE_REQUIREMENTS), 41 hostnameOverride SetText,
        43 schedulingGroup One(&POD_SCHEDULING_GROUP), 44 evictionResponders Keyed("name", &EVICTION_RESPONDER),
    }
    POD_CONDITION {
        1 type SetText, 7 observedGeneration Int, 2 status SetText, 3 lastProbeTime Time, 4 lastTransitionTime Time,
        5 reason Text, 6 message Text,
    }
    HOST_IP { 1 ip SetText }
    POD_IP { 1 ip SetText }
    CONTAINER_STATE_WAITING { 1 reason Text, 2 message Text }
    CONTAINER_STATE_RUNNING { 1 startedAt Time }
    CONTAINER_STATE_TERMINATED {
        1 exitCode SetInt, 2 signal Int, 3 reason Text, 4 message Text, 5 startedAt Time, 6 finishedAt Time,
        7 containerID Text,
    }
    CONTAINER_STATE {
        1 waiting One(&CONTAINER_STATE_WAITING), 2 running One(&CONTAINER_STATE_RUNNING),
        3 terminated One(&CONTAINER_STATE_TERMINATED),
    }
    IMAGE_VOLUME_STATUS { 1 imageRef Text }
    VOLUME_STATUS { 1 image One(&IMAGE_VOLUME_STATUS) }
    VOLUME_MOUNT_STATUS {
        1 name SetText, 2 mountPath SetText, 3 readOnly Flag, 4 recursiveReadOnly SetText,
        5 volumeStatus One(&VOLUME_STATUS),
    }
    LINUX_CONTAINER_USER { 1 uid SetInt, 2 gid SetInt, 3 supplementalGroups Many(&Int) }
    CONTAINER_USER { 1 linux One(&LINUX_CONTAINER_USER) }
    RESOURCE_HEALTH { 1 resourceID SetText, 2 health Text, 6 message SetText }
    RESOURCE_STATUS { 1 name SetText, 2 resources Many(&One(&RESOURCE_HEALTH)) }
    CONTAINER_STATUS {
        1 name SetText, 2 state One(&CONTAINER_STATE), 3 lastState One(&CONTAINER_STATE), 4 ready SetFlag,
        5 restartCount SetInt, 6 image SetText, 7 imageID SetText, 8 containerID Text, 9 started SetFlag,
        10 allocatedResources Map(&Quantity), 11 resources One(&RESOURCE_REQUIREMENTS),
        12 volumeMounts Keyed("mountPath", &VOLUME_MOUNT_STATUS), 13 user One(&CONTAINER_USER),
        14 allocatedResourcesStatus Keyed("name", &RESOURCE_STATUS), 15 stopSignal SetText,
    }
    POD_RESOURCE_CLAIM_STATUS { 1 name SetText, 2 resourceClaimName SetText }
    CONTAINER_EXTENDED_RESOURCE_REQUEST { 1 containerName SetText, 2 resourceName SetText, 3 requestName SetText }
    POD_EXTENDED_RESOURCE_CLAIM_STATUS {
        1 requestMappings Many(&One(&CONTAINER_EXTENDED_RESOURCE_REQUEST)), 2 resourceClaimName SetText,
    }
    NODE_ALLOCATABLE_MAPPED_RESOURCES { 1 name SetText, 2 quantity Quantity }
    NODE_ALLOCATABLE_OVERHEAD_RESOURCES { 1 name SetText, 2 perPod Quantity, 3 perContainer Quantity }
    NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS {
        1 resourceClaimName SetText, 2 containers Many(&Text),
        4 mapping Keyed("name", &NODE_ALLOCATABLE_MAPPED_RESOURCES),
        5 overhead Keyed("name", &NODE_ALLOCATABLE_OVERHEAD_RESOURCES),
    }
    VOLUME_HEALTH_CONDITION { 1 status SetText, 2 reason SetText, 3 message Text }
    POD_VOLUME_HEALTH {
        1 name SetText, 2 healthConditions Keyed("status", &VOLUME_HEALTH_CONDITION), 3 lastTransitionTime Time,
    }
    POD_STATUS {
        17 observedGeneration Int, 1 phase Text, 2 conditions Keyed("type", &POD_CONDITION), 3 message Text,
        4 reason Text, 11 nominatedNodeName Text, 5 hostIP Text, 16 hostIPs Keyed("ip", &HOST_IP), 6 podIP Text,
        12 podIPs Keyed("ip", &POD_IP), 7 startTime Time, 10 initContainerStatuses Many(&One(&CONTAINER_STATUS)),
        8 containerStatuses Many(&One(&CONTAINER_STATUS)), 9 qosClass Text,
        13 ephemeralContainerStatuses Many(&One(&CONTAINER_STATUS)), 14 resize Text,
        15 resourceClaimStatuses Keyed("name", &POD_RESOURCE_CLAIM_STATUS),
        18 extendedResourceClaimStatus One(&POD_EXTENDED_RESOURCE_CLAIM_STATUS), 19 allocatedResources Map(&Quantity),
        20 resources One(&RESOURCE_REQUIREMENTS),
        21 nodeAllocatableResourceClaimStatuses Keyed("resourceClaimName", &NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS),
        22 volumeHealth Many(&One(&POD_VOLUME_HEALTH)),
    }
    POD { 1 metadata One(&OBJECT_META), 2 spec One(&POD_SPEC), 3 status One(&POD_STATUS) }
    POD_TEMPLATE_SPEC { 1 metadata One(&OBJECT_META), 2 spec One(&POD_SPEC) }
    ROLLING_UPDATE_DEPLOYMENT { 1 maxUnavailable IntOrText, 2 maxSurge IntOrText }
    DEPLOYMENT_STRATEGY { 1 type Text, 2 rollingUpdate One(&ROLLING_UPDATE_DEPLOYMENT) }
    DEPLOYMENT_SPEC {
        1 replicas SetInt, 2 selector One(&LABEL_SELECTOR), 3 template One(&POD_TEMPLATE_SPEC),
        4 strategy One(&DEPLOYMENT_STRATEGY), 5 minReadySeconds Int, 6 revisionHistoryLimit SetInt, 7 paused Flag,
        9 progressDeadlineSeconds SetInt,
    }
    DEPLOYMENT_CONDITION {
        1 type SetText, 2 status SetText, 6 lastUpdateTime Time, 7 lastTransitionTime Time, 4 reason Text,
        5 message Text,
    }
    DEPLOYMENT_STATUS {
        1 observedGeneration Int, 2 replicas Int, 3 updatedReplicas Int, 7 readyReplicas Int, 4 availableReplicas Int,
        5 unavailableReplicas Int, 9 terminatingReplicas SetInt, 6 conditions Keyed("type", &DEPLOYMENT_CONDITION),
        8 collisionCount SetInt,
    }
    REPLICA_SET_CONDITION {
        1 type SetText, 2 status SetText, 3 lastTransitionTime Time, 4 reason Text, 5 message Text,
    }
    REPLICA_SET_SPEC {
        1 replicas SetInt, 4 minReadySeconds Int, 2 selector One(&LABEL_SELECTOR), 3 template One(&POD_TEMPLATE_SPEC),
    }
    REPLICA_SET_STATUS {
        1 replicas SetInt, 2 fullyLabeledReplicas Int, 4 readyReplicas Int, 5 availableReplicas Int,
        7 terminatingReplicas SetInt, 3 observedGeneration Int, 6 conditions Keyed("type", &REPLICA_SET_CONDITION),
    }
    REPLICA_SET { 1 metadata One(&OBJECT_META), 2 spec One(&REPLICA_SET_SPEC), 3 status One(&REPLICA_SET_STATUS) }
    DEPLOYMENT { 1 metadata One(&OBJECT_META), 2 spec One(&DEPLOYMENT_SPEC), 3 status One(&DEPLOYMENT_STATUS) }
}
