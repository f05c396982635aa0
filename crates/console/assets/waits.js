// Everything that waits, by its cause: who has to act first, the oldest first.

import { WHO, cure, lasting, objectLink, sign, whoOfLink, whoTitle } from "./chain.js";
import { el, fill, folded } from "./dom.js";
import { get } from "./server.js";
import { Document } from "./document.js";

const whoOf = (wait) => {
  const who = whoOfLink(wait.cause);
  return wait.state === "unknown" && !["user", "hardware"].includes(who) ? "unknown" : who;
};
// Causes of one kind of actor that are shown.
const MOST = 300;

export class Waits extends Document {
  constructor(main) {
    super(main, () => get("/api/waits"));
  }

  concerns() {
    return true;
  }

  show({ waits, looked }) {
    const groups = WHO.filter((who) => who !== "nothing").map((who) => [who, waits.filter((wait) => whoOf(wait) === who)]);
    const sections = groups.filter(([, own]) => own.length).map(([who, own]) => el("section", { class: `waits ${who}` },
      el("h2", {}, sign(who), whoTitle(who).replace(/^./, (first) => first.toUpperCase()), el("span", { class: "count" }, own.length.toLocaleString("en"))),
      own.slice(0, MOST).map((wait) => this.part(JSON.stringify([wait.namespace, wait.cause.object, wait.cause.reason]), wait, (one) => this.wait(one))),
      own.length > MOST && el("p", { class: "quiet" }, `and ${(own.length - MOST).toLocaleString("en")} younger ones`)));
    fill(this.main,
      el("h1", {}, "Waits ", el("span", { class: "total" }, `${waits.length.toLocaleString("en")} causes, of ${looked.toLocaleString("en")} objects`)),
      sections.length ? sections : el("p", { class: "done" }, sign("nothing"), "Nothing waits."));
  }

  wait({ cause, namespace, waiting }) {
    return el("article", { class: `wait ${whoOfLink(cause)}` },
      el("p", { class: "link-head" }, objectLink(cause.object, namespace), el("small", {}, namespace), lasting(cause.since, cause.atMost)),
      el("p", { class: "link-title" }, cause.title, cause.reason && el("code", { class: "reason" }, cause.reason)),
      cause.message && el("p", { class: "message" }, cause.message),
      cure(cause),
      waiting.length > 0 && folded(`${waiting.length} ${waiting.length === 1 ? "object waits" : "objects wait"} for it`,
        () => el("ul", { class: "objects" }, waiting.map((object) => el("li", {}, objectLink(object, namespace))))));
  }
}
