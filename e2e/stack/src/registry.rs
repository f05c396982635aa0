//! A real registry in the stack's network, Debian's `docker-registry`: from it the kubelet pulls images by digest.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::components::Component;
use crate::instance;
use crate::places::Places;

/// On the loopback interface of the stack's network: there tools and kubelet need no certificate.
pub(crate) const ADDRESS: &str = "127.0.0.1:5000";
/// Its program and the Debian package of the same name.
pub(crate) const PROGRAM: &str = "docker-registry";

/// The server, after its configuration is written.
pub(crate) fn component(places: &Places) -> anyhow::Result<Component> {
    let configuration = places.state_file("registry.yaml");
    let text = format!(
        "version: 0.1\nlog: {{ level: warn }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\n\
         http: {{ addr: \"{ADDRESS}\" }}\n",
        storage(places).display()
    );
    fs::write(&configuration, text).with_context(|| format!("writing {}", configuration.display()))?;
    Ok(Component {
        name: "registry",
        program: places
            .find(PROGRAM)
            .with_context(|| format!("{PROGRAM} is not on the path"))?,
        arguments: vec!["serve".to_owned(), configuration.display().to_string()],
    })
}

/// Whether it accepts connections.
pub(crate) fn serves() -> bool {
    TcpStream::connect(ADDRESS).is_ok()
}

fn storage(places: &Places) -> PathBuf {
    places.state_file("registry")
}

/// The file with a content in the registry's folder, which tests spoil.
pub(crate) fn stored(places: &Places, digest: &str) -> anyhow::Result<PathBuf> {
    let hex = digest.strip_prefix("sha256:").context("a digest without sha256")?;
    let two = hex.get(..2).context("an empty digest")?;
    let folder = storage(places).join("docker/registry/v2/blobs/sha256");
    Ok(folder.join(two).join(hex).join("data"))
}

/// Copies the images of a release into the registry, under the name that a manifest has for them: `HOST/NAME@sha256:…`.
/// `suffix` makes it another name.
pub(crate) fn push(places: &Places, layout: &Path, image: &str, suffix: &str) -> anyhow::Result<()> {
    let (name, digest) = image
        .split_once('@')
        .with_context(|| format!("the release has {image}, which is not an image by digest"))?;
    let here = name.starts_with(&format!("{ADDRESS}/"));
    ensure!(
        here,
        "the release has {image}, and the registry of a stack is {ADDRESS}"
    );
    let xtask = std::env::current_exe()?.with_file_name("xtask");
    let name = format!("{name}{suffix}");
    let args = [
        xtask.as_os_str(),
        "push".as_ref(),
        layout.as_os_str(),
        "--registry".as_ref(),
        name.as_ref(),
    ];
    let pushed = instance::command(places, &args)?.output().context("running xtask")?;
    let output = String::from_utf8_lossy(&pushed.stdout);
    ensure!(
        pushed.status.success() && output.trim() == format!("{name}@{digest}"),
        "{image} was not pushed: {output}{}",
        String::from_utf8_lossy(&pushed.stderr)
    );
    Ok(())
}
