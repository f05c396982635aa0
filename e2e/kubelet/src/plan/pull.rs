//! Images by digest: what a registry is asked for, and what its answers must be.
//!
//! Each document names the next one by size and digest, from the name in the Pod down to the content of the layers, so that a
//! byte that was changed on the way is found whatever it belongs to.

use ring::digest::{SHA256, digest};
use serde::Deserialize;

/// The media types of an index and a manifest, of OCI and of Docker.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                                   application/vnd.docker.distribution.manifest.list.v2+json, \
                                   application/vnd.docker.distribution.manifest.v2+json";
const ALGORITHM: &str = "sha256:";
/// Layers that are archives compressed by gzip.
const LAYERS: [&str; 2] = [
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

/// An image by its digest: `127.0.0.1:5000/metal3/capm3@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    registry: String,
    repository: String,
    pub(crate) digest: String,
}

impl Reference {
    /// `None` for a name without a digest, whose content is in the table.
    pub(crate) fn of(image: &str) -> Option<Result<Self, String>> {
        let (name, digest) = image.split_once('@')?;
        Some(Self::parts(name, digest).map_err(|why| format!("image {image}: {why}")))
    }

    fn parts(name: &str, digest: &str) -> Result<Self, String> {
        let hex = digest.strip_prefix(ALGORITHM).unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err("its digest is not `sha256:` with 64 digits".to_owned());
        }
        let (registry, path) = name.split_once('/').ok_or("it names no registry")?;
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        if !["localhost", "127.0.0.1", "[::1]"].contains(&host) {
            return Err(format!(
                "{registry} is not a registry of this machine, and others are out of reach"
            ));
        }
        // A tag next to a digest says nothing more.
        let repository = path.split(':').next().unwrap_or(path);
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            digest: digest.to_owned(),
        })
    }

    /// A registry of this machine has no certificate.
    fn url(&self, kind: &str, digest: &str) -> String {
        format!("http://{}/v2/{}/{kind}/{digest}", self.registry, self.repository)
    }

    /// The URL of an index or manifest.
    pub(crate) fn manifest(&self, digest: &str) -> String {
        self.url("manifests", digest)
    }

    /// The URL of a configuration or layer.
    pub(crate) fn blob(&self, digest: &str) -> String {
        self.url("blobs", digest)
    }
}

/// A content as another document names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

/// An index or a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// The manifest of this machine's architecture.
    Index(Descriptor),
    Manifest {
        config: Descriptor,
        layers: Vec<Descriptor>,
    },
}

/// Reads an index or manifest whose digest is the wanted one.
pub(crate) fn document(content: &[u8], architecture: &str) -> Result<Document, String> {
    #[derive(Deserialize)]
    struct Either {
        manifests: Option<Vec<Descriptor>>,
        config: Option<Descriptor>,
        layers: Option<Vec<Descriptor>>,
    }
    let either: Either =
        serde_json::from_slice(content).map_err(|error| format!("no index and no manifest: {error}"))?;
    match (either.manifests, either.config, either.layers) {
        (Some(manifests), None, None) => {
            let is_ours = |one: &Descriptor| {
                let platform = one.platform.as_ref();
                platform.is_some_and(|platform| platform.os == "linux" && platform.architecture == architecture)
            };
            let ours = manifests.into_iter().find(is_ours);
            ours.map(Document::Index)
                .ok_or_else(|| format!("the index has no image for linux/{architecture}"))
        }
        (None, Some(config), Some(layers)) => {
            match layers.iter().find(|layer| !LAYERS.contains(&layer.media_type.as_str())) {
                Some(layer) => Err(format!("{}: only tar with gzip is supported", layer.media_type)),
                None => Ok(Document::Manifest { config, layers }),
            }
        }
        _ => Err("neither an index nor a manifest".to_owned()),
    }
}

/// Checks what came against what was wanted.
pub(crate) fn verify(content: &[u8], wanted: &str) -> Result<(), String> {
    let found = sha256(content);
    if found == wanted {
        return Ok(());
    }
    Err(format!("{wanted} came with the digest {found}"))
}

/// The same with the size that the descriptor names.
pub(crate) fn verify_described(content: &[u8], wanted: &Descriptor) -> Result<(), String> {
    let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if size != wanted.size {
        return Err(format!(
            "{} came with {size} bytes instead of {}",
            wanted.digest, wanted.size
        ));
    }
    verify(content, &wanted.digest)
}

/// `sha256:…` of a content.
pub(crate) fn sha256(content: &[u8]) -> String {
    let hash = digest(&SHA256, content);
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{ALGORITHM}{hex}")
}

/// How an image runs, as its configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// The program and its first arguments.
    pub(crate) entrypoint: Vec<String>,
    /// Arguments, unless the Pod has some.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) folder: Option<String>,
    pub(crate) user: Option<(i64, i64)>,
}

