import { bodyKindOf, destinationsOf, parseBodyTemplate, readAsConstants, wireNameOf } from '../config/destinations.ts';
import { type Argument, argumentNames, argumentsOf, toJsonSchema } from '../config/input-schema.ts';
import type { ServerConfig } from '../config/server-config.ts';
import { toolResolver } from '../config/server-wide.ts';
import { annotationsOf, type Tool } from '../config/tool.ts';
import { indexTools, viewToolOf } from '../config/view.ts';
import { headerOf } from '../http/headers.ts';
import { foldedHeader, namesBeside } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';
import { argumentsIn, parseUrlTemplate, type UrlTemplate } from '../http/url-template.ts';
import { anyKey, type ForeignPath, foreignPath, parseDotPath, writtenNames } from '../json/dot-path.ts';
import { didYouMean, type Guesses, shown } from '../problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { hiddenCharacters } from '../unseen-characters.ts';
import type { Warning } from './warnings.ts';

/**
 * Returns warnings about hints that contradict the request. Clients use hints to decide when to retry and when to ask
 * the person.
 */
export function hintWarnings(tool: Tool, at: string): Warning[] {
  const { method } = tool;
  const hints = annotationsOf(tool);
  const remarks: Warning[] = [];
  const warn = (hint: string, message: string) => remarks.push({ path: `${at}.annotations.${hint}`, message });
  if (hints.readOnlyHint && hints.destructiveHint) {
    warn('destructiveHint', 'contradicts readOnlyHint, so clients ignore it; set one of the two to false');
  } else if (hints.readOnlyHint && (method === 'DELETE' || method === 'PUT' || method === 'PATCH')) {
    warn('readOnlyHint', `marks ${method} as read-only, so clients send it without asking the person`);
  }
  if (method === 'GET' && (hints.destructiveHint || !hints.readOnlyHint)) {
    const hint = hints.destructiveHint ? 'destructiveHint' : 'readOnlyHint';
    warn(
      hint,
      'declares that this GET may change data, but clients and proxies may repeat a GET; use another method if the API has one, or correct the hint',
    );
  }
  if (
    (method === 'POST' || method === 'PATCH') &&
    hints.idempotentHint &&
    !hints.readOnlyHint &&
    !hasIdempotencyKey(tool)
  ) {
    warn(
      'idempotentHint',
      `declares that this ${method} may be repeated, but the tool has no Idempotency-Key; add one to headers or as an argument, or make sure that the API ignores repeated requests`,
    );
  }
  return remarks;
}

const key = /^(x-)?(idempotency|idempotent|request|client-request|client-token)(-key|-id)?$/;

function hasIdempotencyKey({ headers, input_schema }: Tool): boolean {
  const names = argumentsOf(input_schema).flatMap(({ name, wire }) => [name, wire.wire_name ?? name]);
  return [...Object.keys(headers), ...names].some((name) => key.test(foldedHeader(name)));
}

/**
 * Returns warnings about `response_fields` that omit data described by `output_schema`, or that name data it does not
 * describe.
 */
export function answerWarnings(tool: Tool, at: string, guesses: Guesses): Warning[] {
  const { response_fields: fields, output_schema: schema } = tool;
  if (!fields || !schema || typeof schema.properties !== 'object' || schema.properties === null) return [];
  const known = Object.keys(schema.properties);
  const isOpen = schema.additionalProperties !== false && known.length === 0;
  if (isOpen) return [];
  const remarks: Warning[] = [];
  for (const [index, field] of fields.entries()) {
    const first = parseDotPath(field)[0] ?? '';
    if (first === anyKey || known.some((name) => name === first || `${field}.`.startsWith(`${name}.`))) continue;
    const path = `${at}.response_fields[${index}]`;
    remarks.push({
      path,
      message: `output_schema has no property ${first}, so this selects nothing that it describes${didYouMean(first, known, guesses)}`,
    });
  }
  const kept = new Set(fields.map((field) => parseDotPath(field)[0]));
  const isKept = (name: string) =>
    kept.has(name) || kept.has(anyKey) || fields.some((field) => `${field}.`.startsWith(`${name}.`));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const lost = required.filter((name): name is string => typeof name === 'string' && !isKept(name));
  if (lost.length > 0) {
    const names = lost.slice(0, 3).join(', ');
    const message = `omit ${names}, which output_schema requires, so every result would be rejected; add it here, or remove it from required`;
    remarks.push({ path: `${at}.response_fields`, message });
  }
  return remarks;
}

