// Clusters, and one of them down to its hosts.

import { toCluster } from "./address.js";
import { lasting, objectLink, sign, whoOfResult } from "./chain.js";
import { Document } from "./document.js";
import { el, fill } from "./dom.js";
import { get } from "./server.js";
import { setNow } from "./time.js";

const whoOf = ({ result, who }) => (result === "blocked" ? who : whoOfResult(result));

export class Clusters extends Document {
  constructor(main) {
    super(main, () => get("/api/clusters"));
  }

  concerns() {
    return true;
  }

  show({ clusters }) {
    fill(this.main, el("h1", {}, "Clusters ", el("span", { class: "total" }, String(clusters.length))),
      clusters.length ? clusters.map((value) => this.part(`${value.namespace}/${value.name}`, value, (one) => el("article", { class: `wait ${whoOf(one)}` },
        el("p", { class: "link-head" }, sign(whoOf(one)), el("a", { href: toCluster(one.namespace, one.name) }, one.name), el("small", {}, one.namespace), lasting(one.since)),
        el("p", { class: "link-title" }, one.text, one.why && one.result !== "ready" && el("span", { class: "quiet" }, ` ${one.cause}: ${one.why}`))))) : el("p", { class: "quiet" }, "There is no Cluster here."));
  }
}

export class Cluster extends Document {
  constructor(main, { namespace = "", name = "" }) {
    super(main, () => get("/api/cluster", { namespace, name }));
    this.namespace = namespace;
  }

  concerns({ all, namespaces }) {
    return all || !namespaces.length || namespaces.includes(this.namespace);
  }

  show(cluster) {
    setNow(cluster.now);
    const { name, namespace, text, result, tree, notices } = cluster;
    fill(this.main,
      el("h1", {}, sign(whoOfResult(result)), name, el("small", {}, namespace), el("span", { class: "total" }, text)),
      notices.map((line) => el("p", { class: "notice" }, line)),
      tree ? el("ul", { class: "tree" }, this.node(tree)) : el("p", { class: "quiet" }, `Cluster/${name}: ${text}.`));
  }

  node(one) {
    const who = whoOfResult(one.state);
    const details = Object.entries(one.details ?? {});
    return el("li", { class: who },
      el("div", { class: "node" }, sign(who), objectLink(one.object, this.namespace), one.title && el("span", { class: "title" }, one.title),
        one.reason && el("code", { class: "reason" }, one.reason), lasting(one.since, one.atMost),
        details.map(([key, value]) => el("span", { class: "detail" }, el("small", {}, key), value)),
        one.message && el("p", { class: "message" }, one.message)),
      one.children?.length && el("ul", {}, one.children.map((child) => this.node(child))));
  }
}
