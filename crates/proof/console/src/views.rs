//! Each view of a small fleet: a broken BMC is explained, its cure is followed, and the server may go and return.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use metal3_console::Console;
use metal3_sandbox::world::World;
use tokio::runtime::Runtime;

use crate::accessible;
use crate::actions;
use crate::browser::Browser;
use crate::checked;
use crate::map;
use crate::world::{console_of, mend, sandbox};

pub(crate) const WIDE: (u32, u32) = (1280, 800);
const PICTURE: (u32, u32) = (1160, 640);
pub(crate) const PHONE: (u32, u32) = (390, 844);
/// The sign of a page that a page is as wide as its window.
pub(crate) const FITS: &str = "document.documentElement.scrollWidth <= innerWidth";

pub(crate) fn check(runtime: &Runtime, browser: &mut Browser, pictures: Option<&Path>) -> Result<()> {
    let world = runtime.block_on(sandbox(5))?;
    let open = runtime.block_on(console_of(&world, None))?;
    browser.look(WIDE.0, WIDE.1, "light")?;
    log_in(browser, &open)?;
    fleet(browser)?;
    host(browser)?;
    picture(browser, pictures, "console-why.png")?;
    others(browser)?;
    picture(browser, pictures, "console-waits.png")?;
    accessible::check(browser, &open)?;
    keyboard(browser, &open)?;
    map::check(browser, &open)?;
    cure(runtime, browser, &world, &open)?;
    actions::check(runtime, browser, &world, &open)?;
    loss(runtime, browser, &world, open)
}

/// A picture for the documents, in the size of a page there.
pub(crate) fn picture(browser: &mut Browser, folder: Option<&Path>, name: &str) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    browser.look(PICTURE.0, PICTURE.1, "light")?;
    // A frame with the new size.
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")?;
    browser.screenshot(&folder.join(name))?;
    browser.look(WIDE.0, WIDE.1, "light")
}

/// Opens the printed URL.
pub(crate) fn log_in(browser: &mut Browser, console: &Console) -> Result<()> {
    browser.open(&console.url())?;
    browser.until(
        "the page is live",
        "document.getElementById('link').textContent === 'live'",
    )?;
    let address = browser.value("location.href")?;
    ensure!(
        !address.to_string().contains("token"),
        "the address keeps the token: {address}"
    );
    only_this_machine(browser)
}

/// No page opened a dialog, or asked another machine.
pub(crate) fn only_this_machine(browser: &mut Browser) -> Result<()> {
    let asked = browser.asked();
    let foreign: Vec<&String> = asked
        .iter()
        .filter(|url| !url.starts_with("http://127.0.0.1:"))
        .collect();
    ensure!(foreign.is_empty(), "asked elsewhere: {foreign:?}");
    Ok(())
}

fn fleet(browser: &mut Browser) -> Result<()> {
    browser.until(
        "the fleet has its hosts",
        "document.querySelectorAll('.row').length === 5",
    )?;
    browser.until(
        "the wait of a host is explained",
        "document.body.innerText.includes('Registration failed')",
    )?;
    checked("fleet: 5 hosts, one of which says that its registration failed");
    browser.filter("who:hardware")?;
    browser.until(
        "the filter",
        "document.querySelectorAll('.row').length === 1 && location.search.includes('who%3Ahardware')",
    )?;
    browser.value(
        "[...document.querySelectorAll('.chip')].find((one) => one.getAttribute('aria-pressed') === 'true').click()",
    )?;
    browser.until("no filter", "document.querySelectorAll('.row').length === 5")?;
    browser.value("{ const group = document.querySelector('select'); group.value = 'label:rack'; group.dispatchEvent(new Event('change')); }")?;
    browser.until(
        "groups",
        "document.querySelectorAll('.row.group').length === 3 && location.search.includes('label%3Arack')",
    )?;
    checked("fleet: filter, counts that filter, groups by a label; the address has them");
    Ok(())
}

