//! Faults that are injected into a write.

use std::time::Duration;

use metal3_sim_faults::Fault;

/// Lag of stale caches, and delay of a late response: longer than any watch takes.
pub(crate) const DELAY: Duration = Duration::from_secs(3);

/// A fault of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteFault {
    /// The program crashes before the write takes effect.
    CrashBefore,
    /// The program crashes after the write took effect.
    CrashAfter,
    /// The write takes effect and the connection breaks.
    ReplyLost,
    /// The server reports a conflict.
    Conflict,
    /// The server responds 429 with `Retry-After`.
    Throttled,
    /// The server responds 500, without effect.
    Failed,
    /// The write takes effect, and the response arrives after the watch event.
    LateAnswer,
    /// From this write on, watch events are delayed for a while.
    StaleCache,
}

impl WriteFault {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::ReplyLost,
        Self::Conflict,
        Self::Throttled,
        Self::Failed,
        Self::LateAnswer,
        Self::StaleCache,
    ];

    /// The fault for the simulated API server; `None` for one that the interceptor implements.
    pub(crate) const fn fault(self) -> Option<Fault> {
        match self {
            Self::CrashBefore => Some(Fault::CrashBefore),
            Self::CrashAfter => Some(Fault::CrashAfter),
            Self::ReplyLost => Some(Fault::ReplyLost),
            Self::Conflict => Some(Fault::Conflict),
            Self::Throttled => Some(Fault::Refused {
                code: 429,
                retry_after: Some(2),
            }),
            Self::Failed => Some(Fault::Refused {
                code: 500,
                retry_after: None,
            }),
            Self::LateAnswer => Some(Fault::Delay(DELAY)),
            Self::StaleCache => None,
        }
    }
}
