//! Where requests go by an `Ironic` resource and its Secrets: pure.

use k8s_openapi::api::core::v1::Secret;
use metal3_ironic::endpoint::{Ca, Endpoint, Login, Settings};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;

use super::Followed;
use super::resource::Ironic;

/// The longest text of the operator that is repeated.
const LONGEST_MESSAGE: usize = 300;

/// The Secrets that a resource names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Secrets {
    /// With the login of the API.
    pub(super) login: Key,
    /// With the certificate of the API; `None` without TLS.
    pub(super) certificate: Option<Key>,
}

/// Why there is no destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing is known that would contradict the destination in use, so it stays.
    Unknown(String),
    /// Nothing is to be sent.
    NotReady(String),
}

/// The Secrets of a resource that is ready.
pub(super) fn secrets(followed: &Followed, ironic: Observed<&Ironic>) -> Result<Secrets, Missing> {
    let at = &followed.resource;
    let ironic = match ironic {
        Observed::Present(ironic) => ironic,
        Observed::Absent => {
            return Err(Missing::NotReady(format!(
                "Ironic resource {at} does not exist: create it, or set IRONIC_ENDPOINT instead of IRONIC_NAME"
            )));
        }
        Observed::Unknown(why) => return Err(Missing::Unknown(format!("Ironic resource {at}: {why}"))),
    };
    if let Some(why) = why_not_ready(ironic) {
        return Err(Missing::NotReady(format!("Ironic resource {at} is not ready: {why}")));
    }
    let named = |name: &str| Key {
        namespace: at.namespace.clone(),
        name: name.to_owned(),
    };
    let (login, certificate) = (&ironic.spec.api_credentials_name, &ironic.spec.tls.certificate_name);
    if login.is_empty() {
        let why = "spec.apiCredentialsName is empty: its operator sets it, or name a Secret with username and password";
        return Err(Missing::NotReady(format!("Ironic resource {at}: {why}")));
    }
    // differs: `ironic-login-encrypted`. The Go manager sends it.
    if certificate.is_empty() && !followed.login_in_clear {
        let why = "without spec.tls.certificateName the login would cross the network without encryption; set it, or \
                   allow it by --allow-insecure-ironic";
        return Err(Missing::NotReady(format!("Ironic resource {at}: {why}")));
    }
    Ok(Secrets {
        login: named(login),
        certificate: Some(certificate)
            .filter(|name| !name.is_empty())
            .map(|name| named(name)),
    })
}

/// Why the operator does not say of this generation that it is ready.
fn why_not_ready(ironic: &Ironic) -> Option<String> {
    let mut conditions = ironic.status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    let Some(ready) = ready.filter(|ready| ready.observed_generation == ironic.metadata.generation) else {
        return Some("its operator did not reconcile it yet".to_owned());
    };
    (ready.status != "True").then(|| {
        let message = ready.message.chars().filter(|one| !one.is_control());
        message.take(LONGEST_MESSAGE).collect()
    })
}

/// The destination by these Secrets.
pub(super) fn settings(
    followed: &Followed,
    secrets: &Secrets,
    login: Observed<&Secret>,
    certificate: Option<Observed<&Secret>>,
) -> Result<Settings, Missing> {
    let login = present(&secrets.login, login)?;
    let (username, password) = (
        text(&secrets.login, login, "username")?,
        text(&secrets.login, login, "password")?,
    );
    let mut trust = followed.trust.clone();
    if let (Some(key), Some(certificate)) = (&secrets.certificate, certificate) {
        // Without a certificate the CA of the environment stays, as in the Go manager.
        let certificate = present(key, certificate)?;
        if certificate
            .data
            .as_ref()
            .is_some_and(|data| data.contains_key("tls.crt"))
        {
            let (pem, from) = (text(key, certificate, "tls.crt")?, format!("tls.crt of Secret {key}"));
            trust.ca = Some(Ca::Pem { pem, from });
        }
    }
    let scheme = if secrets.certificate.is_some() { "https" } else { "http" };
    let at = &followed.resource;
    let endpoint = Endpoint::parse(&format!("{scheme}://{}.{}.svc", at.name, at.namespace));
    let endpoint = endpoint.map_err(|error| Missing::NotReady(error.to_string()))?;
    Ok(Settings {
        login: Login::Basic {
            username,
            password: password.into(),
        },
        trust,
        time_limit: followed.time_limit,
        ..Settings::new(endpoint)
    })
}

fn present<'a>(key: &Key, secret: Observed<&'a Secret>) -> Result<&'a Secret, Missing> {
    match secret {
        Observed::Present(secret) => Ok(secret),
        Observed::Absent => Err(Missing::NotReady(format!(
            "Secret {key} that the Ironic resource names does not exist"
        ))),
        Observed::Unknown(why) => Err(Missing::Unknown(format!("Secret {key}: {why}"))),
    }
}

/// A value of a Secret, without spaces around it, such as the line end that an editor adds.
fn text(key: &Key, secret: &Secret, field: &str) -> Result<String, Missing> {
    let value = secret.data.as_ref().and_then(|data| data.get(field));
    let text = value
        .and_then(|value| std::str::from_utf8(&value.0).ok())
        .map(str::trim);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Missing::NotReady(format!("Secret {key} has no text in {field}"))),
    }
}

#[cfg(test)]
mod tests;
