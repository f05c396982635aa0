// The address of the page has all of the view, so that it can be sent to a colleague and kept.

const listeners = new Set();

export function read() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

export function to(view, values = {}) {
  const parameters = new URLSearchParams({ view });
  for (const [name, value] of Object.entries(values)) {
    if (value) parameters.set(name, value);
  }
  return `/?${parameters}`;
}

export const toHost = (namespace, name) => to("host", { namespace, name });
export const toCluster = (namespace, name) => to("cluster", { namespace, name });

// Changes the view of the address without a step back for each key.
export function replace(values) {
  const next = { ...read(), ...values };
  const { view = "fleet", ...others } = next;
  history.replaceState(null, "", to(view, others));
}

export function go(address) {
  history.pushState(null, "", address);
  for (const listener of listeners) listener();
}

export function onChange(listener) {
  listeners.add(listener);
  addEventListener("popstate", listener);
}

// Links of the page are followed without loading it again.
export function follow(event) {
  const link = event.target.closest?.("a[href^='/?']");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
}
