// The console at the other end: documents, and the stream of changes. A hidden page reads nothing.

import { setNow } from "./time.js";

// The key of this browser, which comes after the # of the printed URL's answer and stays with this port. Cookies do not.
const KEY = "metal3-console-key";
const entered = /^#key=([0-9a-f]{64})$/.exec(location.hash);
if (entered) {
  localStorage.setItem(KEY, entered[1]);
  history.replaceState(null, "", location.pathname + location.search);
}

// How long the page waits before it looks for a console that is gone.
const AGAIN = 1000;

export const fleet = { rows: new Map(), version: 0, isRead: false, scope: { notices: [], pending: 0, old: false } };
export const link = { state: "connecting", since: new Date() };
// The end of the console's login, until it has another one.
export const login = { ended: null };

const batches = new Set();
const links = new Set();
const logins = new Set();
let source = null;
let retry = 0;

export const onBatch = (listener) => (batches.add(listener), () => batches.delete(listener));
export const onLink = (listener) => links.add(listener);
export const onLogin = (listener) => (logins.add(listener), () => logins.delete(listener));

const key = (namespace, name) => `${namespace}/${name}`;

export async function get(path, values = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(values)}`, { credentials: "same-origin" });
  if (answer.status === 401) setLink("refused");
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return { document: await answer.json(), isOld: answer.headers.has("x-changed-since") };
}

export async function post(path, values) {
  const answer = await fetch(path, { method: "POST", credentials: "same-origin", headers: { "content-type": "application/json", "x-console-key": localStorage.getItem(KEY) ?? "" }, body: JSON.stringify(values) });
  if (answer.status === 401) setLink("refused");
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function setLink(state) {
  if (link.state === state) return;
  link.state = state;
  link.since = new Date();
  for (const listener of links) listener();
}

// What another user read is not kept.
function setLogin(ended) {
  if (JSON.stringify(ended) === JSON.stringify(login.ended)) return;
  const before = login.ended;
  login.ended = ended;
  // All is read again: what the page knows of that came before.
  if (before && !ended) fleet.scope = { ...fleet.scope, old: true };
  if (ended?.isHidden) fleet.rows.clear();
  if (ended?.isHidden || before?.isHidden) fleet.isRead = false;
  for (const listener of logins) listener(before);
}

function take(row) {
  row.labels ??= {};
  fleet.rows.set(key(row.namespace, row.name), row);
}

async function readAll() {
  if (login.ended?.isHidden) return;
  const { document } = await get("/api/fleet");
  if (login.ended?.isHidden) return;
  fleet.rows.clear();
  document.rows.forEach(take);
  fleet.version = document.version;
  fleet.isRead = true;
  setScope(document.scope);
  announce({ all: true, namespaces: [] });
}

function setScope(scope) {
  fleet.scope = scope;
  setNow(scope.now);
}

function announce(change) {
  for (const listener of batches) listener(change);
}

async function apply(batch) {
  if (batch.version <= fleet.version || login.ended?.isHidden) return;
  const isNext = batch.version === fleet.version + 1;
  if (batch.all || !isNext) return readAll();
  for (const [namespace, name] of batch.gone) fleet.rows.delete(key(namespace, name));
  batch.rows.forEach(take);
  fleet.version = batch.version;
  setScope(batch.scope);
  announce({ all: false, namespaces: batch.namespaces, rows: batch.rows, gone: batch.gone });
}

// Batches are applied one after the other, and after the rows that they change.
let turn = Promise.resolve();
function inTurn(work) {
  turn = turn.then(work).catch(() => lost());
}

function lost() {
  if (link.state !== "refused") setLink("lost");
  source?.close();
  source = null;
  clearTimeout(retry);
  retry = setTimeout(connect, AGAIN);
}

export function connect() {
  clearTimeout(retry);
  if (document.hidden || source) return;
  const own = new EventSource("/api/stream");
  source = own;
  // What waits when the page is hidden is not read: the next stream begins with all.
  const inItsTurn = (work) => inTurn(() => own === source && work());
  source.addEventListener("hello", ({ data }) => {
    const hello = JSON.parse(data);
    setNow(hello.now);
    setLogin(hello.login);
    inItsTurn(async () => {
      await readAll();
      setLink("connected");
    });
  });
  source.addEventListener("batch", (event) => inItsTurn(() => apply(JSON.parse(event.data))));
  source.addEventListener("again", () => inItsTurn(readAll));
  source.addEventListener("login", ({ data }) => {
    const ended = JSON.parse(data);
    // At once: what waits for its turn is older.
    setLogin(ended);
    if (!ended) inItsTurn(readAll);
  });
  source.onerror = () => {
    lost();
    // A console that was started again does not know this browser.
    get("/api/fleet").catch(() => {});
  };
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return connect();
  source?.close();
  source = null;
});
