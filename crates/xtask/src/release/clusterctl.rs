//! A repository of the two providers for `clusterctl`: a folder of each with the version, and a configuration that names both.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Files, templates};

/// A provider as `clusterctl` names it.
struct Provider {
    kind: &'static str,
    folder: &'static str,
    components: &'static str,
    has_templates: bool,
}

const PROVIDERS: [Provider; 2] = [
    Provider {
        kind: "InfrastructureProvider",
        folder: "infrastructure-metal3",
        components: "infrastructure-components.yaml",
        has_templates: true,
    },
    Provider {
        kind: "IPAMProvider",
        folder: "ipam-metal3",
        components: "ipam-components.yaml",
        has_templates: false,
    },
];

/// Where clusterctl, which requires an absolute path, finds the folder of the release. It replaces variables of the
/// environment in a URL.
const ROOT: &str = "${METAL3_RELEASE:=${PWD}/out}";

/// The folders of the providers.
pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.folder)
}

/// The files of the repository, with the texts of the release.
pub(super) fn repository(release: &Files, version: &str) -> Result<Files> {
    let mut files = Files::new();
    let mut configuration = String::from(
        "# The providers of this release, for --config. METAL3_RELEASE is the absolute path of the folder of this file; without it,\n\
         # the folder `out` of the current folder is used.\n\
         providers:\n",
    );
    for provider in PROVIDERS {
        let folder = Path::new(provider.folder).join(version);
        let templates = templates().filter(|_| provider.has_templates);
        for name in [provider.components, "metadata.yaml"].into_iter().chain(templates) {
            let text = release.get(Path::new(name));
            let text = text.with_context(|| format!("the release has no {name}"))?;
            files.insert(folder.join(name), text.clone());
        }
        let (kind, path) = (provider.kind, folder.join(provider.components));
        write!(
            configuration,
            "- name: metal3\n  type: {kind}\n  url: \"file://{ROOT}/{}\"\n",
            path.display()
        )?;
    }
    files.insert(PathBuf::from("clusterctl.yaml"), configuration);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use metal3_files::documents;

    use super::*;

    #[test]
    fn configuration_names_files_of_the_repository_and_no_folder_of_this_machine() {
        let release = super::super::files("registry/capm3:v1", "metadata".to_owned()).unwrap();
        let files = repository(&release, "v1.15.0").unwrap();
        let path = Path::new("clusterctl.yaml");
        let configuration = documents::parse(&files[path], path).unwrap().remove(0).value;
        let providers = configuration["providers"].as_array().unwrap();
        assert_eq!(providers.len(), PROVIDERS.len());
        for provider in providers {
            let url = provider["url"].as_str().unwrap();
            let path = Path::new(url.strip_prefix("file://${METAL3_RELEASE:=${PWD}/out}/").unwrap());
            let text = &files[path];
            assert_eq!(text, &release[Path::new(path.file_name().unwrap())]);
            assert_eq!(files[&path.with_file_name("metadata.yaml")], "metadata");
        }
        let paths: BTreeSet<&str> = files.keys().filter_map(|path| path.to_str()).collect();
        assert!(
            paths.contains("infrastructure-metal3/v1.15.0/cluster-template.yaml"),
            "{paths:?}"
        );
        assert!(
            !paths.contains("ipam-metal3/v1.15.0/cluster-template.yaml"),
            "{paths:?}"
        );
    }
}
