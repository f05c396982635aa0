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
/// A dialog is closed a moment before it is removed.
const GONE: &str = "!document.querySelector('dialog')";
/// How often a page may be older than its host.
const TRIES: usize = 5;

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
    browser.until("no question", GONE)?;
    is_online(true)?;
    browser.until(
        "the focus is on the button",
        "document.activeElement.dataset.action === 'power-off'",
    )?;
    press(browser, "power-off")?;
    type_in(browser, name)?;
    ensure!(ask(browser, true)?, "refused");
    is_online(false)?;
    browser.until("the other action", "document.querySelector('[data-action=power-on]')")?;
    do_all(browser, &["power-on"])?;
    is_online(true)?;
    checked(
        "host: a machine in use is switched off only after its consequence was read and its name typed, and on again",
    );
    Ok(())
}

/// Does what harms nothing, one after the other. A host that changed after the page was drawn is looked at again.
fn do_all(browser: &mut Browser, actions: &[&str]) -> Result<()> {
    for action in actions {
        let mut is_done = false;
        for _ in 0..TRIES {
            press(browser, action)?;
            is_done = ask(browser, false)?;
            if is_done {
                break;
            }
            browser.press("Escape")?;
            browser.until("no question", GONE)?;
        }
        ensure!(
            is_done,
            "{action}: refused {TRIES} times: the host changes all the time"
        );
    }
    Ok(())
}

/// Looks for the button and presses it in one step: the page may draw its buttons again between two.
fn press(browser: &mut Browser, action: &str) -> Result<()> {
    let button = format!("document.querySelector('[data-action={action}]')");
    let pressed = format!("{button} && ({button}.focus(), {button}.click(), true)");
    browser.until(&format!("the button {action}"), &pressed).map(drop)
}

fn type_in(browser: &mut Browser, text: &str) -> Result<()> {
    // In the dialog that is open: one that was closed may not be removed yet.
    let place = format!("{DIALOG}.querySelector('#typed')");
    let typed = format!("{place} && ({place}.value = {text:?}, {place}.dispatchEvent(new Event('input')), true)");
    browser.until("the place for the name", &typed).map(drop)
}

/// Says yes, and waits for the answer: whether it was done, or the host has changed.
fn ask(browser: &mut Browser, is_typed: bool) -> Result<bool> {
    browser.until("the question", DIALOG)?;
    if !is_typed {
        let typed = browser.value(&format!("{DIALOG}.querySelector('input') === null"))?;
        ensure!(typed == true, "a name is asked for what harms nothing");
    }
    browser.value(&format!("{DIALOG}.querySelector('[data-go]').click()"))?;
    let is_done = "document.querySelector('.notice[role=status]')?.innerText.startsWith('Done')";
    let refused = format!("{DIALOG}?.querySelector('.said.failed')");
    browser.until("the answer", &format!("{refused} || ({GONE} && {is_done})"))?;
    let text = browser.value(&format!("{refused}?.textContent ?? ''"))?;
    let text = text.as_str().unwrap_or_default();
    ensure!(text.is_empty() || text.starts_with("The host has changed"), "{text}");
    Ok(text.is_empty())
}

/// A free host, and one that runs a machine, once the Cluster has all of its machines.
async fn free_and_used(world: &Arc<World>) -> Result<(String, String)> {
    for _ in 0..2_400 {
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
