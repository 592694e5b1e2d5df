import { isRawNumber, plainNumbers } from '../json/json.ts';
import { Steps, stepsOfText } from '../work/steps.ts';
import { CheckRun, type Fault } from './faults.ts';
import { indexSchema, isSchemaObject, type JsonSchema, resolveReference, type SchemaIndex } from './json-schema.ts';
import { type Kind, keywordTests, kindOf, namesOf, type Test } from './keyword-tests.ts';

/** A compiled schema that checks values. Both methods throw TooMuchWork if the step budget is used up. */
export type CompiledSchema = {
  fits(value: unknown, steps: Steps): boolean;
  /** Returns the violations of a value: all of them up to a maximum, or only the first. */
  faults(value: unknown, steps: Steps, wanted: 'first fault' | 'faults'): readonly Fault[];
  /** Declared properties that may not be null. */
  notNull: ReadonlySet<string>;
};

/**
 * Compiles a schema that `schema-rules.ts` has accepted, so no reference is missing or cyclic. Numbers with exact
 * digits are compared with limits as plain numbers, and digit by digit with listed values.
 */
export function compileSchema(root: JsonSchema): CompiledSchema {
  const index = indexSchema(root);
  if (!index) throw new Error('cannot compile a schema that was not validated');
  const compiler = new Compiler(index);
  return compiled(compiler.test(root), notNull(root, compiler));
}

/** Retains only the test. The index and the compiler take several times as much memory. */
function compiled(test: Test, notNull: ReadonlySet<string>): CompiledSchema {
  return {
    fits: (value, steps) => test(value, new CheckRun(steps, 'verdict'), undefined),
    faults(value, steps, wanted) {
      const run = new CheckRun(steps, wanted);
      test(value, run, undefined);
      return run.faults ?? [];
    },
    notNull,
  };
}

/** Returns the declared properties that may not be null. */
function notNull({ properties }: JsonSchema, compiler: Compiler): ReadonlySet<string> {
  const run = new CheckRun(new Steps(Number.POSITIVE_INFINITY), 'verdict');
  const declared = Object.entries(isSchemaObject(properties) ? properties : {});
  const refusing = declared.filter(([, schema]) => !compiler.test(schema)(null, run, undefined));
  return new Set(refusing.map(([name]) => name));
}

const anything: Test = () => true;
/** Shared test of all schemas without keywords. */
const anyValue = all([]);

type Properties = { [name: string]: unknown };

/** Returns the limit of a keyword. Listed values keep their exact digits; all other limits are plain numbers. */
function limitOf(keyword: string, value: unknown): unknown {
  return keyword === 'enum' || keyword === 'const' ? value : plainNumbers(value);
}

class Compiler {
  readonly #index: SchemaIndex;
  readonly #made = new Map<JsonSchema, Test>();

  constructor(index: SchemaIndex) {
    this.#index = index;
  }

  /** Returns the test of a schema. It is created once, however often the schema is referenced. */
  test(schema: unknown): Test {
    if (schema === false) return (value, run, at) => run.fault(at, { keyword: 'false', limit: false, found: value });
    if (!isSchemaObject(schema)) return anything;
    const known = this.#made.get(schema);
    if (known) return known;
    const tests = this.#testsOf(schema);
    const made = tests.length === 0 ? anyValue : all(tests);
    this.#made.set(schema, made);
    return made;
  }

