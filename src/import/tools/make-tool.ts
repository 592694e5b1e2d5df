import { toJsonSchema } from '../../domain/config/input-schema.ts';
import { maxUrlLength, mostTags, mostTagText } from '../../domain/config/tool.ts';
import { hasNoUsualBody, isHeaderName, methodPattern } from '../../domain/http/headers.ts';
import { charactersOfToken, tokensOfLength } from '../../domain/pieces/tokens.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { field } from '../document/lenient.ts';
import { References, type SchemaFinder } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import { type BodyParts, bodyArguments, otherFields } from './body-arguments.ts';
import { hintsOf } from './effects.ts';
import { type CredentialNames, type InputParts, inputArguments, type Making } from './input-arguments.ts';
import { type ImportedTool, type MadeArgument, type MadeTool, Report } from './made-tool.ts';
import { ArgumentNames, isForeignName } from './names.ts';
import { deepestSchema, SchemaMaker } from './simple-schema.ts';
import { joined, mostToolText, plainText, shortened, visibleName } from './texts.ts';
import { toolUrl } from './tool-url.ts';

/** Input shared by all tools of a document. `root` is the document. */
export type ToolSource = { root: unknown; finder: SchemaFinder; credential: CredentialNames };

const mostArguments = 100;
const mostFollowed = 20_000;

/**
 * Maximum size of a tool before it is rebuilt with fewer fields and, if that is not enough, fewer levels. Forty such
 * tools should fit into a list of 10,000 tokens.
 */
const manyTokens = 800;
/** Maximum number of characters for the names of omitted fields. */
const namesLength = 300;

/**
 * Builds the tool of an operation. `base` is prepended to its path if the operation does not use the server's base URL.
 */
export function makeTool(operation: ApiOperation, name: string, base: string, source: ToolSource): MadeTool {
  let made = makeWith(operation, { name, base, source, deepest: deepestSchema, save: 0 });
  for (let deepest = deepestSchema; deepest > 0 && made.tokens > manyTokens; deepest--) {
    const whole = deepest === deepestSchema ? made : makeWith(operation, { name, base, source, deepest, save: 0 });
    const save = (whole.tokens - manyTokens) * charactersOfToken + namesLength;
    const fewer = save > namesLength ? makeWith(operation, { name, base, source, deepest, save }) : whole;
    for (const smaller of [whole, fewer]) if (smaller.tokens < made.tokens) made = smaller;
  }
  return made;
}

type Made = { name: string; base: string; source: ToolSource; deepest: number; save: number };

function makeWith(operation: ApiOperation, { name, base, source, deepest, save }: Made): MadeTool {
  const report = new Report();
  const maker = new SchemaMaker(new References(source.root, source.finder, mostFollowed), deepest);
  const { credential } = source;
  const making: Making = { maker, names: new ArgumentNames(), report, credential, seen: new Set(), save };
  const tool = toolOf(operation, name, base, making);
  const { skipped } = report;
  const repairs = [...report.repairs];
  if (skipped !== undefined || !tool) {
    const notes = [skipped ?? 'no request'];
    return { operation, name, tool: undefined, outcome: 'skipped', notes, repairs, tokens: 0 };
  }
  // The outcome is decided by a comparison after the tool is finished.
  return { operation, name, tool, outcome: 'whole', notes: [], repairs, tokens: tokensOfTool(tool) };
}

function toolOf(operation: ApiOperation, name: string, base: string, making: Making): ImportedTool | undefined {
  const { report } = making;
  if (operation.unreadable !== undefined) report.skip(operation.unreadable);
  const { method } = operation;
  if (!methodPattern.test(method)) report.skip(`the method ${method.slice(0, 20)}`);
  if (report.skipped !== undefined) return undefined;
  const inputs = inputArguments(operation, making);
  const body = bodyArguments(operation, making);
  const args = fewArguments([...inputs.arguments, ...body.arguments], making);
  const url = toolUrl(operation.route, inputs, args);
  if ('problem' in url) report.skip(url.problem);
  else if (base.length + url.url.length > maxUrlLength) report.skip(`a URL of more than ${maxUrlLength} characters`);
  if ('problem' in url || report.skipped !== undefined) return undefined;
  const headers = headersOf(operation, inputs, body);
  const tags = tagsOf(operation);
  const hints = hintsOf(operation);
  const paging = pagingOf(operation, args);
  const declared = operation.answers.headers.filter((header) => isHeaderName(header) && !ofHttp.test(header));
  const hasLink = declared.some((header) => /^link$/i.test(header));
  const answerHeaders = hasLink ? declared : [...declared, ...paging.headers];
  return {
    name,
    description: joined([descriptionOf(operation, mostToolText - paging.sentence.length - 2), paging.sentence]),
    method,
    url: base + url.url,
    ...(Object.keys(headers).length > 0 && { headers }),
    input_schema: inputSchemaOf(args, method, url.inUrl, body.body),
    ...(body.body !== undefined && { body: body.body }),
    ...(answerHeaders.length > 0 && { response_headers: distinctHeaders(answerHeaders) }),
    ...(operation.answers.isRedirect && (method === 'GET' || method === 'HEAD') && { redirects: 'follow' }),
    ...(hints && { annotations: hints }),
    ...(tags.length > 0 && { tags }),
  };
}

