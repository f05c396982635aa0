//! Each request to Ironic of the reference life is struck by each blow, and each write to the API server: the machine is
//! written once and never erased while its host is provisioned, nothing that destroys is done twice, and the life ends as
//! it does without.

use std::collections::BTreeMap;

use metal3_api::metal3::v1alpha1::ProvisioningState;
use metal3_sim_faults::{Fault, Plan, Rule};

use crate::lab::{Lab, PASSWORD, Setup, US};
use crate::story::{Phase, SOURCE};
use crate::tap::Blow;

/// Every so many cases is run, unless the variable asks for all.
const EVERY: usize = 30;
const ALL: &str = "METAL3_HOSTS_EVERY_BLOW";
/// What destroys, and how often a life has it done.
const DESTROYS: [(&str, usize); 3] = [
    ("PUT nodes/_/states/provision active", 1),
    ("PUT nodes/_/states/provision deleted", 1),
    ("DELETE nodes/_", 1),
];

/// A sort of write: verb and resource.
type Sort = (&'static str, &'static str);
const STATUS: Sort = ("patch", "baremetalhosts/status");
/// Every other sort of write that a life makes.
const OTHERS: [Sort; 4] = [
    ("patch", "baremetalhosts"),
    ("patch", "secrets"),
    ("create", "hardwaredata"),
    ("patch", "hardwaredata"),
];
/// What goes wrong with a write.
const FAULTS: [Fault; 5] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::ReplyLost,
    Fault::Conflict,
    Fault::Refused {
        code: 500,
        retry_after: None,
    },
];

/// What is struck in a life, and how.
#[derive(Debug, Clone, Copy)]
enum Case {
    Calm,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, Blow),
    /// The n-th write of a sort, counted from 1.
    Write(Sort, u64, Fault),
}

/// What a life took.
struct Took {
    requests: usize,
    writes: BTreeMap<Sort, u64>,
}

/// One life.
async fn life(case: Case) -> Took {
    let lab = Lab::new(Setup::default());
    match case {
        Case::Calm => {}
        Case::Ironic(at, blow) => lab.tap.book().blow = Some((at, blow)),
        Case::Write((verb, resource), at, fault) => {
            let rule = Rule::at(at, fault).verb(verb).resource(resource);
            lab.cluster.suffer(Plan::none().with(rule));
        }
    }
    for phase in Phase::ALL {
        phase.begin(&lab, 1).await;
        phase.end(&lab, 1).await;
        judge(&lab, phase, case).await;
    }
    assert!(lab.node(1).await.is_none(), "{case:?}: a node is left");
    let book = lab.tap.book();
    let is_struck = matches!(case, Case::Ironic(..));
    assert_eq!(book.struck, is_struck, "{case:?} at a request that was not made");
    for (what, most) in DESTROYS {
        let done = book.done.get(what).copied().unwrap_or_default();
        assert!(
            done <= most,
            "{case:?}: {what} was done {done} times: {:#?}",
            book.asked
        );
    }
    Took {
        requests: book.asked.len(),
        writes: OTHERS
            .into_iter()
            .chain([STATUS])
            .map(|(verb, resource)| ((verb, resource), lab.cluster.audit().of(US, verb, resource)))
            .collect(),
    }
}

/// What must hold at the end of a phase.
async fn judge(lab: &Lab, phase: Phase, case: Case) {
    let written = u32::from(phase != Phase::Enrol);
    let keeps = phase == Phase::Provision;
    lab.machine(1, |machine| {
        assert_eq!(machine.tally.written, written, "{case:?}, {phase:?}");
        let source = machine.disk.as_ref().map(|disk| disk.source.as_str());
        assert_eq!(source, keeps.then_some(SOURCE), "{case:?}, {phase:?}");
    });
    let shown = format!("{:?} {}", lab.get(1).await, lab.events());
    assert!(!shown.contains(PASSWORD), "{case:?}, {phase:?}: the password is shown");
    if let Some(host) = lab.get(1).await {
        let is_provisioned = host.status.provisioning.state == ProvisioningState::Provisioned;
        assert_eq!(is_provisioned, keeps, "{case:?}, {phase:?}");
        assert_eq!(
            host.status.error_count, 0,
            "{case:?}, {phase:?}: no failure of the machine"
        );
    }
}

/// Every so many of all, or all if the variable says so.
#[expect(clippy::print_stdout, reason = "the figures are for whoever reads the test's output")]
async fn survives(all: &[Case]) {
    let every = if std::env::var_os(ALL).is_some() { 1 } else { EVERY };
    let run: Vec<_> = all.iter().copied().step_by(every).collect();
    println!("{} cases, {} run ({ALL}=1 for all)", all.len(), run.len());
    for case in run {
        life(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_blow_to_a_request_to_ironic_writes_a_machine_twice_or_loses_it() {
    let requests = life(Case::Calm).await.requests;
    let all = (1..=requests).flat_map(|at| Blow::ALL.map(|blow| Case::Ironic(at, blow)));
    let all: Vec<_> = all.collect();
    assert_eq!(all.len(), 22 * 7);
    survives(&all).await;
}

/// Each fault at each write of these sorts.
async fn writes(sorts: &[Sort]) -> Vec<Case> {
    let took = life(Case::Calm).await.writes;
    let each = sorts
        .iter()
        .flat_map(|sort| (1..=took.get(sort).copied().unwrap_or_default()).map(move |at| (*sort, at)));
    each.flat_map(|(sort, at)| FAULTS.map(|fault| Case::Write(sort, at, fault)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn no_blow_to_a_write_of_the_status_writes_a_machine_twice_or_loses_it() {
    let all = writes(&[STATUS]).await;
    assert_eq!(all.len(), 14 * 5);
    survives(&all).await;
}

#[tokio::test(start_paused = true)]
async fn no_blow_to_another_write_writes_a_machine_twice_or_loses_it() {
    let all = writes(&OTHERS).await;
    assert_eq!(all.len(), 7 * 5);
    survives(&all).await;
}
