//! Images that published manifests name by addresses of their authors' networks. In the stack's network those addresses
//! are its own, and an image of the lab is behind each of them, so that nothing in a manifest need be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::claims::world::World;
use crate::wait::until;

const START: Duration = Duration::from_secs(30);
const HTTP: u16 = 80;

/// An image as a manifest orders it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ordered {
    url: String,
    checksum: String,
    /// As the manifest says it; where it says nothing, it is read off the checksum.
    algorithm: Option<String>,
}

impl Ordered {
    /// The one that an object orders, if it is of those that do.
    pub(crate) fn by(object: &Value) -> Option<Self> {
        let image = &object["spec"]["template"]["spec"]["image"];
        let text = |member: &str| image[member].as_str().map(str::to_owned);
        Some(Self {
            url: text("url")?,
            checksum: text("checksum")?,
            algorithm: text("checksumType"),
        })
    }

    /// Who makes the checksum that is looked for beside the image.
    fn summed_by(&self) -> anyhow::Result<&'static str> {
        match self.algorithm.as_deref() {
            Some("md5") => Ok("md5sum"),
            Some("sha512") => Ok("sha512sum"),
            Some("sha256" | "auto") | None => Ok("sha256sum"),
            Some(other) => bail!("{}: nobody knows the checksum type {other}", self.url),
        }
    }

    /// The checksum itself, where it is not in a file beside the image. Nobody here has bytes that it is the sum of.
    fn digest(&self) -> Option<&str> {
        (!self.checksum.starts_with("http://")).then_some(&self.checksum)
    }
}

/// What agents are to take for the images that it is the checksum of.
pub(super) fn believed(images: &BTreeSet<Ordered>) -> impl Iterator<Item = &str> {
    images.iter().filter_map(Ordered::digest)
}

/// What serves a folder, as it does Ironic's own.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) python: PathBuf,
    pub(super) script: PathBuf,
}

/// Where a file is served, and under what path.
fn place(url: &str) -> anyhow::Result<(SocketAddrV4, PathBuf)> {
    let parts = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (authority, path) = parts.with_context(|| format!("{url} is not http://ADDRESS/PATH"))?;
    let server = authority.parse().or_else(|_| format!("{authority}:{HTTP}").parse());
    let server = server.with_context(|| format!("{url} names no IPv4 address"))?;
    let path = PathBuf::from(path);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_plain, "the path of {url} leads elsewhere");
    Ok((server, path))
}

/// Writes the checksum of an image, with the image's name, into a file.
pub(super) fn write_sum(world: &World, program: &str, image: &Path, file: &Path) -> anyhow::Result<()> {
    let printed = world.run(program, &[&image.display().to_string()], None)?;
    let digest = printed.split_whitespace().next();
    let digest = digest.with_context(|| format!("{program} says nothing"))?;
    let name = image.file_name().context("an image without name")?.to_string_lossy();
    Ok(fs::write(file, format!("{digest}  {name}\n"))?)
}

/// Puts these bytes at the addresses of all images, and their checksums where those are looked for.
pub(super) fn serve(world: &World, program: &Program, images: &BTreeSet<Ordered>, bytes: &Path) -> anyhow::Result<()> {
    let mut folders = BTreeMap::new();
    let mut file = |url: &str| -> anyhow::Result<PathBuf> {
        let (server, path) = place(url)?;
        let folder = world.places.state_file(&format!("mirror-{server}"));
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        folders.insert(server, folder);
        Ok(path)
    };
    for image in images {
        let path = file(&image.url)?;
        fs::copy(bytes, &path)?;
        if image.digest().is_none() {
            write_sum(world, image.summed_by()?, &path, &file(&image.checksum)?)?;
        }
    }
    folders
        .iter()
        .try_for_each(|(server, folder)| start(world, program, *server, folder))
}

/// It ends with the stack, as its addresses do.
fn start(world: &World, program: &Program, server: SocketAddrV4, folder: &Path) -> anyhow::Result<()> {
    let address = format!("{}/32", server.ip());
    world.run("ip", &["address", "replace", &address, "dev", "lo"], None)?;
    let log = File::create(world.places.log(&format!("mirror-{server}")))?;
    let mut child = Command::new(&program.python)
        .arg(&program.script)
        .args([server.ip().to_string(), server.port().to_string()])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", program.python.display()))?;
    until(START, &format!("who serves files at {server}"), || {
        ensure!(child.try_wait()?.is_none(), "it ended, see its log");
        Ok(TcpStream::connect(server).is_ok().then_some(()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_served_where_its_address_says() {
        let (server, path) = place("http://172.22.0.1/images/a.img").unwrap();
        assert_eq!(server.to_string(), "172.22.0.1:80");
        assert_eq!(path, Path::new("images/a.img"));
        assert_eq!(place("http://10.0.0.1:8080/a").unwrap().0.port(), 8080);
        for refused in [
            "https://10.0.0.1/a",
            "http://10.0.0.1",
            "http://here/a",
            "http://10.0.0.1/../a",
        ] {
            assert!(place(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_checksum_is_made_as_it_is_ordered_and_believed_where_it_is_given() {
        let template = |checksum: &str, kind: &str| {
            let image = json!({"url": "http://10.0.0.1/a", "checksum": checksum, "checksumType": kind});
            Ordered::by(&json!({"spec": {"template": {"spec": {"image": image}}}})).unwrap()
        };
        let images = BTreeSet::from([template("http://10.0.0.1/a.md5sum", "md5"), template("ab", "sha256")]);
        assert!(believed(&images).eq(["ab"]));
        assert_eq!(template("ab", "md5").summed_by().unwrap(), "md5sum");
        assert!(template("ab", "crc").summed_by().is_err());
        assert_eq!(Ordered::by(&json!({"kind": "Cluster"})), None);
    }
}
