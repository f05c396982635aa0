//! The Go manager's environment variables as types. All errors are reported at once, so that a Deployment is
//! edited once. An error contains a value only where it cannot be a secret.

mod ironics;
mod ramdisks;
mod switches;

use std::path::{Path, PathBuf};
use std::time::Duration;

use metal3_hosts::ironic_resource::Followed;
use metal3_hosts::node::NodeSettings;
use metal3_hosts::switches::Outputs;
use metal3_ironic::endpoint::{Ca, ClientCertificate, Login, Settings, Trust};
use metal3_ironic::slots::DEFAULT_LIMIT;

use metal3_flags::span;

pub use ironics::NamedIronic;

/// The Go manager's directory of credentials.
const AUTH_ROOT: &str = "/opt/metal3/auth";
/// The Go manager's paths of the CA, the client certificate and its key.
const CA: &str = "/opt/metal3/certs/ca/tls.crt";
const CERTIFICATE: &str = "/opt/metal3/certs/client/tls.crt";
const KEY: &str = "/opt/metal3/certs/client/tls.key";
/// Default timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Warnings about variables without effect.
const NO_CACHE: &str = "has no effect: responses of Ironic are not cached by time";
const NO_RESOURCE: &str = "has no effect without IRONIC_NAME";
const BY_RESOURCE: &str =
    "has no effect: the Ironic resource that IRONIC_NAME names says where Ironic is, and its login";
/// An invalid variable, with its fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct VariableError {
    /// The variable.
    pub variable: &'static str,
    /// The problem and the fix.
    pub why: String,
}

/// Where Ironic is.
#[derive(Clone, Debug)]
pub enum IronicSource {
    /// At an endpoint of the environment.
    Endpoint(Settings),
    /// Where an `Ironic` resource says.
    Resource(Followed),
}

impl IronicSource {
    /// The trust of the environment.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        match self {
            Self::Endpoint(settings) => &settings.trust,
            Self::Resource(followed) => &followed.trust,
        }
    }

    /// Whether the login of the environment would cross a network without encryption. That of a resource is judged when
    /// it is read.
    #[must_use]
    pub fn sends_login_in_clear(&self) -> bool {
        match self {
            Self::Endpoint(settings) => !matches!(settings.login, Login::Open) && settings.endpoint.is_in_clear(),
            Self::Resource(_) => false,
        }
    }
}

/// The settings in the environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The Ironics; the first one serves the hosts that name none. There is at least one.
    pub ironics: Vec<NamedIronic>,
    /// Settings of nodes.
    pub node: NodeSettings,
    /// Where the switches are written, if they are configured.
    pub switches: Option<Outputs>,
    /// The only watched namespace, if set.
    pub namespace: Option<String>,
    /// How many hosts may load the provisioning network at once.
    pub slots: usize,
    /// Parallel reconciles, if set.
    pub workers: Option<usize>,
    /// Warnings for the log.
    pub warnings: Vec<String>,
}

impl Environment {
    /// Reads the environment; `is_there` returns whether a file or directory exists.
    ///
    /// # Errors
    /// All invalid variables.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        is_there: impl Fn(&Path) -> bool,
    ) -> Result<Self, Vec<VariableError>> {
        Self::read_for(variable, is_there, false)
    }

    /// The same; whether an image of the agent is built for each host (`--build-preprov-image`).
    ///
    /// # Errors
    /// All invalid variables.
    pub fn read_for(
        variable: impl Fn(&str) -> Option<String>,
        is_there: impl Fn(&Path) -> bool,
        builds_agent_images: bool,
    ) -> Result<Self, Vec<VariableError>> {
        let mut reader = Reader {
            variable,
            is_there,
            builds_agent_images,
            faults: Vec::new(),
        };
        let ironics = reader.ironics();
        let node = reader.node();
        let switches = reader.switches();
        let namespace = reader.namespace();
        let slots = reader.number("PROVISIONING_LIMIT", 0);
        let workers = reader.number("BMO_CONCURRENCY", 1);
        reader.reject_unsupported();
        let warnings = reader.warnings();
        match reader.faults.is_empty() {
            true => Ok(Self {
                ironics,
                node,
                switches,
                namespace,
                slots: slots.unwrap_or(DEFAULT_LIMIT),
                workers,
                warnings,
            }),
            false => Err(reader.faults),
        }
    }
}

/// Reads values and collects errors.
struct Reader<V, F> {
    variable: V,
    is_there: F,
    builds_agent_images: bool,
    faults: Vec<VariableError>,
}

