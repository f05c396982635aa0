//! What administrators and two tenants do, and what is required of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use metal3_ironic_life::simulated::SimulatedIronic;
use serde_json::Value;
use tokio::process::Child;

use crate::person::{Person, Place};
use crate::{Arguments, access, canaries, manager, page, refusals, world};

const TENANTS: &str = include_str!("../../../docs/tenants.md");
const ADMINISTRATORS: &str = include_str!("../../../docs/host-administrators.md");
/// How many times faster than real ones the machines are.
const SPEED: u32 = 40;
const HOSTS: u32 = 2;
/// What administrators see of their hosts.
const OF_HOSTS: &str = "kubectl get baremetalhosts,hardwaredata,secrets -o json";
/// Prints a line for each host.
const STATES: &str = "kubectl get baremetalhosts \
    -o 'jsonpath={range .items[*]}{.metadata.name} {.status.provisioning.state} {.spec.consumerRef.name} {.spec.image.url}{\"\\n\"}{end}'";

/// All who take part.
struct Cast {
    admin: Person,
    administrator: Person,
    first: Person,
    second: Person,
    ironic: SimulatedIronic,
    _manager: Child,
    audit: PathBuf,
    canaries: BTreeSet<String>,
}

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut cast = Cast::gather(arguments).await?;
    cast.hosts().await?;
    cast.tenant_without_policy().await?;
    cast.open().await?;
    cast.refusals().await?;
    cast.page().await?;
    cast.script().await?;
    cast.error_of_a_host().await?;
    cast.limits_that_change().await?;
    cast.audit()
}

fn step(what: &str) {
    println!("--- {what}");
}

/// The commands, the kinds, and the roles of the sample pages.
async fn prepare(arguments: &Arguments) -> anyhow::Result<Person> {
    let home = std::path::absolute(&arguments.home)?.join("tenants-run");
    let tools = home.join("tools");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&tools).with_context(|| format!("creating {}", tools.display()))?;
    for (program, name) in [(&arguments.kubectl, "kubectl"), (&arguments.manager, "kubectl-metal3")] {
        std::os::unix::fs::symlink(std::path::absolute(program)?, tools.join(name))?;
    }
    let root = std::path::absolute(&arguments.root)?;
    let place = Place { root, tools, home };
    let mut admin = Person::new("admin", &std::path::absolute(&arguments.kubeconfig)?, &place);
    step("kinds, the account of the program, and the commands for administrators of the cluster");
    world::install(&mut admin).await?;
    for block in page::blocks(ADMINISTRATORS, "As administrator of the cluster")? {
        admin.done(block).await?;
    }
    for block in page::blocks(ADMINISTRATORS, "For each tenant")? {
        admin.done(block).await?;
        admin.done(&block.replace("tenant-1", "tenant-2")).await?;
    }
    // Until its controller has counted, a quota refuses all that it names.
    for tenant in ["tenant-1", "tenant-2"] {
        let counted = format!("kubectl get resourcequota metal3-tenant -n {tenant} -o 'jsonpath={{.status.used}}'");
        admin.until(&counted, "count/hostclaims.metal3.io").await?;
    }
    Ok(admin)
}

impl Cast {
    async fn gather(arguments: &Arguments) -> anyhow::Result<Self> {
        let mut admin = prepare(arguments).await?;
        let home = std::path::absolute(&arguments.home)?.join("tenants-run");
        let account = admin.account("manager", "metal3-system", "metal3-manager").await?;
        let ironic = SimulatedIronic::start(&home, HOSTS, SPEED).await?;
        let program = std::path::absolute(&arguments.manager)?;
        Ok(Self {
            administrator: admin.account("administrator", "hosts", "administrator").await?,
            first: admin.account("tenant-1", "tenant-1", "tenant").await?,
            second: admin.account("tenant-2", "tenant-2", "tenant").await?,
            _manager: manager::start(&program, account.kubeconfig(), &ironic, &home)?,
            admin,
            ironic,
            audit: arguments.audit.clone(),
            canaries: BTreeSet::new(),
        })
    }

