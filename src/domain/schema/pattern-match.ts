import type { Steps } from '../work/steps.ts';
import { type CharacterSet, costOf, hasCode, isWordCharacter } from './pattern-sets.ts';
import type { Pattern, PatternNode } from './pattern-syntax.ts';

/** Instructions. A `split` goes to two, a `jump` to one other instruction. */
const operations = { set: 0, split: 1, jump: 2, start: 3, end: 4, boundary: 5, inside: 6, match: 7 } as const;

/** A pattern as a program; `left` and `right` are the targets of its instructions, or the index of a set. */
class Program {
  readonly sets: CharacterSet[] = [];
  readonly operation: Uint8Array;
  readonly left: Int32Array;
  readonly right: Int32Array;
  #size = 0;

  constructor({ root, size }: Pattern) {
    this.operation = new Uint8Array(size);
    this.left = new Int32Array(size);
    this.right = new Int32Array(size);
    this.#write(root);
    this.#add(operations.match);
  }

  get size(): number {
    return this.operation.length;
  }

  #add(operation: number, left = 0): number {
    const at = this.#size++;
    this.operation[at] = operation;
    this.left[at] = left;
    return at;
  }

  #write(node: PatternNode): void {
    if (node.kind === 'set') this.#add(operations.set, this.sets.push(node.set) - 1);
    else if (node.kind === 'all') for (const inner of node.nodes) this.#write(inner);
    else if (node.kind === 'any') this.#writeChoice(node.nodes);
    else if (node.kind === 'repeat') this.#writeRepeat(node);
    else this.#add(operations[node.kind]);
  }

  #writeChoice(nodes: readonly PatternNode[]): void {
    const jumps: number[] = [];
    for (const [index, inner] of nodes.entries()) {
      if (index === nodes.length - 1) this.#write(inner);
      else {
        const split = this.#addSplit();
        this.#write(inner);
        jumps.push(this.#add(operations.jump));
        this.right[split] = this.#size;
      }
    }
    for (const jump of jumps) this.left[jump] = this.#size;
  }

  #writeRepeat({ node, least, most }: Extract<PatternNode, { kind: 'repeat' }>): void {
    for (let copy = 0; copy < least; copy++) this.#write(node);
    const splits: number[] = [];
    if (most === Number.POSITIVE_INFINITY) {
      const split = this.#addSplit();
      this.#write(node);
      this.#add(operations.jump, split);
      splits.push(split);
    } else {
      for (let copy = least; copy < most; copy++) {
        splits.push(this.#addSplit());
        this.#write(node);
      }
    }
    for (const split of splits) this.right[split] = this.#size;
  }

  /** A split to the next instruction and to one that is set later. */
  #addSplit(): number {
    const split = this.#add(operations.split);
    this.left[split] = this.#size;
    return split;
  }
}

/**
 * Makes the test of a pattern: whether it is found anywhere in a text (JSON Schema 2020-12, validation, 6.3.3). The
 * program is run on all its paths at once (Thompson 1968), so the time is at most proportional to the length of the text
 * times the size of the program. The test takes a step for each instruction.
 */
export function patternTest(pattern: Pattern, source: string): (text: string, steps: Steps) => boolean {
  // A program that is not much larger than its source is kept.
  let kept: Program | undefined;
  return (text, steps) => {
    if (!kept) steps.take(4 * pattern.size);
    const program = kept ?? new Program(pattern);
    if (pattern.size <= 8 * source.length) kept = program;
    return new Run(program, text, pattern.isUnicode).find(steps);
  };
}

/** One search in one text. */
class Run {
  readonly #program: Program;
  readonly #text: string;
  readonly #isUnicode: boolean;
  /** Instructions that wait for a character, and those after it. */
  #now: Int32Array;
  #next: Int32Array;
  #nextCount = 0;
  /** The position at which an instruction was reached last, plus one. */
  readonly #reached: Int32Array;
  readonly #stack: number[] = [];
  #work = 0;

  constructor(program: Program, text: string, isUnicode: boolean) {
    this.#program = program;
    this.#text = text;
    this.#isUnicode = isUnicode;
    this.#now = new Int32Array(program.size);
    this.#next = new Int32Array(program.size);
    this.#reached = new Int32Array(program.size);
  }

  /** @throws TooMuchWork */
  find(steps: Steps): boolean {
    steps.take(1 + (this.#program.size >> 2));
    const { sets, left } = this.#program;
    const isAnchored = this.#startsAtStart();
    if (this.#add(0, 0)) return true;
    for (let at = 0; at < this.#text.length; ) {
      [this.#now, this.#next] = [this.#next, this.#now];
      const count = this.#nextCount;
      if (count === 0 && isAnchored) return false;
      this.#nextCount = 0;
      const code = this.#codeAt(at);
      at += code > 0xffff ? 2 : 1;
      for (let index = 0; index < count; index++) {
        const pc = this.#now[index] as number;
        const set = sets[left[pc] as number] as CharacterSet;
        this.#work += costOf(set);
        if (hasCode(set, code) && this.#add(pc + 1, at)) return true;
      }
      if (!isAnchored && this.#add(0, at)) return true;
      steps.take(1 + this.#work);
      this.#work = 0;
    }
    return false;
  }

  #codeAt(at: number): number {
    return (this.#isUnicode ? this.#text.codePointAt(at) : this.#text.charCodeAt(at)) as number;
  }

  /** Whether the program can begin at the start of the text only. */
  #startsAtStart(): boolean {
    return this.#program.operation[0] === operations.start;
  }

  /** Adds the instructions that are reached from one without a character. True when the program has matched. */
  #add(from: number, at: number): boolean {
    const { operation, left, right } = this.#program;
    const stack = this.#stack;
    stack.length = 0;
    stack.push(from);
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#reached[pc] === at + 1) continue;
      this.#reached[pc] = at + 1;
      this.#work++;
      const found = operation[pc] as number;
      if (found === operations.match) return true;
      if (found === operations.set) this.#next[this.#nextCount++] = pc;
      else if (found === operations.split) stack.push(right[pc] as number, left[pc] as number);
      else if (found === operations.jump) stack.push(left[pc] as number);
      else if (this.#holds(found, at)) stack.push(pc + 1);
    }
    return false;
  }

  /** Whether an assertion holds before the character at a position. */
  #holds(assertion: number, at: number): boolean {
    if (assertion === operations.start) return at === 0;
    if (assertion === operations.end) return at === this.#text.length;
    return (this.#isWordAt(at - 1) !== this.#isWordAt(at)) === (assertion === operations.boundary);
  }

  #isWordAt(at: number): boolean {
    return at >= 0 && at < this.#text.length && isWordCharacter(this.#text.charCodeAt(at));
  }
}