/** Returns warnings about paths in another notation, which match nothing. */
export function pathWarnings({ response_transform, response_fields = [] }: Tool, at: string): Warning[] {
  const transform = foreignPath(response_transform);
  const ofFields = response_fields.flatMap((field, index): Warning[] => {
    const foreign = foreignPath(
      writtenNames(field)
        .filter((name) => name !== anyKey)
        .join('.'),
    );
    if (!foreign) return [];
    const { names } = foreign;
    const instead =
      names.length === 0
        ? 'leave response_fields out to keep the whole response'
        : `use ${quoted(names)}, which applies to every item of a list`;
    return [{ path: `${at}.response_fields[${index}]`, message: `${joinedByDots}; ${instead}` }];
  });
  if (!transform) return ofFields;
  return [{ path: `${at}.response_transform`, message: betterTransform(transform) }, ...ofFields];
}

const joinedByDots =
  'a path consists of names and item numbers separated by dots, and a backslash escapes the next character';

function betterTransform({ names, all }: ForeignPath): string {
  if (all === undefined) return `${joinedByDots}; use ${quoted(names)}`;
  const fields =
    names.length > all ? `, and response_fields: [${quoted(names.slice(all))}] for fields of each item` : '';
  return `${joinedByDots}, and selects one value; use ${quoted(names.slice(0, all))}${fields}`;
}

function quoted(names: readonly string[]): string {
  return JSON.stringify(names.length === 0 ? '.' : names.join('.'));
}

/** Returns warnings about text in braces in header values, which is sent literally. `at` is the path of the headers. */
export function bracesInHeaders(headers: Readonly<Record<string, string>> | undefined, at: string): Warning[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const found = /(?<![{\w$])[$]?\{([A-Za-z_]\w*)\}(?!\})/.exec(value);
    if (!found) return [];
    return [
      {
        path: `${at}.${name}`,
        message: `\`${found[0]}\` is sent literally; use {{${found[1]}}} for a variable or a secret`,
      },
    ];
  });
}

/** Reason why a call may have no text for an argument. */
type Gap = 'left out' | 'null';

const remedies: Record<Gap, string> = {
  'left out': 'make the argument required, or give it a default',
  null: 'remove null from the type of the argument',
};

/**
 * Returns warnings about filters that a call can omit, for methods that change or delete data. A URL query pair whose
 * argument is absent is dropped (specification, "Request" 3), and an API without the filter may affect everything.
 */
function filterWarnings(tool: Tool, at: string): Warning[] {
  if (!/^(PUT|PATCH|DELETE)$/.test(tool.method)) return [];
  const declared = argumentsOf(tool.input_schema);
  const { template } = parseUrlTemplate(
    tool.url,
    declared.map(({ name }) => name),
  );
  if (!template) return [];
  const { properties = {} } = toJsonSchema(tool.input_schema);
  const gaps = new Map(declared.map((one) => [one.name, gapOf(one, (properties as JsonSchema)[one.name])]));
  const remarks = template.query.flatMap(({ name, parts = [] }): Warning[] => {
    const names = argumentsIn(parts);
    const first = names[0];
    const gap = first === undefined || names.some((one) => !gaps.get(one)) ? undefined : gaps.get(first);
    if (first === undefined || gap === undefined) return [];
    const message = `may be ${gap}, and then the pair ${shown(name)} of the URL is omitted too, so one call may change or delete everything there; ${remedies[gap]}`;
    return [{ path: `${at}.input_schema.${first}`, message }];
  });
  if (remarks.length > 0 || !isOnlyNarrowed(tool, template, declared)) return remarks;
  const message =
    'every argument may be left out, and the URL has none, so one call may delete the whole list if this is the URL of a list; make one argument required';
  return [{ path: `${at}.input_schema`, message }];
}

