use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use futures::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{ObjectMeta, PartialObjectMeta};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault as ServerFault, Plan, Rule};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Erased, ObjectReader};
use crate::cache::{Key, SharedCache};
use crate::clock::TimerClock;
use crate::plan::{Observed, UnknownReason};
use crate::watch::{Scope, Watch};
use crate::work::Fault;

crate::role! {
    struct Reader {
        Secret: Get, List, Watch;
    }
}

type Names = SharedCache<PartialObjectMeta<Secret>>;

struct Fixture {
    cluster: Cluster,
    secrets: Api<Secret>,
    live: ObjectReader<Reader, Secret>,
    cache: Names,
    _watch: JoinSet<()>,
}

async fn fixture(names: &[&str]) -> Fixture {
    let cluster = Cluster::start(&Options::seeded(1));
    let secrets: Api<Secret> = Api::namespaced(cluster.client("user"), "default");
    for name in names {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some((*name).to_owned()),
                ..ObjectMeta::default()
            },
            data: Some([("password".to_owned(), ByteString(b"hunter2".to_vec()))].into()),
            ..Secret::default()
        };
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let cache = Names::default();
    let clock = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let client = cluster.client("reader");
    let watch = Watch::metadata::<Reader>(client.clone(), cache.clone(), &(), Scope::everywhere(), clock);
    let live = ObjectReader::new(client, &cache);
    let mut running = JoinSet::new();
    running.spawn(watch.run(CancellationToken::new()));
    let fixture = Fixture {
        cluster,
        secrets,
        live,
        cache,
        _watch: running,
    };
    timeout(Duration::from_secs(9), fixture.cache.synced()).await.unwrap();
    fixture
}

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn password(found: Result<Observed<Arc<Erased<Secret>>>, Fault>) -> Option<String> {
    match found.unwrap() {
        Observed::Present(secret) => {
            let bytes = secret.data.as_ref().unwrap()["password"].0.clone();
            Some(String::from_utf8(bytes).unwrap())
        }
        Observed::Absent => None,
        other => panic!("{other:?}"),
    }
}

impl Fixture {
    fn reads(&self) -> u64 {
        self.cluster.audit().of("reader", "get", "secrets")
    }

    async fn change(&self, to: &str) {
        let patch = Patch::Merge(json!({"stringData": {"password": to}}));
        self.secrets.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_held_is_read_once_and_an_absent_object_never() {
    let fixture = fixture(&["a"]).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(fixture.live.get(&key("a")).await);
        assert_eq!(password(fixture.live.get(&key("b")).await), None);
    }
    assert_eq!(fixture.reads(), 1);
    fixture.change("two").await;
    sleep(Duration::from_secs(1)).await;
    held.push(fixture.live.get(&key("a")).await);
    held.push(fixture.live.get(&key("a")).await);
    assert_eq!(fixture.reads(), 2);
    let read: Vec<_> = held.into_iter().filter_map(password).collect();
    assert_eq!(read, ["hunter2", "hunter2", "hunter2", "two", "two"]);
}

#[tokio::test(start_paused = true)]
async fn no_content_is_held_after_the_last_reader() {
    let fixture = fixture(&["a"]).await;
    let Ok(Observed::Present(read)) = fixture.live.get(&key("a")).await else {
        panic!("the Secret exists")
    };
    let content = Arc::downgrade(&read);
    assert!(content.upgrade().is_some());
    drop(read);
    assert!(content.upgrade().is_none());
    assert_eq!(password(fixture.live.get(&key("a")).await).as_deref(), Some("hunter2"));
    assert_eq!(fixture.reads(), 2, "it is read again");
}

#[tokio::test(start_paused = true)]
async fn concurrent_readers_share_one_read() {
    let fixture = fixture(&["a"]).await;
    let name = key("a");
    let found = join_all((0..10).map(|_| fixture.live.get(&name))).await;
    assert!(
        found
            .into_iter()
            .all(|found| password(found).as_deref() == Some("hunter2"))
    );
    assert_eq!(fixture.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn content_newer_than_the_cache_is_not_read_again_when_the_watch_delivers_it() {
    let fixture = fixture(&["a"]).await;
    // The watch has not reported the change when the Secret is read.
    fixture.change("two").await;
    let held = fixture.live.get(&key("a")).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(password(fixture.live.get(&key("a")).await).as_deref(), Some("two"));
    assert_eq!(password(held).as_deref(), Some("two"));
    assert_eq!(fixture.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn content_is_dropped_with_its_object() {
    let fixture = fixture(&["a"]).await;
    assert!(password(fixture.live.get(&key("a")).await).is_some());
    fixture.secrets.delete("a", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(password(fixture.live.get(&key("a")).await), None);
    assert_eq!(fixture.live.slots.lock().len(), 0);
    assert_eq!(fixture.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn read_error_is_a_fault_and_neither_absence_nor_an_old_version() {
    let fixture = fixture(&["a"]).await;
    assert!(password(fixture.live.get(&key("a")).await).is_some());
    fixture.change("two").await;
    sleep(Duration::from_secs(1)).await;
    for (code, category) in [(403, "forbidden"), (500, "server_failed")] {
        let refused = ServerFault::refused(code);
        fixture
            .cluster
            .inject(Plan::none().with(Rule::at(1, refused).verb("get")));
        let fault = fixture.live.get(&key("a")).await.unwrap_err();
        assert_eq!(fault.category(), category);
        assert!(!fault.report().contains("hunter2"));
    }
    assert_eq!(password(fixture.live.get(&key("a")).await).as_deref(), Some("two"));
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_every_object_is_unknown() {
    let cluster = Cluster::start(&Options::seeded(1));
    let cache = Names::default();
    let live: ObjectReader<Reader, Secret> = ObjectReader::new(cluster.client("reader"), &cache);
    assert!(matches!(
        live.get(&key("a")).await,
        Ok(Observed::Unknown(UnknownReason::NotListed))
    ));
}
