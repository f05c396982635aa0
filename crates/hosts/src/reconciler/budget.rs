//! The deprovision budget, and what is left of those of all namespaces.

use chrono::TimeDelta;

/// How many provisioned hosts of a namespace may be deprovisioned per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeprovisionBudget {
    /// The number.
    pub limit: u32,
    /// The period.
    pub period: TimeDelta,
    /// The name of the period: `hour`.
    pub period_name: &'static str,
}

impl Default for DeprovisionBudget {
    fn default() -> Self {
        Self {
            limit: 100,
            period: TimeDelta::hours(1),
            period_name: "hour",
        }
    }
}

/// The budgets of all namespaces, without a name: a metric shows no namespace that upstream's metrics do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budgets {
    /// What is left where least is left.
    pub(super) least: u32,
    /// The namespaces where none is left.
    pub(super) spent: usize,
}

impl Budgets {
    /// From what is left in each namespace with a deprovisioning; in all others the whole budget is.
    pub(super) fn of(budget: &DeprovisionBudget, left: impl Iterator<Item = u32>) -> Self {
        let unused = Self {
            least: budget.limit,
            spent: 0,
        };
        left.fold(unused, |budgets, left| Self {
            least: budgets.least.min(left),
            spent: budgets.spent.saturating_add(usize::from(left == 0)),
        })
    }
}
