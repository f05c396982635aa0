//! The files of volumes.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume, VolumeProjection};

use super::fields::{Placement, field};
use super::sources::{Data, Missing, Sources, Token};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// The content of a volume. Files are written and updated by the kubelet; a scratch directory belongs to the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Scratch,
    Files(BTreeMap<String, File>),
}

const DEFAULT_MODE: u32 = 0o644;

pub(crate) fn content(
    pod: &Pod,
    volume: &Volume,
    placement: &Placement,
    sources: &Sources,
) -> Result<Content, Missing> {
    if volume.empty_dir.is_some() {
        return Ok(Content::Scratch);
    }
    let mut files = BTreeMap::new();
    if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let part = Part {
            kind: "Secret",
            name,
            items: secret.items.as_deref(),
            optional: secret.optional == Some(true),
        };
        part.files(&sources.secrets, mode(secret.default_mode), &mut files)?;
    } else if let Some(map) = &volume.config_map {
        let part = Part {
            kind: "ConfigMap",
            name: &map.name,
            items: map.items.as_deref(),
            optional: map.optional == Some(true),
        };
        part.files(&sources.config_maps, mode(map.default_mode), &mut files)?;
    } else if let Some(downward) = &volume.downward_api {
        for item in downward.items.iter().flatten() {
            downward_file(pod, placement, item, mode(downward.default_mode), &mut files)?;
        }
    } else if let Some(projected) = &volume.projected {
        for source in projected.sources.iter().flatten() {
            projection(
                pod,
                source,
                placement,
                sources,
                mode(projected.default_mode),
                &mut files,
            )?;
        }
    } else {
        return Err(Missing(format!("volume {:?} is of an unsupported kind", volume.name)));
    }
    Ok(Content::Files(files))
}

type Files = BTreeMap<String, File>;

fn projection(
    pod: &Pod,
    source: &VolumeProjection,
    placement: &Placement,
    sources: &Sources,
    mode: u32,
    files: &mut Files,
) -> Result<(), Missing> {
    if let Some(secret) = &source.secret {
        let optional = secret.optional == Some(true);
        let part = Part {
            kind: "Secret",
            name: &secret.name,
            items: secret.items.as_deref(),
            optional,
        };
        part.files(&sources.secrets, mode, files)?;
    }
    if let Some(map) = &source.config_map {
        let optional = map.optional == Some(true);
        let part = Part {
            kind: "ConfigMap",
            name: &map.name,
            items: map.items.as_deref(),
            optional,
        };
        part.files(&sources.config_maps, mode, files)?;
    }
    for item in source
        .downward_api
        .iter()
        .filter_map(|downward| downward.items.as_ref())
        .flatten()
    {
        downward_file(pod, placement, item, mode, files)?;
    }
    if let Some(token) = &source.service_account_token {
        let bytes = sources.tokens.get(&Token::of(token));
        let bytes = bytes
            .cloned()
            .ok_or_else(|| Missing("no ServiceAccount token yet".to_owned()))?;
        insert(files, &token.path, File { bytes, mode })?;
    }
    Ok(())
}

/// All or some keys of a Secret or ConfigMap.
struct Part<'a> {
    kind: &'static str,
    name: &'a str,
    items: Option<&'a [KeyToPath]>,
    optional: bool,
}

impl Part<'_> {
    fn files(&self, found: &BTreeMap<String, Data>, default: u32, files: &mut Files) -> Result<(), Missing> {
        let Some(data) = found.get(self.name) else {
            let absent = Missing(format!("{} {:?} not found", self.kind, self.name));
            return if self.optional { Ok(()) } else { Err(absent) };
        };
        let Some(items) = self.items else {
            return data.iter().try_for_each(|(key, bytes)| {
                insert(
                    files,
                    key,
                    File {
                        bytes: bytes.clone(),
                        mode: default,
                    },
                )
            });
        };
        for item in items {
            match data.get(&item.key) {
                Some(bytes) => {
                    let mode = item.mode.map_or(default, |own| mode(Some(own)));
                    insert(
                        files,
                        &item.path,
                        File {
                            bytes: bytes.clone(),
                            mode,
                        },
                    )?;
                }
                None if self.optional => {}
                None => {
                    return Err(Missing(format!(
                        "{} {:?} has no key {:?}",
                        self.kind, self.name, item.key
                    )));
                }
            }
        }
        Ok(())
    }
}

