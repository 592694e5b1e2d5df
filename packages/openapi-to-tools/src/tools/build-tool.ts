import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { hasOptionalBody, isHeaderName, methodPattern } from '@toolhost/tool-config/http/headers';
import { toJsonSchema } from '@toolhost/tool-config/input-schema';
import { charactersPerToken, estimateTokenCount } from '@toolhost/tool-config/tokens';
import { maxTagLength, maxTags, maxUrlLength } from '@toolhost/tool-config/tool';
import { getField } from '../document/lenient.ts';
import { References, type SchemaFinder } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import { type BodyArguments, buildBodyArguments, createOtherFields } from './body-arguments.ts';
import { inferAnnotations } from './effects.ts';
import {
  type BuildContext,
  buildInputArguments,
  type CredentialNames,
  type InputArguments,
} from './input-arguments.ts';
import { ArgumentNames, hasForeignLetters } from './names.ts';
import { maxSchemaDepth, SchemaBuilder } from './simple-schema.ts';
import { joinSentences, maxToolText, shorten, toPlainText, toVisibleName } from './texts.ts';
import { type ArgumentDraft, BuildReport, type ImportedTool, type ToolCandidate } from './tool-candidate.ts';
import { buildToolUrl } from './tool-url.ts';

/** Input shared by all tools of a document. `root` is the document. */
export type ToolSource = { root: unknown; finder: SchemaFinder; credential: CredentialNames };

const maxArguments = 100;
const maxFollowed = 20_000;

/**
 * Maximum size of a tool before it is rebuilt with fewer fields and, if that is not enough, fewer levels. Forty such
 * tools should fit into a list of 10,000 tokens.
 */
const maxToolTokens = 800;
/** Maximum number of characters that the names of omitted fields take. */
const maxNamesLength = 300;

/**
 * Builds the tool of an operation. `base` is prepended to its path if the operation does not use the server's base URL.
 */
export function buildTool(operation: ApiOperation, name: string, base: string, source: ToolSource): ToolCandidate {
  let best = buildWithLimits(operation, { name, base, source, maxDepth: maxSchemaDepth, charactersToSave: 0 });
  for (let maxDepth = maxSchemaDepth; maxDepth > 0 && best.tokens > maxToolTokens; maxDepth--) {
    const complete =
      maxDepth === maxSchemaDepth
        ? best
        : buildWithLimits(operation, { name, base, source, maxDepth, charactersToSave: 0 });
    const charactersToSave = (complete.tokens - maxToolTokens) * charactersPerToken + maxNamesLength;
    const reduced =
      charactersToSave > maxNamesLength
        ? buildWithLimits(operation, { name, base, source, maxDepth, charactersToSave })
        : complete;
    for (const candidate of [complete, reduced]) if (candidate.tokens < best.tokens) best = candidate;
  }
  return best;
}

type BuildOptions = { name: string; base: string; source: ToolSource; maxDepth: number; charactersToSave: number };

function buildWithLimits(
  operation: ApiOperation,
  { name, base, source, maxDepth, charactersToSave }: BuildOptions,
): ToolCandidate {
  const report = new BuildReport();
  const builder = new SchemaBuilder(new References(source.root, source.finder, maxFollowed), maxDepth);
  const { credential } = source;
  const context: BuildContext = {
    builder,
    names: new ArgumentNames(),
    report,
    credential,
    seenHeaders: new Set(),
    charactersToSave,
  };
  const tool = createTool(operation, name, base, context);
  const { skipReason } = report;
  const repairs = [...report.repairs];
  if (skipReason !== undefined || !tool) {
    const notes = [skipReason ?? 'no request'];
    return { operation, name, tool: undefined, outcome: 'skipped', notes, repairs, tokens: 0 };
  }
  // A comparison of the finished tool with the operation sets the outcome later.
  return { operation, name, tool, outcome: 'whole', notes: [], repairs, tokens: estimateCandidateTokens(tool) };
}

