//! The program, with claims.

use std::path::Path;

use metal3_ironic_life::processes::spawn;
use metal3_ironic_life::simulated::SimulatedIronic;
use tokio::process::{Child, Command};

/// Starts it with the credentials of its account. Dropping the child kills it.
pub(crate) fn start(program: &Path, kubeconfig: &Path, ironic: &SimulatedIronic, home: &Path) -> anyhow::Result<Child> {
    let image = |file: &str| format!("http://agents.example/{file}");
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("POD_NAMESPACE", "metal3-system")
        .env("IRONIC_ENDPOINT", &ironic.url)
        .env("IRONIC_CACERT_FILE", &ironic.ca)
        .env("METAL3_AUTH_ROOT_DIR", &ironic.auth)
        .env("DEPLOY_KERNEL_URL", image("agent.kernel"))
        .env("DEPLOY_RAMDISK_URL", image("agent.initramfs"))
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--controllers=hosts", "--hostclaims", "--webhook-port=0"])
        .args(["--diagnostics-address=0", "--health-addr=127.0.0.1:29460"]);
    spawn(&mut command, &home.join("manager.log"))
}