fn downward_file(
    pod: &Pod,
    placement: &Placement,
    item: &DownwardAPIVolumeFile,
    default: u32,
    files: &mut Files,
) -> Result<(), Missing> {
    let reference = item.field_ref.as_ref();
    let value = reference.and_then(|reference| field(pod, placement, &reference.field_path));
    let value = value.ok_or_else(|| Missing(format!("downward file {:?} has no known field", item.path)))?;
    let mode = item.mode.map_or(default, |own| mode(Some(own)));
    insert(
        files,
        &item.path,
        File {
            bytes: value.into_bytes(),
            mode,
        },
    )
}

/// A path must stay inside its volume, and must not begin like the kubelet's internal names.
fn insert(files: &mut Files, path: &str, file: File) -> Result<(), Missing> {
    let inside = !path.is_empty()
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
    if !inside || path.starts_with("..") {
        return Err(Missing(format!("{path:?} is not a path inside a volume")));
    }
    files.insert(path.to_owned(), file);
    Ok(())
}

fn mode(mode: Option<i32>) -> u32 {
    mode.and_then(|mode| u32::try_from(mode).ok())
        .filter(|mode| *mode <= 0o777)
        .unwrap_or(DEFAULT_MODE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{placement, pod};
    use super::*;

    fn content_of(volume: Value) -> Result<Content, Missing> {
        let data = |pairs: &[(&str, &str)]| -> Data {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()))
                .collect()
        };
        let sources = Sources {
            secrets: BTreeMap::from([("s".to_owned(), data(&[("tls.crt", "C"), ("tls.key", "K")]))]),
            config_maps: BTreeMap::from([("c".to_owned(), data(&[("ca.crt", "A")]))]),
            tokens: BTreeMap::from([(
                Token {
                    audience: None,
                    seconds: 3607,
                },
                b"T".to_vec(),
            )]),
        };
        let volume: Volume = serde_json::from_value(volume).unwrap();
        content(&pod(json!({"containers": []})), &volume, &placement(), &sources)
    }

    fn listing(content: Content) -> Vec<(String, String, u32)> {
        let Content::Files(files) = content else {
            return Vec::new();
        };
        files
            .into_iter()
            .map(|(path, file)| (path, String::from_utf8(file.bytes).unwrap(), file.mode))
            .collect()
    }

    #[test]
    fn each_kind_of_volume_has_its_files() {
        let row = |path: &str, text: &str, mode| (path.to_owned(), text.to_owned(), mode);
        let table = [
            (
                json!({"name": "v", "secret": {"secretName": "s"}}),
                vec![row("tls.crt", "C", 0o644), row("tls.key", "K", 0o644)],
            ),
            (
                json!({"name": "v", "secret": {"secretName": "s", "defaultMode": 0o400, "items": [{"key": "tls.key", "path": "a/key"}]}}),
                vec![row("a/key", "K", 0o400)],
            ),
            (
                json!({"name": "v", "configMap": {"name": "c"}}),
                vec![row("ca.crt", "A", 0o644)],
            ),
            (
                json!({"name": "v", "configMap": {"name": "none", "optional": true}}),
                vec![],
            ),
            (
                json!({"name": "v", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
                vec![row("name", "web-1", 0o644)],
            ),
            (
                json!({"name": "v", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                    {"configMap": {"name": "c", "items": [{"key": "ca.crt", "path": "ca.crt", "mode": 0o440}]}},
                    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}),
                vec![
                    row("ca.crt", "A", 0o440),
                    row("namespace", "team", 0o644),
                    row("token", "T", 0o644),
                ],
            ),
        ];
        for (volume, files) in table {
            assert_eq!(content_of(volume.clone()).map(listing), Ok(files), "{volume}");
        }
        assert_eq!(content_of(json!({"name": "v", "emptyDir": {}})), Ok(Content::Scratch));
    }

    #[test]
    fn missing_sources_are_named_in_the_error() {
        let table = [
            (
                json!({"name": "v", "secret": {"secretName": "none"}}),
                "Secret \"none\" not found",
            ),
            (
                json!({"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}),
                "ConfigMap \"c\" has no key \"k\"",
            ),
            (
                json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}]}}),
                "no ServiceAccount token yet",
            ),
        ];
        for (volume, message) in table {
            assert_eq!(content_of(volume), Err(Missing(message.into())));
        }
    }

    #[test]
    fn paths_stay_inside_the_volume() {
        for path in ["../x", "/x", "a/../../x", "..data", ""] {
            let volume = json!({"name": "v", "configMap": {"name": "c", "items": [{"key": "ca.crt", "path": path}]}});
            assert!(content_of(volume).is_err(), "{path}");
        }
    }
}
