//! The local clusterctl repository: Cluster API's providers from the start, others after their release.
//!
//! Layout: `repo/<label>/<version>/<file>`, clusterctl's layout of local directories. The configuration is generated from
//! the directories.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};

use crate::build::{CLUSTER_API_PROVIDERS, METADATA};
use crate::families::CLUSTER_API;
use crate::instance;
use crate::places::Places;

#[derive(Debug, Args)]
pub(crate) struct Release {
    #[arg(long, value_enum)]
    pub(crate) kind: Kind,
    /// Name of the provider, without its kind: `metal3`.
    #[arg(long)]
    pub(crate) provider: String,
    /// `v1.13.0`
    #[arg(long)]
    pub(crate) version: String,
    /// All objects of the provider.
    #[arg(long)]
    pub(crate) components: PathBuf,
    /// Release series and contracts.
    #[arg(long)]
    pub(crate) metadata: PathBuf,
    /// Cluster templates and classes for `clusterctl generate cluster`.
    #[arg(long = "template")]
    pub(crate) templates: Vec<PathBuf>,
}

/// Provider types with clusterctl's prefix and file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Core,
    Bootstrap,
    ControlPlane,
    Infrastructure,
    Ipam,
    Addon,
    RuntimeExtension,
}

impl Kind {
    /// Prefix of the label and of the components file; the label of core has none.
    fn prefix(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
            Self::Infrastructure => "infrastructure",
            Self::Ipam => "ipam",
            Self::Addon => "addon",
            Self::RuntimeExtension => "runtime-extension",
        }
    }

    /// The type in clusterctl's configuration.
    fn type_name(self) -> &'static str {
        match self {
            Self::Core => "CoreProvider",
            Self::Bootstrap => "BootstrapProvider",
            Self::ControlPlane => "ControlPlaneProvider",
            Self::Infrastructure => "InfrastructureProvider",
            Self::Ipam => "IPAMProvider",
            Self::Addon => "AddonProvider",
            Self::RuntimeExtension => "RuntimeExtensionProvider",
        }
    }

    fn components(self) -> String {
        format!("{}-components.yaml", self.prefix())
    }

    fn label(self, provider: &str) -> String {
        if self == Self::Core {
            provider.to_owned()
        } else {
            format!("{}-{provider}", self.prefix())
        }
    }

    /// The inverse of `label`. A label without a known prefix belongs to a core provider.
    fn of_label(label: &str) -> (Self, &str) {
        let prefixed = Self::value_variants().iter().filter(|kind| **kind != Self::Core);
        prefixed
            .filter_map(|kind| Some((*kind, label.strip_prefix(kind.prefix())?.strip_prefix('-')?)))
            .next()
            .unwrap_or((Self::Core, label))
    }
}

pub(crate) fn seed(places: &Places) -> anyhow::Result<()> {
    let home = places.family(&CLUSTER_API);
    for (_, label, components) in CLUSTER_API_PROVIDERS {
        let folder = repo(places).join(label).join(CLUSTER_API.version());
        fs::create_dir_all(&folder)?;
        for file in [components, METADATA] {
            fs::copy(home.join(file), folder.join(file)).with_context(|| format!("copying {file}"))?;
        }
    }
    configure(places)
}

/// Adds a release to a running stack, and prints it.
pub(crate) fn add(places: &Places, release: &Release) -> anyhow::Result<()> {
    crate::record::Record::required(places)?;
    put(places, release)?;
    println!(
        "{} {} is in the repository",
        release.kind.label(&release.provider),
        release.version
    );
    Ok(())
}

/// Adds a release; replaces the same version.
pub(crate) fn put(places: &Places, release: &Release) -> anyhow::Result<()> {
    ensure!(
        is_version(&release.version),
        "--version `{}`: three numbers after a `v`: v1.13.0",
        release.version
    );
    ensure!(
        !release.provider.is_empty() && release.provider.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
        "--provider `{}`: letters, digits and dashes",
        release.provider
    );
    let label = release.kind.label(&release.provider);
    let folder = repo(places).join(&label).join(&release.version);
    fs::create_dir_all(&folder)?;
    let copy = |from: &Path, name: &str| {
        fs::copy(from, folder.join(name))
            .map(drop)
            .with_context(|| format!("copying {}", from.display()))
    };
    copy(&release.components, &release.kind.components())?;
    copy(&release.metadata, METADATA)?;
    for template in &release.templates {
        let name = template.file_name().and_then(|name| name.to_str());
        copy(
            template,
            name.with_context(|| format!("{} has no name", template.display()))?,
        )?;
    }
    configure(places)
}

