import { anyKey, parseDotPath, splitWrittenNames, type TranslatedPath, translatePath } from '@toolhost/errors/dot-path';
import { describeValue, type SuggestionBudget, suggestName } from '@toolhost/errors/problems';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { createConstantMatcher, getBodyKind, getDestinations, getWireName, parseBodyTemplate } from './destinations.ts';
import { getHeader } from './http/headers.ts';
import { compareParameterNames, foldHeaderName } from './http/parameter-names.ts';
import { getPlaceholderNames } from './http/placeholders.ts';
import { getArgumentNames, parseUrlTemplate, type UrlTemplate } from './http/url-template.ts';
import { type Argument, getArguments, listArgumentNames, toJsonSchema } from './input-schema.ts';
import { deceptiveCharacters } from './invisible-characters.ts';
import type { ServerConfig } from './server-config.ts';
import { createToolResolver } from './server-wide.ts';
import { getAnnotations, type Tool } from './tool.ts';
import { indexTools, toViewTool } from './view.ts';
import type { Warning } from './warning.ts';

/**
 * Returns warnings about hints that contradict the request. Clients use hints to decide when to retry and when to ask
 * the person.
 */
export function findHintWarnings(tool: Tool, at: string): Warning[] {
  const { method } = tool;
  const hints = getAnnotations(tool);
  const warnings: Warning[] = [];
  const warn = (hint: string, message: string) => warnings.push({ path: `${at}.annotations.${hint}`, message });
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
  return warnings;
}

const idempotencyKeyPattern = /^(x-)?(idempotency|idempotent|request|client-request|client-token)(-key|-id)?$/;

function hasIdempotencyKey({ headers, input_schema }: Tool): boolean {
  const names = getArguments(input_schema).flatMap(({ name, wire }) => [name, wire.wire_name ?? name]);
  return [...Object.keys(headers), ...names].some((name) => idempotencyKeyPattern.test(foldHeaderName(name)));
}

/**
 * Returns warnings about `response_fields` that omit data described by `output_schema`, or that name data it does not
 * describe.
 */
export function findResponseWarnings(tool: Tool, at: string, budget: SuggestionBudget): Warning[] {
  const { response_fields: fields, output_schema: schema } = tool;
  if (!fields || !schema || typeof schema.properties !== 'object' || schema.properties === null) return [];
  const propertyNames = Object.keys(schema.properties);
  const isOpen = schema.additionalProperties !== false && propertyNames.length === 0;
  if (isOpen) return [];
  const warnings: Warning[] = [];
  for (const [index, field] of fields.entries()) {
    const firstName = parseDotPath(field)[0] ?? '';
    if (firstName === anyKey || propertyNames.some((name) => name === firstName || `${field}.`.startsWith(`${name}.`)))
      continue;
    const path = `${at}.response_fields[${index}]`;
    warnings.push({
      path,
      message: `output_schema has no property ${firstName}, so this selects nothing that it describes${suggestName(firstName, propertyNames, budget)}`,
    });
  }
  const selectedNames = new Set(fields.map((field) => parseDotPath(field)[0]));
  const isSelected = (name: string) =>
    selectedNames.has(name) || selectedNames.has(anyKey) || fields.some((field) => `${field}.`.startsWith(`${name}.`));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const missingRequired = required.filter((name): name is string => typeof name === 'string' && !isSelected(name));
  if (missingRequired.length > 0) {
    const names = missingRequired.slice(0, 3).join(', ');
    const message = `omit ${names}, which output_schema requires, so every result would be rejected; add it here, or remove it from required`;
    warnings.push({ path: `${at}.response_fields`, message });
  }
  return warnings;
}

