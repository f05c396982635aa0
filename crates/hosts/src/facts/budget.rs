//! The deprovision budget.

/// The deprovision budget of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The remaining number.
    pub left: u32,
    /// The number per period.
    pub limit: u32,
    /// The name of the period: `hour`.
    pub period: &'static str,
}
