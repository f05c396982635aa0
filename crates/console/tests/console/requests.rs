//! Who is answered, and with which headers.

use std::time::Duration;

use crate::world::{Browser, cluster, console, create_host, send};

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_forbids_browsers_all_that_the_pages_do_not_need() {
    let cluster = cluster();
    let console = console(cluster.client("viewer")).await;
    let known = Browser::log_in(&console).await;
    let unknown = Browser {
        address: console.address(),
        cookie: String::new(),
        key: String::new(),
    };
    for (answer, status) in [
        (known.get("/").await, 200),
        (known.get("/?view=waits&q=a%20b").await, 200),
        (known.get("/assets/app.js").await, 200),
        (known.get("/api/fleet").await, 200),
        (known.get("/api/host?namespace=default&name=absent").await, 200),
        (known.get("/api/host").await, 404),
        (known.get("/assets/../Cargo.toml").await, 404),
        (unknown.get("/favicon.ico").await, 200),
        (unknown.get("/").await, 401),
        (unknown.get("/api/fleet").await, 401),
        (unknown.get("/login?token=0").await, 401),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part) && !policy.contains("unsafe"), "{policy}");
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_methods_bodies_and_tokens_are_refused() {
    let cluster = cluster();
    create_host(&cluster, "default", "secret-name").await;
    let console = console(cluster.client("viewer")).await;
    let (url, browser) = (console.url(), Browser::log_in(&console).await);
    let used = url.split_once("/login").unwrap().1;
    let with = |change: &str| {
        browser
            .request("GET", "/api/fleet")
            .replace("\r\nConnection", &format!("\r\n{change}\r\nConnection"))
    };
    let host = format!("Host: {}", console.address());
    let long = format!("x: {}", "a".repeat(32 << 10));
    for (request, status) in [
        (
            browser
                .request("GET", "/api/fleet")
                .replace(&host, "Host: evil.example"),
            421,
        ),
        (
            browser.request("GET", "/api/fleet").replace(&format!("{host}\r\n"), ""),
            421,
        ),
        (with("Sec-Fetch-Site: cross-site"), 421),
        (browser.request("POST", "/api/fleet"), 405),
        (browser.request("DELETE", "/"), 405),
        (with("Content-Length: 1"), 413),
        (with("Transfer-Encoding: chunked"), 413),
        (with(&long), 431),
        (browser.request("GET", &format!("/login{used}")), 401),
        (browser.request("GET", "/login"), 401),
        (
            browser
                .request("GET", "/api/fleet")
                .replace(&browser.cookie, "metal3-console-1=0"),
            401,
        ),
        (
            browser.request("GET", "/api/host?namespace=default&name=%3Cscript%3E"),
            404,
        ),
        ("no http\r\n\r\n".to_owned(), 400),
    ] {
        let answer = send(console.address(), &request).await;
        assert_eq!(answer.status, status, "{request}: {answer:?}");
        assert!(!answer.body.contains("secret-name"), "{request}: {answer:?}");
    }
    browser
        .until("/api/fleet", |fleet| fleet.to_string().contains("secret-name"))
        .await;
}

/// Each connection that waits would take a place of another.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_limited_and_served_when_others_close() {
    let cluster = cluster();
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(tokio::net::TcpStream::connect(console.address()).await.unwrap());
    }
    let late = browser.get("/api/fleet");
    tokio::pin!(late);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut late).await;
    assert!(early.is_err(), "{early:?}");
    drop(open);
    assert_eq!(late.await.status, 200);
}