    async fn hosts(&mut self) -> anyhow::Result<()> {
        step("hosts with canaries, by their administrator");
        for number in 1..=HOSTS {
            self.administrator.apply(&world::host(number)).await?;
        }
        for number in 1..=HOSTS {
            self.administrator
                .until(STATES, &format!("host-{number} available"))
                .await?;
        }
        self.gather_canaries().await?;
        ensure!(self.canaries.len() > 20, "canaries: {:?}", self.canaries);
        Ok(())
    }

    async fn gather_canaries(&mut self) -> anyhow::Result<()> {
        let list = self.administrator.json(OF_HOSTS).await?;
        self.canaries.extend(canaries::of(&list));
        // A part of each text that the administrator chose.
        self.canaries.insert("canary-".to_owned());
        Ok(())
    }

    /// Fails if a tenant can read a canary, or could in anything that was printed for him so far.
    async fn require_hidden(&mut self) -> anyhow::Result<()> {
        self.gather_canaries().await?;
        for (name, tenant) in [("tenant-1", &mut self.first), ("tenant-2", &mut self.second)] {
            access::read_everything(tenant).await?;
            canaries::require_none(&self.canaries, name, &tenant.seen)?;
        }
        Ok(())
    }

    async fn tenant_without_policy(&mut self) -> anyhow::Result<()> {
        step("a tenant without a HostDeployPolicy");
        refusals::until_in_force(&mut self.second, &mut self.administrator).await?;
        self.second.apply(&[refusals::claim("waiting", |_| ())]).await?;
        let words = "Ready: False NoBareMetalHost";
        self.second
            .until("manifests/tenants/server.sh status waiting", words)
            .await?;
        let why = self.second.run("kubectl metal3 why hostclaim/waiting").await?;
        for part in ["NoBareMetalHost", "HostDeployPolicy", "administrators"] {
            ensure!(why.text.contains(part), "{part}: {}", why.text);
        }
        Ok(())
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        step("the commands for administrators of hosts");
        for block in page::blocks(ADMINISTRATORS, "As administrator of hosts")? {
            self.administrator.done(block).await?;
        }
        refusals::of_deploy_policies(&mut self.administrator).await
    }

    async fn refusals(&mut self) -> anyhow::Result<()> {
        step("claims that policies refuse, and reads that are forbidden");
        refusals::of_new_claims(&mut self.first).await?;
        access::read_foreign(&mut self.first, "tenant-2").await?;
        access::read_foreign(&mut self.second, "tenant-1").await
    }

    async fn page(&mut self) -> anyhow::Result<()> {
        step("the commands for tenants");
        let blocks = page::blocks(TENANTS, "With kubectl")?;
        let [create, ask, off, on, delete] = blocks[..] else {
            anyhow::bail!("{} blocks in the section", blocks.len());
        };
        self.first.done(create).await?;
        let states = self.administrator.done(STATES).await?;
        let number = [1, 2]
            .into_iter()
            .find(|number| states.contains(&format!("host-{number} provisioned web")));
        let number = number.with_context(|| states.clone())?;
        let before = self.ironic.machine(number).await?;
        ensure!(text(&before, "image") == "http://images.example/os.raw", "{before}");
        let shown = self.first.done(ask).await?;
        ensure!(
            shown.contains("Ready: True") && shown.contains(&format!("host-{number}")),
            "{shown}"
        );
        let claims = self
            .administrator
            .done("kubectl metal3 claims -A && kubectl metal3 consumers -n hosts")
            .await?;
        for part in ["tenant-1", "tenant-2", "NoBareMetalHost", "HostClaim/tenant-1/web"] {
            ensure!(claims.contains(part), "{part}: {claims}");
        }
        self.require_hidden().await?;
        refusals::of_changes(&mut self.first, "web").await?;
        self.first.done(off).await?;
        self.first
            .until(
                "kubectl get hostclaim web -o jsonpath='on:{.status.poweredOn}.'",
                "on:.",
            )
            .await?;
        self.first.done(on).await?;
        self.give_back(delete, number, &before).await
    }

