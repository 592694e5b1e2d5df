// Loaded into a process before its program: makes its clock wrong by what WRONG_CLOCK_FILE says now.
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const RealDate = Date;
const { WRONG_CLOCK_FILE } = process.env;
let ahead = 0;
let readAt = Number.NEGATIVE_INFINITY;
const lookMs = 50;

function now() {
  if (performance.now() - readAt > lookMs) {
    ahead = Number(readFileSync(WRONG_CLOCK_FILE, 'utf8'));
    readAt = performance.now();
  }
  return RealDate.now() + ahead;
}

globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(now());
  }

  static now() {
    return now();
  }
};
