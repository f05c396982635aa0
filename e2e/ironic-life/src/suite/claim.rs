//! A claim and its outcome on two services. A difference is known only when it is listed with the side on which the claim
//! fails and the reason; a listed difference that does not occur is as wrong as an unlisted one.

use futures::future::BoxFuture;

use super::service::Service;

/// Characters of an error that a line shows.
const SHOWN: usize = 100;

/// Brings a service into the state of the claim, and fails with what it found instead.
pub(crate) type Proof = for<'a> fn(&'a Service) -> BoxFuture<'a, anyhow::Result<()>>;

/// The service under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Labhosts,
    Emulator,
}

impl Side {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Labhosts => "labhosts",
            Self::Emulator => "the emulator",
        }
    }
}

/// A sentence about a Redfish service.
pub(crate) struct Claim {
    pub(crate) text: &'static str,
    pub(crate) proof: Proof,
    listed: Option<(Side, &'static str)>,
}

impl Claim {
    pub(crate) const fn both(text: &'static str, proof: Proof) -> Self {
        Self {
            text,
            proof,
            listed: None,
        }
    }

    /// A feature, or a rule of the standard, that sushy-tools' emulator lacks.
    pub(crate) const fn not_on_emulator(text: &'static str, reason: &'static str, proof: Proof) -> Self {
        Self {
            text,
            proof,
            listed: Some((Side::Emulator, reason)),
        }
    }

    /// A feature of the emulator that labhosts lacks.
    pub(crate) const fn not_on_labhosts(text: &'static str, reason: &'static str, proof: Proof) -> Self {
        Self {
            text,
            proof,
            listed: Some((Side::Labhosts, reason)),
        }
    }

    pub(crate) fn compare(&self, labhosts: anyhow::Result<()>, emulator: anyhow::Result<()>) -> Outcome {
        let failures: Vec<(Side, String)> = [(Side::Labhosts, labhosts.err()), (Side::Emulator, emulator.err())]
            .into_iter()
            .filter_map(|(side, error)| Some((side, format!("{:#}", error?))))
            .collect();
        match (failures.as_slice(), self.listed) {
            ([], None) => Outcome::Holds,
            ([], Some(_)) => Outcome::Wrong("listed as a difference, and holds on both".into()),
            ([(failed, error)], Some((side, reason))) if *failed == side => Outcome::Listed {
                side,
                reason,
                seen: error.chars().take(SHOWN).collect(),
            },
            (failures, _) => {
                let errors: Vec<String> = failures
                    .iter()
                    .map(|(side, error)| format!("{}: {error}", side.name()))
                    .collect();
                Outcome::Wrong(errors.join("; "))
            }
        }
    }
}

/// The result of a claim on both services.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    Listed {
        side: Side,
        reason: &'static str,
        /// The error of that side, so that a reader can compare it with the reason.
        seen: String,
    },
    Wrong(String),
}

impl Outcome {
    pub(crate) fn line(&self, text: &str) -> String {
        match self {
            Self::Holds => format!("holds    {text}"),
            Self::Listed { side, reason, seen } => {
                format!("differs  {text}: not on {}, {reason} ({seen})", side.name())
            }
            Self::Wrong(what) => format!("WRONG    {text}: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn nothing(_: &Service) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    #[test]
    fn unlisted_difference_is_wrong_and_names_the_failed_service() {
        let claim = Claim::both("c", nothing);
        assert_eq!(claim.compare(Ok(()), Ok(())), Outcome::Holds);
        assert_eq!(
            claim.compare(Ok(()), Err(anyhow!("404"))),
            Outcome::Wrong("the emulator: 404".into())
        );
    }

    #[test]
    fn listed_difference_is_accepted_on_its_side_only() {
        let claim = Claim::not_on_emulator("c", "r", nothing);
        assert_eq!(
            claim.compare(Ok(()), Err(anyhow!("404"))),
            Outcome::Listed {
                side: Side::Emulator,
                reason: "r",
                seen: "404".into()
            }
        );
        assert!(matches!(
            claim.compare(Err(anyhow!("404")), Ok(())),
            Outcome::Wrong(error) if error.starts_with("labhosts")
        ));
        assert!(matches!(
            claim.compare(Err(anyhow!("1")), Err(anyhow!("2"))),
            Outcome::Wrong(_)
        ));
    }

    #[test]
    fn listed_difference_that_does_not_occur_is_wrong() {
        let claim = Claim::not_on_labhosts("c", "r", nothing);
        assert!(matches!(claim.compare(Ok(()), Ok(())), Outcome::Wrong(_)));
    }
}