/** Returns warnings about paths in another notation, which match nothing. */
export function findPathWarnings({ response_transform, response_fields = [] }: Tool, at: string): Warning[] {
  const transform = translatePath(response_transform);
  const fieldWarnings = response_fields.flatMap((field, index): Warning[] => {
    const foreignNotation = translatePath(
      splitWrittenNames(field)
        .filter((name) => name !== anyKey)
        .join('.'),
    );
    if (!foreignNotation) return [];
    const { names } = foreignNotation;
    const advice =
      names.length === 0
        ? 'leave response_fields out to keep the whole response'
        : `use ${quotePath(names)}, which applies to every item of a list`;
    return [{ path: `${at}.response_fields[${index}]`, message: `${pathSyntaxHint}; ${advice}` }];
  });
  if (!transform) return fieldWarnings;
  return [{ path: `${at}.response_transform`, message: suggestTransform(transform) }, ...fieldWarnings];
}

const pathSyntaxHint =
  'a path consists of names and item numbers separated by dots, and a backslash escapes the next character';

function suggestTransform({ names, allAtDepth }: TranslatedPath): string {
  if (allAtDepth === undefined) return `${pathSyntaxHint}; use ${quotePath(names)}`;
  const fields =
    names.length > allAtDepth
      ? `, and response_fields: [${quotePath(names.slice(allAtDepth))}] for fields of each item`
      : '';
  return `${pathSyntaxHint}, and selects one value; use ${quotePath(names.slice(0, allAtDepth))}${fields}`;
}

function quotePath(names: readonly string[]): string {
  return JSON.stringify(names.length === 0 ? '.' : names.join('.'));
}

/** Returns warnings about text in braces in header values, which is sent literally. `at` is the path of the headers. */
export function findBraceWarnings(headers: Readonly<Record<string, string>> | undefined, at: string): Warning[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const match = /(?<![{\w$])[$]?\{([A-Za-z_]\w*)\}(?!\})/.exec(value);
    if (!match) return [];
    return [
      {
        path: `${at}.${name}`,
        message: `\`${match[0]}\` is sent literally; use {{${match[1]}}} for a variable or a secret`,
      },
    ];
  });
}

/** Reason why a call may have no value for an argument. */
type Gap = 'left out' | 'null';

const remedies: Record<Gap, string> = {
  'left out': 'make the argument required, or give it a default',
  null: 'remove null from the type of the argument',
};

/**
 * Returns warnings about filters that a call can omit, for methods that change or delete data. A URL query pair whose
 * argument is absent is dropped (specification, "Request" 3), and an API without the filter may affect everything.
 */
function findFilterWarnings(tool: Tool, at: string): Warning[] {
  if (!/^(PUT|PATCH|DELETE)$/.test(tool.method)) return [];
  const declared = getArguments(tool.input_schema);
  const { template } = parseUrlTemplate(
    tool.url,
    declared.map(({ name }) => name),
  );
  if (!template) return [];
  const { properties = {} } = toJsonSchema(tool.input_schema);
  const gaps = new Map(
    declared.map((argument) => [argument.name, getGap(argument, (properties as JsonSchema)[argument.name])]),
  );
  const warnings = template.query.flatMap(({ name, parts = [] }): Warning[] => {
    const names = getArgumentNames(parts);
    const firstName = names[0];
    const gap =
      firstName === undefined || names.some((argument) => !gaps.get(argument)) ? undefined : gaps.get(firstName);
    if (firstName === undefined || gap === undefined) return [];
    const message = `may be ${gap}, and then the pair ${describeValue(name)} of the URL is omitted too, so one call may change or delete everything there; ${remedies[gap]}`;
    return [{ path: `${at}.input_schema.${firstName}`, message }];
  });
  if (warnings.length > 0 || !hasOnlyOptionalFilters(tool, template, declared)) return warnings;
  const message =
    'every argument may be left out, and the URL has none, so one call may delete the whole list if this is the URL of a list; make one argument required';
  return [{ path: `${at}.input_schema`, message }];
}

function getGap({ required, fallback, wire }: Argument, schema: unknown): Gap | undefined {
  if (wire.value !== undefined) return undefined;
  if (!required && fallback === undefined) return 'left out';
  return allowsNull(schema) ? 'null' : undefined;
}

/** Returns true if a schema itself allows null. References are not followed. */
function allowsNull(schema: unknown): boolean {
  const { type, enum: values } = (schema ?? {}) as JsonSchema;
  const isListed = !Array.isArray(values) || values.includes(null);
  return Array.isArray(type) && type.includes('null') && isListed;
}