function gapOf({ required, fallback, wire }: Argument, schema: unknown): Gap | undefined {
  if (wire.value !== undefined) return undefined;
  if (!required && fallback === undefined) return 'left out';
  return takesNull(schema) ? 'null' : undefined;
}

/** Returns true if a schema itself allows null. References are not followed. */
function takesNull(schema: unknown): boolean {
  const { type, enum: values } = (schema ?? {}) as JsonSchema;
  const isListed = !Array.isArray(values) || values.includes(null);
  return Array.isArray(type) && type.includes('null') && isListed;
}

/** Returns true if a DELETE has only optional query arguments and nothing that every call sends. */
function isOnlyNarrowed(tool: Tool, { query }: UrlTemplate, declared: readonly Argument[]): boolean {
  if (tool.method !== 'DELETE' || declared.length === 0 || query.length > 0) return false;
  if (bodyKindOf(tool) === 'template' || bodyKindOf(tool) === 'argument') return false;
  return declared.every(({ required, fallback, wire, location }) => {
    const isAbsent = !required && fallback === undefined && wire.value === undefined;
    return isAbsent && (location === undefined || location === 'query');
  });
}

/** Returns the arguments of a tool by location, with their upstream names. */
function placed(tool: Tool) {
  const declared = argumentsOf(tool.input_schema);
  const names = declared.map(({ name }) => name);
  const { template } = parseUrlTemplate(tool.url, names);
  const kind = bodyKindOf(tool);
  const inBody = kind === 'template' ? parseBodyTemplate(tool.body_template, names).names : [];
  const destinations = destinationsOf(tool, declared, { inUrl: template?.names ?? [], inBody });
  const named = declared.map((one) => ({ name: one.name, wireName: wireNameOf(one), style: one.wire.style }));
  const at = (place: string) => named.filter(({ name }) => destinations.get(name) === place);
  return { kind, pairs: template?.query ?? [], inQuery: at('query'), inBody: at('body') };
}

/**
 * Returns warnings about arguments that a receiver could read as the same parameter as a URL query pair. Both are sent,
 * because arguments outside the template always are (specification 4.3.3). Some APIs use the last one as intended;
 * others use the first, or both as a list.
 */
function besideUrl(tool: Tool, at: string): Warning[] {
  if (!tool.url.includes('?')) return [];
  const { pairs, inQuery } = placed(tool);
  if (inQuery.length === 0) return [];
  const names = [...new Set(pairs.map(({ name }) => name).filter((name) => name !== ''))].slice(0, mostPairs);
  const beside = namesBeside([...inQuery.map(({ wireName }) => wireName), ...names]);
  return inQuery.flatMap(({ name }, index) => {
    const place = beside.alike(index).find((other) => other >= inQuery.length);
    const pair = place === undefined ? undefined : names[place - inQuery.length];
    if (pair === undefined) return [];
    const message = `the URL already has ${shown(pair)}, so both are sent and the API decides which one counts; use :${name} as its value in the URL, or give the argument a "default" and remove the pair from the URL`;
    return [{ path: `${at}.input_schema.${name}`, message }];
  });
}

const mostPairs = 100;

/**
 * Returns warnings about arguments that a view does not send, because a receiver could read them as an argument that
 * the view fixes.
 */
export function besideFixed(config: ServerConfig): Warning[] {
  const { byName } = indexTools(config.tools);
  // Up to 20 views may fix arguments of the same tool, whose names are compared only once.
  const resolve = toolResolver(config);
  const compared = new Map<string, ReturnType<typeof comparedNames>>();
  return Object.entries(config.views ?? {}).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry, index) => {
      const { name, arguments: fixed } = viewToolOf(entry);
      const tool = fixed && byName.get(name);
      if (!tool) return [];
      const names = compared.get(name) ?? comparedNames(resolve(tool));
      compared.set(name, names);
      return ofFixed(names, Object.keys(fixed), `views.${view}.tools[${index}].arguments`);
    }),
  );
}

