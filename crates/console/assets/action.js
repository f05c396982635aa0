// Buttons for what a viewer may do, each with its consequence before it is done.

import { el, fill } from "./dom.js";
import { login, onLogin, post } from "./server.js";

// `host`: the document that the page shows. `done`: called with the answer.
export function button(host, one, done) {
  return el("button", { type: "button", class: one.harms ? "act harms" : "act", "data-action": one.action, "aria-haspopup": "dialog", onclick: () => ask(host, one, done) }, one.what);
}

// The dialog is outside of the page's content, which is drawn again with each change.
function ask({ namespace, name, uid }, one, done) {
  const before = document.activeElement;
  const said = el("p", { class: "said", role: "status" });
  const typed = el("input", { id: "typed", type: "text", autocomplete: "off", spellcheck: "false" });
  const go = el("button", { type: "button", class: one.harms ? "harms" : "", "data-go": true, onclick: () => act() }, one.what);
  const stop = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const dialog = el("dialog", { "aria-labelledby": "asked", "aria-describedby": "consequence" },
    el("h2", { id: "asked" }, `${one.what}: ${namespace}/${name}`),
    el("p", { id: "consequence" }, `${one.consequence[0].toUpperCase()}${one.consequence.slice(1)}.`),
    one.command && el("p", {}, el("code", {}, one.command)),
    one.harms && el("p", {}, el("label", { for: "typed" }, `Type ${name} to confirm`), typed),
    said, el("div", { class: "choice" }, stop, go));
  let isAsking = false;
  const check = () => (go.disabled = isAsking || (one.harms && typed.value !== name));
  typed.addEventListener("input", check);
  typed.addEventListener("keydown", (event) => event.key === "Enter" && !go.disabled && act());
  // What was sent is not taken back by closing.
  dialog.addEventListener("cancel", (event) => isAsking && event.preventDefault());
  const leave = () => dialog.close();
  addEventListener("popstate", leave);
  // It says who uses the machine.
  const stopLogin = onLogin(() => login.ended?.isHidden && leave());
  dialog.addEventListener("close", () => {
    removeEventListener("popstate", leave);
    stopLogin();
    dialog.remove();
    // The page may have drawn its buttons again.
    (before?.isConnected ? before : document.querySelector(`[data-action="${one.action}"]`))?.focus();
  });

  async function act() {
    isAsking = true;
    stop.disabled = true;
    check();
    fill(said, "Asking the API server …");
    let answer;
    try {
      answer = await post("/api/act", { namespace, name, uid: uid ?? "", action: one.action, consequence: one.consequence, typed: typed.value });
    } catch {
      answer = { done: false, text: "The console did not answer, and it is not known whether this was done. The page shows it once it is known." };
    }
    isAsking = false;
    stop.disabled = false;
    done(answer);
    if (answer.done) return dialog.close();
    said.className = "said failed";
    fill(said, answer.text);
    check();
  }

  document.body.append(dialog);
  check();
  dialog.showModal();
  (one.harms ? typed : stop).focus();
}
