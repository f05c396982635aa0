// How many hosts waited for whom since the page was opened. A page that is loaded again begins anew: nothing is kept elsewhere.

import { count } from "./counts.js";
import { whoOf } from "./filter.js";
import { fleet, onBatch } from "./server.js";

// Samples that are kept. When there are more, each second one of the older half is left out.
const MOST = 400;

export const past = { samples: [] };

const isSame = (a, b) => a.size === b.size && [...a].every(([who, hosts]) => b.get(who) === hosts);

export function take(samples, who, at) {
  const last = samples.at(-1);
  if (last && isSame(last.who, who)) return samples;
  const next = [...samples, { at, who }];
  return next.length > MOST ? next.filter((_, index) => index === 0 || index > MOST / 2 || index % 2 === 0) : next;
}

onBatch(() => {
  if (fleet.isRead) past.samples = take(past.samples, count(fleet.rows.values(), whoOf), Date.now());
});
