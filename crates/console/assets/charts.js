// Two charts: the hosts by state, and who has had to act since the page was opened.

import { WHO, whoTitle } from "./chain.js";
import { inWords, number, states } from "./counts.js";
import { el, fill, svg } from "./dom.js";
import { filterOf, parts, toggled } from "./filter.js";
import { nameOf } from "./groups.js";
import { past } from "./past.js";
import { eachMinute, seconds, shownAt } from "./time.js";

const [WIDTH, HEIGHT] = [360, 96];
// States that have a bar of their own.
const MOST_STATES = 8;

export class Charts {
  constructor(filter) {
    this.filter = filter;
    this.states = el("figure", { class: "chart" });
    this.time = el("figure", { class: "chart" });
    this.element = el("div", { class: "charts" }, this.states, this.time);
    // Time goes on also when nothing changes.
    this.stop = eachMinute(() => this.areas());
  }

  close() {
    this.stop();
  }

  set(rows, q) {
    this.bars(rows, q);
    this.areas();
  }

  bars(rows, q) {
    const all = states(rows);
    const shown = all.slice(0, MOST_STATES);
    const rest = all.slice(MOST_STATES).reduce((sum, [, hosts]) => sum + hosts, 0);
    const most = shown[0]?.[1] ?? 1;
    const focused = this.states.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    fill(this.states, el("figcaption", {}, "Hosts by state"), shown.map(([value, hosts]) => {
      const part = filterOf({ by: "state", value });
      const length = el("span", { class: "length" });
      length.style.width = `${(100 * hosts) / most}%`;
      return el("button", { type: "button", class: "measure", "data-part": part, "aria-pressed": String(parts(q).includes(part)), onclick: () => this.filter(toggled(q, part)) },
        el("span", { class: "what" }, nameOf(value)), el("span", { class: "lane", "aria-hidden": "true" }, length), el("b", {}, number(hosts)));
    }), rest > 0 && el("p", { class: "quiet" }, `and ${number(rest)} in other states`));
    if (focused) this.states.querySelector(`[data-part="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  // Of all hosts, whatever the filter.
  areas() {
    const samples = past.samples;
    if (!samples.length) return fill(this.time);
    const [begin, end] = [samples[0].at, Math.max(shownAt(), samples.at(-1).at, samples[0].at + 1000)];
    const most = Math.max(1, ...samples.map(({ who }) => [...who.values()].reduce((sum, hosts) => sum + hosts, 0)));
    const x = (at) => (WIDTH * (at - begin)) / (end - begin);
    const y = (hosts) => HEIGHT - (HEIGHT * hosts) / most;
    // Steps: between two samples nothing is known to have changed.
    const points = (of) => samples.flatMap((sample, at) => [[x(sample.at), y(of(sample.who))], [x(samples[at + 1]?.at ?? end), y(of(sample.who))]]);
    const below = new Map(WHO.map((one, at) => [one, WHO.slice(0, at)]));
    const sum = (who, names) => names.reduce((total, name) => total + (who.get(name) ?? 0), 0);
    const text = (list) => list.map(([left, top]) => `${left.toFixed(1)},${top.toFixed(1)}`).join(" ");
    const layers = WHO.map((one) => {
      const upper = points((who) => sum(who, [...below.get(one), one]));
      const lower = points((who) => sum(who, below.get(one))).reverse();
      return svg("polygon", { class: `area ${one}`, points: text([...upper, ...lower]) });
    });
    const last = inWords(samples.at(-1).who);
    const lasts = seconds((end - begin) / 1000);
    fill(this.time, el("figcaption", {}, "Who has to act, since this page was opened"),
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${samples.length - 1} changes in ${lasts}; at first ${inWords(samples[0].who)}; now ${last}` }, layers),
      el("p", { class: "axis quiet" }, el("span", {}, `${lasts} ago`), el("span", {}, "now")),
      el("p", { class: "legend" }, WHO.filter((one) => samples.some(({ who }) => who.has(one))).map((one) => el("span", { class: `key ${one}` }, whoTitle(one)))));
  }
}
