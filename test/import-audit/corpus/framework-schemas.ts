/** Generates schemas as FastAPI, springdoc, NestJS, ASP.NET, and drf-spectacular emit them. */
import type { Json, JsonObject } from '../json.ts';
import type { Random } from '../random.ts';

export type Framework = 'fastapi' | 'springdoc' | 'nestjs' | 'aspnet' | 'drf';

export const frameworks: readonly Framework[] = ['fastapi', 'springdoc', 'nestjs', 'aspnet', 'drf'];

/** State of a document under construction. `components` collects the schemas that it references. */
export type GeneratorContext = { random: Random; framework: Framework; components: JsonObject; names: Set<string> };

const nouns =
  'order customer invoice item address product payment shipment comment label ticket project report user device'.split(
    ' ',
  );
const adjectives = 'billing home late open main next external internal default total local remote'.split(' ');

/** Returns a property name in the naming style of the framework. */
export function makeName({ random, framework }: GeneratorContext): string {
  const words = random.chance(0.5) ? [random.pick(adjectives), random.pick(nouns)] : [random.pick(nouns)];
  if (random.chance(0.04))
    return random.pick(['größe', '@type', 'odata.id', 'x-kind', 'from', 'class', 'items[]', 'naïve name']);
  if (framework === 'fastapi' || framework === 'drf') return words.join('_');
  return words.map((word, at) => (at === 0 ? word : word[0]?.toUpperCase() + word.slice(1))).join('');
}

const toPascal = (text: string) => text.replaceAll(/(?:^|[_\s])(\p{L})/gu, (_, letter: string) => letter.toUpperCase());

/** Stores a schema under a new name, and returns a reference to it. */
export function addSchema(context: GeneratorContext, schema: Json, suffix = ''): JsonObject {
  let name = `${toPascal(context.random.pick(adjectives))}${toPascal(context.random.pick(nouns))}${suffix}`;
  for (let count = 2; name in context.components; count++) name = `${name.replace(/\d+$/, '')}${count}`;
  context.components[name] = schema;
  return { $ref: `#/components/schemas/${name}` };
}

export const string: JsonObject = { type: 'string' };
export const integer: JsonObject = { type: 'integer' };
export const arrayOf = (items: Json): JsonObject => ({ type: 'array', items });
export const objectOf = (properties: JsonObject, required?: Json[]): JsonObject => ({
  type: 'object',
  properties,
  ...(required && { required }),
});
export const orNullType = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: 'null' }] });

type Make = (context: GeneratorContext) => JsonObject;

const text: Make = ({ random }) =>
  random.pick<JsonObject>([
    string,
    { ...string, minLength: 1, maxLength: 40 },
    ...['date-time', 'date', 'uuid', 'email'].map((format) => ({ ...string, format })),
    { ...string, pattern: '^[a-z]{2,8}$' },
    { ...string, format: 'uri', maxLength: 200 },
  ]);

const number: Make = ({ random, framework }) => {
  const common: JsonObject[] = [
    integer,
    { ...integer, format: 'int64', minimum: 1, maximum: 500 },
    { type: 'number', exclusiveMinimum: 0 },
    { type: 'number', multipleOf: 0.5 },
  ];
  const aspnet: JsonObject[] = [
    { pattern: '^-?(?:0|[1-9]\\d*)$', type: ['integer', 'string'], format: 'int32' },
    { pattern: '^-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?$', type: ['number', 'string'], format: 'double' },
  ];
  return random.pick(framework === 'aspnet' ? [...common, ...aspnet] : common);
};

const flag: Make = () => ({ type: 'boolean' });

const choice: Make = (context) => {
  const { random, framework } = context;
  const enums: Json[][] = [
    ['draft', 'open', 'done'],
    ['asc', 'desc'],
    ['A', 'B', 'C', 'D'],
  ];
  const letters = { ...string, enum: random.pick(enums) };
  if (framework === 'aspnet')
    return random.pick([
      { type: 'integer', enum: [0, 1, 2], 'x-enum-varnames': ['Off', 'On', 'Auto'] },
      { enum: ['Low', 'High'] },
      addSchema(context, { type: 'integer', enum: [10, 20], 'x-enumNames': ['Ten', 'Twenty'] }),
    ]);
  if (framework === 'drf')
    return {
      allOf: [addSchema(context, { ...letters, description: '* `draft` - Draft\n* `open` - Open' }, 'Enum')],
      'x-spec-enum-id': 'a1b2c3',
    };
  if (framework === 'fastapi') return random.pick([addSchema(context, letters), { const: 'fixed', default: 'fixed' }]);
  const titled = ['draft', 'open'].map((value) => ({
    const: value,
    title: `${value[0]?.toUpperCase()}${value.slice(1)}`,
  }));
  return random.pick([letters, { oneOf: titled }]);
};

/** Returns a nullable schema as the framework writes it. */
function orNull(context: GeneratorContext, schema: JsonObject): JsonObject {
  const { random, framework } = context;
  const withNullType = (): JsonObject =>
    typeof schema.type === 'string'
      ? { ...schema, type: [schema.type, 'null'] }
      : { oneOf: [schema, { type: 'null' }] };
  if (framework === 'drf') {
    if (!('enum' in schema || 'allOf' in schema)) return withNullType();
    context.components.NullEnum = { enum: [null] };
    context.components.BlankEnum = { enum: [''] };
    return { oneOf: [schema, { $ref: '#/components/schemas/BlankEnum' }, { $ref: '#/components/schemas/NullEnum' }] };
  }
  if (framework === 'aspnet')
    return typeof schema.type === 'string'
      ? { ...schema, type: ['null', schema.type] }
      : { oneOf: [{ type: 'null' }, schema] };
  if (framework === 'fastapi') return { ...orNullType(schema), title: 'Optional' };
  return random.pick([orNullType(schema), withNullType()]);
}

