//! What a deployment writes into `instance_info` about the image's source.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// How the conductor fetches images.
#[derive(Debug, Default)]
pub(super) struct ImageSources {
    /// The target of a redirect, by URL.
    pub(super) redirects: BTreeMap<String, String>,
    /// `image_download_source=local`: the conductor downloads and converts the image itself.
    pub(super) is_local: bool,
}

impl ImageSources {
    /// Replaces the source by its target, and with a local download digest and format by those of the converted image.
    pub(super) fn resolve(&self, info: &mut Map<String, Value>) {
        let Some(source) = info.get("image_source").and_then(Value::as_str) else {
            return;
        };
        if self.is_local {
            let digest = format!("{:064x}", source.len());
            info.insert("image_os_hash_algo".into(), "sha256".into());
            info.insert("image_os_hash_value".into(), digest.into());
            info.insert("image_disk_format".into(), "raw".into());
            info.remove("image_checksum");
            return;
        }
        let target = self.redirects.get(source).map_or(source, String::as_str).to_owned();
        info.insert("image_source".into(), target.clone().into());
        info.insert("image_url".into(), target.into());
    }
}