/**
 * Headers about the connection, the message, caching, and browsers (RFC 9110, RFC 9111), which are useless to an agent.
 * Link, Location, ETag, and Retry-After are useful to an agent, so they are not listed here.
 */
const ofHttp = new RegExp(
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
  return [...byName.values()].slice(0, mostHeaders);
}

/** Maximum number of response headers of a tool. */
const mostHeaders = 20;

/** Returns an operation's tags, within the configuration limits. */
function tagsOf({ tags }: ApiOperation): string[] {
  const visible = tags.map((tag) =>
    visibleName(tag).replaceAll(/\s+/gu, ' ').slice(0, mostTagText).toWellFormed().trim(),
  );
  return [...new Set(visible)].filter((tag) => tag !== '').slice(0, mostTags);
}

/**
 * Replaces surplus optional query arguments with one `fields` argument, and leaves out other surplus optional
 * arguments.
 */
function fewArguments(given: readonly MadeArgument[], making: Making): MadeArgument[] {
  const { report } = making;
  if (given.length <= mostArguments) return [...given];
  const plain = given.filter(
    ({ location, required, wire }) => location === 'query' && !required && Object.keys(wire).length === 0,
  );
  const gone = plain.slice(-(given.length - mostArguments + 1));
  const all = given.filter((argument) => !gone.includes(argument));
  if (gone.length > 0) {
    const names = gone.map(({ wireName }) => wireName);
    all.push(otherFields(names, { location: 'query', required: false }, making));
  }
  if (all.length <= mostArguments) return all;
  const required = all.filter((argument) => argument.required);
  const room = mostArguments - required.length;
  const optional = all.filter((argument) => !argument.required);
  report.skipRequired(`${all.length - mostArguments} of ${all.length} inputs`, room < 0);
  const kept = new Set([...required, ...optional.slice(0, Math.max(0, room))]);
  return all.filter((argument) => kept.has(argument));
}

function headersOf(operation: ApiOperation, inputs: InputParts, body: BodyParts): Record<string, string> {
  const headers = new Map(inputs.headers);
  const accept = acceptOf(operation.answers.mediaTypes);
  const isChosen = inputs.arguments.some(({ location, wireName }) => location === 'header' && wireName === 'Accept');
  if (accept !== undefined && !isChosen && !headers.has('Accept')) headers.set('Accept', accept);
  if (body.contentType !== undefined) headers.set('Content-Type', body.contentType);
  return Object.fromEntries(headers);
}

/** Returns the response type to request, or undefined for the default. */
function acceptOf(mediaTypes: readonly string[]): string | undefined {
  const concrete = mediaTypes.filter((type) => /^[\w.+-]+\/[\w.+-]+(?:\s*;[\x20-\x7e]*)?$/.test(type));
  if (concrete.length < mediaTypes.length || concrete.some((type) => /^application\/json\b/i.test(type)))
    return undefined;
  const json = concrete.filter((type) => /[+/]json\b/i.test(type));
  // Types such as application/vnd.github.raw+json return text that is not JSON.
  const chosen = json.find((type) => !/\b(?:raw|diff|patch)\b/i.test(type)) ?? json[0] ?? concrete[0];
  return chosen === undefined || chosen.length > 200 ? undefined : chosen;
}

function descriptionOf({ summary, description, method, path, isDeprecated }: ApiOperation, most: number): string {
  const first = plainText(summary, mostToolText);
  const second = plainText(description, mostToolText);
  const isSame = second === '' || first.toLowerCase().startsWith(second.toLowerCase().replace(/\.$/, ''));
  const starts = first !== '' && second.toLowerCase().startsWith(first.toLowerCase());
  const text = isSame ? first : starts || first === '' ? second : joined([first, second]);
  const named = text.length < 20 ? joined([text, plainText(`${method} ${path}`, 200)]) : text;
  return shortened(isDeprecated ? joined(['Deprecated', named]) : named, most);
}