const list: Make = (context) => ({
  ...arrayOf(makeSimple(context)),
  ...(context.random.chance(0.3) && { minItems: 1 }),
  ...(context.random.chance(0.3) && { maxItems: 5 }),
  ...(context.framework === 'fastapi' && context.random.chance(0.2) && { uniqueItems: true }),
});

const pair: Make = () => ({
  type: 'array',
  prefixItems: [{ type: 'number' }, { type: 'number' }],
  minItems: 2,
  maxItems: 2,
});

const map: Make = (context) => ({
  type: 'object',
  additionalProperties: context.random.chance(0.3) ? true : makeSimple(context),
});

const labels: Make = () => ({
  type: 'object',
  patternProperties: { '^x-[a-z]+$': string },
  additionalProperties: false,
});

const anyValue: Make = ({ framework }) => (framework === 'drf' ? {} : { title: 'Data' });

const base64: Make = ({ framework }) =>
  framework === 'springdoc'
    ? { ...string, format: 'byte' }
    : { ...string, contentEncoding: 'base64', contentMediaType: 'image/png' };

const amount: Make = () => ({
  anyOf: [
    { type: 'number', minimum: 0 },
    { ...string, pattern: '^\\d{1,6}(\\.\\d{2})?$' },
  ],
});

const simple: readonly Make[] = [text, text, number, flag, choice];

/** Returns a schema without properties. */
export const makeSimple: Make = (context) => context.random.pick(simple)(context);

/** Returns the schema of a property, nested up to `depth` levels. */
function makeProperty(context: GeneratorContext, depth: number): JsonObject {
  const { random } = context;
  if (depth > 0 && random.chance(0.25)) {
    const nested = makeModel(context, depth - 1);
    const reference = random.chance(0.7) ? addSchema(context, nested) : nested;
    if (context.framework === 'nestjs' && random.chance(0.4))
      return { description: 'A nested object', allOf: [reference] };
    if (random.chance(0.25)) return orNull(context, reference);
    return random.chance(0.3) ? { type: 'array', items: reference } : reference;
  }
  const make = random.pick<Make>([...simple, ...simple, list, list, map, amount, pair, base64, anyValue, labels]);
  const schema = make(context);
  return random.chance(0.3) && make !== anyValue && make !== labels ? orNull(context, schema) : schema;
}

/** Returns an object schema, sometimes with rules about several of its properties. */
export function makeModel(context: GeneratorContext, depth = 2): JsonObject {
  const { random, framework } = context;
  const properties: JsonObject = {};
  for (let count = 1 + random.below(6); count > 0; count--)
    properties[makeName(context)] = makeProperty(context, depth);
  const names = Object.keys(properties);
  if (framework === 'drf') properties.id = { type: 'integer', readOnly: true };
  const required = names.filter(() => random.chance(0.4));
  const model: JsonObject = { type: 'object', properties, ...(required.length > 0 && { required }) };
  if (framework === 'drf' && required.length > 0) model.required = ['id', ...required];
  if (random.chance(0.1)) model.additionalProperties = false;
  if (!random.chance(0.22)) return model;
  const { additionalProperties, ...open } = model;
  return random.pick<(model: JsonObject, writing: GeneratorContext) => JsonObject>(variations)(open, context);
}

const addProperties = (model: JsonObject, properties: JsonObject): JsonObject => ({
  ...model,
  properties: { ...(model.properties as JsonObject), ...properties },
});

/** Discriminated unions, inheritance, and conditional schemas. */
const variations: readonly ((model: JsonObject, context: GeneratorContext) => JsonObject)[] = [
  (model, context) => {
    const branches = ['cat', 'dog'].map((kind) =>
      addSchema(context, objectOf({ kind: { ...string, const: kind }, [`${kind}_age`]: integer }, ['kind'])),
    );
    const mapping = { cat: (branches[0] as JsonObject).$ref as Json, dog: (branches[1] as JsonObject).$ref as Json };
    return addProperties(model, { pet: { oneOf: branches, discriminator: { propertyName: 'kind', mapping } } });
  },
  (model, context) => ({ allOf: [addSchema(context, objectOf({ kind: string }, ['kind']), 'Base'), model] }),
  (model) => ({
    ...addProperties(model, { method: { ...string, enum: ['card', 'bank'] } }),
    required: ['method'],
    if: { properties: { method: { const: 'card' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { number: { ...string, pattern: '^[0-9]{4}$' } }, required: ['number'] },
    else: { properties: { iban: string } },
  }),
  (model) => ({
    ...addProperties(model, { coupon: { type: 'boolean' } }),
    dependentSchemas: { coupon: { properties: { couponCode: string } } },
  }),
  (model) => ({ ...model, required: [...((model.required as Json[] | undefined) ?? []), 'undeclared'] }),
  (model) => ({ ...addProperties(model, { a: string, b: string }), dependentRequired: { a: ['b'] } }),
  (model, context) => {
    const node = addSchema(context, true, 'Node');
    const tree = objectOf({ title: string, children: arrayOf(node) }, ['title']);
    context.components[String(node.$ref).split('/').at(-1) as string] = tree;
    return addProperties(model, { tree: node });
  },
  (model) => ({ ...model, minProperties: 1 }),
  (model) => ({ anyOf: [model, objectOf({ id: string }, ['id'])] }),
];
