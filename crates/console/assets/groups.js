// By what hosts are grouped: members that each has, and labels.

import { el, fill } from "./dom.js";
import { LABEL, valueOf } from "./filter.js";

// Groups that are no labels.
const GROUPS = ["state", "cluster", "namespace", "vendor", "model"];
// Hosts that are looked at for labels, and labels that are offered.
const [MOST_LOOKED, MOST_OFFERED] = [2000, 100];
// Labels that say where a machine is, by the last part of their name: the smallest place first.
const PLACES = ["rack", "row", "room", "zone", "site", "region"];

// What the group of rows without a value is called.
export const nameOf = (value) => value || "none";

// The function that returns the group of a row; nothing for what is no group.
export const groupOf = (by) => (by?.startsWith(LABEL) || GROUPS.includes(by) ? valueOf(by) : undefined);

function labelsOf(rows) {
  const found = new Set();
  for (const row of rows.slice(0, MOST_LOOKED)) for (const name of Object.keys(row.labels)) found.add(name);
  return [...found].sort().slice(0, MOST_OFFERED);
}

// The group by which a map is most likely read.
export function place(rows) {
  const labels = labelsOf(rows);
  const found = PLACES.map((word) => labels.find((name) => name.split("/").at(-1) === word)).find(Boolean);
  return found ? LABEL + found : "state";
}

// Offers all groups in a select element, after what it says without one.
export function offer(select, rows, { wanted = "", without, by }) {
  const names = labelsOf(rows);
  const text = JSON.stringify([names, wanted]);
  if (select.dataset.names === text) return;
  select.dataset.names = text;
  const own = wanted.startsWith(LABEL) && wanted.slice(LABEL.length);
  if (own && !names.includes(own)) names.unshift(own);
  const option = (value, shown) => el("option", { value, selected: value === wanted }, shown);
  fill(select, without && option("", without), GROUPS.map((name) => option(name, `${by} ${name}`)), names.map((name) => option(LABEL + name, `${by} label ${name}`)));
}

// Values and their rows, in the order of the values; rows without one last.
export function split(rows, of) {
  const groups = new Map();
  for (const row of rows) {
    const value = of(row);
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(row);
  }
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return [...groups].sort(([a], [b]) => (a === "") - (b === "") || compare(a, b));
}
