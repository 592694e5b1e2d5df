import { isSafeMethod, parseMediaType } from '@toolhost/tool-config/http/headers';
import { toText } from '../document/lenient.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import type { Loss, SchemaComparison } from './compare-schema.ts';
import type { ContentDescription, RequestDescription } from './described-inputs.ts';
import type { SchemaReader, Variant } from './schema-variants.ts';
import type { ToolInput, ToolInputs } from './tool-inputs.ts';

/** Body that a tool sends, and the names of its fields that are the credential. */
type SentBody = {
  tool: ToolInputs;
  headers: { readonly [name: string]: string };
  method: string;
  credential: ReadonlySet<string>;
};
type Schemas = { comparison: SchemaComparison; reader: SchemaReader };
type BodyComparison = { losses: Loss[]; otherTypes: string[] };

const partial = (note: string): Loss => ({ kind: 'partial', note });
const loosened = (note: string): Loss => ({ kind: 'loosened', note });

/**
 * Compares a described body with the body that a tool sends. `otherTypes` lists the media types that the tool does not
 * send.
 */
export function compareBody(body: RequestDescription['body'], sent: SentBody, schemas: Schemas): BodyComparison {
  if (!body) return { losses: [], otherTypes: [] };
  const [firstContent] = body.contents;
  if (!firstContent) return { losses: [partial('a body without a type')], otherTypes: [] };
  const { wholeBody, fields } = sent.tool;
  if (!wholeBody && fields.size === 0) {
    const isEmpty = isSafeMethod(sent.method) && !body.isRequired;
    const lostContent = body.contents.find(({ schema }) => canHaveValues(schema, isEmpty, sent, schemas));
    return {
      losses: lostContent ? [partial(`the body of type ${quoteShort(lostContent.mediaType)}`)] : [],
      otherTypes: [],
    };
  }
  const type = getSentType(sent);
  const content =
    body.contents.toSorted((a, b) => rateMatch(b.mediaType, type) - rateMatch(a.mediaType, type))[0] ?? firstContent;
  if (rateMatch(content.mediaType, type) === 0)
    return { losses: [partial(`the body of type ${quoteShort(content.mediaType)}`)], otherTypes: [] };
  const sentSchema = JSON.stringify(content.schema);
  const otherTypes = body.contents
    .filter((content) => JSON.stringify(content.schema) !== sentSchema)
    .map(({ mediaType }) => mediaType);
  return {
    losses: compareContent(content, body.isRequired, sent, schemas),
    otherTypes: [...new Set(otherTypes)].map(
      (mediaType) => `sent as ${quoteShort(type)}, not as ${quoteShort(mediaType)}`,
    ),
  };
}

/** Returns true if a schema allows a body other than an empty one or an empty object. */
function canHaveValues(schema: unknown, isOptional: boolean, { credential }: SentBody, { reader }: Schemas): boolean {
  return reader.toVariants(schema, []).some((variant) => {
    if (variant.type !== 'object') return variant.type !== 'null' && !(isOptional && variant.type !== 'array');
    const writable = [...variant.properties].filter(
      ([name, property]) => !credential.has(name) && !reader.isReadOnly(property),
    );
    const isFree = variant.properties.size === 0 ? !variant.isClosed && !isOptional : variant.additional !== undefined;
    return writable.length > 0 || isFree || variant.conditional.size > 0;
  });
}

/** Returns the media type of a tool's body. */
function getSentType({ tool: { bodyKind, wholeBody }, headers }: SentBody): string {
  const declaredType = Object.entries(headers).find(([name]) => /^content-type$/i.test(name))?.[1];
  if (declaredType !== undefined) return declaredType;
  if (bodyKind === 'form') return 'application/x-www-form-urlencoded';
  if (bodyKind === 'multipart') return 'multipart/form-data';
  const type = wholeBody?.definition.media_type;
  if (typeof type === 'string') return type;
  return wholeBody?.definition.content === 'base64' ? 'application/octet-stream' : 'application/json';
}

