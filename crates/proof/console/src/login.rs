//! The login of the console ends while pages are open: they say so, stand still, and go on with the next login of the same user; what
//! one user read is not shown to another one.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use axum::body::Body;
use http::{Request, Response, StatusCode};
use kube::Client;
use metal3_console::login::{Checked, Failure, Owner, Source};
use metal3_console::{Console, Options};
use metal3_domain::clock::SystemClock;
use metal3_sim_cluster::Cluster;
use serde_json::json;
use tokio::runtime::Runtime;
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::accessible::page;
use crate::browser::Browser;
use crate::checked;
use crate::views::{PHONE, WIDE, log_in};
use crate::world::{NAMESPACE, fleet, set_error};

/// A host that is in use, of the smallest fleet.
const HOST: &str = "r000-u00";
const ENDED: &str = "!document.getElementById('login').hidden";
const LIVE: &str = "document.getElementById('login').hidden && document.getElementById('link').textContent === 'live'";
const DURATION: &str = "document.querySelector('[data-since]').textContent";
/// What a page asks when it shows a host: the console finds the end then, and not within a minute.
const ASKED: &str = "fetch('/api/rights?namespace=elsewhere&name=host').then(() => true)";

/// The number of the login, and its user while it is accepted.
type Login = (u64, Option<&'static str>);

/// Logins that a test ends and renews.
struct Switch {
    cluster: Cluster,
    login: Arc<Mutex<Login>>,
    owner: Arc<Owner>,
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Switch")
    }
}

impl Switch {
    fn now(&self) -> Login {
        *self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, user: Option<&'static str>) {
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        *login = (login.0 + 1, user);
    }

    /// A client with the login as it is now.
    fn client(&self) -> Client {
        let (own, cluster, login) = (self.now(), self.cluster.clone(), Arc::clone(&self.login));
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let now = *login.lock().unwrap_or_else(PoisonError::into_inner);
            let service = now.1.filter(|_| now == own).map(|user| cluster.service(user));
            async move {
                let Some(service) = service else {
                    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 401 });
                    let mut refused = Response::new(Body::from(status.to_string()));
                    *refused.status_mut() = StatusCode::UNAUTHORIZED;
                    return Ok::<_, BoxError>(refused);
                };
                Ok(service.oneshot(request).await?.map(Body::new))
            }
        });
        Client::new(Checked::new(service, "here", Arc::clone(&self.owner)), NAMESPACE)
    }
}

impl Source for Switch {
    fn look(&self) -> std::pin::Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(std::future::ready(self.now().0.to_string()))
    }

    fn connect(&self) -> std::pin::Pin<Box<dyn Future<Output = Result<Client, Failure>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.client())))
    }
}

pub(crate) fn check(runtime: &Runtime, browser: &mut Browser) -> Result<()> {
    let cluster = runtime.block_on(fleet(3))?;
    let logins = Arc::new(Switch {
        cluster: cluster.clone(),
        login: Arc::new(Mutex::new((1, Some("ann")))),
        owner: Arc::default(),
    });
    let console = runtime.block_on(open(&logins))?;
    log_in(browser, &console)?;
    let host = format!(
        "http://{}/?view=host&namespace={NAMESPACE}&name={HOST}",
        console.address()
    );
    browser.open(&host)?;
    browser.until(
        "the buttons",
        "document.querySelector('.act') && document.querySelector('[data-since]')",
    )?;
    end(browser, &logins)?;
    runtime.block_on(set_error(&cluster, HOST, "after the end"))?;
    stands_still(browser)?;
    for (scheme, (width, height)) in [("light", WIDE), ("dark", WIDE), ("light", PHONE), ("dark", PHONE)] {
        browser.look(width, height, scheme)?;
        page(browser, &format!("the end of the login, {width} pixels, {scheme}"))?;
    }
    browser.look(WIDE.0, WIDE.1, "light")?;
    logins.set(Some("ann"));
    browser.until("the login is renewed", LIVE)?;
    browser.until(
        "what came since, and the buttons",
        "document.body.innerText.includes('after the end') && document.querySelector('.act')",
    )?;
    checked(
        "login: its end is said with the time and what to do, the page stands still, and goes on with the next login",
    );
    other(browser, &logins, &host)
}

