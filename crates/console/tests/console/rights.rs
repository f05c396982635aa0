//! What a viewer may read, and what the console reads at all.

use crate::world::{Browser, cluster, console, create_host, create_namespace, viewer};

#[tokio::test(flavor = "multi_thread")]
async fn viewer_of_one_namespace_sees_that_one_and_no_error() {
    let cluster = cluster();
    create_namespace(&cluster, "other").await;
    create_host(&cluster, "default", "own").await;
    create_host(&cluster, "other", "foreign").await;
    let console = console(viewer(&cluster, 403, |path| {
        path.contains("/namespaces/default/") || is_discovery(path)
    }))
    .await;
    let browser = Browser::log_in(&console).await;
    let fleet = browser
        .until("/api/fleet", |fleet| {
            fleet["rows"].as_array().is_some_and(|rows| rows.len() == 1)
        })
        .await;
    assert_eq!(
        (&fleet["scope"]["namespace"], &fleet["scope"]["notices"]),
        (&"default".into(), &serde_json::json!([]))
    );
    for path in [
        "/api/fleet",
        "/api/waits",
        "/api/pools",
        "/api/clusters",
        "/api/host?namespace=other&name=foreign",
    ] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let is_asked = path.contains("foreign");
        assert!(is_asked || !answer.body.contains("foreign"), "{path}: {}", answer.body);
    }
    let foreign = browser.get("/api/host?namespace=other&name=foreign").await.json();
    assert_eq!(
        (&foreign["exists"], &foreign["text"]),
        (&false.into(), &"not known, because something could not be read".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_that_may_not_be_listed_is_named_in_a_line() {
    let cluster = cluster();
    create_host(&cluster, "default", "own").await;
    let console = console(viewer(&cluster, 403, |path| !path.contains("/ippools"))).await;
    let browser = Browser::log_in(&console).await;
    let fleet = browser
        .until("/api/fleet", |fleet| {
            fleet["rows"].as_array().is_some_and(|rows| rows.len() == 1)
        })
        .await;
    let notices = fleet["scope"]["notices"].as_array().unwrap();
    let expected = "Not read: the objects of the kind IPPool, because you may not list ippools.ipam.metal3.io in all namespaces. Ask for \
                    the right to list them; check it with: kubectl auth can-i list ippools.ipam.metal3.io -A";
    assert_eq!(notices, &[expected]);
}

/// Lists of groups and kinds, which every login may read.
fn is_discovery(path: &str) -> bool {
    path.starts_with("/apis") && path.split('/').count() <= 4
}

/// One watch for each kind serves all pages. No request asks for Secrets.
#[tokio::test(flavor = "multi_thread")]
async fn viewers_cause_no_requests_and_no_secret_is_read() {
    let cluster = cluster();
    create_host(&cluster, "default", "own").await;
    let console = console(cluster.client("viewer")).await;
    let asked = || {
        let audit = cluster.audit();
        let own = audit.counts().filter(|((user, ..), _)| user == "viewer");
        own.map(|((_, verb, resource), count)| format!("{count} {verb} {resource}"))
            .collect::<Vec<_>>()
    };
    let first = Browser::log_in(&console).await;
    first
        .until("/api/fleet", |fleet| {
            fleet["rows"].as_array().is_some_and(|rows| rows.len() == 1)
        })
        .await;
    // Kinds of other providers are watched once a page needs them.
    for path in PAGES {
        assert_eq!(first.get(path).await.status, 200);
    }
    let settled = async {
        let mut before = asked();
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let now = asked();
            if now == before {
                return now;
            }
            before = now;
        }
    };
    let before = settled.await;
    // Two kinds have the plural `ipaddresses`.
    let is_again = |line: &&String| line.contains(" list ") && !line.starts_with("1 ") && *line != "2 list ipaddresses";
    let lists: Vec<&String> = before.iter().filter(is_again).collect();
    assert!(lists.is_empty(), "each kind is listed once: {before:?}");
    for _ in 0..3 {
        let browser = Browser::log_in(&console).await;
        let mut stream = browser.open_stream().await;
        browser.stream_until(&mut stream, "hello").await;
        for path in PAGES {
            assert_eq!(browser.get(path).await.status, 200);
        }
    }
    assert_eq!(asked(), before);
    assert!(before.iter().all(|line| !line.contains("secret")), "{before:?}");
}

const PAGES: [&str; 6] = [
    "/",
    "/api/fleet",
    "/api/waits",
    "/api/pools",
    "/api/clusters",
    "/api/host?namespace=default&name=own",
];
