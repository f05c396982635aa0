// One host: why it waits, what it is made of, what happened, what can be done, and the object itself.

import { button } from "./action.js";
import { toCluster } from "./address.js";
import { chain, whoOfResult, sign } from "./chain.js";
import { Document } from "./document.js";
import { el, fill } from "./dom.js";
import { get, onLogin } from "./server.js";
import { moment, seconds, setNow, since } from "./time.js";

const GIB = 1024 ** 3;

export class Host extends Document {
  constructor(main, { namespace = "", name = "" }) {
    super(main, () => get("/api/host", { namespace, name }));
    this.namespace = namespace;
    this.name = name;
    this.rights = { may: false, why: "", lab: [] };
    this.said = { done: true, text: "" };
    this.stopLogin = onLogin(() => this.look());
    this.look();
  }

  close() {
    super.close();
    this.stopLogin();
  }

  // Asked once, and again after something was done.
  async look() {
    try {
      const { document: rights } = await get("/api/rights", { namespace: this.namespace, name: this.name });
      this.rights = rights;
    } catch {
      // Without an answer there are no buttons.
    }
    // The document is as old as it was: its time is not now.
    if (this.isOpen && this.shown) this.keep(() => this.show({ ...this.shown, now: undefined }));
  }

  concerns({ all, namespaces }) {
    return all || !namespaces.length || namespaces.includes(this.namespace);
  }

  show(host) {
    this.shown = host;
    setNow(host.now);
    if (!host.exists && !host.notices.length) {
      fill(this.main, el("h1", {}, host.name), el("p", { class: "quiet" }, `BareMetalHost/${host.name} does not exist in the namespace ${host.namespace}.`));
      return;
    }
    const card = (title, ...content) => {
      const filled = content.flat().filter(Boolean);
      return filled.length ? el("section", { class: "card" }, el("h2", {}, title), filled) : null;
    };
    fill(this.main,
      this.head(host),
      el("div", { class: "columns" },
        el("div", {},
          card("Why", host.explanation && chain(host.explanation, host.namespace), host.notices.map((line) => el("p", { class: "notice" }, line))),
          card("What happened", this.timeline(host.timeline)),
          card("Conditions", this.conditions(host.conditions ?? []))),
        el("div", {},
          card("Machine", this.machine(host)),
          card("Disks", this.disks(host.hardware?.storage ?? [])),
          card("Network", this.nics(host.hardware?.nics ?? [])),
          card("Labels", this.labels(host.labels ?? {})),
          card("What you can do", this.actions(host)),
          card("Simulated machine", this.lab(host)))),
      host.yaml && el("details", { class: "card yaml" }, el("summary", {}, "Object as YAML"),
        el("p", { class: "quiet" }, "Without managedFields, logins and queries of URLs."), el("pre", { tabindex: "0", role: "region", "aria-label": "YAML" }, host.yaml)));
  }

  head({ name, namespace, row, text, explanation }) {
    const who = explanation ? this.who(explanation) : "unknown";
    const facts = row ? [
      ["state", row.state || "none", row.since],
      ["power", row.poweredOn === row.online ? (row.poweredOn ? "on" : "off") : `${row.poweredOn ? "on" : "off"}, shall be ${row.online ? "on" : "off"}`],
      ["consumer", row.consumer],
      ["Cluster", row.cluster && el("a", { href: toCluster(namespace, row.cluster) }, row.cluster)],
      ["image", row.image?.split("/").at(-1)],
      ["BMC", row.bmc],
    ].filter(([, value]) => value) : [];
    return el("div", { class: `head ${who}` },
      el("h1", {}, sign(who), name, el("small", {}, namespace), el("span", { class: "total" }, text)),
      el("dl", { class: "facts" }, facts.map(([key, value, time]) => el("div", {}, el("dt", {}, key), el("dd", {}, value, time && el("span", { class: "lasting", "data-since": time, "data-before": " for " }, ` for ${since(time)}`))))));
  }

