//! What a deployment writes into `instance_info` about the image's source.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::node::REGISTRY;

/// How the conductor fetches images.
#[derive(Debug, Default)]
pub(super) struct ImageSources {
    /// The target of a redirect, by URL.
    pub(super) redirects: BTreeMap<String, String>,
    /// `image_download_source=local`: the conductor downloads and converts the image itself.
    pub(super) is_local: bool,
    /// Registries that require a login, each with the login.
    pub(super) logins: BTreeMap<String, String>,
}

impl ImageSources {
    /// Replaces the source by its target, and with a local download digest and format by those of the converted image. The
    /// source of an image in a registry stays.
    ///
    /// # Errors
    /// What a registry answers to a wrong login.
    pub(super) fn resolve(&self, info: &mut Map<String, Value>) -> Result<(), String> {
        let Some(source) = info.get("image_source").and_then(Value::as_str) else {
            return Ok(());
        };
        let source = source.to_owned();
        if let Some(reference) = source.strip_prefix(REGISTRY) {
            return self.look_up(info, reference);
        }
        if self.is_local {
            let digest = format!("{:064x}", source.len());
            info.insert("image_os_hash_algo".into(), "sha256".into());
            info.insert("image_os_hash_value".into(), digest.into());
            info.insert("image_disk_format".into(), "raw".into());
            info.remove("image_checksum");
            return Ok(());
        }
        let target = self.redirects.get(&source).cloned().unwrap_or(source);
        info.insert("image_source".into(), target.clone().into());
        info.insert("image_url".into(), target.into());
        Ok(())
    }

    /// Finds the image in its registry, and records what identifies it.
    fn look_up(&self, info: &mut Map<String, Value>, reference: &str) -> Result<(), String> {
        let (registry, repository) = reference.split_once('/').unwrap_or((reference, ""));
        let login = info.get("image_pull_secret").and_then(Value::as_str);
        if self.logins.get(registry).is_some_and(|wanted| login != Some(wanted)) {
            return Err(format!(
                "Failed to prepare to deploy. Exception: Validation of image href {REGISTRY}{reference} failed, reason: the \
                 registry requires another login"
            ));
        }
        let name = repository.split(['@', ':']).next().unwrap_or_default();
        let digest = format!("{:064x}", reference.len());
        let found = json!({
            "image_url": format!("https://{registry}/v2/{name}/blobs/sha256:{digest}"),
            "image_checksum": digest,
            "image_disk_format": "raw",
            "image_container_manifest_digest": format!("sha256:{digest}"),
            "image_request_authorization_secret": login,
            "oci_image_manifest_url": format!("{REGISTRY}{registry}/{name}@sha256:{digest}"),
        });
        if let Value::Object(found) = found {
            info.extend(found);
        }
        Ok(())
    }
}
