import { isRawNumber, toPlainNumbers } from '@toolhost/json/json';
import { indexSchema, isSchemaObject, type JsonSchema, resolveReference, type SchemaIndex } from './json-schema.ts';
import { getKind, type Kind, keywordTests, listNames, type Test } from './keyword-tests.ts';
import { countTextSteps, StepBudget } from './step-budget.ts';
import { CheckRun, type Violation } from './violations.ts';

/** A compiled schema that checks values. Both methods throw StepLimitExceeded if the step budget is used up. */
export type CompiledSchema = {
  isValid(value: unknown, steps: StepBudget): boolean;
  /** Returns the violations of a value: all of them up to a maximum, or only the first. */
  violations(value: unknown, steps: StepBudget, mode: 'first fault' | 'faults'): readonly Violation[];
  /** Declared properties that may not be null. */
  nonNullable: ReadonlySet<string>;
};

/**
 * Compiles a schema that `schema-rules.ts` has accepted, so no reference is missing or cyclic. Numbers with exact
 * digits are compared with limits as plain numbers, and digit by digit with listed values.
 */
export function compileSchema(root: JsonSchema): CompiledSchema {
  const index = indexSchema(root);
  if (!index) throw new Error('cannot compile a schema that was not validated');
  const compiler = new Compiler(index);
  return toCompiledSchema(compiler.test(root), getNonNullableNames(root, compiler));
}

/** Retains only the test. The index and the compiler take several times as much memory. */
function toCompiledSchema(test: Test, nonNullable: ReadonlySet<string>): CompiledSchema {
  return {
    isValid: (value, steps) => test(value, new CheckRun(steps, 'verdict'), undefined),
    violations(value, steps, mode) {
      const run = new CheckRun(steps, mode);
      test(value, run, undefined);
      return run.violations ?? [];
    },
    nonNullable,
  };
}

/** Returns the declared properties that may not be null. */
function getNonNullableNames({ properties }: JsonSchema, compiler: Compiler): ReadonlySet<string> {
  const run = new CheckRun(new StepBudget(Number.POSITIVE_INFINITY), 'verdict');
  const declared = Object.entries(isSchemaObject(properties) ? properties : {});
  const nonNullable = declared.filter(([, schema]) => !compiler.test(schema)(null, run, undefined));
  return new Set(nonNullable.map(([name]) => name));
}

const acceptAny: Test = () => true;
/** Shared test of all schemas without keywords. */
const emptyTest = combineTests([]);

type Properties = { [name: string]: unknown };

/** Returns the limit of a keyword. Listed values keep their exact digits; all other limits are plain numbers. */
function toLimit(keyword: string, value: unknown): unknown {
  return keyword === 'enum' || keyword === 'const' ? value : toPlainNumbers(value);
}

class Compiler {
  readonly #index: SchemaIndex;
  readonly #testsBySchema = new Map<JsonSchema, Test>();

  constructor(index: SchemaIndex) {
    this.#index = index;
  }

  /** Returns the test of a schema. It is created once, however often the schema is referenced. */
  test(schema: unknown): Test {
    if (schema === false) return (value, run, at) => run.addViolation(at, { keyword: 'false', limit: false, value });
    if (!isSchemaObject(schema)) return acceptAny;
    const cached = this.#testsBySchema.get(schema);
    if (cached) return cached;
    const tests = this.#createTests(schema);
    const test = tests.length === 0 ? emptyTest : combineTests(tests);
    this.#testsBySchema.set(schema, test);
    return test;
  }

