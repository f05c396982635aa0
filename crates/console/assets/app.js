// The page: which view is shown, and what is said above it.

import { follow, onChange, read } from "./address.js";
import { whoOf } from "./filter.js";
import { fill, say } from "./dom.js";
import { el } from "./dom.js";
import { connect, fleet, link, login, onBatch, onLink, onLogin } from "./server.js";
import { here, hold, seconds, tick } from "./time.js";
import { Clusters, Cluster } from "./cluster.js";
import { Fleet } from "./fleet.js";
import { Host } from "./host.js";
import { FleetMap } from "./map.js";
import { Pools } from "./pools.js";
import { Waits } from "./waits.js";

const VIEWS = { fleet: Fleet, map: FleetMap, host: Host, cluster: Cluster, clusters: Clusters, pools: Pools, waits: Waits };
const TITLES = { fleet: "Fleet", map: "Map", host: "Host", cluster: "Cluster", clusters: "Clusters", pools: "Pools", waits: "Waits" };
// Views that belong to an entry of the navigation.
const ENTRY = { host: "fleet", cluster: "clusters" };

const main = document.getElementById("main");
let shown = null;

function show() {
  const { view = "fleet", ...values } = read();
  const name = Object.hasOwn(VIEWS, view ?? "") ? view : "fleet";
  shown?.close?.();
  for (const one of document.querySelectorAll("nav a[data-view]")) {
    if (one.dataset.view === (ENTRY[name] ?? name)) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  shown = null;
  document.title = `${values.name ? `${values.name} · ` : ""}${TITLES[name]} · Metal3`;
  main.dataset.view = name;
  if (login.ended?.isHidden) return fill(main, el("h1", {}, TITLES[name]), el("p", { class: "quiet" }, "What was read before is not shown."));
  shown = new VIEWS[name](main, values);
}

function notices() {
  // What was not read before the end is still missing in what is shown.
  const { namespace, notices: lines, pending } = login.ended?.isHidden ? { notices: [] } : fleet.scope;
  const all = [
    namespace && `Only the namespace ${namespace} is read: you may list no others.`,
    pending > 0 && !login.ended && `${pending} kinds are still being read.`,
    ...lines,
  ].filter(Boolean);
  const place = document.getElementById("notices");
  const text = all.join("\n");
  place.hidden = all.length === 0;
  if (place.dataset.text === text) return;
  place.dataset.text = text;
  fill(place, el("ul", {}, all.map((line) => el("li", {}, line))));
}

function badge() {
  let blocked = 0;
  for (const row of fleet.rows.values()) blocked += ["user", "hardware"].includes(whoOf(row)) ? 1 : 0;
  const place = document.getElementById("blocked");
  place.hidden = blocked === 0;
  place.title = "hosts for which someone has to act";
  say(place, String(blocked));
}

const clock = (time) => time.toTimeString().slice(0, 8);
// The time of what is shown, from the end of a login until all is read again after it.
let old = null;

function showLink() {
  const place = document.getElementById("link");
  const at = clock(link.since);
  const end = login.ended && here(login.ended.since);
  if (end) old = end;
  else if (!fleet.scope.old) old = null;
  const texts = {
    connecting: "connecting",
    connected: end ? `nothing new since ${clock(end)}` : old ? `reading again what was known at ${clock(old)}` : "live",
    lost: `no connection since ${at}; the page shows what was known then`,
    refused: "the console was started again: open the URL that it printed",
  };
  const isLost = ["lost", "refused"].includes(link.state);
  place.className = `link ${old && !isLost ? "lost" : link.state}`;
  document.body.classList.toggle("away", isLost || Boolean(old));
  hold(old ?? (isLost ? link.since : null));
  tick();
  say(place, texts[link.state]);
}

// What has ended, of when the page is, and what to do.
function showLogin() {
  const place = document.getElementById("login");
  const { ended } = login;
  place.hidden = !ended;
  showLink();
  if (!ended) return fill(place);
  const end = here(ended.since);
  // A screen reader reads it once, and not each second again.
  const ago = el("span", { "data-ago": String(end.getTime()), "aria-live": "off" }, seconds((Date.now() - end.getTime()) / 1000));
  const old = [`The page shows what was known on ${end.toDateString()} at ${clock(end)}, `, ago, " ago. "];
  fill(place, el("b", {}, ended.what), `: ${ended.why}. `, ended.isHidden ? null : old, ended.cure);
}

document.addEventListener("click", follow);
onChange(() => {
  show();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
onBatch(() => {
  notices();
  badge();
  if (old) showLink();
});
onLink(showLink);
onLogin((before) => {
  showLogin();
  notices();
  if (login.ended?.isHidden || before?.isHidden) show();
  badge();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
  const input = document.querySelector("input[type=search]");
  if (!input) return;
  event.preventDefault();
  input.focus();
});
setInterval(tick, 1000);
showLink();
show();
connect();
