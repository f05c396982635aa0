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

export const fleet = { rows: new Map(), version: 0, isRead: false, scope: { notices: [], pending: 0 } };
export const link = { state: "connecting", since: new Date() };

const batches = new Set();
const links = new Set();
let source = null;
let retry = 0;

export const onBatch = (listener) => (batches.add(listener), () => batches.delete(listener));
export const onLink = (listener) => links.add(listener);

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

function take(row) {
  row.labels ??= {};
  fleet.rows.set(key(row.namespace, row.name), row);
}

async function readAll() {
  const { document } = await get("/api/fleet");
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
  if (batch.version <= fleet.version) return;
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
  source = new EventSource("/api/stream");
  source.addEventListener("hello", ({ data }) => {
    setNow(JSON.parse(data).now);
    inTurn(async () => {
      await readAll();
      setLink("connected");
    });
  });
  source.addEventListener("batch", (event) => inTurn(() => apply(JSON.parse(event.data))));
  source.addEventListener("again", () => inTurn(readAll));
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