/** Rates how well the sent type, or the best of several sent types, matches a described type. 0 means no match. */
function rateMatch(described: string, sent: string): number {
  return Math.max(...sent.split(', ').map((type) => rateTypeMatch(described, type)));
}

function rateTypeMatch(described: string, sent: string): number {
  const [describedType, type] = [parseMediaType(described), parseMediaType(sent)];
  if (describedType === type) return described === sent ? 4 : 3;
  if (describedType === '' || describedType === '*/*' || describedType === '*') return 1;
  if (!describedType.endsWith('/*')) return 0;
  return type.startsWith(describedType.slice(0, -1)) ? 2 : Number(type === 'application/octet-stream');
}

function compareContent(content: ContentDescription, isRequired: boolean, sent: SentBody, schemas: Schemas): Loss[] {
  const { wholeBody, bodyKind } = sent.tool;
  const variants = schemas.reader.toVariants(content.schema, []);
  if (!wholeBody) {
    // A file without a field name is sent under a name that the tool chooses.
    const unnamedFile = variants.some(({ type }) => type === 'object') ? undefined : getOnlyFile(sent.tool);
    if (unnamedFile)
      return schemas.comparison.compare(content.schema, unnamedFile.definition, { ...rootLocation, text: 'value' });
    return compareFields(content, sent, schemas);
  }
  const { definition } = wholeBody;
  const mustSendBody = isRequired || variants.some(({ required }) => required.size > 0);
  const losses = isRequired && !wholeBody.isRequired ? [loosened('required')] : [];
  if (!mustSendBody && wholeBody.isRequired && wholeBody.value === undefined)
    losses.push(partial('leaving out the body'));
  if (wholeBody.value !== undefined)
    return canHaveValues(content.schema, false, sent, schemas)
      ? [partial(`the body of type ${quoteShort(content.mediaType)}`)]
      : [];
  const isJson = /[/+](?:x-amz-)?json\b/.test(parseMediaType(content.mediaType));
  const isAnyType = parseMediaType(content.mediaType).includes('*') || content.mediaType === '';
  const isBytes = definition.content === 'base64';
  const isText = definition.type === 'string' && bodyKind === 'argument' && !isJson && !isAnyType;
  const isTextDescribed = !isBytes && variants.every(({ type }) => type === 'string');
  if (isText && !isTextDescribed)
    return [
      ...losses,
      ...(variants.every(isPlainText) ? [] : [loosened(createTextNote(content, isBytes ? 'bytes' : 'text'))]),
    ];
  return [...losses, ...schemas.comparison.compare(content.schema, definition, { ...rootLocation, text: 'value' })];
}

function getOnlyFile({ fields }: ToolInputs): ToolInput | undefined {
  const [file, ...otherFiles] = fields.values();
  return otherFiles.length === 0 && file?.definition.content === 'base64' ? file : undefined;
}

const rootLocation = { name: '', depth: 0, trail: [] };

function isPlainText({ type, values, keywords }: Variant): boolean {
  return (type === 'string' || type === 'any' || type === 'null') && values === undefined && keywords.size === 0;
}

function createTextNote({ mediaType }: ContentDescription, form: string): string {
  return `the body as ${form} of type ${quoteShort(mediaType)}`;
}

/** Compares a body whose fields are arguments as one object, so that alternatives are compared too. */
function compareFields(content: ContentDescription, { tool, credential }: SentBody, { comparison }: Schemas): Loss[] {
  const { fields, spreadArguments, bodyKind } = tool;
  const toDefinition = ({ definition, value }: ToolInput) => (value === undefined ? definition : { enum: [value] });
  const [openArgument] = spreadArguments.body;
  const required = [...fields].filter(([, input]) => input.isRequired && !spreadArguments.body.includes(input));
  const offered = {
    type: 'object',
    description: toText(openArgument?.definition.description),
    properties: Object.fromEntries([...fields].map(([name, input]) => [name, toDefinition(input)])),
    required: required.map(([name]) => name),
    ...(openArgument === undefined && { additionalProperties: false }),
  };
  const text = bodyKind === 'json' ? undefined : 'fields';
  return comparison.compare(content.schema, offered, { ...rootLocation, depth: -1, text, credential });
}
