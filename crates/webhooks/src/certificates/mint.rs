//! Making keys and certificates: the only place that needs randomness.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

use super::ledger::{AUTHORITY_LIFE, Authority, Ledger, SERVING_LIFE, Serving, Span};
use super::plan::Step;
use super::vault::{Pair, Vault};

/// Clocks of replicas and API servers differ; certificates begin that much earlier.
const BACKDATED: Duration = Duration::from_secs(3600);

/// What the names of authorities begin with, and by what their certificates are known for ours.
pub(super) const AUTHORITY: &str = "webhook-authority-";

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// A host name that no certificate can carry, or a key that cannot be read.
    #[error("make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The step is about an authority that is not there.
    #[error("make a certificate signed by {0}: there is no such authority")]
    Unknown(String),
}

/// The vault after a step.
pub(super) fn perform(
    step: &Step,
    vault: Option<&Vault>,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<Vault, MintError> {
    let vault = match (step, vault) {
        (Step::Begin, _) | (_, None) => return begin(names, now),
        (_, Some(vault)) => vault,
    };
    let mut vault = vault.clone();
    match step {
        Step::Begin => {}
        Step::Announce => {
            let (authority, pair) = authority(now)?;
            vault.ledger.authorities.push(authority.clone());
            vault.authorities.insert(authority.name, pair);
        }
        Step::Sign(name) => {
            let unknown = || MintError::Unknown(name.clone());
            let mut authorities = vault.ledger.authorities.iter();
            let authority = authorities
                .find(|authority| authority.name == *name)
                .ok_or_else(unknown)?;
            let key = vault.authorities.get(name).ok_or_else(unknown)?;
            (vault.ledger.serving, vault.serving) = serving(authority, key, names, now)?;
        }
        Step::Retire(retired) => {
            vault
                .ledger
                .authorities
                .retain(|authority| !retired.contains(&authority.name));
            vault.authorities.retain(|name, _| !retired.contains(name));
        }
    }
    Ok(vault)
}

fn begin(names: &[String], now: DateTime<Utc>) -> Result<Vault, MintError> {
    let (authority, key) = authority(now)?;
    let (record, pair) = serving(&authority, &key, names, now)?;
    Ok(Vault {
        authorities: [(authority.name.clone(), key)].into(),
        serving: pair,
        ledger: Ledger {
            authorities: vec![authority],
            serving: record,
        },
    })
}

fn authority(now: DateTime<Utc>) -> Result<(Authority, Pair), MintError> {
    let key = KeyPair::generate()?;
    let span = Span::new(now, AUTHORITY_LIFE, None);
    let authority = Authority {
        name: format!("{AUTHORITY}{}", span.from.timestamp()),
        span,
    };
    let certificate = authority_params(&authority)?.self_signed(&key)?;
    let pair = Pair::new(certificate.pem(), key.serialize_pem());
    Ok((authority, pair))
}

/// What an authority says of itself. Its certificate is made from it, and so is, later, the issuer of what it signs.
fn authority_params(authority: &Authority) -> Result<CertificateParams, MintError> {
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
) -> Result<(Serving, Pair), MintError> {
    let issuer = Issuer::new(authority_params(authority)?, KeyPair::from_pem(authority_key.key())?);
    let span = Span::new(now, SERVING_LIFE, Some(authority.span.until));
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

fn params(names: &[String], span: Span, common_name: &str) -> Result<CertificateParams, MintError> {
    let mut params = CertificateParams::new(names)?;
    // A common name has room for 64 characters; the host names are among the alternative ones in full.
    let short: String = common_name.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, short);
    let epoch = date_time_ymd(1970, 1, 1);
    let at = |time: DateTime<Utc>| epoch + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or_default());
    params.not_before = at(span.from) - BACKDATED;
    params.not_after = at(span.until);
    Ok(params)
}