fn host(browser: &mut Browser) -> Result<()> {
    browser.value("[...document.querySelectorAll('.row a')].find((one) => one.textContent === 'host-1').click()")?;
    let words = "Check address, credentials and network of the BMC";
    browser.until(
        "the host",
        &format!("document.querySelector('.cure')?.innerText.includes({words:?})"),
    )?;
    let text = browser.text()?;
    for part in [
        "Who acts: hardware",
        "BareMetalHost/host-1",
        "docs/runbooks/hosts.md#registrationerror",
        "kubectl metal3 why baremetalhost/host-1 -n default",
    ] {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    browser.value("document.querySelector('.yaml').open = true")?;
    let text = browser.text()?;
    ensure!(
        text.contains("kind: BareMetalHost") && !text.contains("managedFields:"),
        "{text}"
    );
    browser.value("document.querySelector('.yaml').open = false")?;
    checked("host: who acts and what to do, what happened, the commands, and the object");
    Ok(())
}

fn others(browser: &mut Browser) -> Result<()> {
    browser.value("document.querySelector('nav [data-view=clusters]').click()")?;
    browser.until(
        "the Clusters",
        "document.querySelector('main a')?.textContent === 'demo'",
    )?;
    browser.value("document.querySelector('main a').click()")?;
    browser.until(
        "the tree",
        "document.querySelector('.tree')?.innerText.includes('BareMetalHost/')",
    )?;
    checked("cluster: from the Cluster down to its hosts");
    browser.value("document.querySelector('nav [data-view=pools]').click()")?;
    browser.until(
        "the pools",
        "document.querySelector('h1')?.innerText.startsWith('Pools')",
    )?;
    checked("pools");
    browser.value("document.querySelector('nav [data-view=waits]').click()")?;
    browser.until(
        "the waits",
        "document.querySelector('.waits.hardware .wait')?.innerText.includes('Registration failed')",
    )?;
    let first = browser.value("document.querySelector('.waits').className")?;
    ensure!(
        ["waits user", "waits hardware"].contains(&first.as_str().unwrap_or_default()),
        "{first}"
    );
    checked("waits: by who acts, with the cure");
    Ok(())
}

fn keyboard(browser: &mut Browser, console: &Console) -> Result<()> {
    browser.open(&format!("http://{}/?view=fleet", console.address()))?;
    browser.until("the fleet", "document.querySelectorAll('.row').length === 5")?;
    browser.press("/")?;
    browser.until("the filter has the focus", "document.activeElement.type === 'search'")?;
    browser.value("document.querySelector('.list').focus()")?;
    for _ in 0..2 {
        browser.press("ArrowDown")?;
    }
    browser.until(
        "a host has the focus",
        "document.activeElement.textContent === 'host-2'",
    )?;
    browser.press("Enter")?;
    browser.until(
        "its page",
        "location.search.includes('view=host') && location.search.includes('host-2')",
    )?;
    checked("keyboard: the filter, the list and a host");
    Ok(())
}

/// A page that is open follows the cure.
fn cure(runtime: &Runtime, browser: &mut Browser, world: &Arc<World>, console: &Console) -> Result<()> {
    browser.open(&format!(
        "http://{}/?view=host&namespace=default&name=host-1",
        console.address()
    ))?;
    browser.until("the host", "document.querySelector('.cure.hardware')")?;
    runtime.block_on(mend(world, 1))?;
    browser.until(
        "the cure",
        "!document.querySelector('.cure.hardware') && document.querySelector('h1')",
    )?;
    checked("host: mended, and the open page says so");
    Ok(())
}

fn loss(runtime: &Runtime, browser: &mut Browser, world: &Arc<World>, open: Console) -> Result<()> {
    let address = open.address();
    runtime.block_on(async move { drop(open) });
    browser.until(
        "the loss",
        "document.getElementById('link').textContent.startsWith('no connection since')",
    )?;
    checked("the console ends, and the open page says since when");
    let again = runtime.block_on(async {
        // The port is free once its connections are closed.
        for _ in 0..200 {
            if let Ok(console) = console_of(world, Some(address)).await {
                return Ok(console);
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        anyhow::bail!("the port stays taken")
    })?;
    browser.until(
        "the return",
        "document.getElementById('link').textContent.includes('open the URL that it printed')",
    )?;
    let path = browser.value("location.search")?;
    log_in(browser, &again)?;
    ensure!(path.to_string().contains("view=host"), "{path}");
    // Requests to a console that is gone, or that does not know the browser, are reported by the browser itself.
    browser.open("about:blank")?;
    browser.asked();
    browser.complaints.clear();
    checked("the console starts again, and its new URL leads back");
    Ok(())
}