  #createTests(schema: JsonSchema): Test[] {
    const tests: (Test | undefined)[] = [];
    if (typeof schema.$ref === 'string') tests.push(this.test(resolveReference(this.#index, schema.$ref)));
    for (const [keyword, createTest] of keywordTests) {
      if (Object.hasOwn(schema, keyword)) tests.push(createTest(toLimit(keyword, schema[keyword]) as never));
    }
    if (schema.not !== undefined) tests.push(createNotTest(this.test(schema.not)));
    if (Array.isArray(schema.anyOf)) tests.push(createSomeTest('anyOf', this.#tests(schema.anyOf)));
    if (Array.isArray(schema.allOf)) tests.push(combineTests(this.#tests(schema.allOf)));
    if (Array.isArray(schema.oneOf)) tests.push(createSomeTest('oneOf', this.#tests(schema.oneOf)));
    tests.push(this.#createIfTest(schema), ...this.#createObjectTests(schema), ...this.#createArrayTests(schema));
    return tests.filter((test) => test !== undefined);
  }

  #tests(schemas: readonly unknown[]): Test[] {
    return schemas.map((schema) => this.test(schema));
  }

  #createIfTest(schema: JsonSchema): Test | undefined {
    if (schema.if === undefined) return undefined;
    const [condition, then, otherwise] = [this.test(schema.if), this.test(schema.then), this.test(schema.else)];
    return (value, run, at, exact) => {
      const countBefore = run.violationCount;
      const matches = condition(value, run, at, exact);
      run.discard(countBefore);
      return (matches ? then : otherwise)(value, run, at, exact);
    };
  }

  #createObjectTests(schema: JsonSchema): (Test | undefined)[] {
    const tests: Test[] = [];
    if (Array.isArray(schema.required)) tests.push(createRequiredTest(schema.required as string[]));
    if (isSchemaObject(schema.dependentRequired)) {
      for (const [name, requiredNames] of Object.entries(schema.dependentRequired)) {
        tests.push(ifPresent(name, createDependentTest(name, requiredNames as string[])));
      }
    }
    if (isSchemaObject(schema.dependentSchemas)) {
      for (const [name, inner] of Object.entries(schema.dependentSchemas)) {
        tests.push(ifPresent(name, this.test(inner)));
      }
    }
    return [...tests.map((test) => onlyForKind('object', test)), this.#createPropertiesTest(schema)];
  }

  /**
   * Creates one test for `propertyNames`, `properties`, and `additionalProperties`, which iterates over the object
   * once.
   */
  #createPropertiesTest(schema: JsonSchema): Test | undefined {
    const { properties, additionalProperties, propertyNames } = schema;
    if (properties === undefined && additionalProperties === undefined && propertyNames === undefined) return undefined;
    const declared = Object.entries(isSchemaObject(properties) ? properties : {});
    const names = declared.map(([name]) => name);
    const tests = new Map(declared.map(([name, inner]): [string, Test] => [name, this.test(inner)]));
    const nameTest = propertyNames === undefined ? undefined : this.test(propertyNames);
    const undeclaredTest = additionalProperties === false ? undefined : this.test(additionalProperties);
    return onlyForKind('object', createPropertiesTest(names, tests, nameTest, undeclaredTest));
  }

  #createArrayTests(schema: JsonSchema): (Test | undefined)[] {
    const { prefixItems, items, contains } = schema;
    const prefixTests = Array.isArray(prefixItems) ? this.#tests(prefixItems) : [];
    const otherItemsTest = items === undefined ? undefined : this.test(items);
    const itemsTest: Test = (value, run, at) => {
      const list = value as unknown[];
      const length = otherItemsTest ? list.length : Math.min(prefixTests.length, list.length);
      let isValid = true;
      for (let i = 0; i < length; i++) {
        run.steps.consume(1);
        if ((prefixTests[i] ?? otherItemsTest ?? acceptAny)(list[i], run, run.enter(at, String(i)))) continue;
        isValid = false;
        if (!run.isThorough) return false;
      }
      return isValid;
    };
    return [
      prefixTests.length > 0 || otherItemsTest ? onlyForKind('array', itemsTest) : undefined,
      contains === undefined ? undefined : onlyForKind('array', createContainsTest(this.test(contains), schema)),
    ];
  }
}

/**
 * Creates the test of an object's properties. Without `undeclaredTest`, undeclared properties are violations. Retains
 * nothing of the compiler.
 */
function createPropertiesTest(
  names: readonly string[],
  tests: ReadonlyMap<string, Test>,
  nameTest: Test | undefined,
  undeclaredTest: Test | undefined,
): Test {
  return (value, run, at) => {
    let isValid = true;
    for (const name of listNames(value as object, run.steps)) {
      run.steps.consume(1 + countTextSteps(name));
      const step = run.enter(at, name);
      const test = tests.get(name) ?? undeclaredTest;
      const member = (value as Properties)[name];
      if (nameTest && !nameTest(name, run, step)) isValid = false;
      else if (!test) isValid = run.addViolation(step, { keyword: 'unknown', limit: false, value: member, names });
      else if (!test(member, run, step)) isValid = false;
      if (!isValid && !run.isThorough) return false;
    }
    return isValid;
  };
}

/** Combines tests into one that a value passes if it passes all of them. Consumes the steps of these tests. */
function combineTests(tests: readonly Test[]): Test {
  const stepCost = 1 + tests.length;
  return (value, run, at, exact = value) => {
    run.steps.consume(stepCost);
    const plain = isRawNumber(value) ? Number(value.rawJSON) : value;
    let isValid = true;
    for (const test of tests) {
      if (test(plain, run, at, exact)) continue;
      isValid = false;
      if (!run.isThorough) return false;
    }
    return isValid;
  };
}

/**
 * Creates the test of `anyOf` or `oneOf`. Reports the violations of each alternative, or the keyword itself if no
 * alternative has a violation.
 */
function createSomeTest(keyword: 'anyOf' | 'oneOf', tests: readonly Test[]): Test {
  return (value, run, at, exact) => {
    const countBefore = run.violationCount;
    let matches = 0;
    for (const test of tests) {
      if (!test(value, run, at, exact)) continue;
      matches++;
      if (keyword === 'anyOf' || matches > 1) break;
    }
    if (matches > 0) run.discard(countBefore);
    if (matches === 1) return true;
    if (run.violationCount === countBefore) run.addViolation(at, { keyword, limit: undefined, value });
    return false;
  };
}

function createNotTest(test: Test): Test {
  return (value, run, at, exact) => {
    const countBefore = run.violationCount;
    if (test(value, run, at, exact)) return run.addViolation(at, { keyword: 'not', limit: undefined, value });
    run.discard(countBefore);
    return true;
  };
}

function createContainsTest(test: Test, schema: JsonSchema): Test {
  const { minContains = 1, maxContains = Infinity } = toPlainNumbers(schema) as JsonSchema;
  return (value, run, at) => {
    const list = value as unknown[];
    const countBefore = run.violationCount;
    let count = 0;
    for (const [i, item] of list.entries()) {
      run.steps.consume(1);
      if (test(item, run, run.enter(at, String(i)))) count++;
    }
    if (count >= Number(minContains)) run.discard(countBefore);
    if (count < Number(minContains)) {
      if (run.violationCount > countBefore) return false;
      const keyword = Number(minContains) === 1 ? 'contains' : 'minContains';
      return run.addViolation(at, { keyword, limit: minContains, value });
    }
    return count <= Number(maxContains) || run.addViolation(at, { keyword: 'maxContains', limit: maxContains, value });
  };
}

function createRequiredTest(required: readonly string[]): Test {
  return (value, run, at) => {
    run.steps.consume(required.length);
    let isValid = true;
    for (const name of required) {
      if (Object.hasOwn(value as object, name)) continue;
      isValid = run.addViolation(run.enter(at, name), { keyword: 'required', limit: required, value: undefined });
      if (!run.isThorough) return false;
    }
    return isValid;
  };
}

function createDependentTest(name: string, requiredNames: readonly string[]): Test {
  const test = createRequiredTest(requiredNames);
  return (value, run, at) => {
    const countBefore = run.violationCount;
    if (test(value, run, at)) return true;
    run.discard(countBefore);
    const missing = requiredNames.filter((requiredName) => !Object.hasOwn(value as object, requiredName));
    return run.addViolation(at, { keyword: 'dependentRequired', limit: [name, ...missing], value });
  };
}

function ifPresent(name: string, test: Test): Test {
  return (value, run, at) => !Object.hasOwn(value as object, name) || test(value, run, at);
}

/** Restricts a test to values of one kind. */
function onlyForKind(kind: Kind, test: Test): Test {
  return (value, run, at) => getKind(value) !== kind || test(value, run, at);
}
