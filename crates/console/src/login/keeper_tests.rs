use tokio::task::JoinSet;

use super::*;
use crate::login::fake::{Answers, Fake};

/// What has ended, and why, if the login has.
fn end(login: &Login) -> Option<(&'static str, String)> {
    login.ended().map(|ended| (ended.what, ended.why))
}

fn is_silence(login: &Login) -> bool {
    end(login).is_some_and(|(what, _)| what == "The API server does not answer")
}

/// The most questions in a minute.
fn most(fake: &Fake) -> usize {
    let all = fake.door(|door| door.questions.clone());
    let within = |from: &Instant| all.iter().filter(|at| (*from..*from + EACH).contains(at)).count();
    all.iter().map(within).max().unwrap_or_default()
}

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

/// Another request waits for the answer to the same question first.
#[tokio::test(start_paused = true)]
async fn silence_before_the_first_answer_is_not_a_program_that_failed() {
    let fake = Fake::new(Answers::Never);
    let (_login, keeper) = fake.keeper();
    let client = keeper.session.client.clone();
    let other = JoinSet::from_iter([async move { client.apiserver_version().await.is_ok() }]);
    tokio::task::yield_now().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(keeper.ask(&keeper.session.client).await, Ok(Answer::None));
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn program_that_returns_again_is_not_named_while_the_server_is_silent() {
    let fake = Fake::new(Answers::Never);
    let (login, mut keeper) = fake.keeper();
    let since = keeper.now();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { keeper.renew(since, Cause::Program).await });
    sleep(Duration::from_secs(1)).await;
    assert!(end(&login).is_some_and(|(_, why)| why.contains("program")));
    sleep(Duration::from_secs(60)).await;
    assert!(is_silence(&login), "{:?}", end(&login));
    fake.door(|door| door.answers = Answers::Accepted("ann"));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(end(&login), None);
    let lines = fake.door(|door| door.lines.clone());
    assert_eq!(lines.last().map(String::as_str), Some("The API server answers again."));
}

#[tokio::test(start_paused = true)]
async fn proxy_without_its_api_server_is_silence() {
    for code in [502, 503, 504] {
        let fake = Fake::new(Answers::Accepted("ann"));
        let (login, _tasks) = fake.login();
        sleep(Duration::from_secs(1)).await;
        fake.door(|door| door.answers = Answers::Code(code));
        sleep(2 * EACH).await;
        assert!(is_silence(&login), "{code}: {:?}", end(&login));
        // The login was good before, which an answer without it does not change.
        fake.door(|door| door.answers = Answers::Code(500));
        sleep(EACH).await;
        assert_eq!(end(&login), None, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_few_whatever_happens() {
    for (answers, is_restless, at_least) in [
        (Answers::Accepted("ann"), false, 60),
        (Answers::Code(500), false, 60),
        (Answers::Code(401), false, 12),
        (Answers::Code(401), true, 60),
        (Answers::Code(503), false, 60),
        (Answers::Code(503), true, 60),
        (Answers::Never, true, 30),
    ] {
        let fake = Fake::new(answers.clone());
        fake.door(|door| door.is_restless = is_restless);
        let (login, _tasks) = fake.login();
        sleep(Duration::from_secs(1)).await;
        // That about a login before it is used is one more.
        fake.door(|door| door.questions.clear());
        for _ in 0..3_600 {
            login.doubt();
            sleep(Duration::from_secs(1)).await;
        }
        let (most, all) = (most(&fake), fake.door(|door| door.questions.len()));
        assert!(
            most <= 12 && all >= at_least,
            "{answers:?} {is_restless}: {most} in a minute, {all}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn login_that_has_ended_is_tried_seldom_by_itself() {
    let fake = Fake::new(Answers::Code(401));
    let (login, _tasks) = fake.login();
    sleep(Duration::from_secs(3_600)).await;
    let questions = fake.door(|door| door.questions.len());
    assert!(login.ended().is_some() && (15..=21).contains(&questions), "{questions}");
}

/// A name of a user is a text of the API server.
#[tokio::test(start_paused = true)]
async fn lines_of_the_terminal_have_no_control_characters() {
    let fake = Fake::new(Answers::Accepted("ann"));
    let (_login, _tasks) = fake.login();
    sleep(Duration::from_secs(1)).await;
    fake.door(|door| door.answers = Answers::Accepted("bob\u{1b}]0;x\u{7}\nok: logged in\u{202e}"));
    sleep(2 * EACH).await;
    let lines = fake.door(|door| door.lines.clone());
    assert!(lines.iter().any(|line| line.contains("logs in as bob")), "{lines:?}");
    let is_plain = |line: &String| !line.contains(|one: char| one.is_control() || one == '\u{202e}');
    assert!(lines.iter().all(is_plain), "{lines:?}");
}
