//! Adapts a script to the real world: unsupported steps, additional fields of objects, and the scale of time. It sends no
//! requests; it reads only the files that a script applies.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use metal3_scenario::Step;
use serde_json::Value;

use super::file::Script;
use super::kinds::Kinds;
use crate::lifecycle::install;
use crate::lifecycle::mirror::ImageRef;

/// Times of a script are divided by this.
const TIME_SCALE: u32 = 60;

/// The real duration of a script's time.
pub(super) fn span(asked: Duration) -> Duration {
    asked.checked_div(TIME_SCALE).unwrap_or(asked)
}

/// The unsupported steps of a script, a line each.
pub(super) fn refusals(script: &Script, kinds: &Kinds) -> anyhow::Result<Vec<String>> {
    let mut refusals = Vec::new();
    for (number, step) in script.scenario.steps.iter().enumerate() {
        if let Step::IronicDown(_) = step {
            refusals.push(line(number, "ironic-down: not supported in the real world"));
        }
    }
    for (number, kind) in self::kinds(script)? {
        if let Err(unknown) = kinds.of(&kind) {
            refusals.push(line(number, &format!("{unknown:#}")));
        }
    }
    Ok(refusals)
}

fn line(number: usize, why: &str) -> String {
    format!("  step {}: {why}", number.saturating_add(1))
}

/// The kinds of a script, each with the index of its step, without Secrets.
pub(super) fn kinds(script: &Script) -> anyhow::Result<Vec<(usize, String)>> {
    let mut all = Vec::new();
    for (number, step) in script.scenario.steps.iter().enumerate() {
        let mut add = |kind: &str| all.push((number, kind.to_owned()));
        if let Some(kind) = step.kind() {
            add(kind);
        }
        match step {
            Step::Apply(apply) => {
                let path = script.folder.join(&apply.file);
                let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                // A file with variables need not be valid YAML.
                let named = text.lines().filter_map(|line| line.strip_prefix("kind: "));
                named.for_each(|kind| add(kind.trim()));
            }
            Step::Published(file) => {
                for object in script.published(file)? {
                    add(object["kind"].as_str().unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    all.retain(|(_, kind)| kind != "Secret");
    Ok(all)
}

pub(super) fn published_images(scripts: &[Script]) -> anyhow::Result<BTreeSet<ImageRef>> {
    let mut all = BTreeSet::new();
    for script in scripts {
        for step in &script.scenario.steps {
            if let Step::Published(file) = step {
                all.extend(script.published(file)?.iter().filter_map(ImageRef::by));
            }
        }
    }
    Ok(all)
}

/// Replaces images by one that the machines can download.
pub(super) fn images(objects: &mut [Value], image: &str) {
    for object in objects.iter_mut().filter(|one| one["kind"] == "Metal3MachineTemplate") {
        let image_spec = &mut object["spec"]["template"]["spec"]["image"];
        image_spec["url"] = image.into();
        image_spec["checksum"] = format!("{image}.sha256").into();
        image_spec["checksumType"] = "sha256".into();
    }
}

/// Sets external etcd for control planes: real managers require more of managed etcd than simulated machines provide.
pub(super) fn external_etcd(objects: &mut [Value]) -> anyhow::Result<()> {
    let etcd: Value = serde_saphyr::from_str(install::ETCD).context("the etcd configuration")?;
    for object in objects.iter_mut().filter(|one| one["kind"] == "KubeadmControlPlane") {
        let config = &mut object["spec"]["kubeadmConfigSpec"]["clusterConfiguration"];
        config["etcd"] = etcd["clusterConfiguration"]["etcd"].clone();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use metal3_scenario::Scenario;
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_steps_are_listed_with_their_number() {
        let text =
            "about: x\nhosts: 1\nsteps: [{ restart: null }, { ironic-down: 20m }, { delete: KamajiControlPlane/a }]";
        let script = Script {
            name: "x".to_owned(),
            scenario: Scenario::read(text).unwrap(),
            folder: ".".into(),
            published: None,
        };
        let refusals = refusals(&script, &Kinds::default()).unwrap();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        assert!(refusals[0].starts_with("  step 2: ironic-down:"), "{refusals:?}");
        assert!(
            refusals[1].starts_with("  step 3: kind KamajiControlPlane"),
            "{refusals:?}"
        );
    }

    #[test]
    fn only_image_and_etcd_of_objects_change() {
        let other = json!({"kind": "Cluster", "spec": {"paused": true}});
        let mut objects = [
            json!({"kind": "KubeadmControlPlane", "spec": {"version": "v1"}}),
            json!({"kind": "Metal3MachineTemplate", "spec": {"template": {"spec": {"image":
                {"url": "a", "checksum": "b", "diskFormat": "raw"}}}}}),
            other.clone(),
        ];
        external_etcd(&mut objects).unwrap();
        images(&mut objects, "http://here/os.raw");
        let etcd = &objects[0]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["external"];
        assert!(etcd["endpoints"][0].is_string(), "{etcd}");
        let image = &objects[1]["spec"]["template"]["spec"]["image"];
        assert_eq!(
            *image,
            json!({"url": "http://here/os.raw", "checksum": "http://here/os.raw.sha256", "checksumType": "sha256",
                "diskFormat": "raw"})
        );
        assert_eq!(objects[2], other);
    }

    #[test]
    fn hour_of_a_script_is_a_real_minute() {
        assert_eq!(span(Duration::from_secs(3_600)), Duration::from_secs(60));
    }
}
