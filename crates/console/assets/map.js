// The map: a square for each host, in groups such as racks; its colour and its sign say who has to act.
//
// Squares are plain links, so that a browser and a screen reader know what they are. One of them is in the order of the Tab key;
// arrows lead to the others. Groups out of sight are not drawn by the browser (content-visibility).

import { replace, to, toHost } from "./address.js";
import { SIGNS, sign, whoTitle } from "./chain.js";
import { Charts } from "./charts.js";
import { Counts, count, inWords, number } from "./counts.js";
import { el, fill, say } from "./dom.js";
import { compile, filterOf, joined, whoOf } from "./filter.js";
import { groupOf, nameOf, offer, place, split } from "./groups.js";
import { fleet, onBatch } from "./server.js";

// Squares next to each other in a group; larger groups are as wide as the page.
const [COLUMNS, MOST_NARROW] = [10, 120];
// Width and height of a square with the space to the next.
const STEP = 24;
const byName = (a, b) => (a.namespace < b.namespace ? -1 : a.namespace > b.namespace ? 1 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const keyOf = (row) => `${row.namespace}/${row.name}`;
const blank = document.createElement("a");

// The elements as children of another, which is left alone if it has them.
function assemble(parent, children) {
  const isSame = parent.childElementCount === children.length && children.every((one, at) => parent.children[at] === one);
  if (!isSame) parent.replaceChildren(...children);
}

export class FleetMap {
  constructor(main, values) {
    this.values = values;
    this.counts = new Counts((text) => this.choose("q", text));
    this.charts = new Charts((text) => this.choose("q", text));
    this.total = el("span", { class: "total", role: "status", "aria-live": "polite" });
    this.input = el("input", { type: "search", placeholder: "Filter, as in the list", value: values.q ?? "", autocomplete: "off", spellcheck: "false", "aria-label": "Filter the hosts", oninput: () => this.choose("q", this.input.value) });
    const select = (name, label) => el("select", { "aria-label": label, onchange: (event) => this.choose(name, event.target.value) });
    this.by = select("by", "Group by");
    this.then = select("then", "Within a group, group by");
    this.pointed = el("p", { class: "pointed", id: "pointed" });
    this.place = el("div", { class: "map", role: "region", "aria-label": "Map of the hosts", "aria-describedby": "keys" });
    for (const kind of ["focusin", "mouseover"]) this.place.addEventListener(kind, ({ target }) => this.point(target));
    this.place.addEventListener("keydown", (event) => this.key(event));
    fill(main,
      el("section", { class: "summary", "aria-label": "Summary" }, el("h1", {}, "Map ", this.total), this.counts.bar, this.counts.who, this.charts.element),
      el("section", { class: "tools" }, this.input, this.by, this.then),
      el("p", { class: "quiet keys", id: "keys" }, "Arrows lead from host to host, Page Up and Page Down from group to group, Enter opens a host."),
      this.pointed, this.place);
    this.drawn = new Map();
    this.stop = onBatch(() => this.update());
    this.update();
  }

  close() {
    this.stop();
    this.charts.close();
  }

  choose(name, value) {
    this.values[name] = value;
    if (name === "q" && this.input.value !== value) this.input.value = value;
    replace({ [name]: value });
    this.update();
  }

  update() {
    const { q = "", then = "" } = this.values;
    const all = [...fleet.rows.values()].sort(byName);
    const by = groupOf(this.values.by) ? this.values.by : place(all);
    const rows = q ? all.filter(compile(q)) : all;
    offer(this.by, all, { wanted: by, by: "group by" });
    offer(this.then, all, { wanted: then, without: "no groups within", by: "then by" });
    say(this.total, fleet.isRead ? `${rows.length === all.length ? "" : `${number(rows.length)} of `}${number(all.length)} hosts` : "reading …");
    this.counts.set(rows, q);
    this.charts.set(rows, q);
    this.draw(rows, by, groupOf(then) && then !== by ? then : "");
    document.body.dataset.drawn = String(fleet.version);
  }

  // Draws only groups whose hosts are others than before, and squares whose host changed.
  draw(rows, by, then) {
    const before = this.drawn;
    this.drawn = new Map();
    const focused = document.activeElement?.getAttribute?.("href");
    const parts = split(rows, groupOf(by)).map(([value, own]) => (then ? this.room(before, [{ by, value }], own, then) : this.group(before, [{ by, value }], own)));
    if (!parts.length) parts.push(el("p", { class: "quiet" }, fleet.isRead ? "No host is as the filter wants it." : "Reading the fleet …"));
    this.place.className = then ? "map" : "map racks";
    assemble(this.place, parts);
    if (focused && document.activeElement === document.body) this.place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (!this.place.querySelector('.square[tabindex="0"]')) this.place.querySelector(".square")?.setAttribute("tabindex", "0");
  }

  // A group of groups.
  room(before, path, rows, then) {
    const key = `room ${JSON.stringify(path)}`;
    const room = before.get(key) ?? el("section", { class: "room", role: "group", "aria-label": nameOf(path[0].value) }, el("h2"), el("div", { class: "racks" }));
    this.drawn.set(key, room);
    room.replaceChild(this.head(path, rows, "h2"), room.firstChild);
    assemble(room.lastChild, split(rows, groupOf(then)).map(([value, own]) => this.group(before, [...path, { by: then, value }], own)));
    return room;
  }

  group(before, path, rows) {
    const key = JSON.stringify(path);
    const known = before.get(key);
    const isSame = known && known.rows.length === rows.length && rows.every((row, at) => keyOf(row) === keyOf(known.rows[at]));
    const drawn = isSame ? known : this.fresh(path, rows);
    if (isSame) {
      const changed = rows.filter((row, at) => row !== known.rows[at]);
      for (const row of changed) this.show(known.squares.get(keyOf(row)), row);
      if (changed.length) drawn.element.replaceChild(this.head(path, rows, path.length > 1 ? "h3" : "h2"), drawn.element.firstChild);
      known.rows = rows;
    }
    this.drawn.set(key, drawn);
    return drawn.element;
  }

  fresh(path, rows) {
    const squares = new Map();
    const place = el("div", { class: "squares" });
    for (const row of rows) {
      const square = blank.cloneNode();
      square.className = "square";
      square.tabIndex = -1;
      square.dataset.key = keyOf(row);
      square.setAttribute("href", toHost(row.namespace, row.name));
      this.show(square, row);
      squares.set(keyOf(row), square);
      place.append(square);
    }
    const isWide = rows.length > MOST_NARROW;
    const element = el("section", { class: isWide ? "rack wide" : "rack", role: "group", "aria-label": path.map(({ value }) => nameOf(value)).join(", ") }, this.head(path, rows, path.length > 1 ? "h3" : "h2"), place);
    // What the browser takes for its height until it is in sight.
    if (!isWide) element.style.containIntrinsicHeight = `auto ${30 + STEP * Math.ceil(rows.length / COLUMNS)}px`;
    return { element, rows, squares };
  }

  show(square, row) {
    const who = whoOf(row);
    const kind = `square ${who}`;
    if (square.className !== kind) square.className = kind;
    say(square, SIGNS[who] ?? SIGNS.unknown);
    square.setAttribute("aria-label", `${row.name}: ${row.state || "no state"}, ${whoTitle(who)}`);
  }

  // The name of a group, which leads to its hosts in the list if a filter has them alone, and those of them for which someone has to act.
  head(path, rows, level) {
    const who = count(rows, whoOf);
    const name = nameOf(path.at(-1).value);
    const parts = path.map(filterOf);
    const link = parts.every(Boolean) ? el("a", { href: to("fleet", { q: joined(this.values.q ?? "", parts) }) }, name) : el("span", {}, name);
    const acts = ["user", "hardware", "unknown"].filter((one) => who.has(one)).map((one) => el("span", { class: "acts" }, sign(one), number(who.get(one))));
    return el(level, { class: "place", title: inWords(who) }, link, el("span", { class: "count" }, number(rows.length)), acts);
  }

  point(square) {
    const row = fleet.rows.get(square.dataset?.key);
    if (!row) return;
    const who = whoOf(row);
    fill(this.pointed, sign(who), el("b", {}, row.name), ` ${row.state || "no state"} · ${who === "nothing" ? "waits for nothing" : row.why || whoTitle(who)}`);
  }

  key(event) {
    const from = event.target.closest?.(".square");
    // With these the keys are the browser's own, such as back and forward.
    if (!from || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const next = this.next(from, event.key);
    if (!next) return;
    event.preventDefault();
    for (const one of this.place.querySelectorAll('.square[tabindex="0"]')) one.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  next(from, key) {
    const groups = [...this.place.querySelectorAll(".squares")];
    const at = groups.indexOf(from.parentElement);
    const own = [...from.parentElement.children];
    const index = own.indexOf(from);
    const columns = Math.max(1, Math.floor((from.parentElement.clientWidth + 2) / STEP));
    const first = (group) => group?.firstElementChild;
    const last = (group) => group?.lastElementChild;
    const step = (count) => own[index + count] ?? (count > 0 ? first(groups[at + 1]) : last(groups[at - 1]));
    return {
      ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => step(columns), ArrowUp: () => step(-columns),
      PageDown: () => first(groups[at + 1]) ?? last(groups.at(-1)), PageUp: () => first(groups[at - 1]) ?? first(groups[0]),
      Home: () => first(groups[0]), End: () => last(groups.at(-1)),
    }[key]?.();
  }
}
