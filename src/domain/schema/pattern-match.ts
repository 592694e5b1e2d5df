import type { Steps } from '../work/steps.ts';
import {
  type CharacterSet,
  costOf,
  hasCode,
  isWordCharacter,
  type Pattern,
  type PatternNode,
  parsePattern,
} from './pattern-syntax.ts';

/** What reading a pattern takes for each of its characters, and writing its program for each instruction. */
const stepsOf = { character: 8, instruction: 4 };
/** A program is kept that has no more instructions than this, for each character of its pattern and besides. */
const mostKept = { ofCharacter: 8, besides: 64 };

/**
 * Makes the test of a pattern that can be read: whether it is found anywhere in a text (JSON Schema 2020-12, validation,
 * 6.3.3). The program is run on all its paths at once (Thompson 1968), so the time is at most proportional to the length
 * of the text times the size of the program. The test takes a step for each instruction. The pattern is read at the first
 * text, and only its program is kept, because the tree that it is read to takes fifty times as much memory.
 */
export function patternTest(source: string): (text: string, steps: Steps) => boolean {
  let kept: Program | undefined;
  return (text, steps) => {
    const program = kept ?? readProgram(source, steps);
    if (program.size <= mostKept.besides + mostKept.ofCharacter * source.length) kept = program;
    return new Run(program, text).find(steps);
  };
}

/** @throws TooMuchWork */
function readProgram(source: string, steps: Steps): Program {
  steps.take(stepsOf.character * source.length);
  const read = parsePattern(source);
  // The rules of schemas refuse such a pattern.
  if ('fault' in read) throw new Error('a pattern that was never valid');
  steps.take(stepsOf.instruction * read.pattern.size);
  return new Program(read.pattern);
}

/** One search in one text. */
class Run {
  readonly #program: Program;
  readonly #text: string;
  /** Instructions that wait for a character, and those after it. */
  #now: Int32Array;
  #next: Int32Array;
  #nextCount = 0;
  /** The position at which an instruction was reached last, plus one. */
  readonly #reached: Int32Array;
  readonly #stack: number[] = [];
  #work = 0;

  constructor(program: Program, text: string) {
    this.#program = program;
    this.#text = text;
    this.#now = new Int32Array(program.size);
    this.#next = new Int32Array(program.size);
    this.#reached = new Int32Array(program.size);
  }

  /** @throws TooMuchWork */
  find(steps: Steps): boolean {
    steps.take(1 + (this.#program.size >> 2));
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
        if (this.#takes(pc, code) && this.#add(pc + 1, at)) return true;
      }
      if (!isAnchored && this.#add(0, at)) return true;
      steps.take(1 + this.#work);
      this.#work = 0;
    }
    return false;
  }

  /** Whether an instruction that waits for a character takes this one. */
  #takes(pc: number, code: number): boolean {
    const program = this.#program;
    const operand = program.operand(pc);
    if (program.operation(pc) === instructions.character) {
      this.#work++;
      return operand === code;
    }
    const set = program.sets[operand] as CharacterSet;
    this.#work += costOf(set);
    return hasCode(set, code);
  }

  #codeAt(at: number): number {
    return (this.#program.isUnicode ? this.#text.codePointAt(at) : this.#text.charCodeAt(at)) as number;
  }

  /** Whether the program can begin at the start of the text only. */
  #startsAtStart(): boolean {
    return this.#program.operation(0) === instructions.start;
  }

  /** Adds the instructions that are reached from one without a character. True when the program has matched. */
  #add(from: number, at: number): boolean {
    const program = this.#program;
    const stack = this.#stack;
    stack.length = 0;
    stack.push(from);
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#reached[pc] === at + 1) continue;
      this.#reached[pc] = at + 1;
      this.#work++;
      const found = program.operation(pc);
      if (found === instructions.match) return true;
      if (found === instructions.set || found === instructions.character) this.#next[this.#nextCount++] = pc;
      else if (found === instructions.split) stack.push(program.operand(pc), pc + 1);
      else if (found === instructions.jump) stack.push(program.operand(pc));
      else if (this.#holds(found, at)) stack.push(pc + 1);
    }
    return false;
  }