    /// Deletes the claim: the machine is empty and was erased by the orders that Ironic got, and its host is available.
    async fn give_back(&mut self, delete: &str, number: u32, before: &Value) -> anyhow::Result<()> {
        drop(self.ironic.take().await?);
        self.first.done(delete).await?;
        let after = self.ironic.machine(number).await?;
        let erased = |seen: &Value| seen.get("erased").and_then(Value::as_u64).unwrap_or_default();
        ensure!(
            after.get("image").is_some_and(Value::is_null) && erased(&after) > erased(before),
            "the disk is not clean: {before} {after}"
        );
        let orders = self.ironic.take().await?.requests;
        ensure!(
            orders.get("PUT nodes/_/states/provision deleted") == Some(&1),
            "orders: {orders:?}"
        );
        self.administrator
            .until(STATES, &format!("host-{number} available  \n"))
            .await
    }

    async fn script(&mut self) -> anyhow::Result<()> {
        step("the script for tenants, and the quota");
        let blocks = page::blocks(TENANTS, "With a script")?;
        let [create, delete] = blocks[..] else {
            anyhow::bail!("{} blocks in the section", blocks.len());
        };
        let said = self.first.done(create).await?;
        ensure!(
            said.contains("build: False") && said.contains("build: True Ready"),
            "{said}"
        );
        self.first.apply(&[refusals::claim("second", |_| ())]).await?;
        refusals::of_the_quota(&mut self.first).await?;
        self.first.done("kubectl delete hostclaim second").await?;
        let said = self.first.done(delete).await?;
        ensure!(
            said.contains("HostClaimDeleting") && said.contains("build: given back"),
            "{said}"
        );
        self.require_hidden().await
    }

    /// The error of a host names its BMC.
    async fn error_of_a_host(&mut self) -> anyhow::Result<()> {
        step("a host whose BMC does not answer");
        self.first.apply(&[refusals::claim("broken", |_| ())]).await?;
        self.first
            .done("kubectl wait hostclaim/broken --for=condition=Ready --timeout=150s")
            .await?;
        for number in 1..=HOSTS {
            self.ironic.break_bmc(number).await?;
        }
        let off = r#"kubectl patch hostclaim broken --type=merge -p '{"spec":{"poweredOn":false,"image":null}}'"#;
        self.first.done(off).await?;
        let errors =
            "kubectl get baremetalhosts -o 'jsonpath={.items[*].status.errorMessage}{\"errors\"}' | grep -v ^errors";
        self.administrator.until(errors, "errors").await?;
        self.first
            .until("manifests/tenants/server.sh status broken", "False BareMetalHostFailed")
            .await?;
        self.first.run("kubectl metal3 why hostclaim/broken").await?;
        self.require_hidden().await
    }

    /// Limits that an existing claim exceeds keep nothing from being released.
    async fn limits_that_change(&mut self) -> anyhow::Result<()> {
        step("limits that change");
        let narrow = r#"kubectl patch configmap metal3-tenants -n metal3-system --type=merge -p '{"data":{"image-prefixes":"http://other.example/"}}'"#;
        self.admin.done(narrow).await?;
        let claim = refusals::claim("late", |_| ());
        let create = format!("kubectl create --dry-run=server -f - <<'EOF' 2>&1 || true\n{claim}\nEOF");
        self.second
            .until(&create, "use one that starts with: http://other.example/")
            .await?;
        self.second.done("kubectl label hostclaim waiting team=red").await?;
        self.second
            .done("kubectl delete hostclaim waiting --timeout=60s")
            .await?;
        self.admin
            .done("kubectl delete configmap metal3-tenants -n metal3-system")
            .await?;
        self.second.until(&create, "no params found").await
    }

    fn audit(&self) -> anyhow::Result<()> {
        let log = std::fs::read_to_string(&self.audit).with_context(|| format!("reading {}", self.audit.display()))?;
        let mut refused = 0_usize;
        for namespace in ["tenant-1", "tenant-2"] {
            let of_one = access::audited(&log, namespace)?;
            ensure!(of_one > 0, "the audit log has no refusal of {namespace}");
            refused = refused.saturating_add(of_one);
        }
        println!(
            "{} canaries in nothing that tenants read, {refused} of their requests refused, none granted outside of their namespaces",
            self.canaries.len()
        );
        Ok(())
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}
