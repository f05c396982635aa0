//! What strikes a write.

use std::time::Duration;

use metal3_sim_faults::Fault;

/// How far caches fall behind, and how late a late answer is: longer than any watch takes.
pub(crate) const LATE: Duration = Duration::from_secs(3);

/// What goes wrong with one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The program dies before the write takes effect.
    CrashBefore,
    /// The program dies after the write took effect.
    CrashAfter,
    /// The write takes effect and the connection breaks.
    ReplyLost,
    /// Somebody else wrote first, says the server.
    Conflict,
    /// The server asks to come back later.
    Throttled,
    /// The server fails, without effect.
    Failed,
    /// The write takes effect, the watch tells, and the answer comes after that.
    LateAnswer,
    /// From the write on, watches fall behind for a while.
    StaleCache,
}

impl Blow {
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

    /// What the simulated server does; nothing where the way to it does it.
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
            Self::LateAnswer => Some(Fault::Delay(LATE)),
            Self::StaleCache => None,
        }
    }
}
