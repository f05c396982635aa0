//! What a life costs: requests to Ironic, reads of the API and writes to it, phase by phase.

use super::ironic;
use super::world::{Deed, World};
use super::{ALL, ENROLLED};
use crate::facts::Read;

/// What a phase costs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    ironic: usize,
    reads: usize,
    writes: usize,
}

/// Has everybody act until nothing changes any more. The change feed and the watches cost nothing here.
fn settle(world: &mut World) -> Cost {
    let mut cost = Cost::default();
    for _ in 0..60 {
        let before = world.figure();
        let mut program = world.programs.remove(0);
        program.looks.clear();
        program.see_host(world.host.as_ref());
        program.see_node(world.node.as_ref());
        let had_node = world.node.is_some();
        let writes = program.pass(world, None);
        for write in &writes {
            match write.as_str() {
                "another object" => cost.writes += 1,
                write if write.starts_with("host") || write.starts_with("status") => cost.writes += 1,
                _ => cost.ironic += 1,
            }
        }
        for look in &program.looks {
            match look {
                // By name, by the plain name, by MAC address: all in vain.
                Read::Node if !had_node => cost.ironic += 3,
                Read::Node | Read::Ports | Read::Inventory | Read::Validation | Read::History => cost.ironic += 1,
                Read::Turn => {}
                _ => cost.reads += 1,
            }
        }
        world.programs.insert(0, program);
        if let Some(node) = &world.node
            && let Some((node, disk)) = ironic::progress(node, world.disk.as_deref(), false).into_iter().next()
        {
            (world.node, world.disk) = (Some(node), disk);
        }
        if world.figure() == before {
            return cost;
        }
    }
    panic!("the world does not come to rest");
}

#[test]
fn a_life_costs_no_more_than_it_may() {
    let mut world = World::start(ENROLLED, ALL);
    let enrol = settle(&mut world);
    assert_eq!(
        world.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "available"
    );
    world.deed(Deed::Ask("a"));
    let provision = settle(&mut world);
    assert_eq!(
        world.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "provisioned"
    );
    world.deed(Deed::AskNothing);
    let deprovision = settle(&mut world);
    assert_eq!(
        world.host.as_ref().unwrap()["status"]["provisioning"]["state"],
        "available"
    );
    world.deed(Deed::Delete);
    let delete = settle(&mut world);
    assert!(world.host.is_none() && world.node.is_none());
    println!("enrol {enrol:?}, provision {provision:?}, deprovision {deprovision:?}, delete {delete:?}");
    // The read of the Secret with the login is not in this world.
    assert!(
        enrol.ironic <= 11 && enrol.reads == 0 && enrol.writes <= 16,
        "{enrol:?}"
    );
    // Five with the request to clean before the first deployment.
    assert!(provision.ironic <= 4 + 2, "{provision:?}");
    assert!(deprovision.ironic <= 3, "{deprovision:?}");
    assert!(delete.ironic <= 2, "{delete:?}");
    assert_eq!(
        settle(&mut World::start(super::RUNNING, ALL)).ironic,
        0,
        "a host at rest asks nothing"
    );
}
