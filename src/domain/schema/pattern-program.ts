import type { CharacterSet } from './pattern-sets.ts';
import type { Pattern, PatternNode } from './pattern-syntax.ts';

/** Instructions. A `split` goes to the next and to one other instruction, a `jump` to one other. */
export const instructions = {
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
export class Program {
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
