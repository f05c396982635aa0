//! What a boot ISO holds: the deploy agent with its parameters, if it is one of Ironic.

use ring::digest::{SHA256, digest};

use crate::{
    agent::{Parameters, parameters},
    iso,
    machine::AgentImage,
    store::hex,
};

/// The agent of an ISO; `None` for any other ISO.
#[must_use]
pub fn agent_of(image: &[u8]) -> Option<(Parameters, AgentImage)> {
    agent_in(|path| iso::file(image, path).ok().flatten())
}

fn agent_in<'a>(file: impl Fn(&str) -> Option<&'a [u8]>) -> Option<(Parameters, AgentImage)> {
    let grub = String::from_utf8_lossy(file("EFI/BOOT/grub.cfg")?);
    let parameters = parameters(&grub)?;
    let sha256 = |path| Some(hex(digest(&SHA256, file(path)?).as_ref()));
    let agent = AgentImage {
        kernel: sha256("vmlinuz")?,
        ramdisk: sha256("initrd")?,
    };
    Some((parameters, agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_differ_by_kernel_and_ramdisk() {
        let agent = |kernel: &'static str, ramdisk: &'static str| {
            let found = agent_in(|path| match path {
                "EFI/BOOT/grub.cfg" => Some(b"linux /vmlinuz ipa-api-url=https://i".as_slice()),
                "vmlinuz" => Some(kernel.as_bytes()),
                "initrd" => Some(ramdisk.as_bytes()),
                _ => None,
            });
            found.unwrap().1
        };
        assert_eq!(agent("a", "b"), agent("a", "b"));
        assert_ne!(agent("a", "b").kernel, agent("c", "b").kernel);
        assert_ne!(agent("a", "b").ramdisk, agent("a", "c").ramdisk);
    }

    #[test]
    fn other_kernel_is_no_agent() {
        let found = agent_in(|path| (path == "EFI/BOOT/grub.cfg").then_some(b"linux /vmlinuz".as_slice()));
        assert_eq!(found, None);
        assert_eq!(agent_of(b"no ISO"), None);
    }
}
