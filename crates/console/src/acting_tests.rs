use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::*;
use crate::login::fake::{Answers, Fake};

const HOUR: Duration = Duration::from_secs(3_600);

fn acting(fake: &Fake) -> (Arc<Acting>, JoinSet<()>) {
    let (login, tasks) = fake.login();
    let options = crate::Options {
        address: std::net::SocketAddr::from(([127, 0, 0, 1], 0)),
        namespace: None,
        default_namespace: "default".to_owned(),
        is_read_only: false,
        lab: None,
    };
    let clock = Arc::new(metal3_domain::clock::SystemClock::start());
    (Arc::new(Acting::new(login, clock, &options, Arc::new(|_| {}))), tasks)
}

fn pause() -> Wanted {
    Wanted {
        namespace: "default".to_owned(),
        name: "h".to_owned(),
        uid: "u".to_owned(),
        action: "pause".to_owned(),
        consequence: "controllers leave the host alone".to_owned(),
        typed: String::new(),
    }
}

/// Its doubt comes while the question is on its way whose answer is the end.
#[tokio::test(start_paused = true)]
async fn action_that_meets_the_end_of_the_login_is_refused_and_not_sent_after_the_renewal() {
    let fake = Fake::new(Answers::Code(401));
    fake.door(|door| door.takes = Duration::from_secs(2));
    let (acting, _tasks) = acting(&fake);
    sleep(Duration::from_secs(1)).await;
    fake.door(|door| door.takes = Duration::ZERO);
    let own = Arc::clone(&acting);
    let asked = JoinSet::from_iter([async move { own.act_to_the_end(pause()).await }]);
    sleep(HOUR).await;
    fake.door(|door| {
        door.answers = Answers::Accepted("ann");
        door.files += 1;
    });
    sleep(HOUR).await;
    let done = timeout(HOUR, asked.join_all()).await.unwrap().pop().flatten().unwrap();
    assert!(!done.done && done.text.starts_with("Nothing was changed"), "{done:?}");
    assert_eq!(fake.door(|door| door.patches), 0);
    let next = acting.act_to_the_end(pause()).await.unwrap();
    assert!(next.done && fake.door(|door| door.patches) == 1, "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn action_has_one_deadline_for_all_of_its_requests() {
    let fake = Fake::new(Answers::Accepted("ann"));
    let (acting, _tasks) = acting(&fake);
    sleep(Duration::from_secs(1)).await;
    fake.door(|door| {
        door.takes = Duration::from_secs(4);
        door.patched = 409;
    });
    let began = Instant::now();
    let done = acting.act_to_the_end(pause()).await.unwrap();
    assert_eq!((began.elapsed(), done.done), (PATIENCE, false), "{done:?}");
    assert!(done.text.contains("not known whether the host was changed"), "{done:?}");
    assert_eq!(fake.door(|door| door.patches), 2);
    // A question about rights has one, too.
    fake.door(|door| door.answers = Answers::Never);
    let began = Instant::now();
    let rights = timeout(HOUR, acting.rights("default", "h")).await.unwrap();
    assert_eq!((began.elapsed(), rights.may), (PATIENCE, false), "{rights:?}");
}

#[tokio::test(start_paused = true)]
async fn action_of_a_page_that_is_closed_is_not_sent() {
    let fake = Fake::new(Answers::Accepted("ann"));
    let (acting, _tasks) = acting(&fake);
    sleep(Duration::from_secs(1)).await;
    fake.door(|door| door.takes = Duration::from_secs(2));
    let closed = timeout(Duration::from_secs(1), acting.act_to_the_end(pause())).await;
    assert!(closed.is_err());
    sleep(HOUR).await;
    assert_eq!(fake.door(|door| door.patches), 0);
}
