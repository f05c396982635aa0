//! What a claim is and what comes of it on two services. A difference counts as known only where it is listed with the
//! side on which the claim fails and the reason; a listed difference that is gone is as wrong as an unlisted one.

use futures::future::BoxFuture;

use super::service::Service;

/// Characters of what was seen that a line shows.
const SHOWN: usize = 100;

/// Brings a service into the state that the claim speaks of, and fails with what it saw instead.
pub(crate) type Proof = for<'a> fn(&'a Service) -> BoxFuture<'a, anyhow::Result<()>>;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Emulator,
}

impl Side {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "labhosts",
            Self::Emulator => "the emulator",
        }
    }
}

/// A sentence about a Redfish service.
pub(crate) struct Claim {
    pub(crate) says: &'static str,
    pub(crate) proof: Proof,
    listed: Option<(Side, &'static str)>,
}

impl Claim {
    pub(crate) const fn both(says: &'static str, proof: Proof) -> Self {
        Self {
            says,
            proof,
            listed: None,
        }
    }

    /// A feature, or a rule of the standard, that sushy-tools' emulator does not have.
    pub(crate) const fn not_on_emulator(says: &'static str, reason: &'static str, proof: Proof) -> Self {
        Self {
            says,
            proof,
            listed: Some((Side::Emulator, reason)),
        }
    }

    /// What the emulator can and our BMCs cannot.
    pub(crate) const fn not_on_ours(says: &'static str, reason: &'static str, proof: Proof) -> Self {
        Self {
            says,
            proof,
            listed: Some((Side::Ours, reason)),
        }
    }

    pub(crate) fn judge(&self, ours: anyhow::Result<()>, emulator: anyhow::Result<()>) -> Verdict {
        let failures: Vec<(Side, String)> = [(Side::Ours, ours.err()), (Side::Emulator, emulator.err())]
            .into_iter()
            .filter_map(|(side, error)| Some((side, format!("{:#}", error?))))
            .collect();
        match (failures.as_slice(), self.listed) {
            ([], None) => Verdict::Holds,
            ([], Some(_)) => Verdict::Wrong("listed as a difference, and holds on both".into()),
            ([(failed, error)], Some((side, reason))) if *failed == side => Verdict::Listed {
                side,
                reason,
                seen: error.chars().take(SHOWN).collect(),
            },
            (failures, _) => {
                let said: Vec<String> = failures
                    .iter()
                    .map(|(side, error)| format!("{}: {error}", side.name()))
                    .collect();
                Verdict::Wrong(said.join("; "))
            }
        }
    }
}

/// What came of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Listed {
        side: Side,
        reason: &'static str,
        /// What the side said, so that a reader can tell whether it is what the reason speaks of.
        seen: String,
    },
    Wrong(String),
}

impl Verdict {
    pub(crate) fn line(&self, says: &str) -> String {
        match self {
            Self::Holds => format!("holds    {says}"),
            Self::Listed { side, reason, seen } => {
                format!("differs  {says}: not on {}, {reason} ({seen})", side.name())
            }
            Self::Wrong(what) => format!("WRONG    {says}: {what}"),
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
    fn unlisted_difference_is_wrong_and_names_who_failed() {
        let claim = Claim::both("c", nothing);
        assert_eq!(claim.judge(Ok(()), Ok(())), Verdict::Holds);
        assert_eq!(
            claim.judge(Ok(()), Err(anyhow!("404"))),
            Verdict::Wrong("the emulator: 404".into())
        );
    }

    #[test]
    fn listed_difference_is_excused_on_its_side_only() {
        let claim = Claim::not_on_emulator("c", "r", nothing);
        assert_eq!(
            claim.judge(Ok(()), Err(anyhow!("404"))),
            Verdict::Listed {
                side: Side::Emulator,
                reason: "r",
                seen: "404".into()
            }
        );
        assert!(matches!(
            claim.judge(Err(anyhow!("404")), Ok(())),
            Verdict::Wrong(said) if said.starts_with("labhosts")
        ));
        assert!(matches!(
            claim.judge(Err(anyhow!("1")), Err(anyhow!("2"))),
            Verdict::Wrong(_)
        ));
    }

    #[test]
    fn listed_difference_that_is_gone_is_wrong() {
        let claim = Claim::not_on_ours("c", "r", nothing);
        assert!(matches!(claim.judge(Ok(()), Ok(())), Verdict::Wrong(_)));
    }
}
