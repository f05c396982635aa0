//! The folder that `make release` wrote, as its user has it: clusterctl reads the `clusterctl.yaml` in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::claims::stack::Stack;
use crate::fresh;
use crate::repository;

/// The installed version, and the version of the upgrade.
pub(crate) const FIRST: &str = "v1.15.0";
pub(crate) const NEXT: &str = "v1.15.1";
/// The providers of a release: folder and file.
const PROVIDERS: [(&str, &str); 2] = [
    ("infrastructure-metal3", "infrastructure-components.yaml"),
    ("ipam-metal3", "ipam-components.yaml"),
];
const CONFIGURATION: &str = "clusterctl.yaml";

pub(crate) struct Written {
    folder: PathBuf,
    /// The written configuration. The providers of Cluster API follow, from the stack, which reaches no other repository.
    configuration: PathBuf,
}

impl Written {
    pub(crate) fn of(stack: &Stack, folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(CONFIGURATION);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = folder.file_name().context("a release without a folder")?;
        let configuration = stack.places.state_file("written").join(name);
        fs::create_dir_all(&configuration)?;
        let configuration = configuration.join(CONFIGURATION);
        fs::write(&configuration, repository::with_cluster_api(&stack.places, &text))?;
        Ok(Self {
            folder: folder.to_path_buf(),
            configuration,
        })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn configuration(&self) -> &Path {
        &self.configuration
    }

    /// Runs clusterctl with the configuration and these variables.
    pub(crate) fn clusterctl(&self, stack: &Stack, variables: &[String], args: &[&str]) -> anyhow::Result<String> {
        let folder = format!("METAL3_RELEASE={}", self.folder.display());
        let configuration = self.configuration.to_string_lossy();
        let variables = variables.iter().map(String::as_str);
        let all = [folder.as_str()].into_iter().chain(variables);
        let all = all.chain(["clusterctl"]).chain(args.iter().copied());
        let all: Vec<&str> = all.chain(["--config", &configuration]).collect();
        stack.run("env", &all, None)
    }

    /// `clusterctl init` of these providers.
    pub(crate) fn init(&self, stack: &Stack, providers: &str) -> anyhow::Result<()> {
        wait_for_test(stack)?;
        let args = ["init", "--wait-providers"]
            .into_iter()
            .chain(providers.split_whitespace());
        self.clusterctl(stack, &[], &args.collect::<Vec<_>>()).map(drop)
    }

    /// The folder of the next release: the same components under the next version, with an image of another name.
    pub(crate) fn next(&self, stack: &Stack) -> anyhow::Result<Self> {
        let folder = stack.places.state_file("next-release");
        let path = self.file(CONFIGURATION);
        let mut configuration = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        for (provider, file) in PROVIDERS {
            let version = self.version(provider)?;
            let (from, to) = (
                self.folder.join(provider).join(&version),
                folder.join(provider).join(NEXT),
            );
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(&from)? {
                let entry = entry?;
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
            let components = fs::read_to_string(from.join(file))?;
            let image = fresh::image(&components)?;
            fs::write(to.join(file), components.replace(image, &next_image(image)?))?;
            let (old, new) = (format!("/{provider}/{version}/"), format!("/{provider}/{NEXT}/"));
            ensure!(configuration.contains(&old), "{CONFIGURATION} does not name {old}");
            configuration = configuration.replace(&old, &new);
        }
        fs::write(folder.join(CONFIGURATION), configuration)?;
        Self::of(stack, &folder)
    }

    /// The only version of a provider.
    pub(crate) fn version(&self, provider: &str) -> anyhow::Result<String> {
        let path = self.folder.join(provider);
        let folders = fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))?;
        let names: Vec<_> = folders
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()?;
        match &names[..] {
            [name] => Ok(name.to_string_lossy().into_owned()),
            names => anyhow::bail!("{}: one version, not {names:?}", path.display()),
        }
    }

    /// The names of the objects of a file that exist.
    pub(crate) fn existing(&self, stack: &Stack, file: &str) -> anyhow::Result<Vec<String>> {
        let path = self.file(file);
        let path = path.to_string_lossy();
        let names = stack.kubectl(&["get", "--ignore-not-found", "--output=name", "--filename", &path])?;
        Ok(names.lines().map(str::to_owned).collect())
    }
}

/// The image of the next release: the same digest, under the name that the registry of the stack has for it.
pub(crate) fn next_image(image: &str) -> anyhow::Result<String> {
    let (name, digest) = image.split_once('@').context("an image without a digest")?;
    Ok(format!("{name}{}@{digest}", fresh::NEXT))
}

/// All objects of a provider, by the label that clusterctl gives them.
pub(crate) fn labelled(stack: &Stack, provider: &str) -> anyhow::Result<Vec<String>> {
    let kinds = stack.kubectl(&["api-resources", "--verbs=list", "--output=name"])?;
    let kinds: Vec<&str> = kinds.split_whitespace().collect();
    let selector = format!("--selector=cluster.x-k8s.io/provider={provider}");
    let names = stack.kubectl(&["get", &kinds.join(","), "--all-namespaces", "--output=name", &selector])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// clusterctl deletes a role of the cluster only when its name begins with the namespace of the provider, which the names of the
/// Go managers do not. This is the documented command for the rest.
pub(crate) fn delete_roles(stack: &Stack, provider: &str) -> anyhow::Result<usize> {
    let selector = format!("--selector=cluster.x-k8s.io/provider={provider}");
    let deleted = stack.kubectl(&["delete", "clusterrole,clusterrolebinding", &selector, "--output=name"])?;
    Ok(deleted.lines().count())
}

/// clusterctl deletes the namespace of its cert-manager check asynchronously; the next check would collide.
pub(crate) fn wait_for_test(stack: &Stack) -> anyhow::Result<()> {
    let args = ["wait", "--for=delete", "namespace/cert-manager-test", "--timeout=120s"];
    stack.kubectl(&args).map(drop)
}
