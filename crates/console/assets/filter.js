// The text of the filter: words that a row has anywhere, `field:value`, `label=value`, and `-` before what a row must not have.
//
// One rule leads from a group to its hosts: hosts are grouped by `valueOf`, and what `filterOf` returns compares the same value
// exactly (`field:=value`, `label==value`), while what people type is compared without case.

const FIELDS = {
  name: (row) => row.name,
  ns: (row) => row.namespace,
  namespace: (row) => row.namespace,
  state: (row) => row.state,
  who: (row) => whoOf(row),
  cluster: (row) => row.cluster,
  consumer: (row) => row.consumer,
  bmc: (row) => row.bmc,
  image: (row) => row.image,
  error: (row) => row.error && `${row.error} ${row.message ?? ""}`,
  reason: (row) => row.reason,
  vendor: (row) => row.vendor,
  model: (row) => row.model,
  serial: (row) => row.serial,
  mac: (row) => row.mac,
  power: (row) => (row.poweredOn ? "on" : "off"),
};
// Values of these are whole, as those above are: `state:provisioned` is not `externally provisioned`.
const WHOLE = new Set(["ns", "namespace", "cluster", "power", "vendor", "model"]);

// The names of groups that are labels begin with this.
export const LABEL = "label:";

// Values of these are in lower case, and nothing else is typed for them.
const LOWER = new Set(["state", "who"]);

export const fields = Object.keys(FIELDS);

const labelOf = (name) => (row) => (Object.hasOwn(row.labels, name) ? row.labels[name] : "");

// The function that returns the value of a field or of a label (`label:name`), empty for a row without one; nothing for other names.
export function valueOf(by) {
  if (by?.startsWith(LABEL)) return labelOf(by.slice(LABEL.length));
  return Object.hasOwn(FIELDS, by ?? "") ? (row) => FIELDS[by](row) || "" : undefined;
}

// The part of a filter that exactly the rows with this value match. Nothing for rows without a label: no filter has them alone.
export function filterOf({ by, value }) {
  if (!by.startsWith(LABEL)) {
    const isPlain = LOWER.has(by) && /^[a-z -]*$/.test(value);
    return value ? `${by}:${isPlain ? "" : "="}${quoted(value)}` : `-${by}:`;
  }
  const name = by.slice(LABEL.length);
  return value && /^[^\s"=:-][^\s"=:]*$/.test(name) ? `${name}==${quoted(value)}` : undefined;
}

// Who has to act, in one word; `unknown` when a cause may be hidden.
export function whoOf(row) {
  if (row.result === "unknown") return "unknown";
  return row.who === "nothing to do" ? "nothing" : row.who;
}

// The parts of a text; quotes keep blanks together, and two within quotes are one of the text.
export function parts(text) {
  return text.match(/-?(?:[^\s"]+"[^"]*"?|"[^"]*"?|[^\s"]+)+/g) ?? [];
}

const plain = (part) => part.replace(/"((?:[^"]|"")*)"?/g, (_, inside) => inside.replaceAll('""', '"'));

// Full text is searched in this. It is put together once a word is looked for.
function wordsOf(row) {
  row.words ??= words(row);
  return row.words;
}

function words(row) {
  const labels = Object.entries(row.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  const parts = [row.name, row.namespace, row.state, row.status, row.cluster, row.consumer, row.image, row.bmc, row.error, row.message,
    row.vendor, row.model, row.serial, row.mac, row.why, row.reason, row.who, ...labels];
  return parts.filter(Boolean).join(" ").toLowerCase();
}

function test(part) {
  const text = plain(part);
  const [, by, same] = text.match(/^([a-z]+):=(.*)$/s) ?? [];
  const valueIn = valueOf(by);
  if (valueIn) return (row) => valueIn(row) === same;
  const [, own, whole] = text.match(/^([^=:]+)==(.*)$/s) ?? [];
  // A label that is empty is one: rows without it do not match.
  if (own) return (row) => Object.hasOwn(row.labels, own) && row.labels[own] === whole;
  return testLoosely(text.toLowerCase());
}

function testLoosely(text) {
  const [, field, value] = text.match(/^([a-z]+):(.*)$/) ?? [];
  if (Object.hasOwn(FIELDS, field ?? "")) {
    const get = FIELDS[field];
    if (value === "") return (row) => Boolean(get(row));
    if (LOWER.has(field)) return (row) => get(row) === value;
    return WHOLE.has(field) ? (row) => (get(row) ?? "").toLowerCase() === value : (row) => (get(row) ?? "").toLowerCase().includes(value);
  }
  const [, label, wanted] = text.match(/^([^=:]+)=(.*)$/) ?? [];
  if (label) {
    return (row) => Object.entries(row.labels).some(([name, found]) => {
      const short = name.toLowerCase();
      return (short === label || short.endsWith(`/${label}`)) && found.toLowerCase() === wanted;
    });
  }
  return (row) => wordsOf(row).includes(text);
}

// The function that says whether a row is shown.
export function compile(text) {
  const tests = parts(text).map((part) => {
    const isNot = part.startsWith("-") && part.length > 1;
    const matches = test(isNot ? part.slice(1) : part);
    return isNot ? (row) => !matches(row) : matches;
  });
  return (row) => tests.every((matches) => matches(row));
}

// The text with further parts. A quote that is open would keep them together with what is before them.
export function joined(text, more) {
  const isOpen = (part) => part.split('"').length % 2 === 0;
  return [...parts(text).map((part) => (isOpen(part) ? `${part}"` : part)), ...more].join(" ");
}

// The text with a part added, or without it if it has it.
export function toggled(text, part) {
  const all = parts(text);
  return all.includes(part) ? joined(all.filter((one) => one !== part).join(" "), []) : joined(text, [part]);
}

const quoted = (value) => (/[\s"]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