function comparedNames(tool: Tool) {
  const { kind, inQuery, inBody } = placed(tool);
  const wireNames = new Map([...inBody, ...inQuery].map(({ name, wireName }) => [name, wireName]));
  return { wireNames, ofQuery: readAsConstants(inQuery, 'query'), ofBody: readAsConstants(inBody, kind) };
}

function ofFixed(
  { wireNames, ofQuery, ofBody }: ReturnType<typeof comparedNames>,
  fixed: string[],
  at: string,
): Warning[] {
  const names = new Set(fixed);
  const lost = Map.groupBy([...ofQuery(names), ...ofBody(names)], ({ constant }) => constant);
  return fixed.flatMap((name) => {
    const wireName = wireNames.get(name);
    const others = wireName === undefined ? undefined : lost.get(wireName);
    if (wireName === undefined || !others) return [];
    const message = `${listed(others.map((one) => shown(one.wireName)))} could be read as ${shown(wireName)}, so it is not sent in this view; fix it as well, or remove it from the tool`;
    return [{ path: `${at}.${name}`, message }];
  });
}

const mostListed = 3;

function listed(names: readonly string[]): string {
  const rest = names.length - mostListed;
  return names.slice(0, mostListed).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

/** Returns warnings about `tool`, which includes the fields of its server. `written` is the tool as it is stored. */
export function toolWarnings(written: Tool, at: string, tool: Tool): Warning[] {
  const warnings: Warning[] = [];
  const warn = (field: string, message: string) => warnings.push({ path: `${at}.${field}`, message });
  const writes = tool.method === 'POST' || tool.method === 'PATCH';
  if (
    writes &&
    tool.url.includes('/rest/v1/') &&
    !headerOf(tool.headers, 'prefer')?.includes('return=representation')
  ) {
    warn('headers', 'without "Prefer: return=representation", such an upstream responds with an empty 204');
  }
  if ((tool.method === 'GET' || tool.method === 'DELETE') && hasOwnContentType(written) && !mayHaveBody(tool)) {
    warn('headers.Content-Type', `a ${tool.method} request normally has no body`);
  }
  if (tool.description.length < 20)
    warn('description', 'is shorter than 20 characters; models choose tools by their description');
  if (hiddenCharacters.test(tool.description.replaceAll(/[\n\t]/g, '')))
    warn('description', 'has invisible characters');
  if (hasTokenInParentheses(tool)) {
    warn(
      'url',
      'a :token inside parentheses of a query value can be escaped with , and ) in upstreams with their own filter language; prefer eq.:id',
    );
  }
  warnings.push(...filterWarnings(tool, at), ...besideUrl(tool, at), ...clearCredentials(written, `${at}.headers`));
  return warnings;
}

/** Returns true if a tool declares a body although its method usually has none. */
function mayHaveBody(tool: Tool): boolean {
  return (
    bodyKindOf(tool) === 'argument' ||
    bodyKindOf(tool) === 'template' ||
    argumentsOf(tool.input_schema).some(({ location }) => location === 'body')
  );
}

function hasOwnContentType(tool: Tool): boolean {
  return headerOf(tool.headers, 'content-type') !== undefined;
}

export function clearCredentials(
  { headers = {} }: { headers?: Record<string, string> | undefined },
  at: string,
): Warning[] {
  return Object.entries(headers)
    .filter(
      ([name, value]) =>
        /^(authorization|apikey|x-api-key)$/.test(foldedHeader(name)) && placeholderNames(value).length === 0,
    )
    .map(([name]) => ({
      path: `${at}.${name}`,
      message: 'looks like a plaintext credential; store it as a secret and use {{NAME}}',
    }));
}

function hasTokenInParentheses(tool: Tool): boolean {
  const { template } = parseUrlTemplate(tool.url, argumentNames(tool.input_schema));
  return (template?.query ?? []).some(({ parts }) => {
    let depth = 0;
    for (const part of parts ?? []) {
      if ('argument' in part && depth > 0) return true;
      if ('text' in part) depth += part.text.split('(').length - part.text.split(')').length;
    }
    return false;
  });
}
