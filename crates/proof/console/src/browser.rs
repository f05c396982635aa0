//! Chromium without a window, through its devtools protocol over pipes: messages end with a zero byte.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// More time than any answer of the browser takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at a page that is not there yet.
const AGAIN: Duration = Duration::from_millis(50);

/// A browser with one tab.
pub(crate) struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
    /// Errors and messages of the tab.
    pub(crate) complaints: Vec<String>,
    events: VecDeque<Value>,
}

impl Browser {
    /// Starts it with a profile in an empty folder.
    pub(crate) fn start(program: &Path, profile: &Path) -> Result<Self> {
        // The browser reads from descriptor 3 and writes to 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2";
        let mut process = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-extensions",
                "--disable-sync",
                "--metrics-recording-only",
                "--mute-audio",
                "--force-color-profile=srgb",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let to = process.stdin.take().context("the browser has no pipe")?;
        let from = messages(process.stdout.take().context("the browser has no pipe")?);
        let mut browser = Self {
            process,
            to,
            from,
            session: String::new(),
            last: 0,
            complaints: Vec::new(),
            events: VecDeque::new(),
        };
        browser.attach()?;
        Ok(browser)
    }

    /// Opens the tab.
    fn attach(&mut self) -> Result<()> {
        let tab = self.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attached = json!({ "targetId": tab.pointer("/targetId"), "flatten": true });
        let attached = self.call("Target.attachToTarget", attached)?;
        let session = attached.pointer("/sessionId").and_then(Value::as_str);
        session.context("no session")?.clone_into(&mut self.session);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            self.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(())
    }

