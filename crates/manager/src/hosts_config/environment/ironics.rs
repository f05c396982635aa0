//! The variables that say where the Ironics are: `Ironic` resources, one endpoint, a list of endpoints.
//!
//! Each has a short name that hosts use: that of its resource or of its item of the list, and `ironic` for `IRONIC_ENDPOINT`. The
//! login of an endpoint is in the folder of its name; a CA and a client certificate in it come before those of the environment.

use std::path::Path;

use metal3_hosts::ironic_resource::Followed;
use metal3_hosts::ironics::USUAL_NAME;
use metal3_ironic::endpoint::{Ca, ClientCertificate, Endpoint, Login, Settings, Trust};
use metal3_runtime::cache::Key;

use super::{AUTH_ROOT, IronicSource, Reader};

const NAME: &str = "IRONIC_NAME";
const NAMESPACE: &str = "IRONIC_NAMESPACE";
const ENDPOINT: &str = "IRONIC_ENDPOINT";
const ENDPOINTS: &str = "IRONIC_ENDPOINTS";
/// The longest part of a DNS name, and the longest value of a label.
const LONGEST_LABEL: usize = 63;

/// An Ironic and its name.
#[derive(Clone, Debug)]
pub struct NamedIronic {
    /// The name, as a host uses it.
    pub name: String,
    /// Where it is.
    pub source: IronicSource,
}

impl<V: Fn(&str) -> Option<String>, F: Fn(&Path) -> bool> Reader<V, F> {
    /// All of them; the first one serves the hosts that name none. Without a usable one a variable is wrong.
    pub(super) fn ironics(&mut self) -> Vec<NamedIronic> {
        let (trust, time_limit) = (self.trust(), self.time_limit());
        let settings = |endpoint: Endpoint, login: Login, trust: Trust| Settings {
            login,
            trust,
            time_limit,
            ..Settings::new(endpoint)
        };
        let (mut found, named, listed) = (Vec::new(), self.text(NAME), self.text(ENDPOINTS));
        if let Some(text) = &named {
            for item in items(text) {
                found.extend(self.resource(item).map(|resource| NamedIronic {
                    name: resource.name.clone(),
                    source: IronicSource::Resource(Followed {
                        resource,
                        trust: trust.clone(),
                        time_limit,
                        login_in_clear: false,
                    }),
                }));
            }
        } else if let Some(text) = self.text(ENDPOINT) {
            let endpoint = self.endpoint(ENDPOINT, &text);
            let login = self.login_of(USUAL_NAME);
            found.extend(endpoint.map(|endpoint| NamedIronic {
                name: USUAL_NAME.to_owned(),
                source: IronicSource::Endpoint(settings(endpoint, login, trust.clone())),
            }));
        }
        for item in listed.iter().flat_map(|text| items(text)) {
            let Some((name, endpoint)) = self.listed(item) else {
                continue;
            };
            let (login, own) = (self.login_of(&name), self.trust_of(&name, &trust));
            let source = IronicSource::Endpoint(settings(endpoint, login, own));
            found.push(NamedIronic { name, source });
        }
        if found.is_empty() && self.faults.is_empty() {
            let why = "must be the URL of Ironic; write https://host:6385, or name an Ironic resource in IRONIC_NAME";
            self.wrong(ENDPOINT, why);
        }
        self.require_different_names(&found);
        self.require_different_endpoints(&found);
        found
    }

    fn endpoint(&mut self, variable: &'static str, text: &str) -> Option<Endpoint> {
        let endpoint = Endpoint::parse(text);
        endpoint.map_err(|error| self.wrong(variable, &error.to_string())).ok()
    }

    /// An item of the list: `name=URL`. Errors do not include the URL, because it may contain credentials.
    fn listed(&mut self, item: &str) -> Option<(String, Endpoint)> {
        let Some((name, url)) = item.split_once('=') else {
            self.wrong(
                ENDPOINTS,
                "has an item without a name; write name=https://host:6385,name=https://host:6385",
            );
            return None;
        };
        let (name, url) = (name.trim(), url.trim());
        if !is_label(name) {
            self.wrong(
                ENDPOINTS,
                "has a name with other characters than lower case letters, digits, and - inside",
            );
            return None;
        }
        Some((name.to_owned(), self.endpoint(ENDPOINTS, url)?))
    }

