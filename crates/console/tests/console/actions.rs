//! What pages change, with whose rights, and what is refused.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use metal3_console::{Console, Notice};
use metal3_sim_cluster::Cluster;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{Browser, cluster, console, create_host, hosts, open, options, reviewed, send, viewer};

async fn host(cluster: &Cluster, name: &str) -> Value {
    let host = hosts(cluster, "default").get(name).await.unwrap();
    serde_json::to_value(host).unwrap()
}

async fn change(cluster: &Cluster, name: &str, patch: Value) {
    let api = hosts(cluster, "default");
    let patch = Patch::Merge(patch);
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn wanted(host: &Value, action: &str, typed: &str) -> Value {
    let [name, uid] = ["/metadata/name", "/metadata/uid"].map(|at| host.pointer(at));
    let user = host.pointer("/spec/consumerRef/name").and_then(Value::as_str);
    let user = user.map(|user| format!(": it is used by Metal3Machine {user}"));
    let consequence = format!("what runs on the machine stops{}", user.unwrap_or_default());
    json!({ "namespace": "default", "name": name, "uid": uid, "action": action, "typed": typed, "consequence": consequence })
}

/// A host of which a machine of a Cluster runs.
async fn used(cluster: &Cluster, name: &str) -> Value {
    create_host(cluster, "default", name).await;
    let consumer = json!({ "kind": "Metal3Machine", "name": "m", "namespace": "default" });
    change(cluster, name, json!({ "spec": { "consumerRef": consumer } })).await;
    host(cluster, name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn action_changes_the_host_once_it_is_confirmed_and_is_announced() {
    let cluster = cluster();
    let used = used(&cluster, "used").await;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&lines);
    let say = move |notice: &Notice<'_>| {
        if let Notice::Action(line) = notice {
            own.lock().push((*line).to_owned());
        }
    };
    let console = open(cluster.client("viewer"), &options(false), say).await;
    let browser = Browser::log_in(&console).await;
    for (typed, done) in [("", false), ("other", false), ("used", true)] {
        let answer = browser.act(&wanted(&used, "power-off", typed)).await;
        assert_eq!(
            (answer.status, &answer.json()["done"]),
            (200, &done.into()),
            "{answer:?}"
        );
        assert_eq!(host(&cluster, "used").await["spec"]["online"], !done, "{typed}");
    }
    let again = browser.act(&wanted(&used, "power-off", "used")).await.json();
    assert!(
        again["text"].as_str().unwrap().contains("cannot be done to it now"),
        "{again}"
    );
    let lines = lines.lock().clone();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[2].contains(" power-off BareMetalHost default/used: Done"),
        "{lines:?}"
    );
    let fields = &host(&cluster, "used").await["metadata"]["managedFields"];
    assert!(fields.to_string().contains("metal3-console"), "{fields}");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_was_created_again_under_the_name_is_not_changed() {
    let cluster = cluster();
    create_host(&cluster, "default", "h").await;
    let first = host(&cluster, "h").await;
    hosts(&cluster, "default")
        .delete("h", &Default::default())
        .await
        .unwrap();
    create_host(&cluster, "default", "h").await;
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    let answer = browser.act(&wanted(&first, "power-off", "")).await.json();
    assert!(
        answer["text"]
            .as_str()
            .unwrap()
            .starts_with("Another host has this name now"),
        "{answer}"
    );
    assert_eq!(host(&cluster, "h").await["spec"]["online"], true);
    let absent = json!({ "namespace": "default", "name": "absent", "uid": "u", "action": "power-off" });
    let answer = browser.act(&absent).await.json();
    assert_eq!(answer["done"], false);
    assert!(answer["text"].as_str().unwrap().contains("not found"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_asked_once_for_a_namespace_and_for_a_host_that_is_an_exception() {
    let cluster = cluster();
    for name in ["a", "b"] {
        create_host(&cluster, "default", name).await;
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&asked);
    let client = reviewed(&cluster, move |namespace, name| {
        own.lock().push(format!("{namespace}/{name}"));
        namespace == "open" || name == "a"
    });
    let console = console(client).await;
    let browser = Browser::log_in(&console).await;
    for (path, may) in [
        ("namespace=open&name=x", true),
        ("namespace=open&name=y", true),
        ("namespace=default&name=a", true),
        ("namespace=default&name=b", false),
        ("namespace=default&name=b", false),
        ("namespace=default&name=a", true),
    ] {
        let rights = browser.get(&format!("/api/rights?{path}")).await.json();
        assert_eq!(rights["may"], may, "{path}: {rights}");
        let why = rights["why"].as_str().unwrap();
        assert_eq!(
            why.contains("kubectl auth can-i patch baremetalhosts.metal3.io/b -n default"),
            !may,
            "{rights}"
        );
    }
    assert_eq!(*asked.lock(), ["open/", "default/", "default/a", "default/b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_right_or_an_answer_nothing_is_offered_and_nothing_changes() {
    let cluster = cluster();
    create_host(&cluster, "default", "h").await;
    let own = host(&cluster, "h").await;
    let unknown = console(viewer(&cluster, 403, |path| !path.contains("accessreviews"))).await;
    let browser = Browser::log_in(&unknown).await;
    let rights = browser.get("/api/rights?namespace=default&name=h").await.json();
    assert_eq!(rights["may"], false);
    assert!(
        rights["why"].as_str().unwrap().starts_with("It is not known whether"),
        "{rights}"
    );
    // The API server decides, whatever the page shows.
    let refusing = console(viewer(&cluster, 403, |path| !path.ends_with("/baremetalhosts/h"))).await;
    let answer = Browser::log_in(&refusing)
        .await
        .act(&wanted(&own, "power-off", ""))
        .await
        .json();
    assert_eq!(answer["done"], false, "{answer}");
    let fixed = open(cluster.client("viewer"), &options(true), |_| {}).await;
    let browser = Browser::log_in(&fixed).await;
    let rights = browser.get("/api/rights?namespace=default&name=h").await.json();
    let answer = browser.act(&wanted(&own, "power-off", "")).await.json();
    for text in [&rights["why"], &answer["text"]] {
        assert_eq!(text, "The console was started with --read-only.");
    }
    assert_eq!(host(&cluster, "h").await["spec"]["online"], true);
    assert_eq!(reviews(&cluster), 0, "a console that only reads asks for no rights");
    let acting = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&acting).await;
    for _ in 0..3 {
        let rights = browser.get("/api/rights?namespace=default&name=h").await.json();
        assert_eq!(rights["may"], true);
    }
    assert_eq!(reviews(&cluster), 1);
}

/// Reviews of access that the API server answered.
fn reviews(cluster: &Cluster) -> u64 {
    let audit = cluster.audit();
    let of_access = audit
        .counts()
        .filter(|((_, _, resource), _)| resource.contains("accessreviews"));
    of_access.map(|(_, count)| count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_and_hostile_bodies_change_nothing() {
    let cluster = cluster();
    create_host(&cluster, "default", "h").await;
    let own = wanted(&host(&cluster, "h").await, "power-off", "");
    let console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    let body = own.to_string();
    let sent = browser.post("/api/act", "application/json", &body);
    let with = |header: &str| sent.replacen("\r\nConnection", &format!("\r\n{header}\r\nConnection"), 1);
    let from = |origin: &str| {
        sent.replacen(
            &format!("Origin: http://{}", console.address()),
            &format!("Origin: {origin}"),
            1,
        )
    };
    let json = |body: &str| browser.post("/api/act", "application/json", body);
    let named = |name: &str| {
        let mut changed = own.clone();
        changed["name"] = name.into();
        json(&changed.to_string())
    };
    for (request, status) in [
        (sent.replace(&browser.cookie, "metal3-console-1=0"), 401),
        (sent.replacen("Host: ", "Host: evil.example#", 1), 421),
        (with("Sec-Fetch-Site: cross-site"), 421),
        (from("http://evil.example"), 403),
        (from("null"), 403),
        (sent.replace(&browser.key, &"0".repeat(64)), 403),
        (sent.replace(&format!("X-Console-Key: {}\r\n", browser.key), ""), 403),
        (
            sent.replacen(&format!("Origin: http://{}\r\n", console.address()), "", 1),
            403,
        ),
        (browser.post("/api/act", "text/plain", &body), 403),
        (
            browser.post("/api/act", "application/x-www-form-urlencoded", &body),
            403,
        ),
        (browser.post("/api/fleet", "application/json", &body), 405),
        (json(&"a".repeat(4 << 10)), 413),
        (json("{}"), 400),
        (json("[]"), 400),
        (json(&body.replace("power-off", "power off")), 400),
        (json(&body.replacen('{', "{\"more\":1,", 1)), 400),
        (named("../secrets/h"), 400),
        (named(""), 400),
        (named(&"a".repeat(300)), 400),
    ] {
        let answer = send(console.address(), &request).await;
        assert_eq!(answer.status, status, "{request}: {answer:?}");
    }
    assert_eq!(host(&cluster, "h").await["spec"]["online"], true);
    assert_eq!(send(console.address(), &sent).await.json()["done"], true);
}

/// The page of a host has each action with its words.
#[tokio::test(flavor = "multi_thread")]
async fn document_of_a_host_has_its_actions() {
    let cluster = cluster();
    used(&cluster, "used").await;
    let console: Console = console(cluster.client("viewer")).await;
    let browser = Browser::log_in(&console).await;
    let document = browser
        .until("/api/host?namespace=default&name=used", |document| {
            document["uid"].is_string()
        })
        .await;
    let actions = document["actions"].as_array().unwrap();
    let off = actions.iter().find(|one| one["action"] == "power-off").unwrap();
    assert_eq!(off["harms"], true);
    assert!(
        off["consequence"]
            .as_str()
            .unwrap()
            .ends_with("used by Metal3Machine m"),
        "{off}"
    );
    assert!(off.get("change").is_none(), "{off}");
}
