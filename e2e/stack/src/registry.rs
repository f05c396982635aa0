//! A real registry in the stack's network, Debian's `docker-registry`: from it the kubelet pulls images by digest.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::Context;

use crate::components::Component;
use crate::places::Places;

/// On the loopback interface of the stack's network: there tools and kubelet need no certificate.
pub(crate) const ADDRESS: &str = "127.0.0.1:5000";
/// On all interfaces of that network, because Pods have a loopback interface of their own.
const LISTENED: &str = ":5000";
/// Its program and the Debian package of the same name.
pub(crate) const PROGRAM: &str = "docker-registry";

/// The server, after its configuration is written.
pub(crate) fn component(places: &Places) -> anyhow::Result<Component> {
    let configuration = places.state_file("registry.yaml");
    let text = format!(
        "version: 0.1\nlog: {{ level: warn }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\n\
         http: {{ addr: \"{LISTENED}\" }}\n",
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

/// Its address for Pods.
pub(crate) fn for_pods(places: &Places) -> String {
    format!("{}{LISTENED}", places.node_address())
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