    /// Calls a method, and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let (false, Some(members)) = (self.session.is_empty(), message.as_object_mut()) {
            members.insert("sessionId".to_owned(), Value::from(self.session.clone()));
        }
        self.to.write_all(message.to_string().as_bytes())?;
        self.to.write_all(&[0])?;
        self.to.flush()?;
        loop {
            let answer = self
                .from
                .recv_timeout(PATIENCE)
                .with_context(|| format!("{method}: no answer"))?;
            if answer.pointer("/id").and_then(Value::as_u64) != Some(id) {
                self.note(answer);
                continue;
            }
            if let Some(error) = answer.get("error") {
                bail!("{method}: {error}");
            }
            return Ok(answer.get("result").cloned().unwrap_or_default());
        }
    }

    fn note(&mut self, event: Value) {
        let text = |pointer: &str| event.pointer(pointer).map(ToString::to_string).unwrap_or_default();
        match event.pointer("/method").and_then(Value::as_str) {
            Some("Runtime.exceptionThrown") => self.complaints.push(text("/params/exceptionDetails")),
            Some("Log.entryAdded") => {
                self.complaints
                    .push(format!("{} {}", text("/params/entry/text"), text("/params/entry/url")))
            }
            Some("Network.requestWillBeSent" | "Page.javascriptDialogOpening") => self.events.push_back(event),
            _ => {}
        }
    }

    /// The URLs that the tab asked for since the last call, and dialogs, which no page opens.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let url = |event: Value| {
            event
                .pointer("/params/request/url")
                .unwrap_or(&Value::from("a dialog"))
                .as_str()
                .map(ToOwned::to_owned)
        };
        events.into_iter().filter_map(url).collect()
    }

    pub(crate) fn open(&mut self, url: &str) -> Result<()> {
        let answer = self.call("Page.navigate", json!({ "url": url }))?;
        match answer.get("errorText") {
            Some(error) => bail!("{url}: {error}"),
            None => Ok(()),
        }
    }

    /// The value of an expression, which may be a promise.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value> {
        let wanted = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", wanted)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(answer.pointer("/result/value").cloned().unwrap_or_default())
    }

    /// Waits until an expression is true. On the page that comes, so that no time is lost by asking.
    pub(crate) fn until(&mut self, what: &str, expression: &str) -> Result<f64> {
        let milliseconds = PATIENCE.as_millis();
        let script = format!(
            "new Promise((done) => {{ const began = performance.now(); const look = () => {{ let is = false; try {{ is = {expression}; }} catch {{}} \
             if (is) done(performance.now() - began); else if (performance.now() - began > {milliseconds} / 2) done(-1); \
             else setTimeout(look, 5); }}; look(); }})"
        );
        // A page that is being replaced ends the script: it is asked again on the next one.
        for _ in 0..PATIENCE.as_millis() / AGAIN.as_millis() {
            match self.value(&script) {
                Ok(took) if took.as_f64().is_some_and(|took| took >= 0.0) => {
                    return Ok(took.as_f64().unwrap_or_default());
                }
                Ok(_) => break,
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
        let shown = self.value("document.body.innerText").unwrap_or_default();
        bail!(
            "{what}: never true: {expression}\n{}\n{:?}",
            shown.as_str().unwrap_or_default(),
            self.complaints
        )
    }

    /// The text of the page.
    pub(crate) fn text(&mut self) -> Result<String> {
        let text = self.value("document.body.innerText")?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// The size of the window, and light or dark.
    pub(crate) fn look(&mut self, width: u32, height: u32, scheme: &str) -> Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", scheme).map(drop)
    }

    pub(crate) fn screenshot(&mut self, file: &Path) -> Result<()> {
        let shot = self.call(
            "Page.captureScreenshot",
            json!({ "format": "png", "optimizeForSpeed": false }),
        )?;
        let data = shot.pointer("/data").and_then(Value::as_str).context("no picture")?;
        std::fs::write(file, STANDARD.decode(data)?).with_context(|| format!("write {}", file.display()))
    }

    /// Types into the filter, all at once.
    pub(crate) fn filter(&mut self, text: &str) -> Result<()> {
        let text = Value::from(text);
        let typed = format!(
            "{{ const box = document.querySelector('input[type=search]'); box.value = {text}; box.dispatchEvent(new Event('input')); }}"
        );
        self.value(&typed).map(drop)
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": key });
            // What the browser itself does with a key depends on its number.
            let number = match key {
                "Enter" => 13,
                "Escape" => 27,
                _ => 0,
            };
            if let (true, Some(event)) = (number > 0, event.as_object_mut()) {
                event.insert("windowsVirtualKeyCode".to_owned(), Value::from(number));
            }
            if let (true, Some(event)) = (key == "Enter", event.as_object_mut()) {
                event.insert("text".to_owned(), Value::from("\r"));
            }
            self.call("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// The nodes of the accessibility tree that a screen reader meets.
    pub(crate) fn tree(&mut self) -> Result<Vec<Value>> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}))?;
        let nodes = tree.pointer("/nodes").and_then(Value::as_array);
        let is_met = |node: &&Value| node.pointer("/ignored").and_then(Value::as_bool) != Some(true);
        Ok(nodes.into_iter().flatten().filter(is_met).cloned().collect())
    }

    /// Waits until one that has this role has this name: the browser brings its tree up to date after it has drawn a page.
    pub(crate) fn until_named(&mut self, role: &str, expected: &str) -> Result<()> {
        let mut names = Vec::new();
        for _ in 0..PATIENCE.as_millis() / AGAIN.as_millis() {
            names = self.names_of(role)?;
            if names.iter().any(|name| name == expected) {
                return Ok(());
            }
            std::thread::sleep(AGAIN);
        }
        bail!("no {role} {expected:?}: {names:?}")
    }

    /// The names of those that have this role.
    pub(crate) fn names_of(&mut self, role: &str) -> Result<Vec<String>> {
        let text = |node: &Value, at: &str| node.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let nodes = self.tree()?;
        let own = nodes.iter().filter(|node| text(node, "/role/value") == role);
        Ok(own.map(|node| text(node, "/name/value")).collect())
    }
}

/// The messages of the browser.
fn messages(mut pipe: ChildStdout) -> Receiver<Value> {
    let (sender, from) = channel();
    std::thread::spawn(move || {
        let (mut rest, mut part) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(count @ 1..) = pipe.read(&mut part) {
            rest.extend_from_slice(part.get(..count).unwrap_or_default());
            while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = rest.drain(..=end).collect();
                let message = serde_json::from_slice(message.get(..end).unwrap_or_default());
                if message.is_ok_and(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        }
    });
    from
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