async fn open(logins: &Arc<Switch>) -> Result<Console> {
    let options = Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        namespace: None,
        default_namespace: NAMESPACE.to_owned(),
        is_read_only: false,
        lab: None,
    };
    let source: Arc<dyn Source> = logins.clone();
    let console = Console::open_with(
        (source, logins.client()),
        Arc::new(SystemClock::start()),
        &options,
        |_| {},
    )
    .await?;
    console.listed().await;
    Ok(console)
}

fn end(browser: &mut Browser, logins: &Switch) -> Result<()> {
    logins.set(None);
    browser.value(ASKED)?;
    browser.until("the end is said", ENDED)?;
    let text = browser.text()?;
    for part in [
        "The login of the console has ended: the API server does not accept the login",
        "The page shows what was known on",
        "kubectl auth whoami",
    ] {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    browser.until(
        "no buttons, and the line above",
        "!document.querySelector('.act') && document.getElementById('link').textContent.startsWith('nothing new since')",
    )?;
    Ok(())
}

/// Nothing newer is shown, and no duration grows.
fn stands_still(browser: &mut Browser) -> Result<()> {
    // Durations go back to the last answer with the next second.
    browser.value("new Promise((done) => setTimeout(done, 1500))")?;
    let before = browser.value(DURATION)?;
    browser.value("new Promise((done) => setTimeout(done, 2500))")?;
    let after = browser.value(DURATION)?;
    ensure!(
        before == after && before.as_str().is_some_and(|text| !text.is_empty()),
        "{before} and then {after}"
    );
    let text = browser.text()?;
    ensure!(!text.contains("after the end"), "{text}");
    Ok(())
}

/// Another user logs in: no view has anything of the first one, until that one logs in again.
fn other(browser: &mut Browser, logins: &Switch, host: &str) -> Result<()> {
    browser.value("document.querySelector('[data-action=pause]').click()")?;
    browser.until("the question", "document.querySelector('dialog[open]')")?;
    end(browser, logins)?;
    logins.set(Some("bob"));
    let said = "document.getElementById('login').innerText.includes('logs in as bob now, and this console was started as ann')";
    browser.until(
        "the other user is named, and no question is open",
        &format!("{said} && !document.querySelector('dialog')"),
    )?;
    for view in ["", "fleet", "map", "waits", "clusters", "pools"] {
        if !view.is_empty() {
            browser.value(&format!("document.querySelector('nav [data-view={view}]').click()"))?;
        }
        browser.until(
            view,
            "document.querySelector('main').innerText.includes('What was read before is not shown.')",
        )?;
        let text = browser.value("document.querySelector('main').innerHTML")?;
        let text = text.as_str().context("no page")?;
        ensure!(!text.contains("r000") && !text.contains("edge-"), "{view}: {text}");
    }
    page(browser, "another user logs in")?;
    browser.open(host)?;
    browser.until("the same after it is loaded again", said)?;
    let text = browser.value("document.querySelector('main').innerText")?;
    ensure!(!text.to_string().contains("after the end"), "{text}");
    logins.set(Some("ann"));
    browser.until("the first user again", LIVE)?;
    browser.until(
        "the host",
        "document.querySelector('.act') && document.body.innerText.includes('after the end')",
    )?;
    // Requests to a console that is gone are reported by the browser, as answers without a document are.
    browser.open("about:blank")?;
    browser.complaints.retain(|one| !one.contains("status of 409"));
    checked(
        "login: another user's is not used, and no view has anything that the first one read, until that one logs in again",
    );
    Ok(())
}
