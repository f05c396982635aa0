// What is wrong with the page that is open, for people who use a keyboard, a screen reader or little contrast: one line each.
// An expression, which the test evaluates in the page. Roles and names are looked at from outside, in the accessibility tree.
(() => {
  const problems = new Set();
  const where = (element) => `${element.localName}${element.id && `#${element.id}`}${element.className?.replace ? `.${element.className.trim().replaceAll(/\s+/g, ".")}` : ""} ${JSON.stringify(element.textContent.trim().slice(0, 40))}`;
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
  const all = [...document.body.querySelectorAll("*")];

  const ids = new Map();
  for (const { id } of all) if (id) ids.set(id, (ids.get(id) ?? 0) + 1);
  for (const [id, times] of ids) if (times > 1) problems.add(`the id ${id} is there ${times} times`);
  for (const element of all) {
    for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
      const wanted = element.getAttribute(name);
      if (wanted && !document.getElementById(wanted)) problems.add(`${where(element)}: ${name} names nothing`);
    }
    if (element.tabIndex > 0) problems.add(`${where(element)}: its place in the order of the Tab key is its own`);
  }

  const levels = all.filter((one) => /^h[1-6]$/.test(one.localName) && isShown(one)).map((one) => Number(one.localName[1]));
  if (levels.filter((level) => level === 1).length !== 1) problems.add(`headings of the first level: ${levels.filter((level) => level === 1).length}`);
  levels.forEach((level, at) => at > 0 && level > levels[at - 1] + 1 && problems.add(`a heading of level ${level} follows one of level ${levels[at - 1]}`));
  if (!document.documentElement.lang) problems.add("the page has no language");
  if (document.querySelectorAll("main").length !== 1) problems.add("not one main part");

  // Colours as they are computed: text and all that is behind it.
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [more, less] = [light(a), light(b)].sort((x, y) => y - x);
    return (more + 0.05) / (less + 0.05);
  };
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? parse("rgb(18, 18, 18)") : parse("rgb(255, 255, 255)");
  function behind(element) {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.a > 0) layers.push(colour);
      if (colour.a === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), canvas);
  }
  function opacity(element) {
    let product = 1;
    for (let one = element; one; one = one.parentElement) product *= Number(getComputedStyle(one).opacity);
    return product;
  }
  const contrast = (element, colour) => {
    const back = behind(element);
    const text = parse(colour);
    return ratio(over({ ...text, a: text.a * opacity(element) }, back), back);
  };
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, textContent } = walker.currentNode;
    if (!textContent.trim() || ["option", "script", "noscript"].includes(parent.localName) || !isShown(parent) || parent.closest(":disabled")) continue;
    texts += 1;
    const found = contrast(parent, getComputedStyle(parent).color);
    if (found < 4.5) problems.add(`${where(parent)}: the contrast is ${found.toFixed(2)}`);
  }
  if (!texts) problems.add("no text is shown");
  for (const field of document.querySelectorAll("input, select")) {
    for (const part of [null, "::placeholder"]) {
      const found = contrast(field, getComputedStyle(field, part).color);
      if (isShown(field) && found < 4.5) problems.add(`${where(field)} ${part ?? ""}: the contrast is ${found.toFixed(2)}`);
    }
  }

  // Each kind of what the Tab key reaches, some of each kind: the focus is seen.
  const before = document.activeElement;
  const kinds = new Map();
  const scope = document.querySelector("dialog[open]") ?? document.body;
  const stops = [...scope.querySelectorAll("*")].filter((one) => one.tabIndex >= 0 && one.matches("a[href], button, input, select, summary, [tabindex]") && !one.disabled && isShown(one));
  for (const one of stops) {
    const kind = `${one.localName}.${one.className}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (kinds.get(kind) > 5) continue;
    one.focus({ preventScroll: true });
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
    const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
    if (document.activeElement !== one) problems.add(`${where(one)}: takes no focus`);
    else if (!isSeen) problems.add(`${where(one)}: the focus is not seen`);
    else if (outlineStyle !== "auto" && ratio(parse(outlineColor), behind(one.parentElement)) < 3) problems.add(`${where(one)}: the contrast of the focus is too small`);
  }
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return [...problems];
})()
