//! Fields of the volumes of a Pod.

use super::form::Form::{Flag, Inline, Int, Many, Map, One, Quantity, SetFlag, SetInt, SetText, Text};
use super::form::{Field, Message, messages};
use super::kinds::LOCAL_OBJECT_REFERENCE;
use super::meta::{LABEL_SELECTOR, OBJECT_META};

messages! {
    HOST_PATH_VOLUME_SOURCE { 1 path SetText, 2 type SetText }
    EMPTY_DIR_VOLUME_SOURCE { 1 medium Text, 2 sizeLimit Quantity, 3 mode SetInt }
    GCE_PERSISTENT_DISK_VOLUME_SOURCE { 1 pdName SetText, 2 fsType Text, 3 partition Int, 4 readOnly Flag }
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE { 1 volumeID SetText, 2 fsType Text, 3 partition Int, 4 readOnly Flag }
    GIT_REPO_VOLUME_SOURCE { 1 repository SetText, 2 revision Text, 3 directory Text }
    KEY_TO_PATH { 1 key SetText, 2 path SetText, 3 mode SetInt, 4 user SetInt }
    SECRET_VOLUME_SOURCE {
        1 secretName Text, 2 items Many(&One(&KEY_TO_PATH)), 3 defaultMode SetInt, 4 optional SetFlag,
        5 defaultUser SetInt,
    }
    NFS_VOLUME_SOURCE { 1 server SetText, 2 path SetText, 3 readOnly Flag }
    ISCSI_VOLUME_SOURCE {
        1 targetPortal SetText, 2 iqn SetText, 3 lun SetInt, 4 iscsiInterface Text, 5 fsType Text, 6 readOnly Flag,
        7 portals Many(&Text), 8 chapAuthDiscovery Flag, 11 chapAuthSession Flag,
        10 secretRef One(&LOCAL_OBJECT_REFERENCE), 12 initiatorName SetText,
    }
    GLUSTERFS_VOLUME_SOURCE { 1 endpoints SetText, 2 path SetText, 3 readOnly Flag }
    PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE { 1 claimName SetText, 2 readOnly Flag }
    RBD_VOLUME_SOURCE {
        1 monitors Many(&Text), 2 image SetText, 3 fsType Text, 4 pool Text, 5 user Text, 6 keyring Text,
        7 secretRef One(&LOCAL_OBJECT_REFERENCE), 8 readOnly Flag,
    }
    FLEX_VOLUME_SOURCE {
        1 driver SetText, 2 fsType Text, 3 secretRef One(&LOCAL_OBJECT_REFERENCE), 4 readOnly Flag,
        5 options Map(&Text),
    }
    CINDER_VOLUME_SOURCE {
        1 volumeID SetText, 2 fsType Text, 3 readOnly Flag, 4 secretRef One(&LOCAL_OBJECT_REFERENCE),
    }
    CEPH_FS_VOLUME_SOURCE {
        1 monitors Many(&Text), 2 path Text, 3 user Text, 4 secretFile Text, 5 secretRef One(&LOCAL_OBJECT_REFERENCE),
        6 readOnly Flag,
    }
    FLOCKER_VOLUME_SOURCE { 1 datasetName Text, 2 datasetUUID Text }
    OBJECT_FIELD_SELECTOR { 1 apiVersion Text, 2 fieldPath SetText }
    RESOURCE_FIELD_SELECTOR { 1 containerName Text, 2 resource SetText, 3 divisor Quantity }
    DOWNWARD_API_VOLUME_FILE {
        1 path SetText, 2 fieldRef One(&OBJECT_FIELD_SELECTOR), 3 resourceFieldRef One(&RESOURCE_FIELD_SELECTOR),
        4 mode SetInt, 5 user SetInt,
    }
    DOWNWARD_API_VOLUME_SOURCE {
        1 items Many(&One(&DOWNWARD_API_VOLUME_FILE)), 2 defaultMode SetInt, 3 defaultUser SetInt,
    }
    FC_VOLUME_SOURCE { 1 targetWWNs Many(&Text), 2 lun SetInt, 3 fsType Text, 4 readOnly Flag, 5 wwids Many(&Text) }
    AZURE_FILE_VOLUME_SOURCE { 1 secretName SetText, 2 shareName SetText, 3 readOnly Flag }
    CONFIG_MAP_VOLUME_SOURCE {
        1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 items Many(&One(&KEY_TO_PATH)),
        3 defaultMode SetInt, 4 optional SetFlag, 5 defaultUser SetInt,
    }
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE {
        1 volumePath SetText, 2 fsType Text, 3 storagePolicyName Text, 4 storagePolicyID Text,
    }
    QUOBYTE_VOLUME_SOURCE {
        1 registry SetText, 2 volume SetText, 3 readOnly Flag, 4 user Text, 5 group Text, 6 tenant Text,
    }
    AZURE_DISK_VOLUME_SOURCE {
        1 diskName SetText, 2 diskURI SetText, 3 cachingMode SetText, 4 fsType SetText, 5 readOnly SetFlag,
        6 kind SetText,
    }
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE { 1 pdID SetText, 2 fsType Text }
    SECRET_PROJECTION {
        1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 items Many(&One(&KEY_TO_PATH)), 4 optional SetFlag,
    }
    DOWNWARD_API_PROJECTION { 1 items Many(&One(&DOWNWARD_API_VOLUME_FILE)) }
    CONFIG_MAP_PROJECTION {
        1 localObjectReference Inline(&LOCAL_OBJECT_REFERENCE), 2 items Many(&One(&KEY_TO_PATH)), 4 optional SetFlag,
    }
    SERVICE_ACCOUNT_TOKEN_PROJECTION { 1 audience Text, 2 expirationSeconds SetInt, 3 path SetText, 4 user SetInt }
    CLUSTER_TRUST_BUNDLE_PROJECTION {
        1 name SetText, 2 signerName SetText, 3 labelSelector One(&LABEL_SELECTOR), 5 optional SetFlag,
        4 path SetText, 6 user SetInt,
    }
    POD_CERTIFICATE_PROJECTION {
        1 signerName Text, 2 keyType Text, 3 maxExpirationSeconds SetInt, 4 credentialBundlePath Text, 5 keyPath Text,
        6 certificateChainPath Text, 7 userAnnotations Map(&Text), 8 user SetInt,
    }
    VOLUME_PROJECTION {
        1 secret One(&SECRET_PROJECTION), 2 downwardAPI One(&DOWNWARD_API_PROJECTION),
        3 configMap One(&CONFIG_MAP_PROJECTION), 4 serviceAccountToken One(&SERVICE_ACCOUNT_TOKEN_PROJECTION),
        5 clusterTrustBundle One(&CLUSTER_TRUST_BUNDLE_PROJECTION), 6 podCertificate One(&POD_CERTIFICATE_PROJECTION),
    }
    PROJECTED_VOLUME_SOURCE { 1 sources Many(&One(&VOLUME_PROJECTION)), 2 defaultMode SetInt, 3 defaultUser SetInt }
    PORTWORX_VOLUME_SOURCE { 1 volumeID SetText, 2 fsType Text, 3 readOnly Flag }
    SCALE_IO_VOLUME_SOURCE {
        1 gateway SetText, 2 system SetText, 3 secretRef One(&LOCAL_OBJECT_REFERENCE), 4 sslEnabled Flag,
        5 protectionDomain Text, 6 storagePool Text, 7 storageMode Text, 8 volumeName Text, 9 fsType Text,
        10 readOnly Flag,
    }
    STORAGE_OS_VOLUME_SOURCE {
        1 volumeName Text, 2 volumeNamespace Text, 3 fsType Text, 4 readOnly Flag,
        5 secretRef One(&LOCAL_OBJECT_REFERENCE),
    }
    CSI_VOLUME_SOURCE {
        1 driver SetText, 2 readOnly SetFlag, 3 fsType SetText, 4 volumeAttributes Map(&Text),
        5 nodePublishSecretRef One(&LOCAL_OBJECT_REFERENCE),
    }
    VOLUME_RESOURCE_REQUIREMENTS { 1 limits Map(&Quantity), 2 requests Map(&Quantity) }
    TYPED_LOCAL_OBJECT_REFERENCE { 1 apiGroup SetText, 2 kind SetText, 3 name SetText }
    TYPED_OBJECT_REFERENCE { 1 apiGroup SetText, 2 kind SetText, 3 name SetText, 4 namespace SetText }
    PERSISTENT_VOLUME_CLAIM_SPEC {
        1 accessModes Many(&Text), 4 selector One(&LABEL_SELECTOR), 2 resources One(&VOLUME_RESOURCE_REQUIREMENTS),
        3 volumeName Text, 5 storageClassName SetText, 6 volumeMode SetText,
        7 dataSource One(&TYPED_LOCAL_OBJECT_REFERENCE), 8 dataSourceRef One(&TYPED_OBJECT_REFERENCE),
        9 volumeAttributesClassName SetText,
    }
    PERSISTENT_VOLUME_CLAIM_TEMPLATE { 1 metadata One(&OBJECT_META), 2 spec One(&PERSISTENT_VOLUME_CLAIM_SPEC) }
    EPHEMERAL_VOLUME_SOURCE { 1 volumeClaimTemplate One(&PERSISTENT_VOLUME_CLAIM_TEMPLATE) }
    IMAGE_VOLUME_SOURCE { 1 reference Text, 2 pullPolicy Text }
    VOLUME_SOURCE {
        1 hostPath One(&HOST_PATH_VOLUME_SOURCE), 2 emptyDir One(&EMPTY_DIR_VOLUME_SOURCE),
        3 gcePersistentDisk One(&GCE_PERSISTENT_DISK_VOLUME_SOURCE),
        4 awsElasticBlockStore One(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE), 5 gitRepo One(&GIT_REPO_VOLUME_SOURCE),
        6 secret One(&SECRET_VOLUME_SOURCE), 7 nfs One(&NFS_VOLUME_SOURCE), 8 iscsi One(&ISCSI_VOLUME_SOURCE),
        9 glusterfs One(&GLUSTERFS_VOLUME_SOURCE),
        10 persistentVolumeClaim One(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE), 11 rbd One(&RBD_VOLUME_SOURCE),
        12 flexVolume One(&FLEX_VOLUME_SOURCE), 13 cinder One(&CINDER_VOLUME_SOURCE),
        14 cephfs One(&CEPH_FS_VOLUME_SOURCE), 15 flocker One(&FLOCKER_VOLUME_SOURCE),
        16 downwardAPI One(&DOWNWARD_API_VOLUME_SOURCE), 17 fc One(&FC_VOLUME_SOURCE),
        18 azureFile One(&AZURE_FILE_VOLUME_SOURCE), 19 configMap One(&CONFIG_MAP_VOLUME_SOURCE),
        20 vsphereVolume One(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE), 21 quobyte One(&QUOBYTE_VOLUME_SOURCE),
        22 azureDisk One(&AZURE_DISK_VOLUME_SOURCE),
        23 photonPersistentDisk One(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE),
        26 projected One(&PROJECTED_VOLUME_SOURCE), 24 portworxVolume One(&PORTWORX_VOLUME_SOURCE),
        25 scaleIO One(&SCALE_IO_VOLUME_SOURCE), 27 storageos One(&STORAGE_OS_VOLUME_SOURCE),
        28 csi One(&CSI_VOLUME_SOURCE), 29 ephemeral One(&EPHEMERAL_VOLUME_SOURCE),
        30 image One(&IMAGE_VOLUME_SOURCE),
    }
    VOLUME { 1 name SetText, 2 volumeSource Inline(&VOLUME_SOURCE) }
}
