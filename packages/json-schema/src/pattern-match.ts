import {
  type CharacterSet,
  getComparisonCost,
  hasCode,
  isWordCharacter,
  type Pattern,
  type PatternNode,
  parsePattern,
} from './pattern-syntax.ts';
import type { StepBudget } from './step-budget.ts';

/** Steps for parsing each character of a pattern, and for emitting each instruction of its program. */
const stepCosts = { character: 8, instruction: 4 };
/** Maximum instructions of a cached program: a number per character of its pattern, plus a constant. */
const cacheLimits = { perCharacter: 8, constant: 64 };

/** Operations of a program. A `split` continues at the next and at one other instruction, a `jump` at one other. */
const operations = {
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

const operationBits = 4;
const operationMask = (1 << operationBits) - 1;

/** A pattern compiled to a program. */
type Program = {
  isUnicode: boolean;
  sets: readonly CharacterSet[];
  /**
   * Each instruction is one number: the operation in its low bits, and above it the jump target, the index of the set,
   * or the character code.
   */
  instructions: Int32Array;
};

/**
 * Creates the test of a valid pattern. It returns true if the pattern matches anywhere in a text (JSON Schema 2020-12,
 * validation, 6.3.3). The program runs on all paths simultaneously (Thompson 1968), so the time is at most proportional
 * to the text length times the program size. Each instruction takes a step. The pattern is parsed for the first text.
 * Only its program is cached, because the parse tree takes fifty times as much memory.
 */
export function patternTest(source: string): (text: string, steps: StepBudget) => boolean {
  let cached: Program | undefined;
  return (text, steps) => {
    const program = cached ?? compilePattern(source, steps);
    if (program.instructions.length <= cacheLimits.constant + cacheLimits.perCharacter * source.length)
      cached = program;
    return hasMatch(program, text, steps);
  };
}

/** @throws StepLimitExceeded */
function compilePattern(source: string, steps: StepBudget): Program {
  steps.consume(stepCosts.character * source.length);
  const parsed = parsePattern(source);
  // The schema rules reject such a pattern.
  if ('fault' in parsed) throw new Error('cannot compile a pattern that was not validated');
  steps.consume(stepCosts.instruction * parsed.pattern.size);
  return createProgram(parsed.pattern);
}

function createProgram({ root, size, isUnicode }: Pattern): Program {
  const instructions = new Int32Array(size);
  // Copies made for a repetition share their sets.
  const sets = new Set<CharacterSet>();
  const indexes = new Map<CharacterSet, number>();
  let length = 0;

  /** Adds an instruction and returns its index. */
  function add(operation: number, operand = 0): number {
    instructions[length] = (operand << operationBits) | operation;
    return length++;
  }

  /** Sets the next instruction as the target of earlier instructions. */
  function patchTargets(...origins: number[]): void {
    for (const at of origins) instructions[at] = (length << operationBits) | (instructions[at] as number);
  }

  function emit(node: PatternNode): void {
    if (node.kind === 'set') {
      if (!indexes.has(node.set)) indexes.set(node.set, sets.add(node.set).size - 1);
      add(operations.set, indexes.get(node.set));
    } else if (node.kind === 'character') add(operations.character, node.code);
    else if (node.kind === 'all') for (const inner of node.nodes) emit(inner);
    else if (node.kind === 'any') emitChoice(node.nodes);
    else if (node.kind === 'repeat') emitRepeat(node);
    else add(operations[node.kind]);
  }

  function emitChoice(nodes: readonly PatternNode[]): void {
    const jumps: number[] = [];
    for (const inner of nodes.slice(0, -1)) {
      const split = add(operations.split);
      emit(inner);
      jumps.push(add(operations.jump));
      patchTargets(split);
    }
    emit(nodes.at(-1) as PatternNode);
    patchTargets(...jumps);
  }

  function emitRepeat({ node, min, max }: Extract<PatternNode, { kind: 'repeat' }>): void {
    for (let copy = 0; copy < min; copy++) emit(node);
    const splits: number[] = [];
    if (max === Number.POSITIVE_INFINITY) {
      const split = add(operations.split);
      emit(node);
      add(operations.jump, split);
      splits.push(split);
    }
    for (let copy = min; copy < max && max !== Number.POSITIVE_INFINITY; copy++) {
      splits.push(add(operations.split));
      emit(node);
    }
    patchTargets(...splits);
  }

  emit(root);
  add(operations.match);
  return { isUnicode, sets: [...sets], instructions };
}

/** Returns true if a program matches somewhere in a text. @throws StepLimitExceeded */
function hasMatch({ isUnicode, sets, instructions }: Program, text: string, steps: StepBudget): boolean {
  const size = instructions.length;
  steps.consume(1 + (size >> 2));
  /** Instructions that wait for the current character, and those that wait for the next one. */
  let current = new Int32Array(size);
  let next = new Int32Array(size);
  let nextCount = 0;
  /** Position at which an instruction was last reached, plus one. */
  const lastReached = new Int32Array(size);
  const stack: number[] = [];
  let pendingSteps = 0;

  /**
   * Adds the instructions that are reachable from one without consuming a character. Returns true if the program has
   * matched.
   */
  function add(from: number, at: number): boolean {
    stack.length = 0;
    stack.push(from);
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (lastReached[pc] === at + 1) continue;
      lastReached[pc] = at + 1;
      pendingSteps++;
      const operation = (instructions[pc] as number) & operationMask;
      const operand = (instructions[pc] as number) >> operationBits;
      if (operation === operations.match) return true;
      if (operation === operations.set || operation === operations.character) next[nextCount++] = pc;
      else if (operation === operations.split) stack.push(operand, pc + 1);
      else if (operation === operations.jump) stack.push(operand);
      else if (isAssertionMet(operation, text, at)) stack.push(pc + 1);
    }
    return false;
  }

  /** Returns true if an instruction that waits for a character accepts this one. */
  function acceptsCode(instruction: number, code: number): boolean {
    const operand = instruction >> operationBits;
    if ((instruction & operationMask) === operations.character) {
      pendingSteps++;
      return operand === code;
    }
    const set = sets[operand] as CharacterSet;
    pendingSteps += getComparisonCost(set);
    return hasCode(set, code);
  }

  const isAnchored = ((instructions[0] as number) & operationMask) === operations.start;
  if (add(0, 0)) return true;
  for (let at = 0; at < text.length; ) {
    [current, next] = [next, current];
    const count = nextCount;
    if (count === 0 && isAnchored) return false;
    nextCount = 0;
    const code = (isUnicode ? text.codePointAt(at) : text.charCodeAt(at)) as number;
    at += code > 0xffff ? 2 : 1;
    for (let index = 0; index < count; index++) {
      const pc = current[index] as number;
      if (acceptsCode(instructions[pc] as number, code) && add(pc + 1, at)) return true;
    }
    if (!isAnchored && add(0, at)) return true;
    steps.consume(1 + pendingSteps);
    pendingSteps = 0;
  }
  return false;
}

/** Returns true if an assertion holds before the character at a position. */
function isAssertionMet(assertion: number, text: string, at: number): boolean {
  if (assertion === operations.start) return at === 0;
  if (assertion === operations.end) return at === text.length;
  return (isWordCharacterAt(text, at - 1) !== isWordCharacterAt(text, at)) === (assertion === operations.boundary);
}

function isWordCharacterAt(text: string, at: number): boolean {
  return at >= 0 && at < text.length && isWordCharacter(text.charCodeAt(at));
}
