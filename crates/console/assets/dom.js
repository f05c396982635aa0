// Elements. Data becomes text nodes and attribute values only.

const ATTRIBUTES = new Set(["id", "class", "href", "role", "type", "title", "value", "placeholder", "for", "name", "tabindex", "open",
  "scope", "hidden", "autocomplete", "spellcheck", "selected", "min", "max"]);

export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (ATTRIBUTES.has(key) || key.startsWith("aria-") || key.startsWith("data-")) element.setAttribute(key, value === true ? "" : value);
    else throw new Error(`no attribute ${key}`);
  }
  add(element, children);
  return element;
}

// A part of a picture, in the language of the empty one that the page has.
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(document.getElementById("picture").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(element, ...children) {
  const parts = document.createDocumentFragment();
  add(parts, children);
  element.replaceChildren(parts);
}

// Sets a text only if it differs, so that nothing is drawn again for nothing.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Content that is made once the browser has nothing else to do, so that a search of the page finds it.
const due = [];
function work(deadline) {
  while (due.length && deadline.timeRemaining() > 2) due.shift()();
  if (due.length) requestIdleCallback(work);
}

// A part that is folded at first. `content` returns its elements, when it is opened or later.
export function folded(summary, content) {
  let isMade = false;
  const make = () => {
    if (isMade) return;
    isMade = true;
    add(element, [content()]);
  };
  const element = el("details", { ontoggle: make }, el("summary", {}, summary));
  if (!due.length) requestIdleCallback(work);
  due.push(() => element.isConnected && make());
  return element;
}
