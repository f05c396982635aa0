//! Issues keys and certificates.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

use super::plan::Step;
use super::secret::{Pair, StoredCertificates};
use super::state::{AUTHORITY_LIFE, Authority, CertificateState, SERVING_LIFE, Serving, Validity};

/// Certificates are backdated, because clocks of replicas and API servers differ.
const BACKDATED: Duration = Duration::from_secs(3600);

/// Name prefix of self-managed authorities, which identifies their certificates.
pub(super) const AUTHORITY: &str = "webhook-authority-";

/// Why a certificate cannot be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A host name that is invalid in a certificate, or an invalid key.
    #[error("make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The authority of the step does not exist.
    #[error("make a certificate signed by {0}: there is no such authority")]
    Unknown(String),
}

/// Runs a step and returns the resulting certificates.
pub(super) fn perform(
    step: &Step,
    stored: Option<&StoredCertificates>,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<StoredCertificates, IssueError> {
    let stored = match (step, stored) {
        (Step::Begin, _) | (_, None) => return begin(names, now),
        (_, Some(stored)) => stored,
    };
    let mut stored = stored.clone();
    match step {
        Step::Begin => {}
        Step::Announce => {
            let (authority, pair) = authority(now)?;
            stored.state.authorities.push(authority.clone());
            stored.authorities.insert(authority.name, pair);
        }
        Step::Sign(name) => {
            let unknown = || IssueError::Unknown(name.clone());
            let mut authorities = stored.state.authorities.iter();
            let authority = authorities
                .find(|authority| authority.name == *name)
                .ok_or_else(unknown)?;
            let key = stored.authorities.get(name).ok_or_else(unknown)?;
            (stored.state.serving, stored.serving) = serving(authority, key, names, now)?;
        }
        Step::Retire(retired) => {
            stored
                .state
                .authorities
                .retain(|authority| !retired.contains(&authority.name));
            stored.authorities.retain(|name, _| !retired.contains(name));
        }
    }
    Ok(stored)
}

fn begin(names: &[String], now: DateTime<Utc>) -> Result<StoredCertificates, IssueError> {
    let (authority, key) = authority(now)?;
    let (record, pair) = serving(&authority, &key, names, now)?;
    Ok(StoredCertificates {
        authorities: [(authority.name.clone(), key)].into(),
        serving: pair,
        state: CertificateState {
            authorities: vec![authority],
            serving: record,
        },
    })
}

fn authority(now: DateTime<Utc>) -> Result<(Authority, Pair), IssueError> {
    let key = KeyPair::generate()?;
    let span = Validity::new(now, AUTHORITY_LIFE, None);
    let authority = Authority {
        name: format!("{AUTHORITY}{}", span.from.timestamp()),
        span,
    };
    let certificate = authority_params(&authority)?.self_signed(&key)?;
    let pair = Pair::new(certificate.pem(), key.serialize_pem());
    Ok((authority, pair))
}

/// Parameters of an authority, for its certificate and for the issuer of serving certificates.
fn authority_params(authority: &Authority) -> Result<CertificateParams, IssueError> {
    let mut params = params(&[], authority.span, &authority.name)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn serving(
    authority: &Authority,
    authority_key: &Pair,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<(Serving, Pair), IssueError> {
    let issuer = Issuer::new(authority_params(authority)?, KeyPair::from_pem(authority_key.key())?);
    let span = Validity::new(now, SERVING_LIFE, Some(authority.span.until));
    let key = KeyPair::generate()?;
    let common_name = names.first().map_or("webhook", String::as_str);
    let mut params = params(names, span, common_name)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    let record = Serving {
        signed_by: authority.name.clone(),
        span,
        names: names.to_vec(),
    };
    Ok((record, Pair::new(certificate.pem(), key.serialize_pem())))
}

fn params(names: &[String], span: Validity, common_name: &str) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(names)?;
    // A common name has at most 64 characters; the alternative names contain the full host names.
    let short: String = common_name.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, short);
    let epoch = date_time_ymd(1970, 1, 1);
    let at = |time: DateTime<Utc>| epoch + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or_default());
    params.not_before = at(span.from) - BACKDATED;
    params.not_after = at(span.until);
    Ok(params)
}
