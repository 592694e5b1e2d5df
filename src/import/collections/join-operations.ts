import { foldedHeader } from '../../domain/http/parameter-names.ts';
import { asText, entriesOf, isFields, type JsonFields } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';
import { joined } from '../tools/texts.ts';

/**
 * Merges the requests of one operation. The result has every input of any request; an input is required if all requests
 * require it.
 */
export function joinOperations(all: readonly ApiOperation[]): ApiOperation {
  const [first] = all as [ApiOperation];
  if (all.length === 1) return first;
  const requirements = all.flatMap(({ security }) => security);
  const accepted = new Set(all.map(({ answers }) => answers.mediaTypes.join()));
  return {
    ...first,
    description: joined([otherNames(all), first.description]),
    inputs: joinInputs(all),
    body: joinBodies(all),
    security: [...new Map(requirements.map((one) => [JSON.stringify([...one.keys()]), one])).values()],
    answers: accepted.size > 1 ? { ...first.answers, mediaTypes: [] } : first.answers,
  };
}

const mostNames = 5;

/** Lists the names of the other requests, which show what else the operation can do. */
function otherNames([first, ...others]: readonly ApiOperation[]): string {
  const names = new Set(others.map(({ summary }) => summary));
  names.delete('');
  names.delete(first?.summary ?? '');
  return names.size === 0 ? '' : `Also: ${[...names].slice(0, mostNames).join(', ')}`;
}

function joinInputs(all: readonly ApiOperation[]): ApiInput[] {
  const same = Map.groupBy(
    all.flatMap(({ inputs }) => inputs),
    ({ location, name }) => `${location} ${location === 'header' ? foldedHeader(name) : name}`,
  );
  return [...same.values()].map((inputs) => ({
    ...(inputs[0] as ApiInput),
    description: inputs.find(({ description }) => description !== '')?.description ?? '',
    required: inputs.length === all.length && inputs.every(({ required }) => required),
    schema: joinSchemas(inputs.map(({ schema }) => schema)),
  }));
}

/** Merges bodies of one media type. */
function joinBodies(all: readonly ApiOperation[]): ApiBody | undefined {
  const bodies = all.flatMap(({ body }) => body ?? []);
  const contents = bodies.flatMap((body) => body.contents);
  const [first] = contents;
  if (!first) return undefined;
  const schema = joinSchemas(contents.map((content) => content.schema));
  return { required: bodies.length === all.length, description: '', contents: [{ ...first, schema }] };
}

/** Merges schemas of single values into a schema that allows all of them. */
export function joinSchemas(all: readonly unknown[]): JsonFields {
  const distinct = [...new Map(all.map((schema) => [JSON.stringify(schema), schema])).values()].filter(isFields);
  const [first = {}] = distinct;
  if (distinct.length <= 1) return first;
  const types = [...new Set(distinct.flatMap(({ type }) => (type === undefined ? [] : [type].flat())))];
  const wide = types.includes('number') ? types.filter((type) => type !== 'integer') : types;
  const isOpen = distinct.some(({ type }) => type === undefined);
  // The value of a placeholder or null says nothing, so the type of the other values is used.
  const type = isOpen && wide.length > 0 ? [...new Set([...wide, 'null'])] : wide.length > 1 ? wide : wide[0];
  const required = sharedNames(distinct);
  return {
    ...(type !== undefined && { type }),
    ...valuesOf(distinct),
    ...(types.includes('object') && { properties: joinProperties(distinct) }),
    ...(required.length > 0 && { required }),
    ...(types.includes('array') && { items: joinSchemas(distinct.flatMap(({ items }) => items ?? [])) }),
  };
}

/** Returns the names that all of the schemas require. */
function sharedNames(all: readonly JsonFields[]): unknown[] {
  const lists = all.map(({ required }) => new Set(Array.isArray(required) ? (required as unknown[]) : []));
  return [...(lists[0] ?? [])].filter((name) => lists.every((list) => list.has(name)));
}

function joinProperties(all: readonly JsonFields[]): JsonFields {
  const entries = all.flatMap(({ properties }) => entriesOf(properties));
  const same = [...Map.groupBy(entries, ([name]) => name)];
  return Object.fromEntries(same.map(([name, found]) => [name, joinSchemas(found.map(([, schema]) => schema))]));
}

const mostValues = 5;
const longestValue = 40;

/** Returns example values. A single value is an example; several values are listed in the description. */
function valuesOf(all: readonly JsonFields[]): JsonFields {
  const found = all.flatMap(({ enum: constants, example }) => (Array.isArray(constants) ? constants : (example ?? [])));
  const texts = [...new Set(found.flat().map(asText))].filter((text) => text !== '' && text.length <= longestValue);
  const said = all.map(({ description }) => asText(description)).find((text) => text !== '') ?? '';
  const described = said === '' ? {} : { description: said };
  if (texts.length < 2) return { ...described, ...(found[0] !== undefined && { example: found[0] }) };
  const listed = `For example ${texts.slice(0, mostValues).join(', ')}`;
  // Schemas that were merged before already list their values.
  return { description: said.includes('For example ') ? said : joined([said, listed]) };
}