  #testsOf(schema: JsonSchema): Test[] {
    const tests: (Test | undefined)[] = [];
    if (typeof schema.$ref === 'string') tests.push(this.test(resolveReference(this.#index, schema.$ref)));
    for (const [keyword, make] of keywordTests) {
      if (Object.hasOwn(schema, keyword)) tests.push(make(limitOf(keyword, schema[keyword]) as never));
    }
    if (schema.not !== undefined) tests.push(notTest(this.test(schema.not)));
    if (Array.isArray(schema.anyOf)) tests.push(someTest('anyOf', this.#tests(schema.anyOf)));
    if (Array.isArray(schema.allOf)) tests.push(all(this.#tests(schema.allOf)));
    if (Array.isArray(schema.oneOf)) tests.push(someTest('oneOf', this.#tests(schema.oneOf)));
    tests.push(this.#ifTest(schema), ...this.#objectTests(schema), ...this.#arrayTests(schema));
    return tests.filter((test) => test !== undefined);
  }

  #tests(schemas: readonly unknown[]): Test[] {
    return schemas.map((schema) => this.test(schema));
  }

  #ifTest(schema: JsonSchema): Test | undefined {
    if (schema.if === undefined) return undefined;
    const [condition, then, otherwise] = [this.test(schema.if), this.test(schema.then), this.test(schema.else)];
    return (value, run, at, given) => {
      const before = run.faultCount;
      const holds = condition(value, run, at, given);
      run.discard(before);
      return (holds ? then : otherwise)(value, run, at, given);
    };
  }

  #objectTests(schema: JsonSchema): (Test | undefined)[] {
    const tests: Test[] = [];
    if (Array.isArray(schema.required)) tests.push(requiredTest(schema.required as string[]));
    if (isSchemaObject(schema.dependentRequired)) {
      for (const [name, needed] of Object.entries(schema.dependentRequired)) {
        tests.push(whenPresent(name, neededTest(name, needed as string[])));
      }
    }
    if (isSchemaObject(schema.dependentSchemas)) {
      for (const [name, inner] of Object.entries(schema.dependentSchemas)) {
        tests.push(whenPresent(name, this.test(inner)));
      }
    }
    return [...tests.map((test) => forKind('object', test)), this.#propertiesTest(schema)];
  }

  /**
   * Creates one test for `propertyNames`, `properties`, and `additionalProperties`, which iterates over the object
   * once.
   */
  #propertiesTest(schema: JsonSchema): Test | undefined {
    const { properties, additionalProperties, propertyNames } = schema;
    if (properties === undefined && additionalProperties === undefined && propertyNames === undefined) return undefined;
    const declared = Object.entries(isSchemaObject(properties) ? properties : {});
    const names = declared.map(([name]) => name);
    const tests = new Map(declared.map(([name, inner]): [string, Test] => [name, this.test(inner)]));
    const nameTest = propertyNames === undefined ? undefined : this.test(propertyNames);
    const otherTest = additionalProperties === false ? undefined : this.test(additionalProperties);
    return forKind('object', propertiesTest(names, tests, nameTest, otherTest));
  }

  #arrayTests(schema: JsonSchema): (Test | undefined)[] {
    const { prefixItems, items, contains } = schema;
    const first = Array.isArray(prefixItems) ? this.#tests(prefixItems) : [];
    const rest = items === undefined ? undefined : this.test(items);
    const itemsTest: Test = (value, run, at) => {
      const list = value as unknown[];
      const length = rest ? list.length : Math.min(first.length, list.length);
      let fits = true;
      for (let i = 0; i < length; i++) {
        run.steps.take(1);
        if ((first[i] ?? rest ?? anything)(list[i], run, run.into(at, String(i)))) continue;
        fits = false;
        if (!run.isThorough) return false;
      }
      return fits;
    };
    return [
      first.length > 0 || rest ? forKind('array', itemsTest) : undefined,
      contains === undefined ? undefined : forKind('array', containsTest(this.test(contains), schema)),
    ];
  }
}

/**
 * Creates the test of an object's properties. `otherTest` checks undeclared properties; undefined allows none. Retains
 * nothing of the compiler.
 */
function propertiesTest(
  names: readonly string[],
  tests: ReadonlyMap<string, Test>,
  nameTest: Test | undefined,
  otherTest: Test | undefined,
): Test {
  return (value, run, at) => {
    let fits = true;
    for (const name of namesOf(value as object, run.steps)) {
      run.steps.take(1 + stepsOfText(name));
      const step = run.into(at, name);
      const test = tests.get(name) ?? otherTest;
      const found = (value as Properties)[name];
      if (nameTest && !nameTest(name, run, step)) fits = false;
      else if (!test) fits = run.fault(step, { keyword: 'unknown', limit: false, found, names });
      else if (!test(found, run, step)) fits = false;
      if (!fits && !run.isThorough) return false;
    }
    return fits;
  };
}

/** Combines tests into one that a value passes if it passes all of them. Steps are counted here. */
function all(tests: readonly Test[]): Test {
  const cost = 1 + tests.length;
  return (value, run, at, given = value) => {
    run.steps.take(cost);
    const plain = isRawNumber(value) ? Number(value.rawJSON) : value;
    let fits = true;
    for (const test of tests) {
      if (test(plain, run, at, given)) continue;
      fits = false;
      if (!run.isThorough) return false;
    }
    return fits;
  };
}

/**
 * Creates the test of `anyOf` or `oneOf`. Reports the violations of each alternative, or the keyword itself if no
 * alternative has a violation.
 */
function someTest(keyword: 'anyOf' | 'oneOf', tests: readonly Test[]): Test {
  return (value, run, at, given) => {
    const before = run.faultCount;
    let matches = 0;
    for (const test of tests) {
      if (!test(value, run, at, given)) continue;
      matches++;
      if (keyword === 'anyOf' || matches > 1) break;
    }
    if (matches > 0) run.discard(before);
    if (matches === 1) return true;
    if (run.faultCount === before) run.fault(at, { keyword, limit: undefined, found: value });
    return false;
  };
}

function notTest(test: Test): Test {
  return (value, run, at, given) => {
    const before = run.faultCount;
    if (test(value, run, at, given)) return run.fault(at, { keyword: 'not', limit: undefined, found: value });
    run.discard(before);
    return true;
  };
}

function containsTest(test: Test, schema: JsonSchema): Test {
  const { minContains = 1, maxContains = Infinity } = plainNumbers(schema) as JsonSchema;
  return (value, run, at) => {
    const list = value as unknown[];
    const before = run.faultCount;
    let count = 0;
    for (const [i, item] of list.entries()) {
      run.steps.take(1);
      if (test(item, run, run.into(at, String(i)))) count++;
    }
    if (count >= Number(minContains)) run.discard(before);
    if (count < Number(minContains)) {
      if (run.faultCount > before) return false;
      const keyword = Number(minContains) === 1 ? 'contains' : 'minContains';
      return run.fault(at, { keyword, limit: minContains, found: value });
    }
    return count <= Number(maxContains) || run.fault(at, { keyword: 'maxContains', limit: maxContains, found: value });
  };
}

function requiredTest(required: readonly string[]): Test {
  return (value, run, at) => {
    run.steps.take(required.length);
    let fits = true;
    for (const name of required) {
      if (Object.hasOwn(value as object, name)) continue;
      fits = run.fault(run.into(at, name), { keyword: 'required', limit: required, found: undefined });
      if (!run.isThorough) return false;
    }
    return fits;
  };
}

function neededTest(name: string, needed: readonly string[]): Test {
  const test = requiredTest(needed);
  return (value, run, at) => {
    const before = run.faultCount;
    if (test(value, run, at)) return true;
    run.discard(before);
    const missing = needed.filter((other) => !Object.hasOwn(value as object, other));
    return run.fault(at, { keyword: 'dependentRequired', limit: [name, ...missing], found: value });
  };
}

function whenPresent(name: string, test: Test): Test {
  return (value, run, at) => !Object.hasOwn(value as object, name) || test(value, run, at);
}

/** Restricts a test to values of one kind. */
function forKind(kind: Kind, test: Test): Test {
  return (value, run, at) => kindOf(value) !== kind || test(value, run, at);
}
