use std::sync::mpsc;

use futures::future::{join, join_all};

use super::bodies::BODIES;
use super::*;

const SMALL: Size = Size {
    body: 1 << 20,
    item_depth: None,
    copies: 1,
    answer: 0,
};

type Ended<E> = Result<Result<Answer, E>, Rejection>;

async fn never<Q>(_: Q, _: Instant) -> Vec<Bytes> {
    unreachable!("nothing is asked")
}

/// A review that asks nothing.
async fn run_review<E: Send + 'static>(
    limits: &Limits,
    body: Body,
    size: Size,
    review: impl FnOnce() -> Result<Vec<Bytes>, E> + Send + 'static,
) -> Ended<E> {
    let review = move |_: &[u8], _: usize| review().map(Reviewed::<()>::Answered);
    limits.review((None, body), size, review, never).await
}

async fn review(limits: &Limits, body: Body) -> Ended<()> {
    run_review(limits, body, SMALL, || Ok(vec![Bytes::from_static(b"{}")])).await
}

fn rejection(reviewed: Ended<()>) -> Option<Rejection> {
    reviewed.err()
}

/// A body that never ends.
fn silent() -> Body {
    Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>())
}

fn is_idle(limits: &Limits) -> bool {
    limits.bodies.is_idle() && limits.parsed.available_permits() == PARSED / UNIT
}

#[tokio::test]
async fn a_review_does_not_occupy_the_worker() {
    // One worker: a review that waits for another request would wait for ever.
    let (limits, (sender, receiver)) = (Limits::default(), mpsc::channel());
    let waits = run_review(&limits, Body::from("{}"), SMALL, move || {
        receiver.recv_timeout(Duration::from_secs(5)).map(|()| Vec::new())
    });
    let (waited, ()) = join(waits, async move { sender.send(()).unwrap() }).await;
    assert!(waited.unwrap().is_ok());
    assert!(is_idle(&limits));
}

#[tokio::test(start_paused = true)]
async fn a_review_that_takes_too_long_is_rejected() {
    let (limits, (sender, receiver)) = (Limits::default(), mpsc::channel::<()>());
    let waits = run_review(&limits, Body::from("{}"), SMALL, move || {
        let _ended = receiver.recv();
        Ok::<_, ()>(Vec::new())
    });
    // The clock stands still while a review runs, so the test advances it.
    let advance = async {
        tokio::task::yield_now().await;
        tokio::time::advance(REQUEST_TIME + Duration::from_secs(1)).await;
    };
    let (waited, ()) = join(waits, advance).await;
    assert_eq!(
        rejection(waited.map(|answer| answer.map_err(drop))),
        Some(Rejection::Overdue)
    );
    assert!(!is_idle(&limits), "the thread still uses the memory");
    drop(sender);
    while !is_idle(&limits) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_rejected_and_holds_no_memory() {
    let limits = Limits::default();
    let reviewed = join_all((0..100).map(|_| review(&limits, silent()))).await;
    assert!(
        reviewed
            .into_iter()
            .all(|reviewed| rejection(reviewed) == Some(Rejection::Slow))
    );
    assert!(is_idle(&limits));
}

#[tokio::test]
async fn the_bytes_of_all_bodies_are_limited() {
    let limits = Limits::default();
    // All but 64 KiB, by two other clients.
    let mut held = [1, 2].map(|client| limits.bodies.begin(Some([192, 0, 2, client].into())).unwrap());
    assert!(held.iter_mut().all(|held| held.grow((BODIES - 64 * UNIT) / 2)));
    assert!(rejection(review(&limits, Body::from("{}")).await).is_none());
    let long = "x".repeat(65 * UNIT);
    assert_eq!(
        rejection(review(&limits, Body::from(long.clone())).await),
        Some(Rejection::Busy)
    );
    drop(held);
    assert!(rejection(review(&limits, Body::from(long)).await).is_none());
    assert_eq!(
        rejection(review(&limits, Body::from("x".repeat((1 << 20) + 1))).await),
        Some(Rejection::TooLong(1 << 20))
    );
}

#[tokio::test(start_paused = true)]
async fn reviews_wait_for_the_memory_of_others_and_not_for_ever() {
    let limits = Limits::default();
    let all = || Arc::clone(&limits.parsed).try_acquire_many_owned(u32::try_from(PARSED / UNIT).unwrap());
    let held = all().unwrap();
    let free = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        drop(held);
    };
    let (reviewed, ()) = join(review(&limits, Body::from("{}")), free).await;
    assert!(rejection(reviewed).is_none());
    let held = all().unwrap();
    assert_eq!(
        rejection(review(&limits, Body::from("{}")).await),
        Some(Rejection::Busy)
    );
    drop(held);
}

#[tokio::test]
async fn an_answer_holds_the_memory_of_its_length_until_it_is_sent() {
    let limits = Limits::default();
    let parts = vec![Bytes::from(vec![b'x'; 10 * UNIT]), Bytes::from_static(b"y")];
    let reviewed = run_review(&limits, Body::from("{}"), SMALL, || Ok::<_, ()>(parts)).await;
    let answer = reviewed.unwrap().unwrap();
    assert_eq!(limits.parsed.available_permits(), PARSED / UNIT - 11);
    assert_eq!(http_body::Body::size_hint(&answer).exact(), Some(10 * 1024 + 1));
    assert_eq!(answer.collect().await.unwrap().to_bytes().len(), 10 * UNIT + 1);
    assert!(is_idle(&limits));
}

