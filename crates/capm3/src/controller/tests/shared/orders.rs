//! Every order of creation, with the start of the program as one of the events.

use super::providers::{Part, ProviderFixture, seconds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Created(Part),
    Started,
}

const EVENTS: [Event; 4] = [
    Event::Created(Part::Cluster),
    Event::Created(Part::Primary),
    Event::Created(Part::Kamaji),
    Event::Started,
];
/// Longer than a control plane takes to start, and its provider to become idle.
const INTERVAL: u64 = 20;

fn orders() -> Vec<Vec<Event>> {
    let mut all = vec![Vec::new()];
    for _ in EVENTS {
        let longer = |order: &Vec<Event>| {
            let rest = EVENTS.iter().filter(|event| !order.contains(event));
            rest.map(|event| order.iter().copied().chain([*event]).collect())
                .collect::<Vec<Vec<Event>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// A fixture in which the events happened in this order, at this interval.
async fn run(
    order: &[Event],
    interval: u64,
    touches_control_planes: bool,
) -> (ProviderFixture, tokio::task::JoinSet<()>) {
    let fixture = ProviderFixture::start();
    let mut program = None;
    for event in order {
        match event {
            Event::Created(part) => fixture.make(*part).await,
            Event::Started => program = Some(fixture.program(touches_control_planes)),
        }
        seconds(interval).await;
    }
    (fixture, program.unwrap())
}

/// Whether the control plane published its endpoint long before it could be taken.
fn is_late(order: &[Event]) -> bool {
    let at = |event| order.iter().position(|one| *one == event);
    let published = at(Event::Created(Part::Cluster)).max(at(Event::Created(Part::Kamaji)));
    let taken = at(Event::Created(Part::Primary)).max(at(Event::Started));
    taken > published
}

async fn assert_taken(fixture: &ProviderFixture, order: &[Event]) {
    let metal3 = fixture.get(Part::Primary).await.unwrap();
    assert_eq!(
        metal3["spec"]["controlPlaneEndpoint"]["host"], "198.51.100.153",
        "{order:?}"
    );
    let cluster = fixture.get(Part::Cluster).await.unwrap();
    assert_eq!(
        cluster["spec"]["controlPlaneEndpoint"], metal3["spec"]["controlPlaneEndpoint"],
        "{order:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn simultaneous_objects_are_available_once_the_control_plane_has_started_in_every_order() {
    assert_eq!(orders().len(), 24);
    for order in orders() {
        let (fixture, _program) = run(&order, 0, false).await;
        seconds(15).await;
        assert!(fixture.is_available().await, "{order:?}");
        assert_taken(&fixture, &order).await;
        assert_eq!(
            fixture.condition().await,
            ("EndpointFromControlPlane".to_owned(), String::new()),
            "{order:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_order_deadlocks_and_an_idle_provider_is_named_with_the_remedy() {
    let mut late = 0;
    for order in orders() {
        let (fixture, _program) = run(&order, INTERVAL, false).await;
        assert_taken(&fixture, &order).await;
        if is_late(&order) {
            late += 1;
            assert!(!fixture.is_available().await, "{order:?}: it is idle");
            let (reason, message) = fixture.condition().await;
            assert_eq!(reason, "EndpointFromControlPlane");
            assert!(
                message.contains("KamajiControlPlane edge failed before the endpoint was here"),
                "{message}"
            );
            assert!(
                message.contains("kubectl -n default annotate kamajicontrolplane edge"),
                "{message}"
            );
            fixture.touch().await;
            seconds(3).await;
        }
        assert!(fixture.is_available().await, "{order:?}");
        assert_eq!(fixture.condition().await.1, "", "{order:?}");
    }
    assert_eq!(late, 12);
}

#[tokio::test(start_paused = true)]
async fn idle_provider_is_touched_at_once_if_enabled_and_only_once() {
    let order = [EVENTS[0], EVENTS[1], EVENTS[2]];
    let fixture = ProviderFixture::start();
    for event in order {
        if let Event::Created(part) = event {
            fixture.make(part).await;
        }
        seconds(INTERVAL).await;
    }
    let _program = fixture.program(true);
    seconds(3).await;
    assert!(fixture.is_available().await, "the backoff lasts up to 1000 s");
    let touches = |fixture: &ProviderFixture| fixture.server.audit().of("manager", "patch", "kamajicontrolplanes");
    assert_eq!(touches(&fixture), 1);
    seconds(7200).await;
    assert_eq!(touches(&fixture), 1);
    let (fresh, _program) = run(&orders()[0], 0, true).await;
    seconds(30).await;
    assert_eq!(
        (fresh.is_available().await, touches(&fresh)),
        (true, 0),
        "a provider that is not idle is not touched"
    );
}
