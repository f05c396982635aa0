// Durations, in the two largest units, by the clock of the console.

let ahead = 0;

export function setNow(now) {
  if (now) ahead = Date.parse(now) - Date.now();
}

export function seconds(count) {
  const s = Math.max(0, Math.floor(count));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  if (d) return `${d}d${h % 24}h`;
  if (h) return `${h}h${m % 60}m`;
  return m ? `${m}m${s % 60}s` : `${s}s`;
}

export function since(time) {
  return time ? seconds((Date.now() + ahead - Date.parse(time)) / 1000) : "";
}

export function moment(time) {
  return time ? time.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "";
}

// Brings all durations of the page up to date.
export function tick() {
  for (const element of document.querySelectorAll("[data-since]")) {
    const text = (element.dataset.before ?? "") + since(element.dataset.since);
    if (element.textContent !== text) element.textContent = text;
  }
}
