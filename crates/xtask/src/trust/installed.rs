//! The images that the manifests of a release install: every line `image: NAME` of every manifest, and the annotation of the
//! chart.
//!
//! Cluster templates are left out: what they name runs on the machines of a user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::sums::paths;
use crate::release::chart::IMAGE_ANNOTATION;

/// Images, each with the files that name it.
pub(crate) type Installed = BTreeMap<String, BTreeSet<String>>;

/// An image by its digest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// `HOST/NAME`
    pub(crate) repository: String,
    /// `sha256:…`
    pub(crate) digest: String,
}

impl Image {
    /// Requires that a registry, if one is named, is that of the manifests: users pull from there what is signed.
    pub(crate) fn require_at(&self, registry: &str) -> Result<()> {
        ensure!(
            self.repository(registry) == self.repository,
            "the manifests install from {}, not from REGISTRY={registry}: write them for that registry, or leave REGISTRY out. A mirror \
             is for verification alone",
            self.repository
        );
        Ok(())
    }

    /// Registry and name: those of a mirror, if there is one.
    pub(crate) fn repository<'a>(&'a self, mirror: &'a str) -> &'a str {
        if mirror.is_empty() { &self.repository } else { mirror }
    }

    /// The image there.
    pub(crate) fn at(&self, mirror: &str) -> String {
        format!("{}@{}", self.repository(mirror), self.digest)
    }
}

/// The images that a folder installs.
pub(crate) fn of(folder: &Path) -> Result<Installed> {
    let mut installed = Installed::new();
    for (name, path) in paths(folder)?.iter().filter(|(name, _)| is_manifest(name)) {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        for image in images(&text) {
            installed.entry(image.to_owned()).or_default().insert(name.clone());
        }
    }
    Ok(installed)
}

fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_yaml = Path::new(name).extension().is_some_and(|ending| ending == "yaml");
    is_yaml && !name.starts_with("cluster-template")
}

/// The images in the text of a manifest. A member without a value is that of a schema, an expression is one of Helm, whose
/// value is in another file.
fn images(text: &str) -> impl Iterator<Item = &str> {
    let values = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("- ");
        let value = line
            .strip_prefix(IMAGE_ANNOTATION)
            .or_else(|| line.strip_prefix("image"));
        value?.strip_prefix(": ")
    });
    let values = values.map(|value| value.trim().trim_matches(['"', '\'']));
    values.filter(|value| !value.is_empty() && !value.starts_with("{{"))
}

