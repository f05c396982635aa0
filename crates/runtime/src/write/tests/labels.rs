use super::*;
use crate::write::LabelChange;

fn change(value: Option<&str>) -> LabelChange {
    let mut required = [("environment.metal3.io".to_owned(), "baremetal".to_owned())]
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>();
    if value.is_none() {
        required.insert("cluster".to_owned(), "edge".to_owned());
    }
    LabelChange {
        required,
        label: "cluster".to_owned(),
        value: value.map(ToOwned::to_owned),
    }
}

/// The labels of a Secret with these after a change, and its version before and after.
async fn after(labels: Value, change: &LabelChange) -> (Value, bool) {
    let (cluster, writer) = start(Mode::Perform);
    let secret = json!({ "metadata": { "name": "s", "namespace": "default", "labels": labels }, "data": { "password": "aHVudGVyMg==" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let made = writer
        .create(&crate::write::NoCache, &secret)
        .await
        .unwrap()
        .object()
        .unwrap();
    writer.label::<Secret>(&key("s"), change).await.unwrap();
    let api = kube::Api::<Secret>::namespaced(cluster.client("reader"), "default");
    let now = api.get("s").await.unwrap();
    assert_eq!(now.data, made.data);
    let is_written = now.metadata.resource_version != made.metadata.resource_version;
    (json!(now.metadata.labels), is_written)
}

#[tokio::test(start_paused = true)]
async fn label_is_written_only_to_an_object_with_the_required_ones() {
    let host = json!({ "environment.metal3.io": "baremetal" });
    let set = json!({ "environment.metal3.io": "baremetal", "cluster": "edge" });
    assert_eq!(after(host.clone(), &change(Some("edge"))).await, (set.clone(), true));
    assert_eq!(after(set, &change(None)).await, (host.clone(), true));
    let others = json!({ "environment.metal3.io": "baremetal", "cluster": "other" });
    for (labels, change) in [
        (json!(null), change(Some("edge"))),
        (json!({ "cluster": "other" }), change(Some("edge"))),
        (json!({ "cluster": "edge" }), change(None)),
        (others, change(None)),
        (host, change(None)),
    ] {
        assert_eq!(
            after(labels.clone(), &change).await,
            (labels.clone(), false),
            "{labels}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn label_of_an_object_that_does_not_exist_is_no_error_and_costs_one_request() {
    let (cluster, writer) = start(Mode::Perform);
    writer
        .label::<Secret>(&key("absent"), &change(Some("edge")))
        .await
        .unwrap();
    assert_eq!(requests(&cluster), 1);
    let (cluster, writer) = start(Mode::ObserveOnly);
    writer
        .label::<Secret>(&key("absent"), &change(Some("edge")))
        .await
        .unwrap();
    assert_eq!(requests(&cluster), 0);
}
