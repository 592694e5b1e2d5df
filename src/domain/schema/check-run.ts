import type { Steps } from '../steps.ts';

/** A step into a value: a property name or an index, and the step before it. */
export type Step = { outer: Step | undefined; key: string };

/** What a value breaks: which keyword, what that says, and where. `names` are the names allowed beside an unknown one. */
export type Fault = { keyword: string; limit: unknown; path: string[]; found: unknown; names?: readonly string[] };

const mostFaults = 100;

/** One check of one value. */
export class CheckRun {
  readonly steps: Steps;
  /** Whether it goes on behind a fault. */
  readonly isThorough: boolean;
  /** Undefined when nobody wants to know what is wrong. */
  readonly faults: Fault[] | undefined;

  constructor(steps: Steps, wanted: 'verdict' | 'first fault' | 'faults') {
    this.steps = steps;
    this.isThorough = wanted === 'faults';
    this.faults = wanted === 'verdict' ? undefined : [];
  }

  /** The step into an inner value; nobody asks for it where no faults are wanted. */
  into(outer: Step | undefined, key: string): Step | undefined {
    return this.faults && { outer, key };
  }

  /** Notes a fault. Always false. */
  fault(at: Step | undefined, fault: Omit<Fault, 'path'>): false {
    if (this.faults && this.faults.length < mostFaults) this.faults.push({ ...fault, path: pathTo(at) });
    return false;
  }

  /** Forgets the faults of alternatives, one of which turned out to fit. */
  forget(from: number): void {
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