/** Returns true if a DELETE has only optional query arguments and nothing that every call sends. */
function hasOnlyOptionalFilters(tool: Tool, { query }: UrlTemplate, declared: readonly Argument[]): boolean {
  if (tool.method !== 'DELETE' || declared.length === 0 || query.length > 0) return false;
  if (getBodyKind(tool) === 'template' || getBodyKind(tool) === 'argument') return false;
  return declared.every(({ required, fallback, wire, location }) => {
    const isAbsent = !required && fallback === undefined && wire.value === undefined;
    return isAbsent && (location === undefined || location === 'query');
  });
}

/** Returns the arguments of a tool by location, with their upstream names. */
function locateArguments(tool: Tool) {
  const declared = getArguments(tool.input_schema);
  const names = declared.map(({ name }) => name);
  const { template } = parseUrlTemplate(tool.url, names);
  const kind = getBodyKind(tool);
  const inBody = kind === 'template' ? parseBodyTemplate(tool.body_template, names).names : [];
  const destinations = getDestinations(tool, declared, { inUrl: template?.names ?? [], inBody });
  const named = declared.map((argument) => ({
    name: argument.name,
    wireName: getWireName(argument),
    style: argument.wire.style,
  }));
  const findArgumentsAt = (destination: string) => named.filter(({ name }) => destinations.get(name) === destination);
  return { kind, pairs: template?.query ?? [], inQuery: findArgumentsAt('query'), inBody: findArgumentsAt('body') };
}

/**
 * Returns warnings about arguments that a receiver could read as the same parameter as a URL query pair. Both are sent,
 * because arguments outside the template always are (specification 4.3.3). Some APIs use the last one as intended;
 * others use the first, or both as a list.
 */
function findUrlConflicts(tool: Tool, at: string): Warning[] {
  if (!tool.url.includes('?')) return [];
  const { pairs, inQuery } = locateArguments(tool);
  if (inQuery.length === 0) return [];
  const names = [...new Set(pairs.map(({ name }) => name).filter((name) => name !== ''))].slice(0, maxPairs);
  const comparison = compareParameterNames([...inQuery.map(({ wireName }) => wireName), ...names]);
  return inQuery.flatMap(({ name }, index) => {
    const pairIndex = comparison.getConflicts(index).find((alikeIndex) => alikeIndex >= inQuery.length);
    const pair = pairIndex === undefined ? undefined : names[pairIndex - inQuery.length];
    if (pair === undefined) return [];
    const message = `the URL already has ${describeValue(pair)}, so both are sent and the API decides which one counts; use :${name} as its value in the URL, or give the argument a "default" and remove the pair from the URL`;
    return [{ path: `${at}.input_schema.${name}`, message }];
  });
}

const maxPairs = 100;

/**
 * Returns warnings about arguments that a view does not send, because a receiver could read them as an argument that
 * the view fixes.
 */
export function findFixedConflicts(config: ServerConfig): Warning[] {
  const { byName } = indexTools(config.tools);
  // Up to 20 views may fix arguments of the same tool, whose names are compared only once.
  const resolve = createToolResolver(config);
  const matchersByTool = new Map<string, ReturnType<typeof createNameMatchers>>();
  return Object.entries(config.views ?? {}).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry, index) => {
      const { name, arguments: fixed } = toViewTool(entry);
      const tool = fixed && byName.get(name);
      if (!tool) return [];
      const names = matchersByTool.get(name) ?? createNameMatchers(resolve(tool));
      matchersByTool.set(name, names);
      return toConflictWarnings(names, Object.keys(fixed), `views.${view}.tools[${index}].arguments`);
    }),
  );
}

function createNameMatchers(tool: Tool) {
  const { kind, inQuery, inBody } = locateArguments(tool);
  const wireNames = new Map([...inBody, ...inQuery].map(({ name, wireName }) => [name, wireName]));
  return {
    wireNames,
    matchQuery: createConstantMatcher(inQuery, 'query'),
    matchBody: createConstantMatcher(inBody, kind),
  };
}

