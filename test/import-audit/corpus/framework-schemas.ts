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

type Make = (context: GeneratorContext) => JsonObject;

const text: Make = ({ random }) =>
  random.pick<JsonObject>([
    { type: 'string' },
    { type: 'string', minLength: 1, maxLength: 40 },
    { type: 'string', format: 'date-time' },
    { type: 'string', format: 'date' },
    { type: 'string', format: 'uuid' },
    { type: 'string', format: 'email' },
    { type: 'string', pattern: '^[a-z]{2,8}$' },
    { type: 'string', format: 'uri', maxLength: 200 },
  ]);

const number: Make = ({ random, framework }) => {
  const common: JsonObject[] = [
    { type: 'integer' },
    { type: 'integer', format: 'int64', minimum: 1, maximum: 500 },
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
  const letters: JsonObject = {
    type: 'string',
    enum: random.pick([
      ['draft', 'open', 'done'],
      ['asc', 'desc'],
      ['A', 'B', 'C', 'D'],
    ]),
  };
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
  return random.pick([
    letters,
    {
      oneOf: [
        { const: 'draft', title: 'Draft' },
        { const: 'open', title: 'Open' },
      ],
    },
  ]);
};

/** Returns a nullable schema as the framework writes it. */
function orNull(context: GeneratorContext, schema: JsonObject): JsonObject {
  const { random, framework } = context;
  if (framework === 'drf') {
    if (!('enum' in schema || 'allOf' in schema))
      return typeof schema.type === 'string'
        ? { ...schema, type: [schema.type, 'null'] }
        : { oneOf: [schema, { type: 'null' }] };
    context.components.NullEnum = { enum: [null] };
    context.components.BlankEnum = { enum: [''] };
    return { oneOf: [schema, { $ref: '#/components/schemas/BlankEnum' }, { $ref: '#/components/schemas/NullEnum' }] };
  }
  if (framework === 'aspnet')
    return typeof schema.type === 'string'
      ? { ...schema, type: ['null', schema.type] }
      : { oneOf: [{ type: 'null' }, schema] };
  if (framework === 'fastapi') return { anyOf: [schema, { type: 'null' }], title: 'Optional' };
  return random.pick([
    { anyOf: [schema, { type: 'null' }] },
    typeof schema.type === 'string'
      ? { ...schema, type: [schema.type, 'null'] }
      : { oneOf: [schema, { type: 'null' }] },
  ]);
}

const list: Make = (context) => ({
  type: 'array',
  items: makeSimple(context),
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
  patternProperties: { '^x-[a-z]+$': { type: 'string' } },
  additionalProperties: false,
});

const anyValue: Make = ({ framework }) => (framework === 'drf' ? {} : { title: 'Data' });

const base64: Make = ({ framework }) =>
  framework === 'springdoc'
    ? { type: 'string', format: 'byte' }
    : { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' };

const amount: Make = () => ({
  anyOf: [
    { type: 'number', minimum: 0 },
    { type: 'string', pattern: '^\\d{1,6}(\\.\\d{2})?$' },
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

/** Discriminated unions, inheritance, and conditional schemas. */
const variations: readonly ((model: JsonObject, context: GeneratorContext) => JsonObject)[] = [
  (model, context) => {
    const branches = ['cat', 'dog'].map((kind) =>
      addSchema(context, {
        type: 'object',
        properties: { kind: { type: 'string', const: kind }, [`${kind}_age`]: { type: 'integer' } },
        required: ['kind'],
      }),
    );
    const mapping = { cat: (branches[0] as JsonObject).$ref as Json, dog: (branches[1] as JsonObject).$ref as Json };
    return {
      ...model,
      properties: {
        ...(model.properties as JsonObject),
        pet: { oneOf: branches, discriminator: { propertyName: 'kind', mapping } },
      },
    };
  },
  (model, context) => ({
    allOf: [
      addSchema(context, { type: 'object', properties: { kind: { type: 'string' } }, required: ['kind'] }, 'Base'),
      model,
    ],
  }),
  (model) => ({
    ...model,
    properties: { ...(model.properties as JsonObject), method: { type: 'string', enum: ['card', 'bank'] } },
    required: ['method'],
    if: { properties: { method: { const: 'card' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { number: { type: 'string', pattern: '^[0-9]{4}$' } }, required: ['number'] },
    else: { properties: { iban: { type: 'string' } } },
  }),
  (model) => ({
    ...model,
    dependentSchemas: { coupon: { properties: { couponCode: { type: 'string' } } } },
    properties: { ...(model.properties as JsonObject), coupon: { type: 'boolean' } },
  }),
  (model) => ({ ...model, required: [...((model.required as Json[] | undefined) ?? []), 'undeclared'] }),
  (model) => ({
    ...model,
    properties: { ...(model.properties as JsonObject), a: { type: 'string' }, b: { type: 'string' } },
    dependentRequired: { a: ['b'] },
  }),
  (model, context) => {
    const node = addSchema(context, true, 'Node');
    context.components[String(node.$ref).split('/').at(-1) as string] = {
      type: 'object',
      properties: { title: { type: 'string' }, children: { type: 'array', items: node } },
      required: ['title'],
    };
    return { ...model, properties: { ...(model.properties as JsonObject), tree: node } };
  },
  (model) => ({ ...model, minProperties: 1 }),
  (model) => ({ anyOf: [model, { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }] }),
];
