//! Claims about watching.

use serde_json::{Value, json};

use super::{rows, widget_with};
use crate::outcome::{CheckResult, Violation, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "watch", "resume", "a watch from a version reports every later write in order" => resumes;
        "watch", "resume", "a deleted object has the version of its deletion" => deletion_version;
        "watch", "resume", "the deletion event has the state before the last finalizer was removed" => last_look;
        "watch", "start", "a watch without a version begins with the existing objects" => starts;
        "watch", "selectors", "an object that starts or stops matching the selector is reported as added or deleted" => selection;
        "watch", "expiry", "a compacted version ends the watch with 410" => expired;
        "watch", "streaming", "a streaming list ends with an annotated bookmark" => streams;
        "watch", "streaming", "a streaming list reports changes after its end" => streams_on;
        "watch", "metadata", "a watch of metadata has only metadata, also in bookmarks" => metadata;
        "watch", "options", "invalid options are rejected" => nonsense;
        "watch", "timeout", "a watch ends after the client's timeout" => times_out;
    }
}

fn brief(events: &[Value]) -> Vec<String> {
    let text = |event: &Value, at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let row = |event| format!("{} {}", text(event, "/type"), text(event, "/object/metadata/name"));
    events.iter().map(row).collect()
}

async fn now(s: &Subject) -> Result<String, Violation> {
    Ok(s.get(&s.widget("")).await?.text("/metadata/resourceVersion"))
}

async fn resumes(s: Subject) -> CheckResult {
    let start = now(&s).await?;
    s.make("a").await?;
    let then = now(&s).await?;
    s.merge(&s.widget("a"), &json!({"spec": {"size": 2}})).await?;
    s.make("b").await?;
    s.delete(&s.widget("a"), &Value::Null).await?;
    let all = ["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"].map(str::to_owned);
    let events = s
        .watch(
            &s.widget(&format!("?watch=1&resourceVersion={start}")),
            "application/json",
            4,
        )
        .await?;
    expect("all", brief(&events), all.to_vec())?;
    let events = s
        .watch(
            &s.widget(&format!("?watch=1&resourceVersion={then}")),
            "application/json",
            3,
        )
        .await?;
    expect(
        "resumed",
        brief(&events).join(","),
        "MODIFIED a,ADDED b,DELETED a".into(),
    )
}

async fn deletion_version(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let version = made.text("/metadata/resourceVersion");
    s.delete(&s.widget("a"), &Value::Null).await?;
    let events = s
        .watch(
            &s.widget(&format!("?watch=1&resourceVersion={version}")),
            "application/json",
            1,
        )
        .await?;
    let seen = events
        .first()
        .and_then(|event| event.pointer("/object/metadata/resourceVersion"))
        .and_then(Value::as_str);
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    expect("later", number(seen) > number(Some(&version)), true)
}

async fn last_look(s: Subject) -> CheckResult {
    let made = s
        .make_with(&widget_with("a", json!({"finalizers": ["example.org/hold"]})))
        .await?;
    let version = made.text("/metadata/resourceVersion");
    s.delete(&s.widget("a"), &Value::Null).await?;
    let patch = json!({"metadata": {"finalizers": null}, "spec": {"size": 7}});
    expect(
        "released",
        s.merge(&s.widget("a"), &patch).await?.at("/spec/size"),
        json!(7),
    )?;
    let path = s.widget(&format!("?watch=1&resourceVersion={version}"));
    let events = s.watch(&path, "application/json", 2).await?;
    expect("events", brief(&events).join(","), "MODIFIED a,DELETED a".into())?;
    let last = |at: &str| events.last().and_then(|event| event.pointer(at)).cloned();
    expect(
        "finalizers",
        last("/object/metadata/finalizers"),
        Some(json!(["example.org/hold"])),
    )?;
    expect("size", last("/object/spec/size"), Some(json!(1)))
}

async fn starts(s: Subject) -> CheckResult {
    s.make("b").await?;
    s.make("a").await?;
    for start in ["", "&resourceVersion=0"] {
        let events = s
            .watch(&s.widget(&format!("?watch=1{start}")), "application/json", 2)
            .await?;
        expect(start, brief(&events).join(","), "ADDED a,ADDED b".into())?;
    }
    Ok(())
}

