//! The stack's certificate authority, one client certificate per component, and their kubeconfigs.
//!
//! Keys exist as long as the stack. Not for clusters outside tests.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use crate::places::{NODE_NAME, Places};

/// A component's certificate: file name, user, groups, host names.
struct Identity {
    name: &'static str,
    user: &'static str,
    groups: &'static [&'static str],
    /// Host names and addresses in addition to that of the Node.
    serves_as: &'static [&'static str],
}

/// All other managers are Pods with a ServiceAccount. Each has its own user in the audit log.
const IDENTITIES: &[Identity] = &[
    Identity {
        name: ADMIN,
        user: "stack-admin",
        groups: &["system:masters"],
        serves_as: &[],
    },
    Identity {
        name: "kube-apiserver",
        user: "kube-apiserver",
        groups: &["system:masters"],
        serves_as: &["127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"],
    },
    Identity {
        name: CONTROLLER_MANAGER,
        user: "system:kube-controller-manager",
        groups: &[],
        serves_as: &[],
    },
    Identity {
        name: SCHEDULER,
        user: "system:kube-scheduler",
        groups: &[],
        serves_as: &[],
    },
    Identity {
        name: CERT_MANAGER,
        user: "cert-manager",
        groups: &["system:masters"],
        serves_as: &[],
    },
    Identity {
        name: KUBELET,
        user: "system:node:stack-node",
        groups: &["system:nodes"],
        serves_as: &[NODE_NAME],
    },
];

pub(crate) const ADMIN: &str = "admin";
pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const SCHEDULER: &str = "kube-scheduler";
pub(crate) const CERT_MANAGER: &str = "cert-manager";
pub(crate) const KUBELET: &str = "process-kubelet";
/// File names, without extension, of the authority and of the key pair that signs ServiceAccount tokens.
pub(crate) const AUTHORITY: &str = "ca";
pub(crate) const SERVICE_ACCOUNTS: &str = "service-accounts";

/// Writes all certificates, keys and kubeconfigs of a new stack.
pub(crate) fn write(places: &Places) -> anyhow::Result<()> {
    fs::create_dir_all(places.state().join("pki")).context("creating the folder of certificates")?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "stack-authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key)?;
    private(&places.certificate(AUTHORITY), &authority.pem())?;
    let issuer = Issuer::new(params, key);
    for identity in IDENTITIES {
        let key = KeyPair::generate()?;
        let certificate = certificate_of(places, identity)?.signed_by(&key, &issuer)?;
        private(&places.certificate(identity.name), &certificate.pem())?;
        private(&places.key(identity.name), &key.serialize_pem())?;
        private(&places.kubeconfig(identity.name), &kubeconfig(places, identity.name))?;
    }
    let tokens = KeyPair::generate()?;
    private(&places.key(SERVICE_ACCOUNTS), &tokens.serialize_pem())?;
    private(&places.certificate(SERVICE_ACCOUNTS), &tokens.public_key_pem())
}

fn certificate_of(places: &Places, identity: &Identity) -> anyhow::Result<CertificateParams> {
    let mut names: Vec<String> = identity.serves_as.iter().map(|&name| name.to_owned()).collect();
    if !names.is_empty() {
        names.push(places.node_address());
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, identity.user);
    for group in identity.groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Refers to files: kubectl runs in the stack's network but on the machine's file system.
fn kubeconfig(places: &Places, user: &str) -> String {
    format!(
        r#"apiVersion: v1
kind: Config
clusters:
- name: stack
  cluster: {{server: "https://{}:6443", certificate-authority: "{}"}}
users:
- name: stack
  user: {{client-certificate: "{}", client-key: "{}"}}
contexts:
- name: stack
  context: {{cluster: stack, user: stack}}
current-context: stack
"#,
        places.node_address(),
        places.certificate(AUTHORITY).display(),
        places.certificate(user).display(),
        places.key(user).display()
    )
}

fn private(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}
