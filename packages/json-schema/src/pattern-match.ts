import {
  type CharacterSet,
  getComparisonCost,
  hasCode,
  isWordCharacter,
  opcodes,
  operationBits,
  type Pattern,
  parsePattern,
} from './pattern-syntax.ts';
import type { StepBudget } from './step-budget.ts';

/** Steps for parsing each character of a pattern, and for writing each instruction of its program. */
const stepCosts = { character: 8, instruction: 4 };
/** Maximum instructions of a cached program: a number per character of its pattern, plus a constant. */
const cacheLimits = { perCharacter: 8, constant: 64 };

/** A compiled pattern. */
type Program = Pick<Pattern, 'isUnicode' | 'sets'> & { instructions: Int32Array };

const operationMask = (1 << operationBits) - 1;

/**
 * Creates the test of a valid pattern. It returns true if the pattern matches anywhere in a text (JSON Schema 2020-12,
 * validation, 6.3.3). The program runs on all paths simultaneously (Thompson 1968), so the time is at most proportional
 * to the text length times the program size. Each instruction takes a step. The pattern is parsed for the first text.
 */
export function createPatternMatcher(source: string): (text: string, steps: StepBudget) => boolean {
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
  const { isUnicode, sets, size, write } = parsed.pattern;
  steps.consume(stepCosts.instruction * size);
  const instructions: number[] = [];
  write(instructions);
  return { isUnicode, sets, instructions: Int32Array.from(instructions) };
}

/** Returns true if a program matches somewhere in a text. @throws StepLimitExceeded */
function hasMatch({ isUnicode, sets, instructions }: Program, text: string, steps: StepBudget): boolean {
  const size = instructions.length;
  steps.consume(1 + (size >> 2));
  // Instructions that wait for the current character, and those that wait for the next one.
  let current = new Int32Array(size);
  let next = new Int32Array(size);
  let nextCount = 0;
  // Position at which each instruction was last reached, plus one.
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
      if (operation === opcodes.match) return true;
      if (operation === opcodes.set || operation === opcodes.character) next[nextCount++] = pc;
      else if (operation === opcodes.split) stack.push(pc + operand, pc + 1);
      else if (operation === opcodes.jump) stack.push(pc + operand);
      else if (isAssertionMet(operation, text, at)) stack.push(pc + 1);
    }
    return false;
  }

  /** Returns true if an instruction that waits for a character accepts this one. */
  function acceptsCode(instruction: number, code: number): boolean {
    const operand = instruction >> operationBits;
    if ((instruction & operationMask) === opcodes.character) {
      pendingSteps++;
      return operand === code;
    }
    const set = sets[operand] as CharacterSet;
    pendingSteps += getComparisonCost(set);
    return hasCode(set, code);
  }

  const isAnchored = ((instructions[0] as number) & operationMask) === opcodes.start;
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
function isAssertionMet(assertion: number, text: string, position: number): boolean {
  if (assertion === opcodes.start) return position === 0;
  if (assertion === opcodes.end) return position === text.length;
  return (
    (isWordCharacterAt(text, position - 1) !== isWordCharacterAt(text, position)) === (assertion === opcodes.boundary)
  );
}

function isWordCharacterAt(text: string, position: number): boolean {
  return position >= 0 && position < text.length && isWordCharacter(text.charCodeAt(position));
}
