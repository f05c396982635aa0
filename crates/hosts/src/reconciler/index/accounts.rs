//! Who pays for deprovisionings, and what was spent.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::Key;

use super::super::budget::DeprovisionBudget;
use super::Inner;
use crate::claims::bond::{Record, bound_claim};

/// More than the clocks of two processes differ. A time that is further ahead is from a clock that was wrong.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);

/// How often the budget all claims for hosts of a namespace have together: one tenant who spends his own leaves as much to the others.
const SHARES: u32 = 2;

impl Inner {
    pub(super) fn account(&self, host: &Key) -> String {
        self.accounts.get(host).unwrap_or(&host.namespace).clone()
    }

    pub(super) fn open_account(&mut self, key: &Key, host: &BareMetalHost) {
        if let Some(claim) = bound_claim(host) {
            let account = format!("{}/{}", key.namespace, claim.namespace);
            self.accounts.insert(key.clone(), account);
        } else if host.spec.consumer_ref.is_some() {
            // Another consumer pays for itself.
            self.accounts.remove(key);
        } else if let Some(account) = self.accounts.get(key) {
            let counts = self
                .deprovisioned
                .get(account)
                .is_some_and(|hosts| hosts.contains_key(&key.name));
            if !counts {
                self.accounts.remove(key);
            }
        }
    }

    pub(super) fn record_deprovisioning(&mut self, key: &Key, host: &BareMetalHost, now: DateTime<Utc>) {
        let Some(began) = host.status.operation_history.deprovision.start else {
            return;
        };
        if began.get().signed_duration_since(now) > CLOCK_DIFFERENCE {
            // It would hide a later one of the same host.
            return;
        }
        // The removal of a failed deployment is not counted: nothing ran.
        let deployed = host.status.operation_history.provision.end;
        let was_running = deployed.is_none_or(|deployed| deployed.get() < began.get());
        if was_running && !self.is_entered(key, began.get()) {
            // Before the host was bound to its claim, another one caused it. After a restart it is not known which.
            let was_before = Record::of(host).is_some_and(|record| record.at.get() > began.get());
            let account = match was_before {
                true => key.namespace.clone(),
                false => self.account(key),
            };
            let deprovisioned = self.deprovisioned.entry(account).or_default();
            deprovisioned.insert(key.name.clone(), began.get());
        }
    }

    /// Whether an account of the namespace has this start of the host, or a newer one or a reservation: who has the host now did not
    /// cause it then.
    fn is_entered(&self, key: &Key, began: DateTime<Utc>) -> bool {
        let of_namespace = self.deprovisioned.get(&key.namespace);
        let of_claims = self.of_claims(&key.namespace).map(|(_, hosts)| hosts);
        let mut accounts = of_namespace.into_iter().chain(of_claims);
        accounts.any(|hosts| hosts.get(&key.name).is_some_and(|at| *at >= began))
    }

    pub(super) fn prune(&mut self, namespace: &str, budget: &DeprovisionBudget, now: DateTime<Utc>) {
        if let Some(deprovisioned) = self.deprovisioned.get_mut(namespace) {
            deprovisioned.retain(|_, at| is_recent(*at, budget, now));
            if deprovisioned.is_empty() {
                self.deprovisioned.remove(namespace);
            }
        }
    }

    /// Whether a host has a valid reservation that it has not used.
    pub(super) fn has_reservation(&self, host: &Key, budget: &DeprovisionBudget, now: DateTime<Utc>) -> bool {
        let deprovisioned = self.deprovisioned.get(&self.account(host));
        let at = deprovisioned.and_then(|deprovisioned| deprovisioned.get(&host.name));
        self.reserved.contains(host) && at.is_some_and(|at| is_recent(*at, budget, now))
    }

    /// What an account has left: claims have it only while all of them together have something left, because a mistake may delete those
    /// of every tenant.
    pub(super) fn left(&self, account: &str, budget: &DeprovisionBudget, now: DateTime<Utc>) -> u32 {
        let own = budget.limit.saturating_sub(self.recent(account, budget, now));
        let Some((namespace, _)) = account.split_once('/') else {
            return own;
        };
        let all: u32 = self
            .of_claims(namespace)
            .map(|(account, _)| self.recent(account, budget, now))
            .sum();
        own.min(budget.limit.saturating_mul(SHARES).saturating_sub(all))
    }

    /// The accounts of claims for hosts of a namespace.
    fn of_claims(&self, namespace: &str) -> impl Iterator<Item = (&str, &BTreeMap<String, DateTime<Utc>>)> {
        let prefix = format!("{namespace}/");
        let accounts = self.deprovisioned.range(prefix.clone()..);
        let accounts = accounts.take_while(move |(account, _)| account.starts_with(&prefix));
        accounts.map(|(account, hosts)| (account.as_str(), hosts))
    }

    /// The deprovisionings of a namespace within the period.
    pub(super) fn recent(&self, namespace: &str, budget: &DeprovisionBudget, now: DateTime<Utc>) -> u32 {
        let deprovisioned = self.deprovisioned.get(namespace).into_iter().flat_map(BTreeMap::values);
        let recent = deprovisioned.filter(|at| is_recent(**at, budget, now)).count();
        u32::try_from(recent).unwrap_or(u32::MAX)
    }
}

/// Whether a deprovisioning began within the period. A time that is ahead of now by the whole period is from a clock that
/// was wrong, and does not count.
fn is_recent(began: DateTime<Utc>, budget: &DeprovisionBudget, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(began).abs() < budget.period
}
