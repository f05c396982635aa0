//! What a page does: a machine is broken and mended from its page, and a host in use is switched off once its name is typed.

use std::sync::Arc;

use anyhow::{Result, ensure};
use metal3_console::Console;
use metal3_sandbox::world::World;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::browser::Browser;
use crate::checked;
use crate::world::get;

/// The hosts of the world: three of them run the machines of a Cluster.
const HOSTS: u32 = 5;
const DIALOG: &str = "document.querySelector('dialog[open]')";

pub(crate) fn check(runtime: &Runtime, browser: &mut Browser, world: &Arc<World>, console: &Console) -> Result<()> {
    let open = |name: &str| {
        let address = console.address();
        format!("http://{address}/?view=host&namespace=default&name={name}")
    };
    let (free, used) = runtime.block_on(free_and_used(world))?;
    browser.open(&open(&free))?;
    break_and_mend(browser)?;
    browser.open(&open(&used))?;
    confirm(runtime, browser, world, &used)
}

/// The path of a newcomer: break the BMC on the page of a host, ask something of the machine, read why it waits and what to do, do it,
/// and see it mended.
fn break_and_mend(browser: &mut Browser) -> Result<()> {
    do_all(browser, &["lab-break", "power-off"])?;
    browser.until(
        "the broken BMC is explained",
        "document.querySelector('.cure.hardware')?.innerText.includes('BMC')",
    )?;
    // A change of the host is tried at once; without one, what failed is tried again after a while.
    do_all(browser, &["lab-mend", "power-on"])?;
    browser.until(
        "the host is mended",
        "!document.querySelector('.cure.hardware') && document.querySelector('.head.nothing')",
    )?;
    checked("host: the BMC broken on the page, why and what to do read there, mended, and the page says so");
    Ok(())
}

fn confirm(runtime: &Runtime, browser: &mut Browser, world: &Arc<World>, name: &str) -> Result<()> {
    let is_online = |expected: bool| -> Result<()> {
        let host = runtime.block_on(get(world, name))?;
        ensure!(host.pointer("/spec/online") == Some(&Value::Bool(expected)), "{host}");
        Ok(())
    };
    press(browser, "power-off")?;
    browser.until("the question", DIALOG)?;
    let text = browser.value(&format!("{DIALOG}.innerText"))?.to_string();
    let consequence = "What runs on the machine stops: it is used by Metal3Machine";
    ensure!(
        text.contains(consequence) && text.contains(&format!("Type {name} to confirm")),
        "{text}"
    );
    let is_off = browser.value(&format!("{DIALOG}.querySelector('[data-go]').disabled"))?;
    ensure!(is_off == true, "the button works before the name is typed");
    type_in(browser, "host")?;
    let is_off = browser.value(&format!("{DIALOG}.querySelector('[data-go]').disabled"))?;
    ensure!(is_off == true, "the button works with another name");
    browser.press("Escape")?;
    browser.until("no question", &format!("!{DIALOG}"))?;
    is_online(true)?;
    let focus = browser.value("document.activeElement.dataset.action ?? document.activeElement.tagName")?;
    ensure!(focus == "power-off", "the focus is on {focus}");
    press(browser, "power-off")?;
    type_in(browser, name)?;
    ask(browser, true)?;
    is_online(false)?;
    browser.until("the other action", "document.querySelector('[data-action=power-on]')")?;
    press(browser, "power-on")?;
    ask(browser, false)?;
    is_online(true)?;
    checked(
        "host: a machine in use is switched off only after its consequence was read and its name typed, and on again",
    );
    Ok(())
}

/// Does what harms nothing, one after the other.
fn do_all(browser: &mut Browser, actions: &[&str]) -> Result<()> {
    actions.iter().try_for_each(|action| {
        press(browser, action)?;
        ask(browser, false)
    })
}

fn press(browser: &mut Browser, action: &str) -> Result<()> {
    let button = format!("document.querySelector('[data-action={action}]')");
    browser.until(&format!("the button {action}"), &button)?;
    browser.value(&format!("{button}.focus(), {button}.click()")).map(drop)
}

fn type_in(browser: &mut Browser, text: &str) -> Result<()> {
    browser.until("the place for the name", "document.getElementById('typed')")?;
    browser
        .value(&format!(
            "{{ const typed = document.getElementById('typed'); typed.value = {text:?}; typed.dispatchEvent(new Event('input')); }}"
        ))
        .map(drop)
}

/// Says yes, and waits for the answer.
fn ask(browser: &mut Browser, is_typed: bool) -> Result<()> {
    browser.until("the question", DIALOG)?;
    if !is_typed {
        let typed = browser.value(&format!("{DIALOG}.querySelector('input') === null"))?;
        ensure!(typed == true, "a name is asked for what harms nothing");
    }
    browser.value(&format!("{DIALOG}.querySelector('[data-go]').click()"))?;
    let is_done = "document.querySelector('.notice[role=status]')?.innerText.startsWith('Done')";
    browser
        .until("the answer", &format!("!{DIALOG} && {is_done}"))
        .map(drop)
}

/// A free host, and one that runs a machine, once the Cluster has all of its machines.
async fn free_and_used(world: &Arc<World>) -> Result<(String, String)> {
    for _ in 0..600 {
        let (mut free, mut used) = (Vec::new(), Vec::new());
        for number in 1..=HOSTS {
            let host = get(world, &format!("host-{number}")).await?;
            let is = |at: &str, wanted: &str| host.pointer(at).and_then(Value::as_str) == Some(wanted);
            let name = host
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            match host.pointer("/spec/consumerRef").is_some() {
                true if is("/status/provisioning/state", "provisioned") => used.push(name),
                false if is("/status/provisioning/state", "available") => free.push(name),
                _ => {}
            }
        }
        if let ([free, _], [used, _, _]) = (free.as_slice(), used.as_slice()) {
            return Ok((free.clone(), used.clone()));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("the Cluster does not have its machines")
}
