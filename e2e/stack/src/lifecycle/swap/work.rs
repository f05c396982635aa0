//! The work in flight at each switch. Pure.

use std::collections::BTreeMap;

use super::stage::host;

pub(super) const REBOOTED: u64 = 22;
pub(super) const SWITCHED: u64 = 24;
/// Its volumes change in each switch.
pub(super) const REBUILT: u64 = 38;
/// A setting of its BIOS changes in each switch.
pub(super) const RETUNED: u64 = 42;
/// It runs, and a service changes a setting of its BIOS.
pub(super) const SERVICED: u64 = 43;
/// Its BIOS is updated in each switch.
pub(super) const UPDATED: u64 = 44;
/// It runs, and a service updates its BIOS and its BMC.
pub(super) const FLASHED: u64 = 45;
/// It runs, after a service of this program that failed before each way back.
pub(super) const UNSERVICED: u64 = 46;
/// It runs, and its service is ordered right before this program is killed.
pub(super) const CUT: u64 = 47;
/// After a switch in which a machine is deleted.
const FEWER_WORKERS: usize = 2;
/// Hosts that are provisioned in one switch and deprovisioned in the next.
pub(super) const PAIR: [u64; 2] = [16, 17];

/// Hosts that are new in each switch, to inspect and to register, and the one that is deleted in it.
const NEW: [[u64; 3]; 8] = [
    [19, 20, 18],
    [25, 26, 20],
    [18, 20, 26],
    [21, 26, 19],
    [27, 28, 21],
    [19, 21, 25],
    [25, 29, 28],
    [28, 30, 29],
];
/// Of four switches, the two ways back: in one the Cluster is paused, in the other one this program is killed.
const PAUSED_IN: usize = 1;
const CUT_IN: usize = 3;
/// The switches that a run has work for.
pub(super) const SWITCHES: usize = NEW.len();

/// What is in flight at a switch.
#[derive(Debug, Clone)]
pub(super) struct InFlight {
    pub(super) inspected: u64,
    pub(super) registered: u64,
    pub(super) deleted: u64,
    pub(super) provisioned: u64,
    pub(super) deprovisioned: u64,
    pub(super) workers: usize,
    pub(super) online: bool,
    /// The size of the new volume, in GiB.
    pub(super) volume: u32,
    /// The new setting of a BIOS.
    pub(super) turbo: &'static str,
    /// The new version of its BIOS.
    pub(super) firmware: String,
    /// The new version of the BMC of a running machine.
    pub(super) bmc: String,
    /// The new setting of the BIOS of a running machine.
    pub(super) serviced: &'static str,
    /// Whether the manager that ordered the last service is killed.
    pub(super) is_cut: bool,
    /// Whether the Cluster is paused during the switch.
    pub(super) is_paused: bool,
    /// The machine of a worker whose Node stopped answering; known when it did.
    pub(super) remediated: Option<u64>,
}

impl InFlight {
    /// The work of the switch of this number, from 0.
    pub(super) fn of(turn: usize) -> Self {
        let is_even = turn.is_multiple_of(2);
        let [inspected, registered, deleted] = NEW.get(turn).copied().unwrap_or_default();
        let [first, second] = PAIR;
        Self {
            inspected,
            registered,
            deleted,
            provisioned: if is_even { first } else { second },
            deprovisioned: if is_even { second } else { first },
            workers: if is_even { 3 } else { FEWER_WORKERS },
            online: !is_even,
            volume: if is_even { 30 } else { 20 },
            turbo: if is_even { "Enabled" } else { "Disabled" },
            firmware: format!("2.{turn}"),
            bmc: format!("3.{turn}"),
            serviced: if is_even { "Disabled" } else { "Enabled" },
            is_cut: turn % 4 == CUT_IN,
            is_paused: turn % 4 == PAUSED_IN,
            remediated: None,
        }
    }

    /// What is ordered of each host, for the report and for the judgement.
    pub(super) fn hosts(&self) -> Vec<(u64, &'static str)> {
        let always = [
            (self.inspected, "new: inspecting"),
            (self.registered, "new: registering"),
            (self.deleted, "deleting"),
            (self.provisioned, "provisioning"),
            (self.deprovisioned, "deprovisioning"),
            (REBUILT, "preparing: RAID volumes"),
            (RETUNED, "preparing: BIOS settings"),
            (UPDATED, "preparing: firmware"),
            (REBOOTED, "reboot annotation"),
            (SWITCHED, if self.online { "power on" } else { "power off" }),
        ];
        let services = [
            (SERVICED, "service: BIOS settings"),
            (FLASHED, "service: firmware of BIOS and BMC"),
        ];
        let cut = self
            .is_cut
            .then_some((CUT, "service: firmware of the BIOS, and the manager killed"));
        let remediated = self.remediated.map(|number| (number, "remediation: power off and on"));
        always
            .into_iter()
            .chain(services)
            .chain(cut)
            .chain(remediated)
            .collect()
    }

    /// Hosts of which something is asked after the prediction, which cannot name them.
    pub(super) fn asked_late(&self) -> Vec<u64> {
        [REBUILT, RETUNED, UPDATED, REBOOTED, SWITCHED, SERVICED, FLASHED]
            .into_iter()
            .chain(self.is_cut.then_some(CUT))
            .chain(self.remediated)
            .collect()
    }

    /// The state that each of these hosts reaches; `None` for a deleted one.
    pub(super) fn ends(&self) -> BTreeMap<String, Option<&'static str>> {
        [
            (self.inspected, Some("available")),
            (self.registered, Some("available")),
            (self.deleted, None),
            (self.provisioned, Some("provisioned")),
            (self.deprovisioned, Some("available")),
            (REBUILT, Some("available")),
            (RETUNED, Some("available")),
            (UPDATED, Some("available")),
            (REBOOTED, Some("provisioned")),
            (SWITCHED, Some("provisioned")),
            (SERVICED, Some("provisioned")),
            (FLASHED, Some("provisioned")),
        ]
        .into_iter()
        .chain(self.is_cut.then_some((CUT, Some("provisioned"))))
        .chain(self.remediated.map(|number| (number, Some("provisioned"))))
        .map(|(number, state)| (host(number), state))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::PROVISIONED;
    use super::*;

    #[test]
    fn each_switch_has_its_own_work_on_hosts_that_the_previous_one_left() {
        let mut there: Vec<u64> = PROVISIONED.to_vec();
        for turn in 0..SWITCHES {
            let work = InFlight::of(turn);
            for number in [work.inspected, work.registered] {
                assert!(!there.contains(&number), "{number} exists in switch {turn}");
                there.push(number);
            }
            assert!(
                there.contains(&work.deleted),
                "{} is absent in switch {turn}",
                work.deleted
            );
            there.retain(|number| *number != work.deleted);
            assert_ne!(work.provisioned, work.deprovisioned);
        }
    }

    #[test]
    fn each_switch_asks_for_other_firmware_and_only_ways_back_pause_or_kill() {
        for turn in 1..SWITCHES {
            let (former, work) = (InFlight::of(turn - 1), InFlight::of(turn));
            assert_ne!(former.serviced, work.serviced, "{turn}");
            assert_ne!((former.firmware, former.bmc), (work.firmware, work.bmc), "{turn}");
        }
        let all: Vec<(bool, bool)> = (0..4)
            .map(InFlight::of)
            .map(|one| (one.is_paused, one.is_cut))
            .collect();
        assert_eq!(all, [(false, false), (true, false), (false, false), (false, true)]);
    }
}
