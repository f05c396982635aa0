//! The caches and the watches that fill them.

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, HardwareData, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy, PreprovisioningImage,
};
use metal3_runtime::cache::{SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use crate::agent_image::ImageIndexes;
use crate::data_image::DataImageCache;
use crate::needs::Hosts;

/// The caches. Clones share them.
#[derive(Clone, Default)]
pub struct Caches {
    /// BareMetalHosts.
    pub hosts: SharedCache<BareMetalHost>,
    /// HardwareData.
    pub hardware: SharedCache<HardwareData>,
    /// HostFirmwareSettings.
    pub firmware_settings: SharedCache<HostFirmwareSettings>,
    /// HostFirmwareComponents.
    pub firmware_components: SharedCache<HostFirmwareComponents>,
    /// HostUpdatePolicies.
    pub update_policies: SharedCache<HostUpdatePolicy>,
    /// DataImages.
    pub data_images: DataImageCache,
    /// PreprovisioningImages; with `--build-preprov-image` only.
    pub agent_images: SharedCache<PreprovisioningImage, SharedIndexes<ImageIndexes>>,
    /// Metadata of Secrets.
    pub secrets: SharedCache<PartialObjectMeta<Secret>>,
}

impl Caches {
    /// The watches of all kinds that the controller reads. The caller runs them together with the controller.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Hosts> {
        WatchSet::new(config)
            .whole(&self.hosts)
            .whole(&self.hardware)
            .optional(&self.firmware_settings)
            .optional(&self.firmware_components)
            .optional(&self.update_policies)
            .optional(&self.data_images)
            .metadata(&self.secrets)
    }

    /// The same with the images of agents, for `--build-preprov-image`.
    #[must_use]
    pub fn watches_with_agent_images(&self, config: &WatchConfig) -> WatchSet<Hosts> {
        self.watches(config).optional(&self.agent_images)
    }
}