  /** Whether an assertion holds before the character at a position. */
  #holds(assertion: number, at: number): boolean {
    if (assertion === instructions.start) return at === 0;
    if (assertion === instructions.end) return at === this.#text.length;
    return (this.#isWordAt(at - 1) !== this.#isWordAt(at)) === (assertion === instructions.boundary);
  }

  #isWordAt(at: number): boolean {
    return at >= 0 && at < this.#text.length && isWordCharacter(this.#text.charCodeAt(at));
  }
}

/** Instructions. A `split` goes to the next and to one other instruction, a `jump` to one other. */
const instructions = {
  set: 0,
  split: 1,
  jump: 2,
  start: 3,
  end: 4,
  boundary: 5,
  inside: 6,
  match: 7,
  character: 8,
} as const;

const bitsOfOperation = 4;

/**
 * A pattern as a program. An instruction is one number: its operation, and above that its target, the index of its set or
 * the code of its character.
 */
class Program {
  readonly isUnicode: boolean;
  readonly sets: readonly CharacterSet[];
  readonly #instructions: Int32Array;

  constructor(pattern: Pattern) {
    const writer = new Writer(pattern);
    this.isUnicode = pattern.isUnicode;
    this.sets = writer.sets.slice();
    this.#instructions = writer.instructions;
  }

  get size(): number {
    return this.#instructions.length;
  }

  operation(at: number): number {
    return (this.#instructions[at] as number) & ((1 << bitsOfOperation) - 1);
  }

  operand(at: number): number {
    return (this.#instructions[at] as number) >> bitsOfOperation;
  }
}

class Writer {
  readonly sets: CharacterSet[] = [];
  readonly instructions: Int32Array;
  readonly #indexes = new Map<CharacterSet, number>();
  #size = 0;

  constructor({ root, size }: Pattern) {
    this.instructions = new Int32Array(size);
    this.#write(root);
    this.#add(instructions.match);
  }

  #add(operation: number, operand = 0): number {
    const at = this.#size++;
    this.instructions[at] = operation;
    this.#point(at, operand);
    return at;
  }

  /** Gives an instruction its operand. */
  #point(at: number, operand: number): void {
    const operation = (this.instructions[at] as number) & ((1 << bitsOfOperation) - 1);
    this.instructions[at] = (operand << bitsOfOperation) | operation;
  }

  #write(node: PatternNode): void {
    if (node.kind === 'set') this.#add(instructions.set, this.#indexOf(node.set));
    else if (node.kind === 'character') this.#add(instructions.character, node.code);
    else if (node.kind === 'all') for (const inner of node.nodes) this.#write(inner);
    else if (node.kind === 'any') this.#writeChoice(node.nodes);
    else if (node.kind === 'repeat') this.#writeRepeat(node);
    else this.#add(instructions[node.kind]);
  }

  /** The copies that a repetition makes share their sets. */
  #indexOf(set: CharacterSet): number {
    const known = this.#indexes.get(set);
    if (known !== undefined) return known;
    const index = this.sets.push(set) - 1;
    this.#indexes.set(set, index);
    return index;
  }

  #writeChoice(nodes: readonly PatternNode[]): void {
    const jumps: number[] = [];
    for (const [index, inner] of nodes.entries()) {
      if (index === nodes.length - 1) this.#write(inner);
      else {
        const split = this.#add(instructions.split);
        this.#write(inner);
        jumps.push(this.#add(instructions.jump));
        this.#point(split, this.#size);
      }
    }
    for (const jump of jumps) this.#point(jump, this.#size);
  }

  #writeRepeat({ node, least, most }: Extract<PatternNode, { kind: 'repeat' }>): void {
    for (let copy = 0; copy < least; copy++) this.#write(node);
    const splits: number[] = [];
    if (most === Number.POSITIVE_INFINITY) {
      const split = this.#add(instructions.split);
      this.#write(node);
      this.#add(instructions.jump, split);
      splits.push(split);
    } else {
      for (let copy = least; copy < most; copy++) {
        splits.push(this.#add(instructions.split));
        this.#write(node);
      }
    }
    for (const split of splits) this.#point(split, this.#size);
  }
}
