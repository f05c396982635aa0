//! Performs the steps of a story, and repairs what they broke.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy};
use metal3_ironic::transport::Transport as _;
use metal3_runtime::patch::apply;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::{BiosReports, BmcAccount, FirmwareUpdates};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::discs::DriveFault;
use super::grammar::{Builds, HOST, Login, OTHER_INSTANCE, OWN_MAC, Step, WriteFault};
use super::run::{POWER_SYNC, StoryRun};
use crate::env::{CONTROLLER_USER, PASSWORD, name};

impl StoryRun {
    pub(super) async fn perform(&self, step: &Step) {
        let env = &self.env;
        match step {
            Step::Edit(change) => self.edit(change).await,
            Step::Delete => self.delete().await,
            Step::Break(faults) => env.set_faults(HOST, faults),
            Step::Login(login) => self.change_login(*login).await,
            Step::RestartController => env.interceptor.kill(),
            Step::RestartIronic => env.ironic.restart(Duration::from_secs(10)),
            Step::LoseDatabase => env.ironic.lose_database(),
            Step::Request(number, fault) => {
                let mut log = env.interceptor.log();
                log.fault = Some((log.asked.len() + number, *fault));
            }
            Step::Write(fault) => {
                let fault = match fault {
                    WriteFault::CrashBefore => Fault::CrashBefore,
                    WriteFault::CrashAfter => Fault::CrashAfter,
                    WriteFault::Lost => Fault::ReplyLost,
                    WriteFault::Conflict => Fault::Conflict,
                };
                let rule = Rule::at(1, fault).verb("patch");
                env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
            }
            Step::Maintenance(is_set) => self.maintain(*is_set).await,
            Step::Service => self.service().await,
            Step::Reject(request, status) => env.interceptor.log().rejected = Some((request, *status)),
            Step::ClockAhead => self.set_status(json!({ "lastUpdated": "1971-02-03T00:00:00Z" })).await,
            Step::LeftInService => self.set_status(json!({ "operationalStatus": "servicing" })).await,
            Step::Settings(settings) => self.ask_settings(settings).await,
            Step::Policy(policy) => self.allow(policy).await,
            Step::Bios(reports) => env.machine(HOST, |machine| machine.bios_reports = *reports),
            Step::Updates(updates) => self.ask_updates(updates).await,
            Step::Firmware(updates) => env.machine(HOST, |machine| machine.firmware_updates = *updates),
            Step::Disc(wanted) => self.ask_disc(wanted).await,
            Step::Drive(fault) => self.drive(*fault),
            Step::Builder(builds) => self.builder.change(*builds),
            Step::DeleteAgentImage => self.delete_agent_image().await,
            Step::Assign => self.assign(true).await,
            Step::OperatorReboot => self.order("power", &json!({ "target": "rebooting" })).await,
            Step::PowerButton => env.machine(HOST, |machine| machine.press_power_button()),
            Step::Wait(span) => sleep(*span).await,
        }
    }

