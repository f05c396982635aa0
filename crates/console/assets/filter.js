// The text of the filter: words that a row has anywhere, `field:value`, `label=value`, and `-` before what a row must not have.

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
// Values of these are whole: `state:provisioned` is not `externally provisioned`.
const WHOLE = new Set(["ns", "namespace", "state", "who", "cluster", "power", "vendor", "model"]);

export const fields = Object.keys(FIELDS);

// Who has to act, in one word; `unknown` when a cause may be hidden.
export function whoOf(row) {
  if (row.result === "unknown") return "unknown";
  return row.who === "nothing to do" ? "nothing" : row.who;
}

// The parts of a text; quotes keep blanks together.
export function parts(text) {
  return text.match(/-?(?:[^\s"]+"[^"]*"?|"[^"]*"?|[^\s"]+)+/g) ?? [];
}

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
  const plain = part.replaceAll('"', "").toLowerCase();
  const [, field, value] = plain.match(/^([a-z]+):(.*)$/) ?? [];
  if (FIELDS[field]) {
    const get = FIELDS[field];
    if (value === "") return (row) => Boolean(get(row));
    return WHOLE.has(field) ? (row) => (get(row) ?? "").toLowerCase() === value : (row) => (get(row) ?? "").toLowerCase().includes(value);
  }
  const [, label, wanted] = plain.match(/^([^=:]+)=(.*)$/) ?? [];
  if (label) {
    return (row) => Object.entries(row.labels).some(([name, found]) => {
      const short = name.toLowerCase();
      return (short === label || short.endsWith(`/${label}`)) && found.toLowerCase() === wanted;
    });
  }
  return (row) => wordsOf(row).includes(plain);
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

// The text with a part added, or without it if it has it.
export function toggled(text, part) {
  const all = parts(text);
  const isIn = all.includes(part);
  return (isIn ? all.filter((one) => one !== part) : [...all, part]).join(" ");
}

export const quoted = (value) => (/\s/.test(value) ? `"${value}"` : value);