/// The one image that is installed. A tag is no image: who may write to the registry decides what it names.
pub(crate) fn only(installed: &Installed) -> Result<Image> {
    ensure!(!installed.is_empty(), "the manifests install no image");
    let mut all = installed.iter();
    let (Some((image, files)), None) = (all.next(), all.next()) else {
        bail!(
            "the manifests install {} images: {}",
            installed.len(),
            described(installed)
        )
    };
    let Some((name, digest)) = image.split_once('@').filter(|(_, digest)| is_digest(digest)) else {
        let file = files.first().map_or("", String::as_str);
        bail!("{file} installs {image}, which has no digest")
    };
    // A tag in front of the digest has no meaning.
    let (path, last) = name.rsplit_once('/').unwrap_or(("", name));
    let last = last.split(':').next().unwrap_or(last);
    Ok(Image {
        repository: if path.is_empty() {
            last.to_owned()
        } else {
            format!("{path}/{last}")
        },
        digest: digest.to_owned(),
    })
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64
        && hex
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn described(installed: &Installed) -> String {
    let with_file = |(image, files): (&String, &BTreeSet<String>)| {
        format!("{image} in {}", files.first().map_or("", String::as_str))
    };
    installed.iter().map(with_file).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use metal3_files::documents;

    use super::*;
    use crate::release;

    const DIGEST: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn installed(images: &[&str]) -> Installed {
        let file = || BTreeSet::from(["a.yaml".to_owned()]);
        images.iter().map(|image| ((*image).to_owned(), file())).collect()
    }

    #[test]
    fn one_digest_is_installed() {
        let other = DIGEST.replace('0', "f");
        for (images, wanted) in [
            (vec![format!("r.example/a/b@{DIGEST}")], Ok("r.example/a/b")),
            (
                vec![format!("r.example:5000/a/b:v1@{DIGEST}")],
                Ok("r.example:5000/a/b"),
            ),
            (vec![format!("b@{DIGEST}")], Ok("b")),
            (vec![], Err("install no image")),
            (
                vec!["r.example/a:v1".to_owned()],
                Err("a.yaml installs r.example/a:v1, which has no digest"),
            ),
            (vec!["r.example/a@sha256:00".to_owned()], Err("which has no digest")),
            (
                vec![format!("r.example/a@{DIGEST}"), format!("r.example/a@{other}")],
                Err("install 2 images"),
            ),
            (
                vec![format!("r.example/a@{DIGEST}"), "r.example/a:v1".to_owned()],
                Err("install 2 images"),
            ),
        ] {
            let images: Vec<&str> = images.iter().map(String::as_str).collect();
            match (only(&installed(&images)), wanted) {
                (Ok(image), Ok(repository)) => {
                    assert_eq!((image.repository.as_str(), image.digest.as_str()), (repository, DIGEST));
                }
                (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{error}"),
                (found, _) => panic!("{images:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn mirror_replaces_the_name_and_not_the_digest() {
        let image = only(&installed(&[&format!("r.example/a@{DIGEST}")])).unwrap();
        assert_eq!(image.at(""), format!("r.example/a@{DIGEST}"));
        assert_eq!(image.at("mirror.example/b"), format!("mirror.example/b@{DIGEST}"));
    }

    #[test]
    fn only_the_registry_of_the_manifests_is_signed_in() {
        let image = only(&installed(&[&format!("r.example/a@{DIGEST}")])).unwrap();
        image.require_at("").unwrap();
        image.require_at("r.example/a").unwrap();
        for other in ["mirror.example/a", "r.example/b", "r.example/a/"] {
            let error = image.require_at(other).unwrap_err().to_string();
            assert!(
                error.contains(&format!("install from r.example/a, not from REGISTRY={other}")),
                "{error}"
            );
        }
    }

    #[test]
    fn image_of_a_line_is_its_value() {
        let text = "  image:\n    type: string\n- image: a:1\n  image: \"b@c\"\n# image: d\n  image: {{ .Values.image }}\n\
             annotations:\n  metal3-rs/image: \"e@f\"\nimage: \"\"\nimages: g\n";
        assert_eq!(images(text).collect::<Vec<_>>(), ["a:1", "b@c", "e@f"]);
    }

    /// Each file with a Deployment, and the chart, on disk as `make release chart` writes them.
    #[test]
    fn each_file_that_installs_a_program_is_read() {
        let folder = std::env::temp_dir().join(format!("metal3-installed-{}", std::process::id()));
        let image = format!("r.example/a@{DIGEST}");
        release::write(&folder, &image).unwrap();
        release::chart::write(&folder.join("charts"), &image).unwrap();
        let has_program = |path: &PathBuf| {
            let text = documents::text(path).unwrap();
            !path.ends_with("templates/deployment.yaml") && text.contains("kind: Deployment\n")
        };
        let files = documents::files(&folder, &["yaml"]).unwrap();
        let mut wanted: BTreeSet<String> = files
            .iter()
            .filter(|path| has_program(path))
            .map(|path| format!("./{}", path.strip_prefix(&folder).unwrap().display()))
            .collect();
        assert_eq!(wanted.len(), 10, "{wanted:?}");
        wanted.insert("./charts/metal3-rs/Chart.yaml".to_owned());
        let installed = of(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(installed, Installed::from([(image, wanted)]));
    }
}
