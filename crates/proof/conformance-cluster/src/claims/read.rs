//! Claims about reading.

use serde_json::{Value, json};

use super::{GROUP, rows, widget_with};
use crate::outcome::{CheckResult, Violation, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "get", "absence", "a missing object is not found, with resource and name" => absent;
        "get", "version", "a version from the future is answered with a timeout" => future;
        "get", "metadata", "only the metadata is returned on request" => metadata;
        "list", "order", "a list is sorted by name and carries a version not older than its items" => sorted;
        "list", "labels", "label selectors support equality, sets, presence and order" => labels;
        "list", "labels", "an invalid label selector is rejected" => bad_labels;
        "list", "fields", "field selectors support name and namespace and reject other fields" => fields;
        "list", "paging", "the pages of a list are consistent despite concurrent writes" => pages;
        "list", "paging", "an invalid token, or a token with a version, is rejected" => bad_token;
        "list", "versions", "resourceVersionMatch Exact returns an old state, NotOlderThan the current one" => exact;
        "list", "versions", "invalid version matches are rejected" => bad_match;
        "list", "metadata", "a list of metadata is returned on request" => metadata_list;
        "list", "namespaces", "a list over all namespaces has the objects of each" => all_namespaces;
        "discovery", "resources", "discovery lists the resource and its status" => discovered;
        "discovery", "absence", "a missing group or resource is not found" => undiscovered;
        "discovery", "health", "the server reports that it is ready" => ready;
    }
}

async fn absent(s: Subject) -> CheckResult {
    let reply = s.get(&s.widget("nope")).await?;
    expect("code", reply.code, 404)?;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "widgets.conformance.metal3.io \"nope\" not found",
        "details": {"name": "nope", "group": GROUP, "kind": "widgets"},
    });
    expect("status", reply.body, status)
}