/// `clusterctl init`, after the namespace of the previous cert-manager check is deleted: two within 12 s collide.
pub(crate) fn init(places: &Places, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let wait = [
        "kubectl",
        "wait",
        "--for=delete",
        "namespace/cert-manager-test",
        "--timeout=120s",
    ];
    let waited = instance::command(places, &wait)?.output().context("running kubectl")?;
    if !waited.status.success() {
        bail!(
            "the last test of cert-manager is still there: {}",
            String::from_utf8_lossy(&waited.stderr).trim()
        );
    }
    let mut args: Vec<OsString> = vec!["clusterctl".into(), "init".into()];
    args.extend(arguments.iter().cloned());
    instance::exec(places, &args)
}

fn repo(places: &Places) -> PathBuf {
    places.state_file("repo")
}

fn configure(places: &Places) -> anyhow::Result<()> {
    let labels = fs::read_dir(repo(places))?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    let providers: BTreeMap<String, PathBuf> = labels
        .into_iter()
        .map(|label| (label.clone(), repo(places).join(label)))
        .collect();
    let folder = places.state_file("xdg").join("cluster-api");
    fs::create_dir_all(&folder)?;
    let path = folder.join("clusterctl.yaml");
    fs::write(&path, configuration(&providers)).with_context(|| format!("writing {}", path.display()))
}

/// Keeps clusterctl from downloading cert-manager, which the stack has.
const CERT_MANAGER: &str = "cert-manager: {externallyProvisioned: true, timeout: 60s}\n";

/// The configuration that a release brings, which ends with its list of providers, and the providers of Cluster API.
pub(crate) fn with_cluster_api(places: &Places, written: &str) -> String {
    let labels = CLUSTER_API_PROVIDERS.iter().map(|(_, label, _)| (*label).to_owned());
    let providers = labels.map(|label| (label.clone(), repo(places).join(label))).collect();
    format!("{CERT_MANAGER}{written}{}", lines(&providers))
}

/// clusterctl's configuration.
fn configuration(providers: &BTreeMap<String, PathBuf>) -> String {
    format!("{CERT_MANAGER}providers:\n{}", lines(providers))
}

fn lines(providers: &BTreeMap<String, PathBuf>) -> String {
    let mut text = String::new();
    for (label, folder) in providers {
        let (kind, name) = Kind::of_label(label);
        let url = folder.join("latest").join(kind.components());
        text += &format!(
            "- {{name: {name}, type: {}, url: \"file://{}\"}}\n",
            kind.type_name(),
            url.display()
        );
    }
    text
}

fn is_version(text: &str) -> bool {
    let numbers = text
        .strip_prefix('v')
        .map(|numbers| numbers.split(['-', '+']).next().unwrap_or_default());
    let parts: Vec<&str> = numbers.unwrap_or_default().split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_has_type_and_provider() {
        for kind in Kind::value_variants() {
            assert_eq!(Kind::of_label(&kind.label("metal3")), (*kind, "metal3"));
        }
        assert_eq!(Kind::of_label("cluster-api"), (Kind::Core, "cluster-api"));
    }

    #[test]
    fn version_is_three_numbers() {
        for (text, good) in [
            ("v1.2.3", true),
            ("v1.2.3-rc.0", true),
            ("1.2.3", false),
            ("v1.2", false),
            ("latest", false),
        ] {
            assert_eq!(is_version(text), good, "{text}");
        }
    }

    #[test]
    fn configuration_offers_each_provider_at_its_latest_version() {
        let providers = BTreeMap::from([("ipam-metal3".to_owned(), PathBuf::from("/r/ipam-metal3"))]);
        let line = r#"- {name: metal3, type: IPAMProvider, url: "file:///r/ipam-metal3/latest/ipam-components.yaml"}"#;
        assert!(
            configuration(&providers).contains(line),
            "{}",
            configuration(&providers)
        );
    }
}