function toConflictWarnings(
  { wireNames, matchQuery, matchBody }: ReturnType<typeof createNameMatchers>,
  fixed: string[],
  at: string,
): Warning[] {
  const names = new Set(fixed);
  const unsentByConstant = Map.groupBy([...matchQuery(names), ...matchBody(names)], ({ constant }) => constant);
  return fixed.flatMap((name) => {
    const wireName = wireNames.get(name);
    const unsent = wireName === undefined ? undefined : unsentByConstant.get(wireName);
    if (wireName === undefined || !unsent) return [];
    const message = `${formatNames(unsent.map((argument) => describeValue(argument.wireName)))} could be read as ${describeValue(wireName)}, so it is not sent in this view; fix it as well, or remove it from the tool`;
    return [{ path: `${at}.${name}`, message }];
  });
}

const maxListedNames = 3;

function formatNames(names: readonly string[]): string {
  const omittedCount = names.length - maxListedNames;
  return names.slice(0, maxListedNames).join(', ') + (omittedCount > 0 ? ` and ${omittedCount} more` : '');
}

/** Returns warnings about `tool`, which includes the fields of its server. `storedTool` is the tool as it is stored. */
export function findToolWarnings(storedTool: Tool, at: string, tool: Tool): Warning[] {
  const warnings: Warning[] = [];
  const warn = (field: string, message: string) => warnings.push({ path: `${at}.${field}`, message });
  const mayCreate = tool.method === 'POST' || tool.method === 'PATCH';
  if (
    mayCreate &&
    tool.url.includes('/rest/v1/') &&
    !getHeader(tool.headers, 'prefer')?.includes('return=representation')
  ) {
    warn('headers', 'without "Prefer: return=representation", such an upstream responds with an empty 204');
  }
  if ((tool.method === 'GET' || tool.method === 'DELETE') && hasContentType(storedTool) && !declaresBody(tool)) {
    warn('headers.Content-Type', `a ${tool.method} request normally has no body`);
  }
  if (tool.description.length < 20)
    warn('description', 'is shorter than 20 characters; models choose tools by their description');
  if (deceptiveCharacters.test(tool.description.replaceAll(/[\n\t]/g, '')))
    warn('description', 'has invisible characters');
  if (hasTokenInParentheses(tool)) {
    warn(
      'url',
      'a :token inside parentheses of a query value can be escaped with , and ) in upstreams with their own filter language; prefer eq.:id',
    );
  }
  warnings.push(
    ...findFilterWarnings(tool, at),
    ...findUrlConflicts(tool, at),
    ...findPlaintextCredentials(storedTool, `${at}.headers`),
  );
  return warnings;
}

/** Returns true if a tool declares a body although its method usually has none. */
function declaresBody(tool: Tool): boolean {
  return (
    getBodyKind(tool) === 'argument' ||
    getBodyKind(tool) === 'template' ||
    getArguments(tool.input_schema).some(({ location }) => location === 'body')
  );
}

function hasContentType(tool: Tool): boolean {
  return getHeader(tool.headers, 'content-type') !== undefined;
}

export function findPlaintextCredentials(
  { headers = {} }: { headers?: Record<string, string> | undefined },
  at: string,
): Warning[] {
  return Object.entries(headers)
    .filter(
      ([name, value]) =>
        /^(authorization|apikey|x-api-key)$/.test(foldHeaderName(name)) && getPlaceholderNames(value).length === 0,
    )
    .map(([name]) => ({
      path: `${at}.${name}`,
      message: 'looks like a plaintext credential; store it as a secret and use {{NAME}}',
    }));
}

function hasTokenInParentheses(tool: Tool): boolean {
  const { template } = parseUrlTemplate(tool.url, listArgumentNames(tool.input_schema));
  return (template?.query ?? []).some(({ parts }) => {
    let depth = 0;
    for (const part of parts ?? []) {
      if ('argument' in part && depth > 0) return true;
      if ('text' in part) depth += part.text.split('(').length - part.text.split(')').length;
    }
    return false;
  });
}
