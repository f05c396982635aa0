use super::*;
use crate::login::fake::{Answers, Fake};

/// A doubt from before the renewal is none about the login after it.
#[tokio::test(start_paused = true)]
async fn check_ends_with_its_session() {
    let fake = Fake::new(Answers::Code(401));
    fake.door(|door| door.takes = Duration::from_secs(2));
    let (login, _tasks) = fake.login();
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let checked = timeout(Duration::from_secs(3_600), login.check(1)).await;
    assert!(checked == Ok(false) && login.ended().is_some(), "{checked:?}");
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    fake.door(|door| {
        door.answers = Answers::Accepted("ann");
        door.files += 1;
    });
    sleep(Duration::from_secs(60)).await;
    assert!(!login.check(1).await && login.check(2).await);
}
