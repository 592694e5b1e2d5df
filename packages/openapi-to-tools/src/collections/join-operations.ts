import { foldHeaderName } from '@toolhost/tool-config/http/parameter-names';
import { isFields, type JsonFields, toEntries, toText } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';
import { joinSentences } from '../tools/texts.ts';

/**
 * Merges the requests of one operation. The result has every input of any request; an input is required if all requests
 * require it.
 */
export function mergeOperations(operations: readonly ApiOperation[]): ApiOperation {
  const [firstOperation] = operations as [ApiOperation];
  if (operations.length === 1) return firstOperation;
  const requirements = operations.flatMap(({ security }) => security);
  const accepted = new Set(operations.map(({ responses }) => responses.mediaTypes.join()));
  return {
    ...firstOperation,
    description: joinSentences([describeOtherNames(operations), firstOperation.description]),
    inputs: mergeInputs(operations),
    body: mergeBodies(operations),
    security: [
      ...new Map(requirements.map((requirement) => [JSON.stringify([...requirement.keys()]), requirement])).values(),
    ],
    responses: accepted.size > 1 ? { ...firstOperation.responses, mediaTypes: [] } : firstOperation.responses,
  };
}

const maxNames = 5;

/** Lists the names of the other requests, which show what else the operation can do. */
function describeOtherNames([firstOperation, ...otherOperations]: readonly ApiOperation[]): string {
  const names = new Set(otherOperations.map(({ summary }) => summary));
  names.delete('');
  names.delete(firstOperation?.summary ?? '');
  return names.size === 0 ? '' : `Also: ${[...names].slice(0, maxNames).join(', ')}`;
}

function mergeInputs(operations: readonly ApiOperation[]): ApiInput[] {
  const inputsByKey = Map.groupBy(
    operations.flatMap(({ inputs }) => inputs),
    ({ location, name }) => `${location} ${location === 'header' ? foldHeaderName(name) : name}`,
  );
  return [...inputsByKey.values()].map((inputs) => ({
    ...(inputs[0] as ApiInput),
    description: inputs.find(({ description }) => description !== '')?.description ?? '',
    required: inputs.length === operations.length && inputs.every(({ required }) => required),
    schema: mergeSchemas(inputs.map(({ schema }) => schema)),
  }));
}

/** Merges bodies of one media type. */
function mergeBodies(operations: readonly ApiOperation[]): ApiBody | undefined {
  const bodies = operations.flatMap(({ body }) => body ?? []);
  const contents = bodies.flatMap((body) => body.contents);
  const [firstContent] = contents;
  if (!firstContent) return undefined;
  const schema = mergeSchemas(contents.map((content) => content.schema));
  return { required: bodies.length === operations.length, description: '', contents: [{ ...firstContent, schema }] };
}

/** Merges schemas, each of which describes one value, into a schema that allows all of these values. */
export function mergeSchemas(schemas: readonly unknown[]): JsonFields {
  const distinctSchemas = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()].filter(
    isFields,
  );
  const [firstSchema = {}] = distinctSchemas;
  if (distinctSchemas.length <= 1) return firstSchema;
  const types = [...new Set(distinctSchemas.flatMap(({ type }) => (type === undefined ? [] : [type].flat())))];
  const mergedTypes = types.includes('number') ? types.filter((type) => type !== 'integer') : types;
  const isOpen = distinctSchemas.some(({ type }) => type === undefined);
  // A placeholder or null has no type, so the type of the other values is used.
  const type =
    isOpen && mergedTypes.length > 0
      ? [...new Set([...mergedTypes, 'null'])]
      : mergedTypes.length > 1
        ? mergedTypes
        : mergedTypes[0];
  const required = getSharedRequired(distinctSchemas);
  return {
    ...(type !== undefined && { type }),
    ...describeValues(distinctSchemas),
    ...(types.includes('object') && { properties: mergeProperties(distinctSchemas) }),
    ...(required.length > 0 && { required }),
    ...(types.includes('array') && { items: mergeSchemas(distinctSchemas.flatMap(({ items }) => items ?? [])) }),
  };
}

/** Returns the names that all of the schemas require. */
function getSharedRequired(schemas: readonly JsonFields[]): unknown[] {
  const lists = schemas.map(({ required }) => new Set(Array.isArray(required) ? (required as unknown[]) : []));
  return [...(lists[0] ?? [])].filter((name) => lists.every((list) => list.has(name)));
}

function mergeProperties(schemas: readonly JsonFields[]): JsonFields {
  const entries = schemas.flatMap(({ properties }) => toEntries(properties));
  const propertiesByName = [...Map.groupBy(entries, ([name]) => name)];
  return Object.fromEntries(
    propertiesByName.map(([name, entriesOfName]) => [name, mergeSchemas(entriesOfName.map(([, schema]) => schema))]),
  );
}

const maxValues = 5;
const maxValueLength = 40;

/** Returns example values. A single value is an example; several values are listed in the description. */
function describeValues(schemas: readonly JsonFields[]): JsonFields {
  const values = schemas.flatMap(({ enum: constants, example }) =>
    Array.isArray(constants) ? constants : (example ?? []),
  );
  const distinctTexts = [...new Set(values.flat().map(toText))].filter(
    (text) => text !== '' && text.length <= maxValueLength,
  );
  const ownText = schemas.map(({ description }) => toText(description)).find((text) => text !== '') ?? '';
  const descriptionField = ownText === '' ? {} : { description: ownText };
  if (distinctTexts.length < 2) return { ...descriptionField, ...(values[0] !== undefined && { example: values[0] }) };
  const examples = `For example ${distinctTexts.slice(0, maxValues).join(', ')}`;
  // Schemas that were merged before already list their values.
  return { description: ownText.includes('For example ') ? ownText : joinSentences([ownText, examples]) };
}
