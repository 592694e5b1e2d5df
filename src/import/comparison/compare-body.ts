import { isSafeMethod, mediaTypeOf } from '../../domain/http/headers.ts';
import { asText } from '../document/lenient.ts';
import { short } from '../tools/input-arguments.ts';
import type { Loss, SchemaComparison } from './compare-schema.ts';
import type { ContentDescription, RequestDescription } from './described-inputs.ts';
import type { SchemaReader, Variant } from './schema-variants.ts';
import type { ToolInput, ToolInputs } from './tool-inputs.ts';

type SentBody = {
  tool: ToolInputs;
  headers: { readonly [name: string]: string };
  method: string;
  credential: ReadonlySet<string>;
};
type Schemas = { schemas: SchemaComparison; reader: SchemaReader };
type Found = { losses: Loss[]; others: string[] };

const partial = (note: string): Loss => ({ kind: 'partial', note });
const loosened = (note: string): Loss => ({ kind: 'loosened', note });

/**
 * Compares a described body with the body that a tool sends. `otherTypes` lists the media types that the tool does not
 * send.
 */
export function compareBody(body: RequestDescription['body'], sent: SentBody, schemas: Schemas): Found {
  if (!body) return { losses: [], others: [] };
  const [first] = body.contents;
  if (!first) return { losses: [partial('a body without a type')], others: [] };
  const { whole, fields } = sent.tool;
  if (!whole && fields.size === 0) {
    const isEmpty = isSafeMethod(sent.method) && !body.isRequired;
    const lost = body.contents.find(({ schema }) => asksForValues(schema, isEmpty, sent, schemas));
    return { losses: lost ? [partial(`the body of type ${short(lost.mediaType)}`)] : [], others: [] };
  }
  const type = sentType(sent);
  const content = body.contents.toSorted((a, b) => fitOf(b.mediaType, type) - fitOf(a.mediaType, type))[0] ?? first;
  if (fitOf(content.mediaType, type) === 0)
    return { losses: [partial(`the body of type ${short(content.mediaType)}`)], others: [] };
  const own = JSON.stringify(content.schema);
  const others = body.contents.filter((one) => JSON.stringify(one.schema) !== own).map(({ mediaType }) => mediaType);
  return {
    losses: compareContent(content, body.isRequired, sent, schemas),
    others: [...new Set(others)].map((other) => `sent as ${short(type)}, not as ${short(other)}`),
  };
}

/** Returns true if a schema allows a body other than an empty one or an empty object. */
function asksForValues(schema: unknown, isOptional: boolean, { credential }: SentBody, { reader }: Schemas): boolean {
  return reader.variants(schema, []).some((one) => {
    if (one.type !== 'object') return one.type !== 'null' && !(isOptional && one.type !== 'array');
    const writable = [...one.properties].filter(
      ([name, property]) => !credential.has(name) && !reader.isReadOnly(property),
    );
    const isFree = one.properties.size === 0 ? !one.isClosed && !isOptional : one.free !== undefined;
    return writable.length > 0 || isFree || one.conditional.size > 0;
  });
}

/** Returns the media type of a tool's body. */
function sentType({ tool: { bodyKind, whole }, headers }: SentBody): string {
  const given = Object.entries(headers).find(([name]) => /^content-type$/i.test(name))?.[1];
  if (given !== undefined) return given;
  if (bodyKind === 'form') return 'application/x-www-form-urlencoded';
  if (bodyKind === 'multipart') return 'multipart/form-data';
  const type = whole?.definition.media_type;
  if (typeof type === 'string') return type;
  return whole?.definition.content === 'base64' ? 'application/octet-stream' : 'application/json';
}

/** Rates how well the sent type, or the best of several types, matches a described type; 0 means no match. */
function fitOf(described: string, sent: string): number {
  return Math.max(...sent.split(', ').map((type) => fitOfType(described, type)));
}

function fitOfType(described: string, sent: string): number {
  const [wanted, type] = [mediaTypeOf(described), mediaTypeOf(sent)];
  if (wanted === type) return described === sent ? 4 : 3;
  if (wanted === '' || wanted === '*/*' || wanted === '*') return 1;
  if (!wanted.endsWith('/*')) return 0;
  return type.startsWith(wanted.slice(0, -1)) ? 2 : Number(type === 'application/octet-stream');
}

function compareContent(content: ContentDescription, isRequired: boolean, sent: SentBody, schemas: Schemas): Loss[] {
  const { whole, bodyKind } = sent.tool;
  const variants = schemas.reader.variants(content.schema, []);
  if (!whole) {
    // A file without a field name is sent under a name that the tool chooses.
    const unnamed = variants.some(({ type }) => type === 'object') ? undefined : onlyFile(sent.tool);
    if (unnamed) return schemas.schemas.compare(content.schema, unnamed.definition, { ...root, text: 'value' });
    return compareFields(content, sent, schemas);
  }
  const { definition } = whole;
  const isForced = isRequired || variants.some(({ required }) => required.size > 0);
  const losses = isRequired && !whole.isRequired ? [loosened('required')] : [];
  if (!isForced && whole.isRequired && whole.value === undefined) losses.push(partial('leaving out the body'));
  if (whole.value !== undefined)
    return asksForValues(content.schema, false, sent, schemas)
      ? [partial(`the body of type ${short(content.mediaType)}`)]
      : [];
  const isJson = /[/+](?:x-amz-)?json\b/.test(mediaTypeOf(content.mediaType));
  const isAnyType = mediaTypeOf(content.mediaType).includes('*') || content.mediaType === '';
  const isBytes = definition.content === 'base64';
  const isText = definition.type === 'string' && bodyKind === 'argument' && !isJson && !isAnyType;
  const isDescribedText = !isBytes && variants.every(({ type }) => type === 'string');
  if (isText && !isDescribedText)
    return [
      ...losses,
      ...(variants.every(isPlainText) ? [] : [loosened(textNote(content, isBytes ? 'bytes' : 'text'))]),
    ];
  return [...losses, ...schemas.schemas.compare(content.schema, definition, { ...root, text: 'value' })];
}

function onlyFile({ fields }: ToolInputs): ToolInput | undefined {
  const [file, ...others] = fields.values();
  return others.length === 0 && file?.definition.content === 'base64' ? file : undefined;
}

const root = { name: '', depth: 0, trail: [] };

function isPlainText({ type, values, keywords }: Variant): boolean {
  return (type === 'string' || type === 'any' || type === 'null') && values === undefined && keywords.size === 0;
}

function textNote({ mediaType }: ContentDescription, how: string): string {
  return `the body as ${how} of type ${short(mediaType)}`;
}

/** Compares a body whose fields are arguments as one object, so that alternatives are compared too. */
function compareFields(content: ContentDescription, { tool, credential }: SentBody, { schemas }: Schemas): Loss[] {
  const { fields, spread, bodyKind } = tool;
  const definitionOf = ({ definition, value }: ToolInput) => (value === undefined ? definition : { enum: [value] });
  const [other] = spread.body;
  const required = [...fields].filter(([, input]) => input.isRequired && !spread.body.includes(input));
  const offered = {
    type: 'object',
    description: asText(other?.definition.description),
    properties: Object.fromEntries([...fields].map(([name, input]) => [name, definitionOf(input)])),
    required: required.map(([name]) => name),
    ...(other === undefined && { additionalProperties: false }),
  };
  const text = bodyKind === 'json' ? undefined : 'fields';
  return schemas.compare(content.schema, offered, { ...root, depth: -1, text, credential });
}
