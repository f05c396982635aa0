//! What is known of the certificates without reading one: names and times. It is stored beside them and holds no secret.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How long an authority lives. Long, because a new one has to be told to the API server first; short enough that its
/// replacement is exercised every year.
pub const AUTHORITY_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long a serving certificate lives: what cert-manager uses.
pub const SERVING_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long everybody has to notice: replicas a new pair, API servers a new authority. Both take a minute.
pub const NOTICE: Duration = Duration::from_secs(3600);

/// A time of validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Made then.
    pub from: DateTime<Utc>,
    /// Worthless from then on.
    pub until: DateTime<Utc>,
}

impl Span {
    /// From `now` for `life`, but not beyond `end`. Whole seconds, as certificates have them.
    #[must_use]
    pub fn new(now: DateTime<Utc>, life: Duration, end: Option<DateTime<Utc>>) -> Self {
        let from = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
        let until = later(from, life);
        Self {
            from,
            until: end.map_or(until, |end| until.min(end)),
        }
    }

    /// Whether it is time for a successor: two thirds have passed.
    #[must_use]
    pub fn is_aging(&self, now: DateTime<Utc>) -> bool {
        (now - self.from) * 3 >= (self.until - self.from) * 2
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.until <= now
    }

    /// Whether everybody had the time to notice.
    #[must_use]
    pub fn is_noticed(&self, now: DateTime<Utc>) -> bool {
        later(self.from, NOTICE) <= now
    }
}

fn later(time: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    time.checked_add_signed(chrono::TimeDelta::from_std(by).unwrap_or_default())
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// One authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Its common name, which is also the name of its files.
    pub name: String,
    /// When it is valid.
    pub span: Span,
}

/// The certificate that is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Serving {
    /// The authority that signed it.
    pub signed_by: String,
    /// When it is valid.
    pub span: Span,
    /// The host names in it.
    pub names: Vec<String>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Those the API server is told to trust, oldest first.
    pub authorities: Vec<Authority>,
    /// What is served.
    pub serving: Serving,
}
