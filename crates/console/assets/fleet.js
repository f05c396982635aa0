// The fleet: how many hosts are in which state, who has to act, and the hosts themselves.

import { read, replace, toHost } from "./address.js";
import { WHO, sign } from "./chain.js";
import { Counts, count, segments } from "./counts.js";
import { el, fill, say } from "./dom.js";
import { compile, fields, whoOf } from "./filter.js";
import { groupOf, nameOf, offer, split } from "./groups.js";
import { List } from "./list.js";
import { fleet, onBatch } from "./server.js";
import { since } from "./time.js";

const SORTS = { name: "name", who: "who acts", since: "longest in its state" };
const byName = (a, b) => (a.namespace < b.namespace ? -1 : a.namespace > b.namespace ? 1 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const COMPARE = {
  name: byName,
  who: (a, b) => WHO.indexOf(whoOf(a)) - WHO.indexOf(whoOf(b)) || (a.waitsSince ?? "~").localeCompare(b.waitsSince ?? "~") || byName(a, b),
  since: (a, b) => ((a.since ?? "~") < (b.since ?? "~") ? -1 : (a.since ?? "~") > (b.since ?? "~") ? 1 : byName(a, b)),
};

export class Fleet {
  constructor(main, values) {
    this.values = values;
    this.counts = new Counts((text) => this.filter(text));
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
      el("section", { class: "summary", "aria-label": "Summary" }, el("h1", {}, "Fleet ", this.total), this.counts.elements),
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
    this.counts.set(rows, q);
    this.list.set(this.grouped(rows), (item) => (item.isGroup ? `group ${item.value}` : `${item.namespace}/${item.name}`));
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
      offer(this.group, rows, { wanted: this.values.group, without: "no groups", by: "group by" });
    }
    return this.known.rows;
  }

  grouped(rows) {
    const of = groupOf(this.values.group);
    if (!of) return rows;
    return split(rows, of).flatMap(([value, own]) => [{ isGroup: true, value, rows: own }, ...own]);
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
    const bar = el("span", { class: "bar small" }, segments(count(group.rows, whoOf)));
    return el("div", { class: "row group", role: "row" }, el("span", { role: "gridcell" }, el("b", {}, nameOf(group.value)), ` ${group.rows.length.toLocaleString("en")}`), bar);
  }
}
