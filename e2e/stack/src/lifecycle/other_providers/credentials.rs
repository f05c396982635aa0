//! The credentials of a workload cluster: certificate authority, service account key, and the administrator's login.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use metal3_sim_capi::workload::Purpose;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::json;

/// The administrator's credentials of an endpoint, in PEM.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) endpoint: String,
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Login {
    /// A kubeconfig in JSON.
    pub(super) fn kubeconfig(&self) -> String {
        let data = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", self.endpoint), "certificate-authority-data": data(&self.authority),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": data(&self.certificate), "client-key-data": data(&self.key),
            }}],
            "contexts": [{"name": "admin", "context": {"cluster": "it", "user": "admin"}}],
        })
        .to_string()
    }
}

/// The certificates and keys of a control plane without machines.
#[derive(Debug, Clone)]
pub(crate) struct ControlPlanePki {
    login: Login,
    /// Files of kubeadm's key directory by relative path.
    files: BTreeMap<String, String>,
}

impl ControlPlanePki {
    /// Creates them with a new certificate authority.
    pub(super) fn of(endpoint: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key)?.pem();
        let mut files = BTreeMap::from([
            ("ca.crt".to_owned(), authority.clone()),
            ("ca.key".to_owned(), key.serialize_pem()),
        ]);
        let tokens = KeyPair::generate()?;
        files.insert("sa.key".to_owned(), tokens.serialize_pem());
        files.insert("sa.pub".to_owned(), tokens.public_key_pem());
        let (issuer, own) = (Issuer::new(params, key), KeyPair::generate()?);
        let mut admin = CertificateParams::new(Vec::new())?;
        admin.distinguished_name.push(DnType::CommonName, "kubernetes-admin");
        admin
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let login = Login {
            endpoint: endpoint.to_owned(),
            authority,
            certificate: admin.signed_by(&own, &issuer)?.pem(),
            key: own.serialize_pem(),
        };
        Ok(Self { login, files })
    }

    /// The data of a Secret of the Cluster.
    pub(super) fn of_secret(&self, purpose: Purpose) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.files.get(name).cloned().unwrap_or_default();
        match purpose {
            Purpose::Kubeconfig => vec![("value", self.login.kubeconfig())],
            Purpose::Authority => vec![("tls.crt", file("ca.crt")), ("tls.key", file("ca.key"))],
        }
    }

    pub(crate) fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_hold_the_credentials_and_debug_output_shows_no_key() {
        let credentials = ControlPlanePki::of("192.0.2.1:6443").unwrap();
        let [(_, kubeconfig)] = credentials.of_secret(Purpose::Kubeconfig).try_into().unwrap();
        assert!(kubeconfig.contains("https://192.0.2.1:6443"), "{kubeconfig}");
        let [(_, certificate), (_, key)] = credentials.of_secret(Purpose::Authority).try_into().unwrap();
        assert!(certificate.contains("BEGIN CERTIFICATE") && key.contains("PRIVATE KEY"));
        assert!(!format!("{:?}", credentials.login).contains("PRIVATE"));
    }
}
