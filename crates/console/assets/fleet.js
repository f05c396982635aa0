// The fleet: how many hosts are in which state, who has to act, and the hosts themselves.

import { read, replace, toHost } from "./address.js";
import { WHO, sign, whoTitle } from "./chain.js";
import { el, fill, say } from "./dom.js";
import { compile, fields, parts, quoted, toggled, whoOf } from "./filter.js";
import { List } from "./list.js";
import { fleet, onBatch } from "./server.js";
import { since } from "./time.js";

const SORTS = { name: "name", who: "who acts", since: "longest in its state" };
// Groups that are no labels.
const GROUPS = { state: (row) => row.state, cluster: (row) => row.cluster, namespace: (row) => row.namespace, vendor: (row) => row.vendor, model: (row) => row.model };

const byName = (a, b) => (a.namespace < b.namespace ? -1 : a.namespace > b.namespace ? 1 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const COMPARE = {
  name: byName,
  who: (a, b) => WHO.indexOf(whoOf(a)) - WHO.indexOf(whoOf(b)) || (a.waitsSince ?? "~").localeCompare(b.waitsSince ?? "~") || byName(a, b),
  since: (a, b) => ((a.since ?? "~") < (b.since ?? "~") ? -1 : (a.since ?? "~") > (b.since ?? "~") ? 1 : byName(a, b)),
};

function counts(rows, of) {
  const found = new Map();
  for (const row of rows) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
  return found;
}

export class Fleet {
  constructor(main, values) {
    this.values = values;
    this.bar = el("div", { class: "bar", role: "img" });
    this.who = el("div", { class: "chips", role: "group", "aria-label": "Who has to act" });
    this.states = el("div", { class: "chips states", role: "group", "aria-label": "State" });
    this.total = el("span", { class: "total", role: "status", "aria-live": "polite" });
    this.input = el("input", {
      type: "search", placeholder: "Filter: words, state:available, rack=a1, -who:nothing", value: values.q ?? "", autocomplete: "off", spellcheck: "false",
      "aria-label": "Filter the hosts", title: `Words, or field:value with one of ${fields.join(", ")}; label=value; - before what must not match. Key: /`,
      oninput: () => this.filter(this.input.value),
    });
    this.group = el("select", { "aria-label": "Group by", onchange: () => this.choose("group", this.group.value) });
    this.sort = el("select", { "aria-label": "Sort by", onchange: () => this.choose("sort", this.sort.value) },
      Object.entries(SORTS).map(([value, text]) => el("option", { value, selected: value === values.sort }, `by ${text}`)));
    this.list = new List("Hosts", (item) => this.row(item));
    const heads = ["Host", "State", "Waits for", "Consumer", "BMC", "For"].map((text) => el("span", {}, text));
    fill(main,
      el("section", { class: "summary", "aria-label": "Summary" }, el("h1", {}, "Fleet ", this.total), this.bar, this.who, this.states),
      el("section", { class: "tools" }, this.input, this.group, this.sort),
      el("div", { class: "heads", "aria-hidden": "true" }, heads),
      this.list.element);
    this.stop = onBatch(() => this.update());
    this.update();
  }

  close() {
    this.stop();
  }

  filter(text) {
    this.values.q = text;
    if (this.input.value !== text) this.input.value = text;
    replace({ q: text });
    this.update();
  }

  choose(name, value) {
    this.values[name] = value;
    replace({ [name]: value });
    this.update();
  }

  update() {
    const q = this.values.q ?? "";
    const all = this.sorted();
    const rows = q ? all.filter(compile(q)) : all;
    const text = rows.length === all.length ? `${all.length.toLocaleString("en")} hosts` : `${rows.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} hosts`;
    say(this.total, fleet.isRead ? text : "reading …");
    this.summarize(rows, q);
    this.list.set(this.grouped(rows), (item) => (item.isGroup ? `group ${item.name}` : `${item.namespace}/${item.name}`));
    document.body.dataset.drawn = String(fleet.version);
  }

  // All rows in their order, which a filter keeps.
  sorted() {
    const { version } = fleet;
    const { sort } = this.values;
    if (this.known?.version !== version || this.known.sort !== sort) {
      const rows = [...fleet.rows.values()].sort(COMPARE[sort] ?? byName);
      this.known = { version, sort, rows };
      this.isWide = new Set(rows.map((row) => row.namespace)).size > 1;
      this.groups(rows);
    }
    return this.known.rows;
  }

  summarize(rows, q) {
    const who = counts(rows, whoOf);
    const states = [...counts(rows, (row) => row.state || "none")].sort((a, b) => b[1] - a[1]);
    fill(this.bar, WHO.filter((one) => who.has(one)).map((one) => {
      const part = el("span", { class: one, title: `${who.get(one)}: ${whoTitle(one)}` });
      part.style.flexGrow = who.get(one);
      return part;
    }));
    this.bar.setAttribute("aria-label", WHO.filter((one) => who.has(one)).map((one) => `${who.get(one)} ${whoTitle(one)}`).join(", "));
    const isIn = (part) => parts(q).includes(part);
    fill(this.who, WHO.filter((one) => who.has(one) || isIn(`who:${one}`)).map((one) => this.chip(`who:${one}`, isIn, one, [sign(one), el("b", {}, (who.get(one) ?? 0).toLocaleString("en")), whoTitle(one)])));
    fill(this.states, states.map(([state, count]) => {
      const part = `state:${quoted(state === "none" ? "" : state)}`;
      return this.chip(part, isIn, "", [el("b", {}, count.toLocaleString("en")), state]);
    }));
  }

  chip(part, isIn, kind, content) {
    return el("button", { type: "button", class: `chip ${kind}`, "aria-pressed": String(isIn(part)), onclick: () => this.filter(toggled(this.values.q ?? "", part)) }, content);
  }

  // Labels that not every host has differently: those by which a fleet is grouped.
  groups(all) {
    const labels = new Map();
    for (const row of all.slice(0, 2000)) for (const name of Object.keys(row.labels)) labels.set(name, (labels.get(name) ?? 0) + 1);
    const names = [...labels.keys()].sort().slice(0, 100);
    const wanted = this.values.group ?? "";
    const text = JSON.stringify([names, wanted]);
    if (this.group.dataset.names === text) return;
    this.group.dataset.names = text;
    const option = (value, shown) => el("option", { value, selected: value === wanted }, shown);
    if (wanted.startsWith("label:") && !labels.has(wanted.slice(6))) names.unshift(wanted.slice(6));
    fill(this.group, option("", "no groups"), Object.keys(GROUPS).map((name) => option(name, `group by ${name}`)), names.map((name) => option(`label:${name}`, `group by label ${name}`)));
  }

  grouped(rows) {
    const group = this.values.group;
    const of = GROUPS[group] ?? (group?.startsWith("label:") && ((row) => row.labels[group.slice(6)]));
    if (!of) return rows;
    const groups = new Map();
    for (const row of rows) {
      const name = of(row) || "none";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    const names = [...groups.keys()].sort((a, b) => (a === "none") - (b === "none") || a.localeCompare(b, "en", { numeric: true }));
    return names.flatMap((name) => [{ isGroup: true, name, rows: groups.get(name) }, ...groups.get(name)]);
  }

  row(item) {
    if (item.isGroup) return this.head(item);
    const who = whoOf(item);
    const power = item.poweredOn ? "on" : "off";
    const wanted = item.online === item.poweredOn ? power : `${power}, shall be ${item.online ? "on" : "off"}`;
    const cell = (kind, ...content) => el("span", { class: kind, role: "gridcell" }, content);
    const time = who === "nothing" ? item.since : (item.waitsSince ?? item.since);
    return el("div", { class: `row ${who}`, role: "row" },
      cell("host", sign(who), el("a", { href: toHost(item.namespace, item.name) }, item.name), this.isWide && el("small", {}, item.namespace), item.paused && el("small", { class: "tag" }, "paused")),
      cell("state", item.state || "none", el("small", { title: "power" }, wanted)),
      cell("why", who === "nothing" ? el("span", { class: "quiet" }, item.why || "waits for nothing") : item.why, item.reason && who !== "nothing" && el("small", {}, item.reason)),
      cell("consumer", el("span", { title: item.consumer }, item.consumer?.split("/").at(-1)), item.cluster && el("small", { title: "Cluster" }, item.cluster)),
      cell("bmc", el("span", { title: item.bmc }, (item.bmc ?? "").replace(/^[a-z0-9+-]+:\/\//i, "").split("/")[0])),
      cell("for", time && el("span", { "data-since": time }, since(time))));
  }

  head(group) {
    const who = counts(group.rows, whoOf);
    const bar = el("span", { class: "bar small" }, WHO.filter((one) => who.has(one)).map((one) => {
      const part = el("span", { class: one, title: `${who.get(one)} ${whoTitle(one)}` });
      part.style.flexGrow = who.get(one);
      return part;
    }));
    return el("div", { class: "row group", role: "row" }, el("span", { role: "gridcell" }, el("b", {}, group.name), ` ${group.rows.length.toLocaleString("en")}`), bar);
  }
}
