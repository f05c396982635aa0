// How many hosts are in which state, and who has to act: as a bar, and as buttons that filter.

import { WHO, sign, whoTitle } from "./chain.js";
import { el, fill } from "./dom.js";
import { parts, quoted, toggled, whoOf } from "./filter.js";

export function count(rows, of) {
  const found = new Map();
  for (const row of rows) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
  return found;
}

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
    const states = [...count(rows, (row) => row.state || "none")].sort((a, b) => b[1] - a[1]);
    fill(this.bar, segments(who));
    this.bar.setAttribute("aria-label", inWords(who) || "no hosts");
    const isIn = (part) => parts(q).includes(part);
    fill(this.who, WHO.filter((one) => who.has(one) || isIn(`who:${one}`)).map((one) => this.chip(`who:${one}`, isIn, one, [sign(one), el("b", {}, number(who.get(one) ?? 0)), whoTitle(one)])));
    fill(this.states, states.map(([state, hosts]) => {
      const part = state === "none" ? "-state:" : `state:${quoted(state)}`;
      return this.chip(part, isIn, "", [el("b", {}, number(hosts)), state]);
    }));
  }

  chip(part, isIn, kind, content) {
    return el("button", { type: "button", class: `chip ${kind}`, "aria-pressed": String(isIn(part)), onclick: () => this.filter(toggled(this.q, part)) }, content);
  }
}
