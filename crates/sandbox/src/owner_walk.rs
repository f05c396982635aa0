//! What tools see that follow owners, as `kubectl tree` does: all resources are discovered and listed, and objects are put below the
//! owner whose uid they have.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use serde_json::Value;

use super::admission;
use super::demo::create;
use super::world::{Setup, World};

/// The tree of the reference cluster. Generated ends of names are `*`; an object with two owners is below both.
const EXPECTED: &str = "\
Cluster/demo
  IPPool/demo
    IPAddress/demo-192-0-2-100
    IPAddress/demo-192-0-2-101
    IPAddress/demo-192-0-2-102
  KubeadmConfigTemplate/demo-workers
  KubeadmControlPlane/demo
    Machine/demo-*
      KubeadmConfig/demo-*
        Secret/demo-*
      Metal3Machine/demo-*
        Metal3Data/demo-controlplane-0
          IPClaim/demo-controlplane-0-demo
            IPAddress/demo-192-0-2-100
          Secret/demo-*-metadata
        Metal3DataClaim/demo-*
          Metal3Data/demo-controlplane-0
            IPClaim/demo-controlplane-0-demo
              IPAddress/demo-192-0-2-100
            Secret/demo-*-metadata
    Secret/demo-ca
    Secret/demo-kubeconfig
  MachineDeployment/demo
    MachineSet/demo-*
      Machine/demo-*-*
        KubeadmConfig/demo-*-*
          Secret/demo-*-*
        Metal3Machine/demo-*-*
          Metal3Data/demo-workers-0
            IPClaim/demo-workers-0-demo
              IPAddress/demo-192-0-2-101
            Secret/demo-*-*-metadata
          Metal3DataClaim/demo-*-*
            Metal3Data/demo-workers-0
              IPClaim/demo-workers-0-demo
                IPAddress/demo-192-0-2-101
              Secret/demo-*-*-metadata
      Machine/demo-*-*
        KubeadmConfig/demo-*-*
          Secret/demo-*-*
        Metal3Machine/demo-*-*
          Metal3Data/demo-workers-1
            IPClaim/demo-workers-1-demo
              IPAddress/demo-192-0-2-102
            Secret/demo-*-*-metadata
          Metal3DataClaim/demo-*-*
            Metal3Data/demo-workers-1
              IPClaim/demo-workers-1-demo
                IPAddress/demo-192-0-2-102
              Secret/demo-*-*-metadata
  Metal3Cluster/demo
  Metal3MachineTemplate/demo-controlplane
  Metal3MachineTemplate/demo-workers
";

async fn get(world: &World, path: &str) -> Value {
    world
        .send(Method::GET, path, "application/json", &Value::Null)
        .await
        .unwrap()
}

fn text<'a>(value: &'a Value, at: &str) -> &'a str {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

fn each<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

/// All objects of the preferred version of each resource that can be listed.
async fn everything(world: &World) -> Vec<Value> {
    let groups = get(world, "/apis").await;
    let preferred =
        each(&groups, "groups").map(|group| format!("/apis/{}", text(group, "/preferredVersion/groupVersion")));
    let mut objects = Vec::new();
    for place in std::iter::once("/api/v1".to_owned()).chain(preferred) {
        let resources = get(world, &place).await;
        let listed =
            each(&resources, "resources").filter(|resource| each(resource, "verbs").any(|verb| verb == "list"));
        for resource in listed {
            let list = get(world, &format!("{place}/{}?limit=250", text(resource, "/name"))).await;
            assert_eq!(text(&list, "/metadata/continue"), "", "{place}: more than one page");
            let kind = text(resource, "/kind");
            objects.extend(each(&list, "items").map(|item| {
                let mut item = item.clone();
                item["kind"] = kind.into();
                item
            }));
        }
    }
    objects
}

fn tree(objects: &[Value], root: &Value, depth: usize) -> String {
    let mut lines = format!("{}{}\n", "  ".repeat(depth), shown(root));
    let uid = text(root, "/metadata/uid");
    let owned = |object: &&Value| {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        each(metadata, "ownerReferences").any(|owner| text(owner, "/uid") == uid)
    };
    let mut below: Vec<String> = objects
        .iter()
        .filter(owned)
        .map(|object| tree(objects, object, depth.saturating_add(1)))
        .collect();
    below.sort();
    lines.extend(below);
    lines
}

/// The kind and the name, without generated ends.
fn shown(object: &Value) -> String {
    let generated = |part: &str| {
        let random = part.len() == 5 && part.chars().all(|one| "bcdfghjklmnpqrstvwxz2456789".contains(one));
        let hash = part.len() == 8 && part.chars().all(|one| one.is_ascii_hexdigit());
        random || hash
    };
    let parts = text(object, "/metadata/name")
        .split('-')
        .map(|part| if generated(part) { "*" } else { part });
    format!("{}/{}", text(object, "/kind"), parts.collect::<Vec<_>>().join("-"))
}

#[tokio::test(start_paused = true)]
async fn walk_over_owners_shows_the_whole_cluster() {
    let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
    let world = World::start(&Setup::faster(1, clock, 40)).unwrap();
    admission::install(&world.cluster);
    create(&world, 5).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let objects = everything(&world).await;
    let root = objects.iter().find(|object| shown(object) == "Cluster/demo").unwrap();
    assert_eq!(tree(&objects, root, 0), EXPECTED);
}