function createTool(
  operation: ApiOperation,
  name: string,
  base: string,
  context: BuildContext,
): ImportedTool | undefined {
  const { report } = context;
  if (operation.unsupportedReason !== undefined) report.skip(operation.unsupportedReason);
  const { method } = operation;
  if (!methodPattern.test(method)) report.skip(`the method ${method.slice(0, 20)}`);
  if (report.skipReason !== undefined) return undefined;
  const inputs = buildInputArguments(operation, context);
  const body = buildBodyArguments(operation, context);
  const args = limitArguments([...inputs.arguments, ...body.arguments], context);
  const url = buildToolUrl(operation.route, inputs, args);
  if ('problem' in url) report.skip(url.problem);
  else if (base.length + url.url.length > maxUrlLength) report.skip(`a URL of more than ${maxUrlLength} characters`);
  if ('problem' in url || report.skipReason !== undefined) return undefined;
  const headers = getHeaders(operation, inputs, body);
  const tags = getTags(operation);
  const hints = inferAnnotations(operation);
  const paging = describePaging(operation, args);
  const declaredHeaders = operation.responses.headers.filter(
    (header) => isHeaderName(header) && !technicalHeaders.test(header),
  );
  const hasLink = declaredHeaders.some((header) => /^link$/i.test(header));
  const responseHeaders = hasLink ? declaredHeaders : [...declaredHeaders, ...paging.headers];
  return {
    name,
    description: joinSentences([
      describeOperation(operation, maxToolText - paging.sentence.length - 2),
      paging.sentence,
    ]),
    method,
    url: base + url.url,
    ...(Object.keys(headers).length > 0 && { headers }),
    input_schema: toInputSchema(args, method, url.usedNames, body.body),
    ...(body.body !== undefined && { body: body.body }),
    ...(responseHeaders.length > 0 && { response_headers: distinctHeaders(responseHeaders) }),
    ...(operation.responses.isRedirect && (method === 'GET' || method === 'HEAD') && { redirects: 'follow' }),
    ...(hints && { annotations: hints }),
    ...(tags.length > 0 && { tags }),
  };
}

/**
 * Headers about the connection, the message, caching, and browsers (RFC 9110, RFC 9111), which are useless to an agent.
 * Link, Location, ETag, and Retry-After are useful to an agent, so they are not listed here.
 */
const technicalHeaders = new RegExp(
  `^(?:${[
    ...[
      'accept(?:-.*)?',
      'access-control-.*',
      'age',
      'allow',
      'alt-svc',
      'authorization',
      'cache-control',
      'connection',
    ],
    ...[
      'content-.*',
      'cross-origin-.*',
      'date',
      'expires',
      'keep-alive',
      'last-modified',
      'permissions-policy',
      'pragma',
    ],
    ...[
      'proxy-.*',
      'referrer-policy',
      'sec-.*',
      'server(?:-timing)?',
      'set-cookie2?',
      'strict-transport-security',
      'te',
    ],
    ...[
      'trailer',
      'transfer-encoding',
      'upgrade',
      'vary',
      'via',
      'warning',
      'www-authenticate',
      'x-content-type-options',
    ],
    ...['x-frame-options', 'x-powered-by', 'x-xss-protection'],
  ].join('|')})$`,
  'i',
);

function distinctHeaders(names: readonly string[]): string[] {
  const byName = new Map(names.map((name) => [name.toLowerCase(), name]));
  return [...byName.values()].slice(0, maxHeaders);
}

/** Maximum number of response headers of a tool. */
const maxHeaders = 20;

/** Returns an operation's tags, within the configuration limits. */
function getTags({ tags }: ApiOperation): string[] {
  const visible = tags.map((tag) =>
    toVisibleName(tag).replaceAll(/\s+/gu, ' ').slice(0, maxTagLength).toWellFormed().trim(),
  );
  return [...new Set(visible)].filter((tag) => tag !== '').slice(0, maxTags);
}

/**
 * Replaces surplus optional query arguments with one `fields` argument, and leaves out other surplus optional
 * arguments.
 */
function limitArguments(candidates: readonly ArgumentDraft[], context: BuildContext): ArgumentDraft[] {
  const { report } = context;
  if (candidates.length <= maxArguments) return [...candidates];
  const simpleOptional = candidates.filter(
    ({ location, required, wire }) => location === 'query' && !required && Object.keys(wire).length === 0,
  );
  const merged = simpleOptional.slice(-(candidates.length - maxArguments + 1));
  const limited = candidates.filter((argument) => !merged.includes(argument));
  if (merged.length > 0) {
    const names = merged.map(({ wireName }) => wireName);
    limited.push(createOtherFields(names, { location: 'query', required: false }, context));
  }
  if (limited.length <= maxArguments) return limited;
  const required = limited.filter((argument) => argument.required);
  const optionalLimit = maxArguments - required.length;
  const optional = limited.filter((argument) => !argument.required);
  report.skipIfRequired(`${limited.length - maxArguments} of ${limited.length} inputs`, optionalLimit < 0);
  const remainingArguments = new Set([...required, ...optional.slice(0, Math.max(0, optionalLimit))]);
  return limited.filter((argument) => remainingArguments.has(argument));
}

