//! Changes of the cluster reach pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::world::{Browser, cluster, console, create_host, hosts, set_state, unlisted, viewer};

/// Whether the fleet has so many hosts.
fn has(count: usize) -> impl Fn(&Value) -> bool {
    move |fleet| fleet["rows"].as_array().is_some_and(|rows| rows.len() == count)
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_host_reaches_the_stream_with_who_acts() {
    let cluster = cluster();
    for name in ["a", "b"] {
        create_host(&cluster, "default", name).await;
    }
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    browser.until("/api/fleet", has(2)).await;
    let mut stream = browser.open_stream().await;
    let hello = browser.stream_until(&mut stream, "\"now\":").await;
    assert!(hello.contains("event: hello"), "{hello}");
    // It is kept until something changes, so that its time would be an old one.
    assert!(browser.get("/api/fleet").await.json()["scope"].get("now").is_none());
    set_state(
        &cluster,
        ("default", "a"),
        "registering",
        "HTTP 401 from the BMC: login required",
    )
    .await;
    let text = browser.stream_until(&mut stream, "\"name\":\"a\"").await;
    let data = text.lines().find_map(|line| line.strip_prefix("data: {")).unwrap();
    let batch: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
    assert_eq!(batch["rows"].as_array().map(Vec::len), Some(1), "{batch}");
    assert_eq!(
        (&batch["rows"][0]["who"], &batch["rows"][0]["why"]),
        (&json!("hardware"), &json!("Registration failed"))
    );
    assert_eq!(batch["namespaces"], json!(["default"]));
    hosts(&cluster, "default")
        .delete("b", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    browser.stream_until(&mut stream, "[[\"default\",\"b\"]]").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_and_host_pages_have_the_cure_in_the_words_of_why() {
    let cluster = cluster();
    create_host(&cluster, "default", "a").await;
    set_state(
        &cluster,
        ("default", "a"),
        "registering",
        "HTTP 401 from the BMC: login required",
    )
    .await;
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    let waits = browser
        .until("/api/waits", |waits| {
            waits["waits"].as_array().is_some_and(|all| !all.is_empty())
        })
        .await;
    let cause = &waits["waits"][0]["cause"];
    assert_eq!(
        (&cause["object"]["name"], &cause["reason"]),
        (&json!("a"), &json!("RegistrationError"))
    );
    let host = browser.get("/api/host?namespace=default&name=a").await.json();
    let last = &host["explanation"]["chain"][0];
    let cure = "Check address, credentials and network of the BMC; then it is retried without help.";
    assert_eq!(
        (&last["cure"], &last["whoActs"], &cause["cure"]),
        (&json!(cure), &json!("hardware"), &json!(cure))
    );
    assert_eq!(host["text"], "someone has to act");
    let yaml = host["yaml"].as_str().unwrap();
    assert!(
        yaml.contains("kind: BareMetalHost") && !yaml.contains("managedFields"),
        "{yaml}"
    );
    assert_eq!(host["why"], "kubectl metal3 why baremetalhost/a -n default");
    let actions = host["actions"].to_string();
    assert!(
        actions.contains("kubectl annotate baremetalhosts a -n default baremetalhost.metal3.io/paused="),
        "{actions}"
    );
}

/// A page shows them as text; here they must stay JSON.
#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_scripts_stay_texts_of_documents() {
    let cluster = cluster();
    create_host(&cluster, "default", "a").await;
    let script = "</script><script>alert(1)</script>\u{202e}";
    set_state(&cluster, ("default", "a"), "registering", script).await;
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    browser.until("/api/fleet", has(1)).await;
    let answer = browser.get("/api/fleet").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json()["rows"][0]["message"],
        script.replace('\u{202e}', "\u{fffd}")
    );
}

/// What cannot be read is pending, and named with the reason, until the server has answers.
#[tokio::test(flavor = "multi_thread")]
async fn console_says_that_the_server_fails_and_recovers() {
    let cluster = cluster();
    create_host(&cluster, "default", "a").await;
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    let console = unlisted(viewer(&cluster, 500, move |_| !away.load(Ordering::SeqCst))).await;
    let browser = Browser::log_in(&console).await;
    let notices = |fleet: &Value| fleet["scope"]["notices"].as_array().map(Vec::len).unwrap_or_default();
    let fleet = browser.until("/api/fleet", |fleet| notices(fleet) > 20).await;
    assert_eq!(
        (
            fleet["rows"].as_array().map(Vec::len),
            fleet["scope"]["pending"] == json!(0)
        ),
        (Some(0), false)
    );
    let line = fleet["scope"]["notices"][0].as_str().unwrap();
    assert!(
        line.starts_with("Not read: ") && line.contains("because the request failed: "),
        "{line}"
    );
    is_away.store(false, Ordering::SeqCst);
    let fleet = browser
        .until("/api/fleet", |fleet| has(1)(fleet) && notices(fleet) == 0)
        .await;
    assert_eq!(fleet["scope"]["pending"], 0);
}
