use super::*;
use crate::login::fake::{Answers, Fake};

/// Whichever of them notices the end.
#[tokio::test(start_paused = true)]
async fn no_kind_is_asked_for_after_the_end_of_the_login_until_the_next_one() {
    let fake = Fake::new(Answers::Accepted("ann"));
    let (login, _tasks) = fake.login();
    let scope = Scope {
        only: None,
        default: "default".to_owned(),
    };
    let (own, mut tasks) = (Arc::clone(&login), JoinSet::new());
    tasks.spawn(async move { all(own, Arc::default(), scope).await });
    let others = || fake.door(|door| door.requests - door.questions.len());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(others() > kinds::first().len(), "{}", others());
    fake.door(|door| door.answers = Answers::Code(401));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = others();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(
        login.ended().is_some() && others() == before,
        "{before} and then {}",
        others()
    );
    fake.door(|door| {
        door.answers = Answers::Accepted("ann");
        door.files += 1;
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(login.ended().is_none() && others() > before + kinds::first().len());
}