function getHeaders(operation: ApiOperation, inputs: InputArguments, body: BodyArguments): Record<string, string> {
  const headers = new Map(inputs.headers);
  const accept = getAccept(operation.responses.mediaTypes);
  const isChosen = inputs.arguments.some(({ location, wireName }) => location === 'header' && wireName === 'Accept');
  if (accept !== undefined && !isChosen && !headers.has('Accept')) headers.set('Accept', accept);
  if (body.contentType !== undefined) headers.set('Content-Type', body.contentType);
  return Object.fromEntries(headers);
}

/** Returns the response type to request, or undefined for the default. */
function getAccept(mediaTypes: readonly string[]): string | undefined {
  const concrete = mediaTypes.filter((type) => /^[\w.+-]+\/[\w.+-]+(?:\s*;[\x20-\x7e]*)?$/.test(type));
  if (concrete.length < mediaTypes.length || concrete.some((type) => /^application\/json\b/i.test(type)))
    return undefined;
  const json = concrete.filter((type) => /[+/]json\b/i.test(type));
  // Types such as application/vnd.github.raw+json return text that is not JSON.
  const chosen = json.find((type) => !/\b(?:raw|diff|patch)\b/i.test(type)) ?? json[0] ?? concrete[0];
  return chosen === undefined || chosen.length > 200 ? undefined : chosen;
}

function describeOperation(
  { summary, description, method, path, isDeprecated }: ApiOperation,
  maxLength: number,
): string {
  const summaryText = toPlainText(summary, maxToolText);
  const descriptionText = toPlainText(description, maxToolText);
  const isRedundant =
    descriptionText === '' || summaryText.toLowerCase().startsWith(descriptionText.toLowerCase().replace(/\.$/, ''));
  const includesSummary = summaryText !== '' && descriptionText.toLowerCase().startsWith(summaryText.toLowerCase());
  const fullText = isRedundant
    ? summaryText
    : includesSummary || summaryText === ''
      ? descriptionText
      : joinSentences([summaryText, descriptionText]);
  const namedText = fullText.length < 20 ? joinSentences([fullText, toPlainText(`${method} ${path}`, 200)]) : fullText;
  return shorten(isDeprecated ? joinSentences(['Deprecated', namedText]) : namedText, maxLength);
}

function toInputSchema(
  args: readonly ArgumentDraft[],
  method: string,
  usedNames: ReadonlySet<string>,
  body: string | undefined,
): ImportedTool['input_schema'] {
  const isWholeBody = body !== undefined && !['json', 'form', 'multipart'].includes(body);
  const defaultLocation = isWholeBody || hasOptionalBody(method) ? 'query' : 'body';
  // The argument for a file name is not a separate field.
  const fileNameArguments = new Set(args.map(({ wire }) => getField(wire.file_name, 'argument')));
  const definitions = args.map((argument) => {
    const { name, wireName, location, schema, wire } = argument;
    const hasImpliedLocation =
      usedNames.has(name) || name === body || location === defaultLocation || fileNameArguments.has(name);
    const definition: JsonSchema = {
      ...(hasForeignLetters(wireName) ? addWireName(wireName, schema) : schema),
      ...(!hasImpliedLocation && { in: location }),
      ...(wireName !== name && !usedNames.has(name) && { wire_name: wireName }),
      ...wire,
    };
    return { name, required: argument.required, definition };
  });
  return (
    toFlatFields(definitions) ?? {
      type: 'object',
      properties: Object.fromEntries(definitions.map(({ name, definition }) => [name, definition])),
      ...toRequired(definitions),
      additionalProperties: false,
    }
  );
}

/** Adds the wire name to the description of a schema if the argument cannot have that name. */
function addWireName(wireName: string, { type, description, ...otherKeywords }: JsonSchema): JsonSchema {
  const text = joinSentences([`Named ${wireName} in the API`, String(description ?? '')]);
  return { ...(type !== undefined && { type }), description: text, ...otherKeywords };
}

