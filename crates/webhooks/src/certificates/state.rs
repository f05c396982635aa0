//! Names and validity of the certificates. Stored with them; contains no secret.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Lifetime of an authority. Long, because a new one must first be injected; short enough that a rotation happens every
/// year.
pub const AUTHORITY_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Lifetime of a serving certificate, as in cert-manager.
pub const SERVING_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time for a change to propagate: a new pair to replicas, a new authority to API servers. Both take a minute.
pub const PROPAGATION: Duration = Duration::from_secs(3600);

/// A period of validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// Start.
    pub from: DateTime<Utc>,
    /// End.
    pub until: DateTime<Utc>,
}

impl Validity {
    /// From `now` for `life`, at most until `end`. Whole seconds, as in certificates.
    #[must_use]
    pub fn new(now: DateTime<Utc>, life: Duration, end: Option<DateTime<Utc>>) -> Self {
        let from = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
        let until = later(from, life);
        Self {
            from,
            until: end.map_or(until, |end| until.min(end)),
        }
    }

    /// Whether two thirds of the period have passed.
    #[must_use]
    pub fn needs_renewal(&self, now: DateTime<Utc>) -> bool {
        (now - self.from) * 3 >= (self.until - self.from) * 2
    }

    /// Whether the period has ended.
    #[must_use]
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.until <= now
    }

    /// Whether the propagation time has passed since the start.
    #[must_use]
    pub fn is_propagated(&self, now: DateTime<Utc>) -> bool {
        later(self.from, PROPAGATION) <= now
    }
}

fn later(time: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    time.checked_add_signed(chrono::TimeDelta::from_std(by).unwrap_or_default())
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// One authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Its common name, also the prefix of its keys in the Secret.
    pub name: String,
    /// Its validity.
    pub span: Validity,
}

/// The serving certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Serving {
    /// The authority that signed it.
    pub signed_by: String,
    /// Its validity.
    pub span: Validity,
    /// Its host names.
    pub names: Vec<String>,
}

/// State of all certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateState {
    /// The authorities in the CA bundle, oldest first.
    pub authorities: Vec<Authority>,
    /// The serving certificate.
    pub serving: Serving,
}