    /// The namespace is that of the item, of the variable, of the process, or the watched one, as in the Go manager.
    /// differs (`ironic-resource-namespace`): without any the Go manager uses `IRONIC_ENDPOINT`, without a word.
    fn resource(&mut self, item: &str) -> Option<Key> {
        let places = [NAMESPACE, "POD_NAMESPACE", "WATCH_NAMESPACE"];
        let (namespace, name) = match item.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
            None => (places.iter().find_map(|variable| self.text(variable)), item.to_owned()),
        };
        let Some(namespace) = namespace else {
            self.wrong(
                NAMESPACE,
                "must be the namespace of the Ironic resource that IRONIC_NAME names",
            );
            return None;
        };
        for (variable, part) in [(NAME, &name), (NAMESPACE, &namespace)] {
            if !is_label(part) {
                self.wrong(
                    variable,
                    &format!("{part:?} is no name of an object: lower case letters, digits, and - inside"),
                );
                return None;
            }
        }
        Some(Key { namespace, name })
    }

    fn require_different_names(&mut self, found: &[NamedIronic]) {
        for (at, ironic) in found.iter().enumerate() {
            if found.iter().take(at).any(|other| other.name == ironic.name) {
                let variable = match (&ironic.source, self.text(NAME)) {
                    (IronicSource::Resource(_), _) => NAME,
                    (IronicSource::Endpoint(_), _) => ENDPOINTS,
                };
                let why = format!(
                    "{:?} is the name of two Ironics, and hosts could not tell them apart; IRONIC_ENDPOINT has the name {USUAL_NAME}",
                    ironic.name
                );
                self.wrong(variable, &why);
            }
        }
    }

    /// Two names for one Ironic are a copied line; corrected later, its hosts would be registered a second time.
    fn require_different_endpoints(&mut self, found: &[NamedIronic]) {
        let endpoint = |ironic: &NamedIronic| match &ironic.source {
            IronicSource::Endpoint(settings) => Some(settings.endpoint.clone()),
            // The namespaces of resources differ if their names are the same; where they lead to shows later.
            IronicSource::Resource(_) => None,
        };
        for (at, ironic) in found.iter().enumerate() {
            let is_same = |other: &&NamedIronic| endpoint(other).is_some() && endpoint(other) == endpoint(ironic);
            if let Some(other) = found.iter().take(at).find(is_same) {
                let why = format!(
                    "gives {:?} the same URL as {:?}, and an Ironic has one name",
                    ironic.name, other.name
                );
                self.wrong(ENDPOINTS, &why);
            }
        }
    }

    /// differs (`ironic-login-optional`): an optional Secret that does not exist leaves an empty directory.
    fn login_of(&self, name: &str) -> Login {
        let folder = self.folder_of(name);
        let is_there = |file: &str| (self.is_there)(&folder.join(file));
        match is_there("username") || is_there("password") {
            true => Login::Folder(folder),
            false => Login::Open,
        }
    }

    /// The files of its folder; without them those of all.
    fn trust_of(&mut self, name: &str, of_all: &Trust) -> Trust {
        let folder = self.folder_of(name);
        let file = |file: &str| Some(folder.join(file)).filter(|path| (self.is_there)(path));
        let (ca, certificate, key) = (file("ca.crt"), file("tls.crt"), file("tls.key"));
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
            (None, None) => of_all.client.clone(),
            _ => {
                let why =
                    format!("the folder of {name} has only one of tls.crt and tls.key; a certificate needs its key");
                self.wrong(ENDPOINTS, &why);
                None
            }
        };
        Trust {
            ca: ca.map(Ca::File).or_else(|| of_all.ca.clone()),
            client,
            insecure: of_all.insecure,
        }
    }

    fn folder_of(&self, name: &str) -> std::path::PathBuf {
        let root = self
            .text("METAL3_AUTH_ROOT_DIR")
            .unwrap_or_else(|| AUTH_ROOT.to_owned());
        Path::new(&root).join(name)
    }
}

/// The items of a list. Empty ones are left out.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// A part of a DNS name: a name with another letter would make another host of the URL.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_whole = !text.is_empty() && text.len() <= LONGEST_LABEL && text.bytes().all(is_inner);
    is_whole && !text.starts_with('-') && !text.ends_with('-')
}
