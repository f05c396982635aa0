// A view of one document, which is read again when something changes that concerns it.

import { el, fill } from "./dom.js";
import { onBatch } from "./server.js";

// Documents are read again after this pause at the earliest.
const PAUSE = 400;

export class Document {
  // `read` returns the document, and whether more has changed since.
  constructor(main, read) {
    this.main = main;
    this.read = read;
    this.isOpen = true;
    this.parts = new Map();
    fill(main, el("p", { class: "quiet" }, "Reading …"));
    this.stop = onBatch((change) => this.concerns(change) && this.later());
    this.load();
  }

  close() {
    this.isOpen = false;
    this.stop();
    clearTimeout(this.timer);
  }

  later() {
    if (this.isLoading) {
      this.isDue = true;
      return;
    }
    this.timer ??= setTimeout(() => this.load(), PAUSE);
  }

  async load() {
    clearTimeout(this.timer);
    this.timer = undefined;
    // Once it is seen, the stream begins with all.
    if (document.hidden) return;
    this.isLoading = true;
    this.isDue = false;
    try {
      const { document: found, isOld } = await this.read();
      if (!this.isOpen) return;
      this.keep(() => this.show(found));
      document.body.dataset.drawn = String(Date.now());
      this.isDue ||= isOld;
    } catch {
      // The line above says that there is no connection; the next batch reads again.
    } finally {
      this.isLoading = false;
    }
    if (this.isOpen && this.isDue) this.later();
  }

  // The element of a part, which is made again only if its value differs.
  part(key, value, make) {
    const text = JSON.stringify(value);
    const known = this.parts.get(key);
    const part = known?.text === text ? known : { text, element: make(value) };
    this.next.set(key, part);
    return part.element;
  }

  // Draws without losing what is open, and the place of the focus.
  keep(draw) {
    const all = [...this.main.querySelectorAll("details")];
    const open = new Map(all.map((one) => [one.querySelector("summary")?.textContent, one.open]));
    const focused = document.activeElement?.getAttribute?.("href");
    const action = document.activeElement?.dataset?.action;
    this.next = new Map();
    draw();
    this.parts = this.next;
    for (const one of this.main.querySelectorAll("details")) {
      const was = open.get(one.querySelector("summary")?.textContent);
      if (was !== undefined) one.open = was;
    }
    if (focused && document.activeElement === document.body) {
      [...this.main.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
    if (action && document.activeElement === document.body) {
      [...this.main.querySelectorAll("button")].find((one) => one.dataset.action === action)?.focus({ preventScroll: true });
    }
  }
}