#[tokio::test]
async fn a_body_of_too_many_values_is_rejected_before_it_ends() {
    let limits = Limits::default();
    let chunk = Bytes::from(r#"{"":0},"#.repeat(1000));
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    let size = Size {
        body: usize::MAX,
        ..SMALL
    };
    let reviewed = run_review(&limits, Body::from_stream(endless), size, || Ok(Vec::new())).await;
    assert_eq!(rejection(reviewed), Some(Rejection::TooLarge));
    assert!(is_idle(&limits));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_returns_its_memory_to_a_review_that_waits() {
    let limits = Limits::default();
    let long = vec![Bytes::from(vec![b'x'; 1 << 20]); PARSED >> 20];
    let size = Size {
        copies: 0,
        answer: PARSED,
        ..SMALL
    };
    // The permits of the answer are those of the review, which may use all of them.
    let reviewed = run_review(&limits, Body::from("1"), size, || Ok::<_, ()>(long)).await;
    let mut unread = reviewed.unwrap().unwrap();
    assert!(unread.frame().await.unwrap().is_ok());
    assert_eq!(limits.parsed.available_permits(), 0);
    assert!(rejection(review(&limits, Body::from("{}")).await).is_none());
    assert!(unread.frame().await.unwrap().is_err(), "the rest is dropped");
}

#[tokio::test]
async fn long_parts_are_sent_as_short_copies() {
    let limits = Limits::default();
    let parts = vec![
        Bytes::from(vec![b'x'; 200 * UNIT]),
        Bytes::new(),
        Bytes::from_static(b"y"),
    ];
    let reviewed = run_review(&limits, Body::from("{}"), SMALL, || Ok::<_, ()>(parts)).await;
    let mut answer = reviewed.unwrap().unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = answer.frame().await {
        frames.push(frame.unwrap().into_data().unwrap().len());
    }
    let mut expected = vec![16 * UNIT; 12];
    expected.extend([8 * UNIT, 1]);
    assert_eq!(frames, expected);
}

#[tokio::test]
async fn a_question_is_asked_on_the_worker_and_with_little_memory() {
    let limits = Limits::default();
    let (free, size) = (
        limits.parsed.clone(),
        Size {
            copies: 1,
            answer: 64 << 20,
            ..SMALL
        },
    );
    let ask = async move |question: &'static str, _: Instant| {
        assert_eq!(
            (question, free.available_permits()),
            ("may he?", (PARSED - QUESTION) / UNIT)
        );
        // Only a task of the runtime does this: a thread that blocks has nothing to yield to.
        tokio::task::yield_now().await;
        vec![Bytes::from_static(b"no")]
    };
    let review = |_: &[u8], _: usize| Ok::<_, ()>(Reviewed::Asks("may he?"));
    let reviewed = limits.review((None, Body::from("1")), size, review, ask).await;
    let answer = reviewed.unwrap().unwrap().collect().await.unwrap();
    assert_eq!(answer.to_bytes(), Bytes::from_static(b"no"));
    assert!(is_idle(&limits));
}

fn address(number: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, number]))
}

/// Each of these reviews uses all memory, and they run one after the other.
#[tokio::test]
async fn reviews_of_one_address_do_not_keep_those_of_another_waiting() {
    let limits = Limits::default();
    let ended = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let send = |client: u8| {
        let (limits, ended) = (limits.clone(), Arc::clone(&ended));
        let all = Size {
            answer: PARSED,
            copies: 0,
            ..SMALL
        };
        async move {
            let review = move |_: &[u8], _: usize| {
                ended.lock().push(client);
                Ok::<_, ()>(Reviewed::<()>::Answered(Vec::new()))
            };
            let body = (address(client), Body::from("1"));
            drop(limits.review(body, all, review, never).await.unwrap());
        }
    };
    let held = Arc::clone(&limits.parsed)
        .acquire_many_owned(u32::try_from(PARSED / UNIT).unwrap())
        .await
        .unwrap();
    let many = join_all((0..20).map(|_| send(1)));
    let last = async {
        tokio::task::yield_now().await;
        join(send(2), async { drop(held) }).await;
    };
    join(many, last).await;
    let place = ended.lock().iter().position(|client| *client == 2);
    assert!(place.is_some_and(|place| place <= 2), "{:?}", ended.lock());
    assert!(is_idle(&limits));
}

#[tokio::test(start_paused = true)]
async fn questions_of_one_address_are_asked_a_few_at_a_time() {
    let (limits, asked) = (Limits::default(), Arc::new(parking_lot::Mutex::new(0)));
    let send = || {
        let (limits, asked) = (limits.clone(), Arc::clone(&asked));
        async move {
            let review = |_: &[u8], _: usize| Ok::<_, ()>(Reviewed::Asks(()));
            let ask = async move |(), _: Instant| {
                *asked.lock() += 1;
                std::future::pending::<Vec<Bytes>>().await
            };
            drop(limits.review((address(1), Body::from("1")), SMALL, review, ask).await);
        }
    };
    let some_time = tokio::time::sleep(Duration::from_secs(1));
    tokio::select! { _ = join_all((0..100).map(|_| send())) => {}, () = some_time => {} }
    assert_eq!(*asked.lock(), 8);
}

#[tokio::test]
async fn a_request_counts_until_its_answer_is_sent() {
    let limits = Limits::default();
    let answer = review(&limits, Body::from("{}")).await.unwrap().unwrap();
    assert!(!limits.bodies.is_idle());
    drop(answer);
    assert!(limits.bodies.is_idle());
}