/// Reads the configuration: how the image runs, and the digests of its archives without compression.
pub(crate) fn configuration(content: &[u8]) -> Result<(Runs, Vec<String>), String> {
    #[derive(Deserialize)]
    struct Image {
        #[serde(default)]
        config: Config,
        rootfs: Root,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "PascalCase", default)]
    struct Config {
        user: String,
        entrypoint: Option<Vec<String>>,
        cmd: Option<Vec<String>>,
        env: Option<Vec<String>>,
        working_dir: String,
    }
    #[derive(Deserialize)]
    struct Root {
        diff_ids: Vec<String>,
    }
    let image: Image = serde_json::from_slice(content).map_err(|error| format!("the configuration: {error}"))?;
    let config = image.config;
    let variables = config.env.unwrap_or_default();
    let runs = Runs {
        user: user(&config.user)?,
        entrypoint: config.entrypoint.unwrap_or_default(),
        arguments: config.cmd.unwrap_or_default(),
        variables: variables
            .iter()
            .filter_map(|text| text.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        folder: Some(config.working_dir).filter(|folder| !folder.is_empty()),
    };
    Ok((runs, image.rootfs.diff_ids))
}

/// User and group by number; a user alone has the group of root.
fn user(text: &str) -> Result<Option<(i64, i64)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let (user, group) = text.split_once(':').unwrap_or((text, "0"));
    match (user.parse(), group.parse()) {
        (Ok(user), Ok(group)) => Ok(Some((user, group))),
        _ => Err(format!("the image runs as `{text}`: only numbers are supported")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn only_images_by_digest_are_pulled_and_only_from_this_machine() {
        let of = |image: &str| Reference::of(image);
        assert_eq!(of("registry.example/a:v1"), None);
        let found = of(&format!("127.0.0.1:5000/metal3/capm3:v1@{DIGEST}"))
            .unwrap()
            .unwrap();
        assert_eq!(
            found.manifest(&found.digest),
            format!("http://127.0.0.1:5000/v2/metal3/capm3/manifests/{DIGEST}")
        );
        assert_eq!(
            found.blob("sha256:1"),
            "http://127.0.0.1:5000/v2/metal3/capm3/blobs/sha256:1"
        );
        for (image, why) in [
            (format!("registry.example/a@{DIGEST}"), "not a registry of this machine"),
            (format!("capm3@{DIGEST}"), "names no registry"),
            ("localhost:1/a@sha256:12".to_owned(), "64 digits"),
            (format!("localhost:1/a@{}", DIGEST.to_uppercase()), "64 digits"),
        ] {
            let refused = of(&image).unwrap().unwrap_err();
            assert!(refused.contains(why) && refused.contains(&image), "{refused}");
        }
    }

    #[test]
    fn a_changed_byte_and_a_changed_size_are_found() {
        assert_eq!(verify(b"", DIGEST), Ok(()));
        let refused = verify(b"x", DIGEST).unwrap_err();
        assert!(
            refused.starts_with(DIGEST) && refused.contains("with the digest sha256:2d71"),
            "{refused}"
        );
        let described = |size| Descriptor {
            media_type: String::new(),
            digest: DIGEST.to_owned(),
            size,
            platform: None,
        };
        assert_eq!(verify_described(b"", &described(0)), Ok(()));
        assert!(
            verify_described(b"", &described(1))
                .unwrap_err()
                .contains("0 bytes instead of 1")
        );
    }

    fn descriptor(media_type: &str, architecture: Option<&str>) -> Value {
        let mut one = json!({"mediaType": media_type, "digest": DIGEST, "size": 7});
        if let Some(architecture) = architecture {
            one["platform"] = json!({"os": "linux", "architecture": architecture});
        }
        one
    }

    #[test]
    fn an_index_leads_to_the_image_of_this_architecture() {
        let index = json!({"manifests": [descriptor("a", Some("arm64")), descriptor("b", Some("amd64"))]}).to_string();
        let Ok(Document::Index(found)) = document(index.as_bytes(), "amd64") else {
            panic!("no image");
        };
        assert_eq!(found.media_type, "b");
        let none = document(index.as_bytes(), "riscv64").unwrap_err();
        assert!(none.contains("linux/riscv64"), "{none}");
    }

    #[test]
    fn a_manifest_has_a_configuration_and_compressed_archives() {
        let manifest = |layer: &str| json!({"config": descriptor("c", None), "layers": [descriptor(layer, None)]});
        for layer in LAYERS {
            let found = document(manifest(layer).to_string().as_bytes(), "amd64");
            assert!(matches!(found, Ok(Document::Manifest { layers, .. }) if layers.len() == 1));
        }
        for other in [
            manifest("application/vnd.oci.image.layer.v1.tar+zstd"),
            json!({}),
            json!([]),
        ] {
            assert!(document(other.to_string().as_bytes(), "amd64").is_err(), "{other}");
        }
    }

    #[test]
    fn a_configuration_says_how_the_image_runs() {
        let config = json!({"config": {"User": "65532:65532", "Entrypoint": ["/capm3"], "Cmd": ["-v"], "Env": ["A=b=c"],
            "WorkingDir": "/w"}, "rootfs": {"diff_ids": ["sha256:1"]}});
        let (runs, archives) = configuration(config.to_string().as_bytes()).unwrap();
        let expected = Runs {
            entrypoint: vec!["/capm3".to_owned()],
            arguments: vec!["-v".to_owned()],
            variables: vec![("A".to_owned(), "b=c".to_owned())],
            folder: Some("/w".to_owned()),
            user: Some((65532, 65532)),
        };
        assert_eq!((runs, archives), (expected, vec!["sha256:1".to_owned()]));
        for (text, user_of) in [("", Ok(None)), ("7", Ok(Some((7, 0)))), ("metal3", Err(()))] {
            assert_eq!(user(text).map_err(|_| ()), user_of, "{text}");
        }
        assert!(configuration(b"{}").is_err());
    }
}
