//! The cost of a life cycle: requests to Ironic, API reads and API writes per phase.

use super::ironic;
use super::state::{HostChange, ModelState};
use super::{ALL, ENROLLED};
use crate::facts::Read;

#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    ironic: usize,
    reads: usize,
    writes: usize,
}

/// Reconciles until nothing changes any more. The change feed and the watches cost nothing here.
fn settle(model: &mut ModelState) -> Cost {
    let mut cost = Cost::default();
    for _ in 0..60 {
        let previous = model.fingerprint();
        let mut program = model.programs.remove(0);
        program.reads.clear();
        program.observe_host(model.host.as_ref());
        program.observe_node(model.node.as_ref());
        let had_node = model.node.is_some();
        let writes = program.reconcile(model, None);
        for write in &writes {
            match write.as_str() {
                "another object" => cost.writes += 1,
                write if write.starts_with("host") || write.starts_with("status") => cost.writes += 1,
                _ => cost.ironic += 1,
            }
        }
        for read in &program.reads {
            match read {
                // Searches by name, plain name and MAC address, all without a result.
                Read::Node if !had_node => cost.ironic += 3,
                Read::Node | Read::Ports | Read::Inventory | Read::Validation | Read::History => cost.ironic += 1,
                Read::Slot => {}
                _ => cost.reads += 1,
            }
        }
        model.programs.insert(0, program);
        if let Some(node) = &model.node
            && let Some((node, disk)) = ironic::progress(node, model.disk.as_deref(), false).into_iter().next()
        {
            (model.node, model.disk) = (Some(node), disk);
        }
        if model.fingerprint() == previous {
            return cost;
        }
    }
    panic!("the model does not become steady");
}

#[test]
fn life_cycle_stays_within_its_cost_limits() {
    let mut model = ModelState::start(ENROLLED, ALL);
    let enrol = settle(&mut model);
    assert_eq!(
        model.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "available"
    );
    model.change(HostChange::SetImage("a"));
    let provision = settle(&mut model);
    assert_eq!(
        model.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "provisioned"
    );
    model.change(HostChange::RemoveImage);
    let deprovision = settle(&mut model);
    assert_eq!(
        model.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "available"
    );
    model.change(HostChange::Delete);
    let delete = settle(&mut model);
    assert!(model.host.is_none() && model.node.is_none());
    println!("enrol {enrol:?}, provision {provision:?}, deprovision {deprovision:?}, delete {delete:?}");
    // The read of the credentials Secret is not part of the model.
    assert!(
        enrol.ironic <= 11 && enrol.reads == 0 && enrol.writes <= 16,
        "{enrol:?}"
    );
    // Five without the cleaning before the first deployment.
    assert!(provision.ironic <= 4 + 2, "{provision:?}");
    assert!(deprovision.ironic <= 3, "{deprovision:?}");
    // A read of the node before its machine is powered off, and one before its record is deleted.
    assert!(delete.ironic <= 4, "{delete:?}");
    assert_eq!(
        settle(&mut ModelState::start(super::RUNNING, ALL)).ironic,
        0,
        "an unchanged host sends no requests"
    );
}
