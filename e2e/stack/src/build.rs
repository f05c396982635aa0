//! Fills the cache of binaries. A family's directory appears by one rename when it is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::families::{CERT_MANAGER, CHECKERS, CLUSTER_API, CLUSTER_API_OPERATOR, FAMILIES, Family, READERS};
use crate::places::Places;
use crate::tools;
use crate::wait::Stopwatch;

/// Manifests of the modules, stored next to the programs.
pub(crate) const CERT_MANAGER_CRDS: &str = "crds.yaml";
pub(crate) const METADATA: &str = "metadata.yaml";
pub(crate) const OPERATOR_COMPONENTS: &str = "operator-components.yaml";
/// Provider of Cluster API: directory in the module, label in a clusterctl repository, file name of its components.
pub(crate) const CLUSTER_API_PROVIDERS: &[(&str, &str, &str)] = &[
    ("core", "cluster-api", "core-components.yaml"),
    ("bootstrap/kubeadm", "bootstrap-kubeadm", "bootstrap-components.yaml"),
    (
        "controlplane/kubeadm",
        "control-plane-kubeadm",
        "control-plane-components.yaml",
    ),
];

/// Builds the families that the cache lacks; returns whether there was one.
pub(crate) fn missing(places: &Places, families: &[Family]) -> anyhow::Result<bool> {
    let mut built = false;
    for family in families {
        let home = places.family(family);
        if home.is_dir() {
            continue;
        }
        tools::ensure_go(places)?;
        let watch = Stopwatch::start();
        // The output of `tool` is a path.
        eprintln!(
            "building {} {} ({} programs)",
            family.name,
            family.version(),
            family.programs.len()
        );
        one(places, family, &home).with_context(|| format!("building {}", family.name))?;
        eprintln!("built {} in {:.0} s", family.name, watch.elapsed().as_secs_f64());
        built = true;
    }
    Ok(built)
}

/// Builds the family of a program when the cache lacks it; returns the path of the program.
pub(crate) fn tool(places: &Places, name: &str) -> anyhow::Result<PathBuf> {
    let mut all = FAMILIES.iter().chain(READERS).chain(CHECKERS);
    let family = all.find(|family| family.programs.iter().any(|program| program.name == name));
    let family = family.with_context(|| format!("no family has the program {name}"))?;
    missing(places, std::slice::from_ref(family))?;
    Ok(places.family(family).join(name))
}

fn one(places: &Places, family: &Family, home: &Path) -> anyhow::Result<()> {
    let partial = home.with_extension(format!("{}.partial", std::process::id()));
    let module = partial.join("module");
    fs::create_dir_all(&module).with_context(|| format!("creating {}", module.display()))?;
    for (name, text) in family.files {
        fs::write(module.join(name), text)?;
    }
    let done = compile(family, &module, &partial).and_then(|()| manifests(places, family, &module, &partial));
    let done = done.and_then(|()| {
        fs::remove_dir_all(&module)?;
        fs::rename(&partial, home).with_context(|| format!("moving the programs to {}", home.display()))
    });
    if done.is_err() {
        // Best effort: the error of the build is returned.
        fs::remove_dir_all(&partial).unwrap_or_default();
    }
    done
}

fn compile(family: &Family, module: &Path, to: &Path) -> anyhow::Result<()> {
    for program in family.programs {
        let mut build = go(module);
        build.args(["build", "-trimpath"]);
        // Without debug information a build from scratch takes an eighth less time.
        build.args(["-gcflags=all=-dwarf=false", "-ldflags", &family.linker_flags(), "-o"]);
        build.arg(to.join(program.name)).arg(program.package);
        let status = build.status().context("running go")?;
        ensure!(status.success(), "`go build {}` ended with {status}", program.package);
    }
    Ok(())
}

/// Renders the manifests of the family's module once: a warm start requires no Go.
fn manifests(places: &Places, family: &Family, module: &Path, to: &Path) -> anyhow::Result<()> {
    if family.name == CERT_MANAGER.name {
        let mut files: Vec<PathBuf> = fs::read_dir(source(module, family)?.join("deploy/crds"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        files.sort();
        let documents: Vec<String> = files.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
        ensure!(!documents.is_empty(), "no CRDs in the module");
        fs::write(to.join(CERT_MANAGER_CRDS), documents.join("\n---\n"))?;
    }
    if family.name == CLUSTER_API_OPERATOR.name {
        let folder = source(module, family)?.join("config/default");
        fs::write(to.join(OPERATOR_COMPONENTS), kustomized(places, &folder)?)?;
    }
    if family.name == CLUSTER_API.name {
        let source = source(module, family)?;
        for (folder, _, file) in CLUSTER_API_PROVIDERS {
            let folder = source.join(folder).join("config/default");
            fs::write(to.join(file), kustomized(places, &folder)?)?;
        }
        // Copied by content: files of the module cache are read-only.
        fs::write(to.join(METADATA), fs::read(source.join(METADATA))?)?;
    }
    Ok(())
}

/// What kubectl, which is built before, renders from a folder.
fn kustomized(places: &Places, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let kubectl = places.family(&crate::families::KUBERNETES).join("kubectl");
    let rendered = Command::new(&kubectl)
        .arg("kustomize")
        .arg(folder)
        .output()
        .context("running kubectl kustomize")?;
    if !rendered.status.success() {
        bail!(
            "kubectl kustomize {}: {}",
            folder.display(),
            String::from_utf8_lossy(&rendered.stderr).trim()
        );
    }
    Ok(rendered.stdout)
}

/// The directory of the family's main module in the module cache.
fn source(module: &Path, family: &Family) -> anyhow::Result<PathBuf> {
    let listed = go(module)
        .args(["list", "-m", "-f", "{{.Dir}}", family.module])
        .output()
        .context("running go")?;
    ensure!(
        listed.status.success(),
        "go list: {}",
        String::from_utf8_lossy(&listed.stderr).trim()
    );
    Ok(PathBuf::from(String::from_utf8(listed.stdout)?.trim()))
}

fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module);
    // Static binaries: the root of a Pod has no libraries.
    command
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-buildvcs=false -mod=readonly")
        .env("GOWORK", "off");
    command
}
