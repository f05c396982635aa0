// Pools of addresses: how full they are, who holds which address, and who waits.

import { Document } from "./document.js";
import { el, fill, folded } from "./dom.js";
import { table } from "./host.js";
import { get } from "./server.js";

// Addresses of a pool that are listed.
const MOST = 500;

export class Pools extends Document {
  constructor(main) {
    super(main, () => get("/api/pools"));
  }

  concerns() {
    return true;
  }

  show({ pools, notices }) {
    fill(this.main, el("h1", {}, "Pools ", el("span", { class: "total" }, String(pools.length))),
      notices.map((line) => el("p", { class: "notice" }, line)),
      pools.length ? pools.map((pool) => this.part(`${pool.namespace}/${pool.name}`, pool, (one) => this.pool(one))) : el("p", { class: "quiet" }, "There is no pool here."));
  }

  pool({ name, namespace, total, used, free, reserved, reason, holders = [], waiting = [] }) {
    const part = Number(total) > 0 ? Math.min(100, (100 * Number(used ?? 0)) / Number(total)) : 0;
    const full = el("span", { class: reason || waiting.length ? "user" : "system" });
    full.style.width = `${part}%`;
    const counts = [["total", total], ["used", used], ["free", free], ["reserved", reserved]].filter(([, value]) => value !== undefined);
    return el("article", { class: `wait pool ${waiting.length || reason ? "user" : "nothing"}` },
      el("p", { class: "link-head" }, el("b", {}, name), el("small", {}, namespace), reason && el("code", { class: "reason" }, reason)),
      total && el("div", { class: "gauge", role: "img", "aria-label": `${used ?? 0} of ${total} addresses are used` }, full),
      el("dl", { class: "facts" }, counts.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value)))),
      waiting.length > 0 && table(["Waits", "Owner", "Reason"], waiting.map((one) => [one.claim, one.owner, one.reason])),
      holders.length > 0 && folded(`${holders.length.toLocaleString("en")} addresses of ${namespace}/${name} are held`,
        () => table(["Address", "Claim", "Owner"], holders.slice(0, MOST).map((one) => [one.address, one.claim, one.owner]))));
  }
}