function toRequired(definitions: readonly { name: string; required: boolean }[]): { required?: string[] } {
  const required = definitions.filter((definition) => definition.required).map(({ name }) => name);
  return required.length > 0 ? { required } : {};
}

/** Returns the estimated tokens of a tool. Current models use about one token per four characters of JSON. */
export function estimateCandidateTokens({ name, description, input_schema }: ImportedTool): number {
  return estimateTokenCount(JSON.stringify({ name, description, inputSchema: toJsonSchema(input_schema) }).length);
}

type Definition = { name: string; required: boolean; definition: JsonSchema };

const schemaKeywords = new Set(
  'type description enum minimum maximum minLength maxLength format pattern required items properties'.split(' '),
);
const argumentKeywords = new Set(
  'in wire_name style value allow_slashes allow_reserved content file_name media_type'.split(' '),
);

/**
 * Returns the definitions as a flat map, which is easier to read than a JSON Schema. Returns undefined if some of them
 * need a JSON Schema.
 */
function toFlatFields(definitions: readonly Definition[]): { [name: string]: JsonSchema } | undefined {
  if (!definitions.every(({ definition }) => isFlat(definition, true))) return undefined;
  return Object.fromEntries(
    definitions.map(({ name, required, definition }) => [
      name,
      required ? definition : { ...definition, optional: true },
    ]),
  );
}

function isFlat(schema: JsonSchema, isArgument: boolean): boolean {
  if (typeof schema.type !== 'string' || schema.type === 'null') return false;
  for (const keyword of Object.keys(schema))
    if (!schemaKeywords.has(keyword) && !(isArgument && argumentKeywords.has(keyword))) return false;
  const { items, properties, required } = schema;
  if (Array.isArray(required) && required.length > 100) return false;
  const inner = [...(items === undefined ? [] : [items]), ...Object.values((properties ?? {}) as JsonSchema)];
  return inner.every((innerSchema) => isFlat(innerSchema as JsonSchema, false));
}

/** Match the names of paging arguments and of the response field with the next cursor. */
const cursorPattern =
  /^(?:page_?)?(?:cursor|token)$|^(?:next|start|continuation)_?(?:cursor|token|page_?token|key)$|^page_?token$/i;
const nextCursorPattern =
  /^next_?(?:page_?)?(?:cursor|token|key|start|marker)$|^(?:end|page)_?cursor$|^continuation_?token$/i;
const offsetPattern = /^(?:offset|start_?at|skip|start_?index)$/i;
const pageSizePattern = /^(?:limit|count|max_?results|top|per_?page|page_?size|size)$/i;

/**
 * Returns a sentence that explains how to get the next page of a response, and the headers that contain its URL.
 * Returns empty values if the description does not show how.
 */
function describePaging(
  { method, responses }: ApiOperation,
  args: readonly ArgumentDraft[],
): { sentence: string; headers: string[] } {
  const findName = (pattern: RegExp) => args.find(({ wireName }) => pattern.test(wireName))?.name;
  const pageSizeName = findName(pageSizePattern);
  const cursorName = findName(cursorPattern);
  const nextField = responses.fields.find((path) => nextCursorPattern.test(path.slice(path.lastIndexOf('.') + 1)));
  if (cursorName !== undefined && nextField !== undefined)
    return createPaging(`pass ${nextField} of the result as ${cursorName}`);
  const after = findName(/^starting_?after$/i);
  if (after !== undefined && responses.fields.includes('has_more'))
    return createPaging(`pass the id of the last item as ${after}`);
  // With a cursor, there is no page number, even if the response does not name the next cursor.
  if (method !== 'GET' || cursorName !== undefined) return noPaging;
  const isNumber = (name: string) =>
    args.some((argument) => argument.name === name && /^(?:integer|number)$/.test(String(argument.schema.type)));
  const offset = findName(offsetPattern);
  if (offset !== undefined && pageSizeName !== undefined && isNumber(offset))
    return createPaging(`raise ${offset} by the number of items`);
  const page = findName(/^page(?:_?number)?$/i);
  if (page === undefined || pageSizeName === undefined || !isNumber(page)) return noPaging;
  // Many APIs with page numbers return the next page in this header even if their description does not say so (RFC
  // 8288).
  return { ...createPaging(`raise ${page} by 1`), headers: ['Link'] };
}

const noPaging = { sentence: '', headers: [] };

function createPaging(instruction: string): { sentence: string; headers: string[] } {
  return { sentence: `For the next page ${instruction}.`, headers: [] };
}