async fn future(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.get(&s.widget("a?resourceVersion=99999999")).await?;
    expect("code", reply.code, 504)?;
    reply.holds("reason", "/reason", "Timeout")?;
    reply.holds("cause", "/details/causes/0/reason", "ResourceVersionTooLarge")?;
    reply.holds("wait", "/details/retryAfterSeconds", 1)
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn metadata(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.get_as(&s.widget("a"), METADATA).await?;
    reply.holds("kind", "/kind", "PartialObjectMetadata")?;
    reply.holds("version", "/apiVersion", "meta.k8s.io/v1")?;
    reply.holds("name", "/metadata/name", "a")?;
    reply.holds("spec", "/spec", Value::Null)?;
    let reply = s.get_as(&s.widget("a"), METADATA_LIST).await?;
    reply.expect("as a list", 500, "/message", "content is not a list")
}

async fn metadata_list(s: Subject) -> CheckResult {
    let reply = s.get_as(&s.widget(""), METADATA_LIST).await?;
    reply.expect("empty", 200, "/items", Value::Null)?;
    s.make("a").await?;
    let reply = s.get_as(&s.widget(""), METADATA_LIST).await?;
    reply.holds("kind", "/kind", "PartialObjectMetadataList")?;
    reply.holds("item", "/items/0/kind", "PartialObjectMetadata")?;
    reply.holds("spec", "/items/0/spec", Value::Null)?;
    expect("as an object", s.get_as(&s.widget(""), METADATA).await?.code, 406)
}

async fn sorted(s: Subject) -> CheckResult {
    for name in ["b", "a", "a.c", "a-b"] {
        s.make(name).await?;
    }
    let list = s.get(&s.widget("")).await?;
    list.holds("kind", "/kind", "WidgetList")?;
    expect(
        "names",
        list.names(),
        ["a", "a-b", "a.c", "b"].map(str::to_owned).to_vec(),
    )?;
    let number = |text: String| text.parse::<u64>().unwrap_or(0);
    let newest = number(list.text("/items/1/metadata/resourceVersion"));
    expect(
        "version",
        number(list.text("/metadata/resourceVersion")) >= newest && newest > 0,
        true,
    )
}

async fn labelled(s: &Subject) -> Result<(), Violation> {
    for (name, number) in [("a", "1"), ("b", "2"), ("c", "3")] {
        s.make_with(&widget_with(name, json!({"labels": {"n": number, "all": "y"}})))
            .await?;
    }
    s.make("d").await.map(drop)
}

async fn labels(s: Subject) -> CheckResult {
    labelled(&s).await?;
    for (selector, names) in [
        ("n=1", "a"),
        ("n%3D%3D1%2Call", "a"),
        ("n%20in%20(1,2)", "a b"),
        ("n%20notin%20(1,2)", "c d"),
        ("%21n", "d"),
        ("n", "a b c"),
        ("n%21%3D1", "b c d"),
        ("n%3E1", "b c"),
        ("n%3C2", "a"),
        ("", "a b c d"),
    ] {
        let list = s.get(&s.widget(&format!("?labelSelector={selector}"))).await?;
        expect(selector, list.names().join(" "), names.to_owned())?;
    }
    Ok(())
}

async fn bad_labels(s: Subject) -> CheckResult {
    for (selector, message) in [
        (
            "a%20b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "n%20in%20(",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
    ] {
        let reply = s.get(&s.widget(&format!("?labelSelector={selector}"))).await?;
        reply.expect(selector, 400, "/message", message.to_owned())?;
    }
    Ok(())
}

async fn fields(s: Subject) -> CheckResult {
    labelled(&s).await?;
    let here = format!(
        "?fieldSelector=metadata.name%21%3Da%2Cmetadata.namespace%3D{}",
        s.namespace()
    );
    expect(
        "other names",
        s.get(&s.widget(&here)).await?.names().join(" "),
        "b c d".into(),
    )?;
    expect(
        "one name",
        s.get(&s.widget("?fieldSelector=metadata.name%3Da"))
            .await?
            .names()
            .join(" "),
        "a".into(),
    )?;
    let reply = s.get(&s.widget("?fieldSelector=spec.size%3D1")).await?;
    let message = "field label not supported: spec.size";
    reply.expect("unknown", 400, "/message", message)?;
    let reply = s.get(&s.widget("?fieldSelector=metadata.name")).await?;
    let message = "invalid selector: 'metadata.name'; can't understand 'metadata.name'";
    reply.expect("nonsense", 400, "/message", message)
}

async fn pages(s: Subject) -> CheckResult {
    labelled(&s).await?;
    let first = s.get(&s.widget("?limit=3")).await?;
    expect("first page", first.names().join(" "), "a b c".into())?;
    first.holds("remaining", "/metadata/remainingItemCount", 1)?;
    s.make("e").await?;
    s.delete(&s.widget("d"), &Value::Null).await?;
    let second = s
        .get(&s.widget(&format!("?limit=3&continue={}", first.text("/metadata/continue"))))
        .await?;
    expect("second page", second.names().join(" "), "d".into())?;
    expect("more", second.text("/metadata/continue"), String::new())?;
    let versions = [&first, &second].map(|page| page.text("/metadata/resourceVersion"));
    let [one, other] = versions;
    expect("one version", one, other)
}

async fn bad_token(s: Subject) -> CheckResult {
    labelled(&s).await?;
    let first = s.get(&s.widget("?limit=1")).await?;
    let token = first.text("/metadata/continue");
    expect("nonsense", s.get(&s.widget("?limit=1&continue=zzz")).await?.code, 400)?;
    let reply = s
        .get(&s.widget(&format!("?limit=1&continue={token}&resourceVersion=5")))
        .await?;
    let message = "specifying resource version is not allowed when using continue";
    reply.expect("version", 400, "/message", message)
}

async fn exact(s: Subject) -> CheckResult {
    s.make("a").await?;
    let then = s.get(&s.widget("")).await?.text("/metadata/resourceVersion");
    s.make("b").await?;
    let list = s
        .get(&s.widget(&format!("?resourceVersion={then}&resourceVersionMatch=Exact")))
        .await?;
    expect(
        "then",
        (list.names().join(" "), list.text("/metadata/resourceVersion")),
        ("a".into(), then.clone()),
    )?;
    let list = s
        .get(&s.widget(&format!("?resourceVersion={then}&resourceVersionMatch=NotOlderThan")))
        .await?;
    expect("now", list.names().join(" "), "a b".into())?;
    let list = s.get(&s.widget("?resourceVersion=99999999")).await?;
    list.expect("future", 504, "/reason", "Timeout")
}

async fn bad_match(s: Subject) -> CheckResult {
    for (query, code, message) in [
        (
            "resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden \
             unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is \
             forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersion=5&resourceVersionMatch=Foo",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Foo\": supported values: \
             \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "resourceVersion=abc",
            400,
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": \
             invalid syntax",
        ),
        ("limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "sendInitialEvents=true",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
    ] {
        let reply = s.get(&s.widget(&format!("?{query}"))).await?;
        reply.expect(query, code, "/message", message.to_owned())?;
    }
    Ok(())
}

async fn all_namespaces(s: Subject) -> CheckResult {
    s.make("only-here").await?;
    let list = s
        .get(&format!(
            "/apis/{GROUP}/v1/widgets?fieldSelector=metadata.name%3Donly-here"
        ))
        .await?;
    expect("names", list.names().join(" "), "only-here".into())?;
    list.holds("namespace", "/items/0/metadata/namespace", s.namespace().to_owned())
}

async fn discovered(s: Subject) -> CheckResult {
    let list = s.get(&format!("/apis/{GROUP}/v1")).await?;
    list.holds("kind", "/kind", "APIResourceList")?;
    let row = |at: usize| {
        (
            list.text(&format!("/resources/{at}/name")),
            list.text(&format!("/resources/{at}/kind")),
        )
    };
    expect("resource", row(0), ("widgets".into(), "Widget".into()))?;
    expect("status", row(1), ("widgets/status".into(), "Widget".into()))?;
    list.holds("namespaced", "/resources/0/namespaced", true)?;
    let group = s.get(&format!("/apis/{GROUP}")).await?;
    group.holds("group", "/preferredVersion/groupVersion", format!("{GROUP}/v1"))
}

async fn undiscovered(s: Subject) -> CheckResult {
    for path in [
        "/apis/no.such.group/v1",
        &format!("/apis/{GROUP}/v9/widgets"),
        &format!("/apis/{GROUP}/v1/nopes"),
    ] {
        expect(path, s.get(path).await?.code, 404)?;
    }
    Ok(())
}

async fn ready(s: Subject) -> CheckResult {
    let reply = s.get("/readyz").await?;
    expect("answer", (reply.code, reply.body), (200, json!("ok")))
}
