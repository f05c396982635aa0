// Durations, in the two largest units, by the clock of the console.

let ahead = 0;
// The time of what is shown, when nothing newer comes.
let held = null;

export function setNow(now) {
  if (now) ahead = Date.parse(now) - Date.now();
}

// Durations stand still at a time, until it is null: no page says that a state lasts on which nothing is known.
export function hold(time) {
  held = time && time.getTime();
}

// Now, or the time of what is shown, by the clock of this machine.
export const shownAt = () => held ?? Date.now();

// A time of the console by the clock of this machine.
export const here = (time) => new Date(Date.parse(time) - ahead);

export function seconds(count) {
  const s = Math.max(0, Math.floor(count));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  if (d) return `${d}d${h % 24}h`;
  if (h) return `${h}h${m % 60}m`;
  return m ? `${m}m${s % 60}s` : `${s}s`;
}

export function since(time) {
  return time ? seconds((shownAt() + ahead - Date.parse(time)) / 1000) : "";
}

export function moment(time) {
  return time ? time.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "";
}

const MINUTE = 60_000;
// When each of those that are called each minute was called last.
const called = new Map();

export function eachMinute(listener) {
  called.set(listener, Date.now());
  return () => called.delete(listener);
}

// Brings all durations of the page up to date, and once in a minute what shows time in another way.
export function tick() {
  for (const [listener, at] of called) {
    if (Math.abs(Date.now() - at) < MINUTE) continue;
    called.set(listener, Date.now());
    listener();
  }
  for (const element of document.querySelectorAll("[data-since]")) {
    const text = (element.dataset.before ?? "") + since(element.dataset.since);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of document.querySelectorAll("[data-ago]")) {
    const text = seconds((Date.now() - Number(element.dataset.ago)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}
