//! The variables with the ramdisk of the agent, for each architecture.

use std::collections::BTreeMap;
use std::path::Path;

use metal3_domain::uri::public_text;
use metal3_hosts::node::{Ramdisk, Ramdisks};

use super::{Reader, is_url};

/// Variables with the kernel, the ramdisk and the ISO of the agent for an architecture.
const BY_ARCHITECTURE: [(&str, [&str; 3]); 2] = [
    (
        "x86_64",
        [
            "DEPLOY_KERNEL_URL_X86_64",
            "DEPLOY_RAMDISK_URL_X86_64",
            "DEPLOY_ISO_URL_X86_64",
        ],
    ),
    (
        "aarch64",
        [
            "DEPLOY_KERNEL_URL_AARCH64",
            "DEPLOY_RAMDISK_URL_AARCH64",
            "DEPLOY_ISO_URL_AARCH64",
        ],
    ),
];

impl<V: Fn(&str) -> Option<String>, F: Fn(&Path) -> bool> Reader<V, F> {
    /// The ramdisks of the agent. Of two variables for one architecture its own takes precedence, as with the Go manager.
    pub(super) fn ramdisks(&mut self) -> Ramdisks {
        let usual = Ramdisk {
            kernel: self.agent_url("DEPLOY_KERNEL_URL"),
            initramfs: self.agent_url("DEPLOY_RAMDISK_URL"),
            iso: self.agent_url("DEPLOY_ISO_URL"),
        };
        self.require_pair(&usual, ("DEPLOY_KERNEL_URL", "DEPLOY_RAMDISK_URL"), "");
        let mut of = BTreeMap::<String, Ramdisk>::new();
        for (architecture, url) in self.urls_by_architecture("DEPLOY_KERNEL_BY_ARCH") {
            of.entry(architecture).or_default().kernel = Some(url);
        }
        for (architecture, url) in self.urls_by_architecture("DEPLOY_RAMDISK_BY_ARCH") {
            of.entry(architecture).or_default().initramfs = Some(url);
        }
        for (architecture, url) in self.urls_by_architecture("DEPLOY_ISO_BY_ARCH") {
            of.entry(architecture).or_default().iso = Some(url);
        }
        for (architecture, [kernel, initramfs, iso]) in BY_ARCHITECTURE {
            let urls = [self.agent_url(kernel), self.agent_url(initramfs), self.agent_url(iso)];
            if let [None, None, None] = urls {
                continue;
            }
            let ramdisk = of.entry(architecture.to_owned()).or_default();
            let [kernel, initramfs, iso] = urls;
            ramdisk.kernel = kernel.or_else(|| ramdisk.kernel.take());
            ramdisk.initramfs = initramfs.or_else(|| ramdisk.initramfs.take());
            ramdisk.iso = iso.or_else(|| ramdisk.iso.take());
        }
        for (architecture, ramdisk) in &of {
            let own = BY_ARCHITECTURE.into_iter().find(|(name, _)| name == architecture);
            // The variables that the administrator has set.
            let own = own.filter(|(_, names)| names.iter().any(|name| self.text(name).is_some()));
            let names = own.map_or(
                ("DEPLOY_KERNEL_BY_ARCH", "DEPLOY_RAMDISK_BY_ARCH"),
                |(_, [kernel, initramfs, _])| (kernel, initramfs),
            );
            self.require_pair(ramdisk, names, architecture);
        }
        Ramdisks {
            usual,
            by_architecture: of,
        }
    }

    /// The URL of a file of the agent.
    fn agent_url(&mut self, variable: &'static str) -> Option<String> {
        let url = self.url(variable)?;
        self.require_public(variable, &url);
        Some(url)
    }

    /// The status of PreprovisioningImages contains the URL, and users of the namespace read it.
    // differs: `agent-image-login`. The Go manager publishes the login.
    fn require_public(&mut self, variable: &'static str, url: &str) {
        if self.builds_agent_images && public_text(url) != url {
            self.wrong(
                variable,
                "has a login or a query, which --build-preprov-image would show to every reader of PreprovisioningImages; use a \
                 URL without them",
            );
        }
    }

    /// A kernel boots only with its ramdisk.
    // differs: `agent-pair`. The Go manager takes the other one of another architecture.
    fn require_pair(
        &mut self,
        ramdisk: &Ramdisk,
        (kernel, initramfs): (&'static str, &'static str),
        architecture: &str,
    ) {
        let of = if architecture.is_empty() {
            String::new()
        } else {
            format!(" of {architecture}")
        };
        match (&ramdisk.kernel, &ramdisk.initramfs) {
            // Another builder may make the ramdisks.
            (Some(_), None) if !self.builds_agent_images => {
                self.wrong(
                    initramfs,
                    &format!("a kernel{of} needs its ramdisk; write both or neither"),
                );
            }
            (None, Some(_)) => {
                self.wrong(
                    kernel,
                    &format!("a ramdisk{of} needs its kernel; write both or neither"),
                );
            }
            _ => {}
        }
    }

    /// A list such as `x86_64:http://host/file,aarch64:http://host/other`. The first entry of an architecture counts.
    fn urls_by_architecture(&mut self, variable: &'static str) -> BTreeMap<String, String> {
        let mut urls = BTreeMap::new();
        for entry in self
            .text(variable)
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            match entry.split_once(':').filter(|(name, url)| !name.is_empty() && is_url(url)) {
                Some((name, url)) => {
                    self.require_public(variable, url);
                    urls.entry(name.to_ascii_lowercase()).or_insert_with(|| url.to_owned());
                }
                None => self.wrong(
                    variable,
                    "is not a list of architectures with URLs; write one such as x86_64:http://host/file,aarch64:http://host/other",
                ),
            }
        }
        urls
    }
}