    /// One edit of the user, if admission accepts it.
    #[expect(
        clippy::disallowed_methods,
        reason = "no field of a host is unknown in this environment"
    )]
    pub(super) async fn edit(&self, change: &Value) {
        let (api, change) = (self.env.api::<BareMetalHost>(), with_mac(change.clone(), &self.mac));
        loop {
            let Some(host) = api.get_opt(&name(HOST)).await.unwrap() else {
                return;
            };
            let mut document = serde_json::to_value(host).unwrap();
            apply(&change, &mut document);
            let Ok(host) = serde_json::from_value(document) else {
                return;
            };
            match api.replace(&name(HOST), &PostParams::default(), &host).await {
                Err(kube::Error::Api(refused)) if refused.is_conflict() => {}
                _ => return,
            }
        }
    }

    pub(super) async fn delete(&self) {
        let api = self.env.api::<BareMetalHost>();
        drop(api.delete(&name(HOST), &DeleteParams::default()).await);
    }

    async fn ask_settings(&self, settings: &Value) {
        let api = self.env.api::<HostFirmwareSettings>();
        let found = api.get_opt(&name(HOST)).await.unwrap();
        match (found, settings) {
            (_, Value::Null) => drop(api.delete(&name(HOST), &DeleteParams::default()).await),
            (None, settings) => {
                let object = json!({ "metadata": { "name": name(HOST) }, "spec": { "settings": settings } });
                self.env.make::<HostFirmwareSettings>(object).await;
            }
            (Some(found), settings) => {
                let mut change: Value = found
                    .spec
                    .settings
                    .keys()
                    .map(|name| (name.clone(), Value::Null))
                    .collect();
                apply(settings, &mut change);
                for (name, value) in settings.as_object().into_iter().flatten() {
                    change[name] = value.clone();
                }
                let patch = Patch::Merge(json!({ "spec": { "settings": change } }));
                api.patch(&name(HOST), &PatchParams::default(), &patch).await.unwrap();
            }
        }
    }

    /// The user follows the messages about the settings: corrects what is invalid, and asks again for what the machine did not take.
    async fn repair_settings(&self) {
        self.env
            .machine(HOST, |machine| machine.bios_reports = BiosReports::Asked);
        let api = self.env.api::<HostFirmwareSettings>();
        let Some(found) = api.get_opt(&name(HOST)).await.unwrap() else {
            return;
        };
        self.ask_settings(&json!({})).await;
        sleep(Duration::from_mins(1)).await;
        let valid = ["ProcTurboMode", "NetworkBootRetryCount", "QuietBoot", "AssetTag"];
        let kept = found
            .spec
            .settings
            .iter()
            .filter(|(name, value)| valid.contains(&name.as_str()) && value.to_string() != "Sometimes");
        let kept: Value = kept.map(|(name, value)| (name.clone(), json!(value))).collect();
        self.ask_settings(&kept).await;
    }

    async fn allow(&self, policy: &Value) {
        let api = self.env.api::<HostUpdatePolicy>();
        drop(api.delete(&name(HOST), &DeleteParams::default()).await);
        if !policy.is_null() {
            let object = json!({ "metadata": { "name": name(HOST) }, "spec": policy });
            self.env.make::<HostUpdatePolicy>(object).await;
        }
    }

    async fn ask_updates(&self, updates: &Value) {
        let api = self.env.api::<HostFirmwareComponents>();
        let found = api.get_opt(&name(HOST)).await.unwrap();
        // Admission rejects some.
        match (found, updates) {
            (_, Value::Null) => drop(api.delete(&name(HOST), &DeleteParams::default()).await),
            (None, updates) => {
                let object = json!({ "metadata": { "name": name(HOST) }, "spec": { "updates": updates } });
                let object = serde_json::from_value(object).unwrap();
                drop(api.create(&PostParams::default(), &object).await);
            }
            (Some(_), updates) => {
                let patch = Patch::Merge(json!({ "spec": { "updates": updates } }));
                drop(api.patch(&name(HOST), &PatchParams::default(), &patch).await);
            }
        }
    }

    /// The user follows the messages about updates, and removes those that are invalid. The others stay the same requests.
    async fn repair_updates(&self) {
        self.env
            .machine(HOST, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
        let api = self.env.api::<HostFirmwareComponents>();
        let Some(found) = api.get_opt(&name(HOST)).await.unwrap() else {
            return;
        };
        let (before, mut asked) = (found.spec.updates.len(), found.spec.updates);
        asked.retain(|update| ["bios", "bmc"].contains(&update.component.as_str()) && update.url.starts_with("http"));
        if asked.len() < before {
            self.ask_updates(&json!(asked)).await;
        }
    }

    async fn change_login(&self, login: Login) {
        let secrets = self.env.api::<Secret>();
        let content = |user: &str| json!({ "username": user, "password": PASSWORD });
        if login == Login::Deleted {
            return drop(secrets.delete("bmc-1", &DeleteParams::default()).await);
        }
        self.change_account(login);
        let change = match login {
            Login::Changed | Login::Bad => json!({ "stringData": content("another") }),
            Login::Rotated => json!({ "stringData": content("rotated") }),
            Login::Labelled => json!({ "metadata": { "labels": { "own": "label" } } }),
            Login::Right | Login::Back | Login::Deleted => json!({ "stringData": content("admin") }),
        };
        if secrets.get_opt("bmc-1").await.unwrap().is_none() {
            let mut secret = json!({ "metadata": { "name": "bmc-1", "labels": { "environment.metal3.io": "baremetal" } }, "stringData": content("admin") });
            apply(&change, &mut secret);
            return self.env.make::<Secret>(secret).await;
        }
        secrets
            .patch("bmc-1", &PatchParams::default(), &Patch::Merge(change))
            .await
            .unwrap();
    }

    /// The BMC accepts any login until the first of these steps.
    fn change_account(&self, login: Login) {
        let username = match login {
            Login::Bad | Login::Back => "admin",
            Login::Rotated => "rotated",
            Login::Right | Login::Changed | Login::Labelled | Login::Deleted => return,
        };
        let account = BmcAccount {
            username: username.to_owned(),
            password: PASSWORD.to_owned(),
        };
        self.env.machine(HOST, |machine| match login {
            Login::Bad => drop(machine.account.get_or_insert(account)),
            _ => machine.account = Some(account),
        });
    }

    async fn maintain(&self, is_set: bool) {
        use metal3_ironic::calls::{NodeRef, node::clear_maintenance, node::set_maintenance};
        let Some(node) = self.env.node(HOST).await else { return };
        let (client, node) = (self.env.ironic.client().unwrap(), NodeRef::Uuid(node.uuid));
        let call = if is_set {
            set_maintenance(&node, "an operator looks at it")
        } else {
            clear_maintenance(&node)
        };
        drop(client.send(&call).await);
    }

    async fn service(&self) {
        let steps = json!([{ "interface": "bios", "step": "factory_reset", "args": {} }]);
        let order = json!({ "target": "service", "service_steps": steps });
        self.order("provision", &order).await;
    }

    /// Gives a node without an instance to another one, or takes it away from that.
    async fn assign(&self, is_given: bool) {
        let Some(node) = self.env.node(HOST).await else { return };
        let path = "/instance_uuid";
        let change = match node.instance_uuid.as_deref() {
            None if is_given => json!([{ "op": "add", "path": path, "value": OTHER_INSTANCE }]),
            Some(OTHER_INSTANCE) if !is_given => json!([{ "op": "remove", "path": path }]),
            _ => return,
        };
        let request = http::Request::patch(format!("/v1/nodes/{}", node.uuid));
        self.exchange(request, &change).await;
        self.marks.lock().assigned = is_given.then(Instant::now);
    }

    async fn order(&self, part: &str, body: &Value) {
        let Some(node) = self.env.node(HOST).await else { return };
        let request = http::Request::put(format!("/v1/nodes/{}/states/{part}", node.uuid));
        self.exchange(request, body).await;
    }

    /// A request of an operator of Ironic, which the judge does not see.
    async fn exchange(&self, request: http::request::Builder, body: &Value) {
        let request = request
            .header("X-OpenStack-Ironic-API-Version", "1.95")
            .header("Content-Type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        drop(self.env.ironic.exchange(request).await);
    }

    /// Writes the status as another manager.
    async fn set_status(&self, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let api = self.env.api::<BareMetalHost>();
        drop(api.patch_status(&name(HOST), &PatchParams::default(), &patch).await);
    }

    /// Ends all that is broken.
    pub(super) async fn repair(&self) {
        self.env.set_faults(HOST, &[]);
        self.env.cluster.inject(Plan::none());
        // A restarted Ironic is up again, slow requests are over, and Ironic knows the power state.
        sleep(POWER_SYNC * 2).await;
        {
            let mut log = self.env.interceptor.log();
            (log.fault, log.rejected) = (None, None);
        }
        if self.env.machine(HOST, |machine| machine.account.is_some()) {
            self.change_login(Login::Back).await;
        } else if self.env.api::<Secret>().get_opt("bmc-1").await.unwrap().is_none() {
            self.change_login(Login::Right).await;
        }
        // The maintenance of a deletion that was taken back is the controller's to end.
        let node = self.env.node(HOST).await;
        if node.is_some_and(|node| node.maintenance_reason.as_deref() != Some(OF_DELETION)) {
            self.maintain(false).await;
        }
        self.assign(false).await;
        self.edit(&json!({ "metadata": { "labels": null } })).await;
        for other in &self.env.others {
            // The finalizers of objects whose host is gone wait for each Ironic that may have had its node.
            other.interceptor.hang(false);
        }
        self.drive(DriveFault::None);
        self.builder.change(Builds::Served);
        self.repair_settings().await;
        self.repair_updates().await;
    }
}

/// As the Go manager and this program set it.
const OF_DELETION: &str = "forcing deletion in baremetal-operator";

pub(super) fn with_mac(change: Value, mac: &str) -> Value {
    serde_json::from_str(&change.to_string().replace(OWN_MAC, mac)).unwrap()
}
