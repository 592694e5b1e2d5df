import type { Steps } from '../work/steps.ts';

/** A step into a value: a property name or an index, and the step before it. */
export type Step = { outer: Step | undefined; key: string };

/** A violation: the keyword, its value, and the path. `names` are the names allowed beside an unknown one. */
export type Fault = { keyword: string; limit: unknown; path: string[]; found: unknown; names?: readonly string[] };

const mostFaults = 100;

/** One check of one value. */
export class CheckRun {
  readonly steps: Steps;
  /** Whether the check continues after a fault. */
  readonly isThorough: boolean;
  /** Undefined when only the verdict is needed. */
  readonly faults: Fault[] | undefined;

  constructor(steps: Steps, wanted: 'verdict' | 'first fault' | 'faults') {
    this.steps = steps;
    this.isThorough = wanted === 'faults';
    this.faults = wanted === 'verdict' ? undefined : [];
  }

  /** The step into an inner value; unused where faults are not collected. */
  into(outer: Step | undefined, key: string): Step | undefined {
    return this.faults && { outer, key };
  }

  /** Records a fault. Always returns false. */
  fault(at: Step | undefined, fault: Omit<Fault, 'path'>): false {
    if (this.faults && this.faults.length < mostFaults) this.faults.push({ ...fault, path: pathTo(at) });
    return false;
  }

  /** Drops the faults of alternatives after one of them fits. */
  discard(from: number): void {
    if (this.faults) this.faults.length = Math.min(this.faults.length, from);
  }

  get faultCount(): number {
    return this.faults?.length ?? 0;
  }
}

function pathTo(last: Step | undefined): string[] {
  const path: string[] = [];
  for (let step = last; step; step = step.outer) path.push(step.key);
  return path.reverse();
}
