//! What the API server and the webhooks say of each flavour of the release.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::env::TestEnv;
use super::class::VERSIONS;
use crate::claim::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::flavours::{flavours, is_foreign};
use crate::yaml::documents;

/// Generates a cluster with the variables of the first argument, a script, and with the other arguments.
const SCRIPT: &str = "set -e; . \"$0\"; exec clusterctl generate cluster flavour --infrastructure metal3 \"$@\"";
/// The templates of the class in the older version.
const OLDER: &str = "metal3clustertemplates.v1beta1.infrastructure.cluster.x-k8s.io,\
                     metal3machinetemplates.v1beta1.infrastructure.cluster.x-k8s.io";

/// With the variables of `example_variables.rc`, as a shell reads it, all objects of this project, of Cluster API and of
/// kubeadm are admitted by dry run; so are the templates of the class in the older version.
pub(in super::super) fn admitted(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let dry = ["--namespace", NAMESPACE, "--dry-run=server", "create"];
    let variables = env.release.join("example_variables.rc");
    let variables = variables.canonicalize().context("example_variables.rc")?;
    // After the upgrades, the class lists the versions that it takes.
    let [.., version] = VERSIONS;
    let variables = variables.to_str().context("the path of example_variables.rc")?;
    let all = flavours(env.release)?;
    let mut count = 0_usize;
    for flavour in &all {
        let mut args = vec!["-c", SCRIPT, variables, "--target-namespace", NAMESPACE];
        args.extend(["--kubernetes-version", version]);
        if !flavour.is_empty() {
            args.extend(["--flavor", flavour.as_str()]);
        }
        let mut objects = documents(&stack.run("sh", &args, None)?)?;
        objects.retain(|one| !is_foreign(one));
        ensure!(
            objects.iter().any(is_ours),
            "flavour {flavour:?} has nothing of this project"
        );
        stack
            .send(&dry, &objects)
            .with_context(|| format!("flavour {flavour:?}"))?;
        count += objects.len();
    }
    let mut older = list(stack, NAMESPACE, OLDER)?;
    ensure!(
        !older.is_empty()
            && older
                .iter()
                .all(|one| one["apiVersion"].as_str().is_some_and(|api| api.ends_with("/v1beta1"))),
        "templates of the older version: {older:?}"
    );
    for one in &mut older {
        // Members that the older version lacks are in an annotation.
        let kept = one["metadata"]["annotations"].take();
        one["metadata"] = json!({"name": format!("older-{}", name(one)), "annotations": kept});
        if let Some(object) = one.as_object_mut() {
            object.remove("status");
        }
    }
    stack.send(&dry, &older).context("templates of the older version")?;
    Ok(format!(
        "{count} objects of {} flavours, {} templates of v1beta1",
        all.len(),
        older.len()
    ))
}

fn is_ours(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.starts_with("Metal3"))
}
