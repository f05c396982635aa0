// A list of any length: only the rows in sight are elements.

import { el } from "./dom.js";

// Rows above and below those in sight.
const MORE = 8;

// `render(item)` returns the cells of a row as an element. Rows have the height of the style's --row.
export class List {
  constructor(label, render) {
    this.render = render;
    this.items = [];
    this.shown = new Map();
    this.current = 0;
    this.space = el("div", { class: "space", role: "presentation" });
    this.element = el("div", { class: "list", role: "grid", "aria-label": label, tabindex: "0" }, this.space);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.measure()).observe(this.element);
  }

  // The rows, with a function that says what identifies a row and its content.
  set(items, identity) {
    this.identity = identity;
    this.items = items;
    this.element.setAttribute("aria-rowcount", String(items.length));
    this.measure();
  }

  measure() {
    const height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 36;
    this.height = height;
    this.space.style.height = `${this.items.length * height}px`;
    this.draw();
  }

  draw() {
    if (!this.height) return;
    const from = Math.max(0, Math.floor(this.element.scrollTop / this.height) - MORE);
    const to = Math.min(this.items.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / this.height) + MORE);
    const before = this.shown;
    this.shown = new Map();
    const fresh = document.createDocumentFragment();
    for (let at = from; at < to; at += 1) {
      const item = this.items[at];
      const known = before.get(this.identity(item));
      const row = known?.item === item ? known.row : this.render(item);
      if (known && known.row !== row) known.row.remove();
      before.delete(this.identity(item));
      row.style.transform = `translateY(${at * this.height}px)`;
      row.setAttribute("aria-rowindex", String(at + 1));
      row.dataset.at = at;
      if (!row.isConnected) fresh.append(row);
      this.shown.set(this.identity(item), { item, row });
    }
    for (const { row } of before.values()) row.remove();
    this.space.append(fresh);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.items.length) return;
    event.preventDefault();
    const focused = document.activeElement?.closest?.(".row");
    const isInside = focused && this.element.contains(focused);
    const from = isInside ? Number(focused.dataset.at) : -1;
    let at = Math.min(this.items.length - 1, Math.max(0, from + step));
    while (this.items[at]?.isGroup && at > 0 && at < this.items.length - 1) at += step < 0 ? -1 : 1;
    this.show(at);
    this.space.querySelector(`[data-at="${at}"] a`)?.focus({ preventScroll: true });
  }

  show(at) {
    const [top, bottom] = [at * this.height, (at + 1) * this.height];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (bottom > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = bottom - this.element.clientHeight;
    this.draw();
  }
}