impl<V: Fn(&str) -> Option<String>, F: Fn(&Path) -> bool> Reader<V, F> {
    fn trust(&mut self) -> Trust {
        let ca = self.file("IRONIC_CACERT_FILE", CA);
        let certificate = self.file("IRONIC_CLIENT_CERT_FILE", CERTIFICATE);
        let key = self.file("IRONIC_CLIENT_PRIVATE_KEY_FILE", KEY);
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
            (None, None) => None,
            (Some(_), None) => {
                self.wrong(
                    "IRONIC_CLIENT_PRIVATE_KEY_FILE",
                    "a certificate needs its key; set both files",
                );
                None
            }
            (None, Some(_)) => {
                self.wrong("IRONIC_CLIENT_CERT_FILE", "a key needs its certificate; set both files");
                None
            }
        };
        let insecure = self.switch("IRONIC_INSECURE");
        Trust {
            ca: ca.map(Ca::File),
            client,
            insecure,
        }
    }

    /// differs (`ironic-named-files`): the Go manager continues without a file that its environment names.
    fn file(&mut self, variable: &'static str, usual: &str) -> Option<PathBuf> {
        let named = self.text(variable).map(PathBuf::from);
        let is_there = |path: &PathBuf| (self.is_there)(path);
        match named {
            Some(path) if is_there(&path) => Some(path),
            Some(path) => {
                let why = format!("{} does not exist; mount it, or unset the variable", path.display());
                self.wrong(variable, &why);
                None
            }
            None => Some(PathBuf::from(usual)).filter(is_there),
        }
    }

    fn time_limit(&mut self) -> Duration {
        const VARIABLE: &str = "IRONIC_CLIENT_TIMEOUT";
        let Some(text) = self.text(VARIABLE) else {
            return TIMEOUT;
        };
        let limit = span::parse(&text).filter(|limit| !limit.is_zero());
        limit.unwrap_or_else(|| {
            let why = format!("{text:?} is not a positive duration; write one such as 30s");
            self.wrong(VARIABLE, &why);
            TIMEOUT
        })
    }

    fn node(&mut self) -> NodeSettings {
        let usual = NodeSettings::default();
        NodeSettings {
            provisioning_network_disabled: self.switch("PROVISIONING_NETWORK_DISABLED"),
            ramdisks: self.ramdisks(),
            external_url_v6: self.url("IRONIC_EXTERNAL_URL_V6"),
            direct_boot_device: self
                .boot_device("DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE")
                .unwrap_or(usual.direct_boot_device),
            live_iso_boot_device: self
                .boot_device("LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE")
                .unwrap_or(usual.live_iso_boot_device),
            bmc_networks: usual.bmc_networks,
            fake_hardware: usual.fake_hardware,
            own_architecture: usual.own_architecture,
        }
    }

    fn boot_device(&mut self, variable: &'static str) -> Option<String> {
        let text = self.text(variable)?;
        if !matches!(text.as_str(), "Default" | "Always" | "Never") {
            self.wrong(variable, &format!("{text:?} is not one of Default, Always, Never"));
        }
        Some(text)
    }

    /// differs (`hosts-one-namespace`): the Go manager takes a list.
    fn namespace(&mut self) -> Option<String> {
        const VARIABLE: &str = "WATCH_NAMESPACE";
        let text = self.text(VARIABLE)?;
        if text.contains(',') {
            let why = format!("{text:?} is not one namespace; unset it for all, or run a process for each");
            self.wrong(VARIABLE, &why);
        }
        Some(text)
    }

    /// A URL for machines. Errors do not include it, because it may contain credentials.
    fn url(&mut self, variable: &'static str) -> Option<String> {
        let text = self.text(variable)?;
        if !is_url(&text) {
            self.wrong(variable, "is not a URL; write one such as http://host/file");
        }
        Some(text)
    }

    /// The word true or false. The Go manager takes any other word for false, which `1` is not meant to be.
    fn switch(&mut self, variable: &'static str) -> bool {
        match self.text(variable).as_deref() {
            None | Some("0" | "f" | "F") => false,
            Some(word) if word.eq_ignore_ascii_case("false") => false,
            Some(word) if word.eq_ignore_ascii_case("true") => true,
            Some(other) => {
                self.wrong(variable, &format!("is {other:?}; write true or false"));
                false
            }
        }
    }

    fn number(&mut self, variable: &'static str, least: usize) -> Option<usize> {
        let text = self.text(variable)?;
        let number = text.parse().ok().filter(|number| (least..=100_000).contains(number));
        if number.is_none() {
            self.wrong(
                variable,
                &format!("{text:?} is not a whole number from {least} to 100000"),
            );
        }
        number
    }

    /// Rejects a variable whose effect is not implemented.
    fn reject_unsupported(&mut self) {
        const VARIABLE: &str = "IRONIC_SKIP_CLIENT_SAN_VERIFY";
        if self.switch(VARIABLE) {
            let why = "verification of certificates is complete or, with IRONIC_INSECURE, off; give Ironic a certificate \
                       for the name in IRONIC_ENDPOINT";
            self.wrong(VARIABLE, why);
        }
    }

    /// Warnings about variables without effect.
    fn warnings(&self) -> Vec<String> {
        let ignored = [("IRONIC_CLIENT_CACHE_TTL", NO_CACHE)];
        let by_name = [("IRONIC_ENDPOINT", BY_RESOURCE), ("METAL3_AUTH_ROOT_DIR", BY_RESOURCE)];
        let is_named = self.text("IRONIC_NAME").is_some();
        let has_list = self.text("IRONIC_ENDPOINTS").is_some();
        let by_endpoint = [("IRONIC_NAMESPACE", NO_RESOURCE)];
        let (by_name, by_endpoint) = (by_name.iter(), by_endpoint.iter());
        let given = ignored
            .iter()
            .chain(by_name.filter(|(variable, _)| is_named && !(has_list && *variable == "METAL3_AUTH_ROOT_DIR")))
            .chain(by_endpoint.filter(|_| !is_named))
            .chain(switches::DEPENDENT.iter().filter(|_| !self.has_networking()));
        let given = given.filter(|(variable, _)| self.text(variable).is_some());
        given.map(|(variable, why)| format!("{variable} {why}")).collect()
    }

    /// A trimmed value; empty counts as unset.
    fn text(&self, variable: &str) -> Option<String> {
        let text = (self.variable)(variable)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn wrong(&mut self, variable: &'static str, why: &str) {
        self.faults.push(VariableError {
            variable,
            why: why.to_owned(),
        });
    }
}

fn is_url(text: &str) -> bool {
    let mut schemes = ["http://", "https://", "file://"].iter();
    schemes.any(|scheme| text.starts_with(scheme)) && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests;