  who({ state, chain: links }) {
    const last = links.at(-1);
    return state === "blocked" && last ? last.whoActs : whoOfResult(state);
  }

  machine({ hardware, row }) {
    if (!hardware) return [el("p", { class: "quiet" }, "Not inspected yet.")];
    const { systemVendor: vendor = {}, cpu = {}, firmware = {}, ramMebibytes: ram, hostname } = hardware;
    const bios = firmware.bios ?? {};
    const facts = [
      ["vendor", vendor.manufacturer], ["product", vendor.productName], ["serial", vendor.serialNumber], ["host name", hostname],
      ["CPU", [cpu.count && `${cpu.count} ×`, cpu.model, cpu.arch].filter(Boolean).join(" ")],
      ["memory", ram && `${(ram / 1024).toLocaleString("en", { maximumFractionDigits: 1 })} GiB`],
      ["firmware", [bios.vendor, bios.version, bios.date].filter(Boolean).join(" ")], ["BMC", row?.bmc],
    ].filter(([, value]) => value);
    return el("dl", { class: "pairs" }, facts.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
  }

  disks(all) {
    return all.length && table(["Disk", "Size", "Kind", "Model", "Serial"], all.map((disk) => [disk.name, disk.sizeBytes && `${(disk.sizeBytes / GIB).toLocaleString("en", { maximumFractionDigits: 0 })} GiB`, disk.type ?? (disk.rotational ? "HDD" : ""), [disk.vendor, disk.model].filter(Boolean).join(" "), disk.serialNumber]));
  }

  nics(all) {
    const port = ({ lldp = {} }) => [lldp.switchSystemName ?? lldp.switchID, lldp.portID].filter(Boolean).join(" ");
    return all.length && table(["Card", "MAC", "Address", "Speed", "Switch port"], all.map((nic) => [el("span", {}, nic.name, nic.pxe && el("small", { class: "tag" }, "boots")), nic.mac, nic.ip, nic.speedGbps && `${nic.speedGbps} Gb/s`, port(nic)]));
  }

  conditions(all) {
    return all.length && table(["Condition", "Status", "Reason", "Message", "For"], all.map((one) => [one.type, one.status, one.reason, one.message, one.since && el("span", { "data-since": one.since }, since(one.since))]));
  }

  timeline(moments) {
    const rows = moments.slice(-60).map((one) => el("li", { class: one.running ? "running" : "" },
      el("time", {}, moment(one.time)),
      el("span", {}, el("b", {}, one.step), ` ${one.state ?? ""}`, one.seconds !== undefined && el("span", { class: "lasting" }, `took ${seconds(one.seconds)}`), one.cause && el("span", { class: "message" }, one.cause))));
    return rows.length && el("ol", { class: "timeline" }, rows.reverse());
  }

  labels(all) {
    const entries = Object.entries(all);
    return entries.length && el("p", { class: "labels" }, entries.map(([name, value]) => el("code", {}, `${name}=${value}`)));
  }

  actions(host) {
    const { may, why } = this.rights;
    const done = (answer) => {
      this.said = answer;
      this.look();
    };
    const row = (head, consequence, command) => [el("dt", {}, head, el("small", {}, consequence)), command && el("dd", {}, el("code", { tabindex: "0", role: "group", "aria-label": command }, command))];
    const rows = (host.actions ?? []).map((one) => row(may ? button(host, one, done) : one.what, one.consequence, one.command));
    return [
      this.said.text && el("p", { class: this.said.done ? "notice" : "notice failed", role: "status" }, this.said.text),
      el("dl", { class: "commands" }, row("Explain in the terminal", "reads only", host.why), rows.flat()),
      why && el("p", { class: "quiet" }, why),
    ];
  }

  lab(host) {
    const { lab } = this.rights;
    return lab.length && el("dl", { class: "commands" }, lab.map((one) => el("dt", {}, button(host, one, (answer) => {
      this.said = answer;
      this.look();
    }), el("small", {}, one.consequence))));
  }
}

export function table(heads, rows) {
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}