function inputSchemaOf(
  args: readonly MadeArgument[],
  method: string,
  inUrl: ReadonlySet<string>,
  body: string | undefined,
): ImportedTool['input_schema'] {
  const isOne = body !== undefined && !['json', 'form', 'multipart'].includes(body);
  const usual = isOne || hasNoUsualBody(method) ? 'query' : 'body';
  // The argument for a file name is not a separate field.
  const ofFiles = new Set(args.map(({ wire }) => field(wire.file_name, 'argument')));
  const definitions = args.map((argument) => {
    const { name, wireName, location, schema, wire } = argument;
    const isPlaced = inUrl.has(name) || name === body || location === usual || ofFiles.has(name);
    const definition: JsonSchema = {
      ...(isForeignName(wireName) ? calledBy(wireName, schema) : schema),
      ...(!isPlaced && { in: location }),
      ...(wireName !== name && !inUrl.has(name) && { wire_name: wireName }),
      ...wire,
    };
    return { name, required: argument.required, definition };
  });
  return (
    flatFields(definitions) ?? {
      type: 'object',
      properties: Object.fromEntries(definitions.map(({ name, definition }) => [name, definition])),
      ...requiredOf(definitions),
      additionalProperties: false,
    }
  );
}

/** Adds the wire name to the description of a schema if the argument cannot have that name. */
function calledBy(wireName: string, { type, description, ...rest }: JsonSchema): JsonSchema {
  const text = joined([`Named ${wireName} in the API`, String(description ?? '')]);
  return { ...(type !== undefined && { type }), description: text, ...rest };
}

function requiredOf(definitions: readonly { name: string; required: boolean }[]): { required?: string[] } {
  const required = definitions.filter((definition) => definition.required).map(({ name }) => name);
  return required.length > 0 ? { required } : {};
}

/** Returns the estimated tokens of a tool. Current models use about one token per four characters of JSON. */
export function tokensOfTool({ name, description, input_schema }: ImportedTool): number {
  return tokensOfLength(JSON.stringify({ name, description, inputSchema: toJsonSchema(input_schema) }).length);
}

type Definition = { name: string; required: boolean; definition: JsonSchema };

const nested = new Set(
  'type description enum minimum maximum minLength maxLength format pattern required items properties'.split(' '),
);
const ofArgument = new Set(
  'in wire_name style value allow_slashes allow_reserved content file_name media_type'.split(' '),
);

/**
 * Returns the definitions as a flat map, which is easier to read than a JSON Schema. Returns undefined if some of them
 * need a JSON Schema.
 */
function flatFields(definitions: readonly Definition[]): { [name: string]: JsonSchema } | undefined {
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
    if (!nested.has(keyword) && !(isArgument && ofArgument.has(keyword))) return false;
  const { items, properties, required } = schema;
  if (Array.isArray(required) && required.length > 100) return false;
  const inner = [...(items === undefined ? [] : [items]), ...Object.values((properties ?? {}) as JsonSchema)];
  return inner.every((part) => isFlat(part as JsonSchema, false));
}

const cursors =
  /^(?:page_?)?(?:cursor|token)$|^(?:next|start|continuation)_?(?:cursor|token|page_?token|key)$|^page_?token$/i;
const nextCursors =
  /^next_?(?:page_?)?(?:cursor|token|key|start|marker)$|^(?:end|page)_?cursor$|^continuation_?token$/i;
const offsets = /^(?:offset|start_?at|skip|start_?index)$/i;
const pageSizes = /^(?:limit|count|max_?results|top|per_?page|page_?size|size)$/i;

/**
 * Returns a sentence that explains how to get the next page of a response, and the headers that contain it. Returns
 * empty values if the operation does not say.
 */
function pagingOf(
  { method, answers }: ApiOperation,
  args: readonly MadeArgument[],
): { sentence: string; headers: string[] } {
  const find = (pattern: RegExp) => args.find(({ wireName }) => pattern.test(wireName))?.name;
  const size = find(pageSizes);
  const cursor = find(cursors);
  const next = answers.fields.find((path) => nextCursors.test(path.slice(path.lastIndexOf('.') + 1)));
  if (cursor !== undefined && next !== undefined) return nextPage(`pass ${next} of the result as ${cursor}`);
  const after = find(/^starting_?after$/i);
  if (after !== undefined && answers.fields.includes('has_more'))
    return nextPage(`pass the id of the last item as ${after}`);
  // With a cursor, there is no page number, even if the response does not name the next cursor.
  if (method !== 'GET' || cursor !== undefined) return noPaging;
  const isNumber = (name: string) =>
    args.some((one) => one.name === name && /^(?:integer|number)$/.test(String(one.schema.type)));
  const offset = find(offsets);
  if (offset !== undefined && size !== undefined && isNumber(offset))
    return nextPage(`raise ${offset} by the number of items`);
  const page = find(/^page(?:_?number)?$/i);
  if (page === undefined || size === undefined || !isNumber(page)) return noPaging;
  // Many APIs with page numbers return the next page in this header even if their description does not say so (RFC
  // 8288).
  return { ...nextPage(`raise ${page} by 1`), headers: ['Link'] };
}

const noPaging = { sentence: '', headers: [] };

function nextPage(how: string): { sentence: string; headers: string[] } {
  return { sentence: `For the next page ${how}.`, headers: [] };
}
