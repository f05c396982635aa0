//! Generated stories of switches: edits, logins, deletions, hosts of tenants, restarts and faults in any order. They are judged by
//! what the two Secrets contain: at rest what the live objects say, at any time no key that does not exist, and always the switches
//! whose login a host names.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch};
use metal3_sim_faults::{Fault, Plan, Random, Rule};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, NAMESPACE, TestEnv};
use crate::faults::FAULTS;
use crate::seeds::{failures, range};
use crate::switches::{CONFIG, DAY, HEADER, REST, counts, env, file, login, reads, secret, valid, values};

/// Stories of every test run. `make test-long` has the others up to 600.
const STORIES: u64 = 30;
/// The number of stories, if others than these are wanted: `FIRST-LAST`.
const RANGE: &str = "METAL3_SWITCH_STORIES";
/// No further stories are started after this many failures.
const FAILURES: usize = 4;
/// Longer than the pauses after some refused requests.
const LONG_REST: Duration = Duration::from_mins(20);

const SWITCHES: [&str; 4] = ["a", "b", "c", "d"];
const LOGINS: [&str; 3] = ["login-1", "login-2", "login-3"];
const MEMBERS: [&str; 4] = ["username", "password", "ssh-privatekey", "admin-password"];
const HOST_FIELDS: [&str; 3] = ["userData", "metaData", "networkData"];

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Creates the switch, or edits its spec.
    Switch(&'static str, Value),
    Remove(&'static str),
    /// The content of the login; null: it is deleted.
    Login(&'static str, Value),
    Label(&'static str, bool),
    /// A host of a tenant names this login in a field.
    Tenant(&'static str, &'static str),
    /// A user deletes one of the two Secrets, or creates it again.
    Output(&'static str),
    /// Another writer empties the file.
    Blank,
    Restart,
    Fault(&'static str, &'static str, u64, Fault),
    Wait(Duration),
}

fn pick<T: Clone>(random: &mut Random, choices: &[T]) -> T {
    random.pick(choices).unwrap().clone()
}

fn spec(random: &mut Random) -> Value {
    let mut spec = json!({ "address": format!("192.0.2.{}", random.below(3) + 1), "credentials": { "name": pick(random, &LOGINS) } });
    // Two switches may have the same one.
    let macs = ["aa:bb:cc:dd:ee:01", "aa:bb:cc:dd:ee:02", "AA:BB:CC:DD:EE:03"];
    spec["macAddress"] = json!(pick(random, &macs));
    let devices = [
        "netmiko_cisco_ios",
        "netmiko_cisco_ios",
        "netmiko_dell_os10",
        "netmiko_dell_os10",
        "100%",
    ];
    spec["deviceType"] = json!(pick(random, &devices));
    spec["port"] = pick(random, &[json!(2222), Value::Null]);
    spec["disableCertificateVerification"] = pick(random, &[json!(true), json!(false), Value::Null]);
    let mut namespaces = vec![Value::Null; 5];
    namespaces.extend([json!(NAMESPACE), json!("elsewhere")]);
    spec["credentials"]["namespace"] = pick(random, &namespaces);
    spec
}

fn content(random: &mut Random) -> Value {
    let contents = [
        json!({ "username": "admin", "password": "canary-1" }),
        json!({ "username": "root", "password": "canary-2\n", "admin-password": "canary-3" }),
        json!({ "username": "admin", "ssh-privatekey": "canary-4", "admin-password": "" }),
        json!({ "username": "admin", "ssh-privatekey": "canary-5", "password": "canary-6" }),
        json!({ "username": "admin" }),
        json!({ "username": "admin", "password": "canary%" }),
        Value::Null,
    ];
    // Most can be used.
    let some = if random.below(3) == 0 {
        &contents[..]
    } else {
        &contents[..4]
    };
    pick(random, some)
}

fn step(random: &mut Random) -> Step {
    match random.below(20) {
        0..6 => Step::Switch(pick(random, &SWITCHES), spec(random)),
        6..8 => Step::Remove(pick(random, &SWITCHES)),
        8..11 => Step::Login(pick(random, &LOGINS), content(random)),
        11 => Step::Label(pick(random, &LOGINS), random.below(2) == 0),
        12..14 => Step::Tenant(pick(random, &LOGINS), pick(random, &HOST_FIELDS)),
        14 => Step::Output(pick(random, &["configs", "keys"])),
        15 => Step::Blank,
        16 => Step::Restart,
        17..19 => {
            let requests = [
                ("patch", "secrets"),
                ("patch", "secrets"),
                ("patch", "baremetalswitches/status"),
                ("get", "secrets"),
            ];
            let (verb, resource) = pick(random, &requests);
            Step::Fault(verb, resource, random.below(3) + 1, pick(random, &FAULTS))
        }
        _ => Step::Wait(Duration::from_secs(pick(random, &[1, 10, 400]))),
    }
}

fn generate(seed: u64) -> Vec<Step> {
    let mut random = Random::seeded(seed.wrapping_mul(0x9e37_79b9));
    let mut steps = Vec::new();
    for (name, login) in SWITCHES.iter().zip(LOGINS).take(2) {
        steps.push(Step::Login(login, content(&mut random)));
        steps.push(Step::Switch(name, spec(&mut random)));
    }
    for _ in 0..=random.below(10) {
        steps.push(step(&mut random));
        let pause = pick(&mut random, &[0, 100, 1_000, 20_000]);
        steps.push(Step::Wait(Duration::from_millis(pause)));
    }
    steps
}

/// A value of a Secret as a line has it; `None`: Ironic cannot read it.
fn line(secret: &Secret, member: &str) -> Option<String> {
    let value = secret.data.as_ref()?.get(member)?;
    let text = str::from_utf8(&value.0).unwrap();
    let text = text.strip_suffix('\n').unwrap_or(text);
    (!text.is_empty() && !text.contains('%')).then(|| text.to_owned())
}

/// The section of a switch, and its private key; `None`: it is left out.
fn section(switch: &BareMetalSwitch, logins: &BTreeMap<String, Secret>) -> Option<(String, Option<(String, String)>)> {
    let spec = &switch.spec;
    let named = spec.credentials.as_ref()?;
    let is_near = named
        .namespace
        .as_deref()
        .is_none_or(|namespace| namespace == NAMESPACE);
    let secret = logins.get(named.name.as_deref()?).filter(|_| is_near)?;
    let label = secret.metadata.labels.as_ref()?.get("environment.metal3.io")?;
    if label != "baremetal" || spec.device_type.contains('%') {
        return None;
    }
    let mac = &spec.mac_address;
    let has = |member: &str| secret.data.as_ref().is_some_and(|data| data.contains_key(member));
    let (login, key) = if has("ssh-privatekey") {
        let name = format!("{}.key", mac.replace(':', "-"));
        let line_of_key = format!("key_file=/etc/ironic/keys/{name}\n");
        (line_of_key, Some((name, line(secret, "ssh-privatekey")?)))
    } else {
        (format!("password={}\n", line(secret, "password")?), None)
    };
    let port = spec.port.map(|port| format!("port={port}\n")).unwrap_or_default();
    let insecure = (spec.disable_certificate_verification == Some(true)).then_some("insecure=true\n");
    let admin = line(secret, "admin-password").map(|admin| format!("enable_secret={admin}\n"));
    let text = format!(
        "[switch:{}]\naddress={}\nmac_address={mac}\n{port}driver_type=generic-switch\ndevice_type={}\n{}username={}\n{login}{}\n",
        switch.metadata.name.as_deref()?,
        spec.address,
        spec.device_type,
        insecure.unwrap_or_default(),
        line(secret, "username")?,
        admin.unwrap_or_default()
    );
    Some((text, key))
}

/// What the two Secrets contain: the file, the keys, and the switches in it.
fn expected(
    switches: &[BareMetalSwitch],
    logins: &BTreeMap<String, Secret>,
) -> (String, BTreeMap<String, String>, BTreeSet<String>) {
    let (mut file, mut keys, mut written) = (HEADER.to_owned(), BTreeMap::<String, String>::new(), BTreeSet::new());
    for switch in switches {
        let Some((text, key)) = section(switch, logins) else {
            continue;
        };
        if let Some((name, key)) = key {
            // The key of one MAC address is that of the first switch.
            if keys.get(&name).is_some_and(|other| *other != key) {
                continue;
            }
            keys.insert(name, key);
        }
        file.push_str(&text);
        written.insert(switch.metadata.name.clone().unwrap_or_default());
    }
    (file, keys, written)
}

/// The sections of a file by the name of their switch.
fn sections(file: &str) -> BTreeMap<String, String> {
    let parts = file.split("[switch:").skip(1);
    let named = parts.filter_map(|part| part.split_once(']'));
    named.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// Reports a file that names a key that does not exist.
fn watch_keys(env: &TestEnv) -> Arc<Mutex<Option<String>>> {
    let (found, mut keys) = (Arc::<Mutex<Option<String>>>::default(), BTreeSet::new());
    let broken = Arc::clone(&found);
    let mut file = String::new();
    env.cluster.observe_writes(move |write| {
        if write.object["kind"] != "Secret" || write.deleted {
            return;
        }
        let secret: Secret = serde_json::from_value(write.object.clone()).unwrap();
        let data = secret.data.unwrap_or_default();
        match secret.metadata.name.as_deref() {
            Some("configs") => {
                let text = data.get(CONFIG).map(|text| String::from_utf8(text.0.clone()).unwrap());
                file = text.unwrap_or_default();
            }
            Some("keys") => keys = data.into_keys().collect(),
            _ => return,
        }
        let mut named = file
            .lines()
            .filter_map(|line| line.strip_prefix("key_file=/etc/ironic/keys/"));
        if let Some(missing) = named.find(|name| !keys.contains(*name)) {
            broken
                .lock()
                .get_or_insert_with(|| format!("the file names {missing}, which does not exist"));
        }
    });
    found
}

async fn switches(env: &TestEnv) -> Vec<BareMetalSwitch> {
    let mut all = env
        .api::<BareMetalSwitch>()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    all.sort_by_key(|one| one.metadata.name.clone());
    all
}

async fn perform(env: &TestEnv, step: &Step) -> Result<(), String> {
    let (all, secrets) = (env.api::<BareMetalSwitch>(), env.api::<Secret>());
    let (patch, delete) = (PatchParams::default(), DeleteParams::default());
    match step {
        Step::Switch(name, spec) => {
            let document = json!({ "metadata": { "name": name }, "spec": spec });
            if all.get_opt(name).await.unwrap().is_some() {
                all.patch(name, &patch, &Patch::Merge(document)).await.unwrap();
            } else {
                let created = serde_json::from_value(document).unwrap();
                all.create(&PostParams::default(), &created).await.unwrap();
            }
        }
        Step::Remove(name) => drop(all.delete(name, &delete).await),
        Step::Login(name, Value::Null) => drop(secrets.delete(name, &delete).await),
        Step::Login(name, values) if secrets.get_opt(name).await.unwrap().is_none() => {
            login(env, name, values.clone()).await;
        }
        Step::Login(name, values) => {
            let removed = MEMBERS.into_iter().filter(|member| values.get(member).is_none());
            let removed: BTreeMap<_, _> = removed.map(|member| (member, Value::Null)).collect();
            let change = Patch::Merge(json!({ "data": removed, "stringData": values }));
            secrets.patch(name, &patch, &change).await.unwrap();
        }
        Step::Label(name, is_set) => {
            let label = json!(is_set.then_some("baremetal"));
            let change = Patch::Merge(json!({ "metadata": { "labels": { "environment.metal3.io": label } } }));
            drop(secrets.patch(name, &patch, &change).await);
        }
        Step::Tenant(name, field) => return name_login(env, name, field).await,
        Step::Output(name) if secrets.get_opt(name).await.unwrap().is_some() => {
            secrets.delete(name, &delete).await.unwrap();
        }
        Step::Output(name) => secret(env, name, json!({}), json!({ "other": "kept" })).await,
        Step::Blank => {
            let change = Patch::Merge(json!({ "data": { CONFIG: null } }));
            drop(secrets.patch("configs", &patch, &change).await);
        }
        Step::Restart => env.interceptor.kill(),
        Step::Fault(verb, resource, at, fault) => {
            let rule = Rule::at(*at, *fault).verb(*verb).resource(*resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
        Step::Wait(time) => sleep(*time).await,
    }
    Ok(())
}

/// A tenant names a login in his host, which takes no switch out of the file.
async fn name_login(env: &TestEnv, name: &str, field: &str) -> Result<(), String> {
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
    sleep(LONG_REST).await;
    let has_file = env.api::<Secret>().get_opt("configs").await.unwrap().is_some();
    let before = if has_file {
        sections(&file(env).await)
    } else {
        BTreeMap::new()
    };
    env.edit(1, json!({ "spec": { field: { "name": name } } })).await;
    sleep(LONG_REST).await;
    let after = if has_file {
        sections(&file(env).await)
    } else {
        BTreeMap::new()
    };
    for switch in switches(env).await {
        let named = switch.spec.credentials.and_then(|named| named.name);
        let switch = switch.metadata.name.unwrap_or_default();
        if named.as_deref() == Some(name) && before.get(&switch) != after.get(&switch) {
            return Err(format!("a host that names {name} changes what is written for {switch}"));
        }
    }
    Ok(())
}

/// Ends all that is broken, and names no login in the host.
async fn repair(env: &TestEnv) {
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
    let none: BTreeMap<_, _> = HOST_FIELDS.into_iter().map(|field| (field, Value::Null)).collect();
    env.edit(1, json!({ "spec": none })).await;
    for name in ["configs", "keys"] {
        if env.api::<Secret>().get_opt(name).await.unwrap().is_none() {
            secret(env, name, json!({}), json!({ "other": "kept" })).await;
        }
    }
    sleep(LONG_REST).await;
}

async fn judge(env: &TestEnv) -> Result<(), String> {
    let live = switches(env).await;
    let logins = env.api::<Secret>().list(&ListParams::default()).await.unwrap().items;
    let logins = logins
        .into_iter()
        .map(|one| (one.metadata.name.clone().unwrap_or_default(), one))
        .collect();
    let (text, mut keys, written) = expected(&live, &logins);
    keys.insert("other".to_owned(), "kept".to_owned());
    let found = (file(env).await, values(env, "keys").await);
    // A namespace without switches need not have a file.
    let is_blank = live.is_empty() && found.0.is_empty();
    if (found.0 != text && !is_blank) || found.1 != keys {
        return Err(format!("the Secrets have {found:?} instead of {:?}", (text, keys)));
    }
    for switch in live {
        let name = switch.metadata.name.clone().unwrap_or_default();
        let said = valid(env, &name).await;
        if said.starts_with("True ") != written.contains(&name) {
            return Err(format!("{name} says {said:?}"));
        }
        if format!("{:?}", switch.status).contains("canary") {
            return Err(format!("{name} shows a login"));
        }
    }
    Ok(())
}

async fn perform_all(steps: &[Step]) -> Result<(), String> {
    let env = env();
    for name in ["configs", "keys"] {
        secret(&env, name, json!({}), json!({ "other": "kept" })).await;
    }
    // Without a BMC, the host of the tenant reads no Secret itself.
    let host = json!({ "metadata": { "name": "host-1" }, "spec": { "online": true } });
    env.make::<BareMetalHost>(host).await;
    sleep(REST).await;
    let broken = watch_keys(&env);
    // A user who deletes the keys breaks the file himself.
    let is_judged = !steps.iter().any(|step| matches!(step, Step::Output(_)));
    for step in steps {
        perform(&env, step).await?;
        if let Some(broken) = broken.lock().clone().filter(|_| is_judged) {
            return Err(broken);
        }
    }
    repair(&env).await;
    judge(&env).await?;
    let before = (counts(&env), reads(&env));
    sleep(DAY).await;
    if (counts(&env), reads(&env)) != before {
        return Err("switches at rest cost requests".to_owned());
    }
    judge(&env).await
}

/// Runs a story in a runtime of its own with paused time.
fn run(steps: &[Step]) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(perform_all(steps))));
    result.unwrap_or_else(|_| Err("a panic, printed above".to_owned()))
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for the test log")]
fn generated_stories_of_switches_end_with_what_the_live_objects_say() {
    let (first, end) = range(RANGE, STORIES);
    let failed = failures((first, end), FAILURES, |seed| {
        run(&generate(seed)).map_err(|failure| (seed, failure))
    });
    println!(
        "{} stories run, {} failed ({RANGE}=FIRST-LAST for others)",
        end - first,
        failed.len()
    );
    for (seed, failure) in &failed {
        println!("story {seed}: {failure}\n{:#?}", generate(*seed));
    }
    assert!(failed.is_empty(), "the stories above end with other Secrets");
}
