// How many hosts are in which state, and who has to act: as a bar, and as buttons that filter.

import { WHO, sign, whoTitle } from "./chain.js";
import { el, fill } from "./dom.js";
import { filterOf, parts, toggled, valueOf, whoOf } from "./filter.js";
import { nameOf } from "./groups.js";

export function count(rows, of) {
  const found = new Map();
  for (const row of rows) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
  return found;
}

// The states of rows and how many are in each, the most first.
export const states = (rows) => [...count(rows, valueOf("state"))].sort((a, b) => b[1] - a[1]);

export const number = (value) => value.toLocaleString("en");

export const inWords = (who) => WHO.filter((one) => who.has(one)).map((one) => `${who.get(one)} ${whoTitle(one)}`).join(", ");

export function segments(who) {
  return WHO.filter((one) => who.has(one)).map((one) => {
    const part = el("span", { class: one, title: `${who.get(one)}: ${whoTitle(one)}` });
    part.style.flexGrow = who.get(one);
    return part;
  });
}

export class Counts {
  // `filter(text)` is called with the text of the filter that a button leads to.
  constructor(filter) {
    this.bar = el("div", { class: "bar", role: "img" });
    this.who = el("div", { class: "chips", role: "group", "aria-label": "Who has to act" });
    this.states = el("div", { class: "chips states", role: "group", "aria-label": "State" });
    this.elements = [this.bar, this.who, this.states];
    this.filter = filter;
  }

  set(rows, q) {
    this.q = q;
    const who = count(rows, whoOf);
    fill(this.bar, segments(who));
    this.bar.setAttribute("aria-label", inWords(who) || "no hosts");
    const isIn = (part) => parts(q).includes(part);
    const partOf = (one) => filterOf({ by: "who", value: one });
    fill(this.who, WHO.filter((one) => who.has(one) || isIn(partOf(one))).map((one) => this.chip(partOf(one), isIn, one, [sign(one), el("b", {}, number(who.get(one) ?? 0)), whoTitle(one)])));
    fill(this.states, states(rows).map(([value, hosts]) => this.chip(filterOf({ by: "state", value }), isIn, "", [el("b", {}, number(hosts)), nameOf(value)])));
  }

  chip(part, isIn, kind, content) {
    return el("button", { type: "button", class: `chip ${kind}`, "aria-pressed": String(isIn(part)), onclick: () => this.filter(toggled(this.q, part)) }, content);
  }
}