async fn selection(s: Subject) -> CheckResult {
    let start = now(&s).await?;
    s.make("a").await?;
    s.merge(&s.widget("a"), &json!({"metadata": {"labels": {"in": "y"}}}))
        .await?;
    s.merge(&s.widget("a"), &json!({"spec": {"size": 5}})).await?;
    s.merge(&s.widget("a"), &json!({"metadata": {"labels": null}})).await?;
    s.make_with(&widget_with("b", json!({"labels": {"in": "y"}}))).await?;
    let path = s.widget(&format!("?watch=1&labelSelector=in%3Dy&resourceVersion={start}"));
    let events = s.watch(&path, "application/json", 4).await?;
    expect(
        "events",
        brief(&events).join(","),
        "ADDED a,MODIFIED a,DELETED a,ADDED b".into(),
    )?;
    let left = events
        .get(2)
        .and_then(|event| event.pointer("/object/metadata/labels/in"))
        .cloned();
    expect("as it was in the selection", left, Some(json!("y")))
}

async fn expired(s: Subject) -> CheckResult {
    let events = s
        .watch(&s.widget("?watch=1&resourceVersion=1"), "application/json", 2)
        .await?;
    expect("one event", events.len(), 1)?;
    let at = |pointer: &str| {
        events
            .first()
            .and_then(|event| event.pointer(pointer))
            .cloned()
            .unwrap_or_default()
    };
    expect("type", at("/type"), json!("ERROR"))?;
    expect(
        "code",
        (at("/object/code"), at("/object/reason")),
        (json!(410), json!("Expired")),
    )
}

const STREAMING: &str = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn streams(s: Subject) -> CheckResult {
    s.make("a").await?;
    let events = s.watch(&s.widget(STREAMING), "application/json", 2).await?;
    expect("events", brief(&events).join(","), "ADDED a,BOOKMARK ".into())?;
    let mark = events
        .get(1)
        .and_then(|event| event.pointer("/object/metadata/annotations"))
        .cloned();
    expect("mark", mark, Some(json!({"k8s.io/initial-events-end": "true"})))
}

async fn streams_on(s: Subject) -> CheckResult {
    let (path, other) = (s.widget(STREAMING), s.clone());
    let watching = s.watch(&path, "application/json", 2);
    let writing = async {
        other.make("late").await?;
        Ok::<_, Violation>(())
    };
    let (events, written) = futures::join!(watching, writing);
    written?;
    // The event may arrive before or after the end of the list.
    let names: Vec<String> = brief(&events?)
        .into_iter()
        .filter(|row| row.starts_with("ADDED"))
        .collect();
    expect("events", names, vec!["ADDED late".to_owned()])
}

async fn metadata(s: Subject) -> CheckResult {
    s.make("a").await?;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let events = s.watch(&s.widget(STREAMING), accept, 2).await?;
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| event.pointer("/object/kind"))
        .cloned()
        .collect();
    expect(
        "kinds",
        kinds,
        vec![json!("PartialObjectMetadata"), json!("PartialObjectMetadata")],
    )?;
    let spec = events.first().and_then(|event| event.pointer("/object/spec")).cloned();
    expect("spec", spec, None)
}

async fn nonsense(s: Subject) -> CheckResult {
    for (query, code, message) in [
        (
            "sendInitialEvents=true",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
             resourceVersionMatch to NotOlderThan",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=5",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for \
             watch unless sendInitialEvents is provided",
        ),
        (
            "resourceVersion=abc",
            500,
            "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
    ] {
        let reply = s.get(&s.widget(&format!("?watch=1&{query}"))).await?;
        reply.expect(query, code, "/message", message.to_owned())?;
    }
    Ok(())
}

async fn times_out(s: Subject) -> CheckResult {
    let start = now(&s).await?;
    let path = s.widget(&format!("?watch=1&timeoutSeconds=1&resourceVersion={start}"));
    expect("events", s.watch(&path, "application/json", 1).await?.len(), 0)
}
