// Who acts, and the chain from an object to the last cause, in the words of `kubectl metal3 why`.

import { toCluster, toHost } from "./address.js";
import { el } from "./dom.js";
import { seconds, since } from "./time.js";

export const SIGNS = { user: "●", hardware: "▲", system: "◌", nothing: "✓", unknown: "?" };
export const WHO = ["user", "hardware", "unknown", "system", "nothing"];
const TITLES = {
  user: "a user has to act",
  hardware: "a person at the machine has to act",
  unknown: "not known, because something could not be read",
  system: "continues without help",
  nothing: "waits for nothing",
};

export const whoTitle = (who) => TITLES[who] ?? who;

// The result of a tree, where only it is known.
export const whoOfResult = (result) => ({ blocked: "user", waiting: "system", ready: "nothing" })[result] ?? "unknown";

// A sign whose form differs too, for those who do not see the colours.
export function sign(who) {
  return el("span", { class: `sign ${who}`, title: whoTitle(who), role: "img", "aria-label": whoTitle(who) }, SIGNS[who] ?? SIGNS.unknown);
}

export function lasting(time, atMost = false) {
  if (!time) return null;
  const before = atMost ? "for up to " : "for ";
  return el("span", { class: "lasting", "data-since": time, "data-before": before }, before + since(time));
}

export function objectLink(object, namespace) {
  const text = `${object.kind}/${object.name}`;
  if (object.kind === "BareMetalHost") return el("a", { href: toHost(namespace, object.name) }, text);
  if (object.kind === "Cluster" && object.group === "cluster.x-k8s.io") return el("a", { href: toCluster(namespace, object.name) }, text);
  return el("span", { class: "object" }, text);
}

export const whoOfLink = (one) => (one.whoActs === "nothing to do" ? "nothing" : one.whoActs);

export function cure(last) {
  if (!last || (!last.cure && last.whoActs === "nothing to do")) return null;
  return el("div", { class: `cure ${whoOfLink(last)}` },
    el("p", {}, el("b", {}, "Who acts: "), last.whoActs),
    last.cure && el("p", {}, el("b", {}, "What to do: "), last.cure),
    last.runbook && el("p", { class: "quiet" }, "Runbook: ", el("code", {}, last.runbook)));
}

export function chain(explanation, namespace) {
  const links = explanation.chain.map((one) => el("li", { class: whoOfLink(one) },
    el("p", { class: "link-head" }, sign(whoOfLink(one)), objectLink(one.object, namespace)),
    el("p", { class: "link-title" }, one.title,
      one.reason && el("code", { class: "reason" }, one.reason), lasting(one.since, one.atMost),
      one.usualSeconds !== undefined && el("span", { class: "lasting" }, `usually ${seconds(one.usualSeconds)}`)),
    one.message && el("p", { class: "message" }, one.message)));
  const last = explanation.chain.at(-1);
  const events = (explanation.events ?? []).slice(-5).map((event) => el("li", {},
    event.time && el("span", { class: "lasting", "data-since": event.time }, since(event.time)), " ago ",
    el("code", { class: "reason" }, event.reason), event.count > 1 && ` ${event.count} times`, ` ${event.message}`));
  return [
    links.length ? el("ol", { class: "chain" }, links) : el("p", { class: "done" }, sign("nothing"), "It waits for nothing."),
    cure(last),
    events.length > 0 && el("details", { class: "events", open: true }, el("summary", {}, `Events of ${last.object.kind}/${last.object.name}`), el("ul", {}, events)),
  ];
}
