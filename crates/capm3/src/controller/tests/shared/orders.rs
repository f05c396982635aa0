//! Every order of creation, with the start of our program as one of the things that come in any order.

use super::living::{Living, Part, seconds};

/// What happens in some order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Made(Part),
    Started,
}

const THINGS: [Thing; 4] = [
    Thing::Made(Part::Cluster),
    Thing::Made(Part::Primary),
    Thing::Made(Part::Kamaji),
    Thing::Started,
];
/// Longer than a control plane takes to start, and its provider to fall asleep.
const APART: u64 = 20;

fn orders() -> Vec<Vec<Thing>> {
    let mut all = vec![Vec::new()];
    for _ in THINGS {
        let longer = |order: &Vec<Thing>| {
            let rest = THINGS.iter().filter(|thing| !order.contains(thing));
            rest.map(|thing| order.iter().copied().chain([*thing]).collect())
                .collect::<Vec<Vec<Thing>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// A world in which it happened in this order, so many seconds apart.
async fn play(order: &[Thing], apart: u64, nudges: bool) -> (Living, tokio::task::JoinSet<()>) {
    let world = Living::start();
    let mut program = None;
    for thing in order {
        match thing {
            Thing::Made(part) => world.make(*part).await,
            Thing::Started => program = Some(world.program(nudges)),
        }
        seconds(apart).await;
    }
    (world, program.unwrap())
}

/// Whether the control plane was up long before somebody could take its endpoint.
fn is_late(order: &[Thing]) -> bool {
    let at = |thing| order.iter().position(|one| *one == thing);
    let published = at(Thing::Made(Part::Cluster)).max(at(Thing::Made(Part::Kamaji)));
    let taken = at(Thing::Made(Part::Primary)).max(at(Thing::Started));
    taken > published
}

async fn assert_taken(world: &Living, order: &[Thing]) {
    let metal3 = world.get(Part::Primary).await.unwrap();
    assert_eq!(
        metal3["spec"]["controlPlaneEndpoint"]["host"], "198.51.100.153",
        "{order:?}"
    );
    let cluster = world.get(Part::Cluster).await.unwrap();
    assert_eq!(
        cluster["spec"]["controlPlaneEndpoint"], metal3["spec"]["controlPlaneEndpoint"],
        "{order:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_made_at_once_is_available_as_soon_as_the_control_plane_has_started_in_every_order() {
    assert_eq!(orders().len(), 24);
    for order in orders() {
        let (world, _program) = play(&order, 0, false).await;
        seconds(15).await;
        assert!(world.is_available().await, "{order:?}");
        assert_taken(&world, &order).await;
        assert_eq!(
            world.said().await,
            ("EndpointFromControlPlane".to_owned(), String::new()),
            "{order:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn in_no_order_is_there_a_deadlock_and_a_provider_that_sleeps_is_named_with_the_cure() {
    let mut late = 0;
    for order in orders() {
        let (world, _program) = play(&order, APART, false).await;
        assert_taken(&world, &order).await;
        if is_late(&order) {
            late += 1;
            assert!(!world.is_available().await, "{order:?}: it sleeps");
            let (reason, message) = world.said().await;
            assert_eq!(reason, "EndpointFromControlPlane");
            assert!(
                message.contains("KamajiControlPlane edge failed before the endpoint was here"),
                "{message}"
            );
            assert!(
                message.contains("kubectl -n default annotate kamajicontrolplane edge"),
                "{message}"
            );
            world.cure().await;
            seconds(3).await;
        }
        assert!(world.is_available().await, "{order:?}");
        assert_eq!(world.said().await.1, "", "{order:?}");
    }
    assert_eq!(late, 12);
}

#[tokio::test(start_paused = true)]
async fn provider_that_sleeps_is_woken_at_once_where_that_is_wanted_and_only_once() {
    let order = [THINGS[0], THINGS[1], THINGS[2]];
    let world = Living::start();
    for thing in order {
        if let Thing::Made(part) = thing {
            world.make(part).await;
        }
        seconds(APART).await;
    }
    let _program = world.program(true);
    seconds(3).await;
    assert!(world.is_available().await, "the sleep would have lasted 1000 s");
    let woken = |world: &Living| world.server.audit().of("manager", "patch", "kamajicontrolplanes");
    assert_eq!(woken(&world), 1);
    seconds(7200).await;
    assert_eq!(woken(&world), 1);
    let (fresh, _program) = play(&orders()[0], 0, true).await;
    seconds(30).await;
    assert_eq!(
        (fresh.is_available().await, woken(&fresh)),
        (true, 0),
        "who is quick wakes nobody"
    );
}
