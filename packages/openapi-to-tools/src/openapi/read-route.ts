import type { ApiInput } from '../model.ts';

/**
 * Full path of an operation, or a shorter variant without some of its optional segments. Each syntax for parameters
 * (`{id}`, `:id`, `<id>`, `{id?}`, `{path=**}`, the operators of RFC 6570) is normalized to `{name}`.
 */
export type PathVariant = {
  /** Identity of the operation: the path as in the document, minus the omitted optional segments. */
  path: string;
  /** Path with each parameter as `{name}`. */
  route: string;
  inputs: readonly ApiInput[];
  /** Names of the omitted optional segments. */
  omitted: readonly string[];
};

type Token = { text: string } | Parameter;
type Parameter = { name: string; hasSlashes: boolean; isOptional: boolean };
/** Query pair whose value is a parameter. `wireName` is the name of the pair, `name` the parameter. */
type QueryParameter = { wireName: string; name: string; isOptional: boolean };

/**
 * Returns the variants of a path: the full path first, then a shorter one for each optional segment. Returns a problem
 * if the path cannot be read.
 */
export function readRoutes(path: string, inputs: readonly ApiInput[]): { routes: PathVariant[] } | { problem: string } {
  const declared = new Set(inputs.filter(({ location }) => location === 'path').map(({ name }) => name));
  const [pathname, query] = splitQuery(removeFragment(normalizeBrackets(path)));
  const parsedPath = tokenize(pathname, declared);
  const pairs = query === undefined ? [] : query.split('&').filter((pair) => pair !== '');
  const parsed = pairs.map((pair) => readPair(pair, declared));
  const unreadableText =
    parsedPath.problem ??
    parsed.find((pair) => 'problem' in pair)?.problem ??
    parsedPath.tokens.map(findLeftover).find((leftover) => leftover);
  if (unreadableText !== undefined)
    return { problem: `the path segment ${quoteShort(unreadableText)}, whose brackets contain no parameter name` };
  const queryParameters = [...parsedPath.query, ...parsed.flatMap((pair) => ('name' in pair ? [pair] : []))];
  const queryNames = new Set(inputs.flatMap(({ location, name }) => (location === 'query' ? [name] : [])));
  const fixed = parsed.flatMap((pair) => ('fixed' in pair && !isUnsetPair(pair.fixed, queryNames) ? [pair.fixed] : []));
  const variants = getShorterVariants(parsedPath.tokens);
  const routes = variants.map((tokens, index): PathVariant => {
    const names = new Map(tokens.flatMap((token) => ('name' in token ? [[token.name, token] as const] : [])));
    const route = tokens.map((token) => ('name' in token ? `{${token.name}}` : token.text)).join('') || '/';
    const search = fixed.length > 0 ? `?${fixed.join('&')}` : '';
    const omitted =
      variants[0]?.flatMap((token) => ('name' in token && !names.has(token.name) ? [token.name] : [])) ?? [];
    return {
      path: index === 0 ? path : route + search,
      route: route + search,
      inputs: applyPath(inputs, { names, omitted, queryParameters, fixed }),
      omitted,
    };
  });
  return { routes };
}

const quoteShort = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** Returns literal text with brackets, which no syntax for parameters explains. */
function findLeftover(token: Token): string | undefined {
  return 'text' in token && /[{}<>]/.test(token.text) ? token.text : undefined;
}

function removeFragment(path: string): string {
  // An expression such as {#part} is also a fragment.
  const index = path.search(/(?<!\{)#/);
  return (index < 0 ? path : path.slice(0, index)).replaceAll(/\{#[^{}]*\}/g, '');
}

/** Rewrites every bracket and colon syntax for parameters to braces. */
function normalizeBrackets(path: string): string {
  return path
    .replaceAll(/%7b/gi, '{')
    .replaceAll(/%7d/gi, '}')
    .replaceAll(/%3c([\w:.-]+)%3e/gi, '<$1>')
    .replaceAll(/\{\{\s*([\w.-]+)\s*\}\}/g, '{$1}')
    .replaceAll(/\$\{\s*([\w.-]+)\s*\}/g, '{$1}')
    .replaceAll(/<(?:(\w+)(?:\([^()<>]*\))?:)?([A-Za-z_][\w.-]*)>/g, (_, kind: string | undefined, name: string) =>
      kind === 'path' ? `{${name}*}` : `{${name}}`,
    )
    .replace(/[([]\.(?::\w+|\{\w+\})[)\]]$/, '')
    .replace(/[([]\/(?::(\w+)|\{(\w+)\})[)\]]$/, (_, colon?: string, brace?: string) => `/{${colon ?? brace}?}`)
    .replaceAll(
      /(?<=\/):([A-Za-z_]\w*)(?:\([^()/]*\))?(?:([*+])|(\?)(?=\/|$))?/g,
      (_, name: string, wildcard = '', optionalMark = '') => `{${name}${wildcard === '' ? '' : '*'}${optionalMark}}`,
    );
}

/** Splits off the query at a question mark outside braces. */
function splitQuery(path: string): [before: string, query: string | undefined] {
  let depth = 0;
  for (let index = 0; index < path.length; index++) {
    if (path[index] === '{') depth++;
    if (path[index] === '}') depth--;
    if (path[index] === '?' && depth === 0) return [path.slice(0, index), path.slice(index + 1)];
  }
  return [path, undefined];
}

type Tokens = { tokens: Token[]; query: QueryParameter[]; problem?: string };

function tokenize(path: string, declared: ReadonlySet<string>): Tokens {
  const result: Tokens = { tokens: [], query: [] };
  const add = (token: Token) => result.tokens.push(token);
  for (let position = 0; position < path.length; ) {
    const openIndex = path.indexOf('{', position);
    for (const token of tokenizeLiteral(
      openIndex < 0 ? path.slice(position) : path.slice(position, openIndex),
      declared,
    ))
      add(token);
    if (openIndex < 0) break;
    const closeIndex = findClosingBrace(path, openIndex);
    if (closeIndex < 0) return { ...result, problem: path.slice(openIndex) };
    addExpression(path.slice(openIndex + 1, closeIndex), declared, result);
    position = closeIndex + 1;
  }
  return result;
}

/**
 * Splits literal text into tokens. A declared name after a colon is a parameter; `/a:id` contains none if `id` is not
 * declared.
 */
function tokenizeLiteral(text: string, declared: ReadonlySet<string>): Token[] {
  return text.split(/:([A-Za-z_]\w*)/).flatMap((segment, index): Token[] => {
    if (index % 2 === 0) return segment === '' ? [] : [{ text: segment }];
    return declared.has(segment)
      ? [{ name: segment, hasSlashes: false, isOptional: false }]
      : [{ text: `:${segment}` }];
  });
}

/** Returns the index of the matching brace. Patterns inside braces may contain braces. */
function findClosingBrace(path: string, openIndex: number): number {
  let depth = 0;
  for (let index = openIndex; index < path.length; index++) {
    if (path[index] === '{') depth++;
    if (path[index] === '}' && --depth === 0) return index;
  }
  return -1;
}

/**
 * Separators before each value of an RFC 6570 expression (3.2). Simple and reserved expansion have none before the
 * first value.
 */
const separators: { readonly [operator: string]: string } = { '': ',', '+': ',', '.': '.', '/': '/' };

function addExpression(inner: string, declared: ReadonlySet<string>, { tokens, query }: Tokens): void {
  if (declared.has(inner)) {
    tokens.push({ name: inner, hasSlashes: false, isOptional: false });
    return;
  }
  // `{$}` marks the end of a path in Go.
  if (inner === '$') return;
  const [, operator = '', list = ''] = /^([+./;?&]?)(.*)$/s.exec(inner) ?? [];
  const values = (/[=:]/.test(list) ? [list] : list.split(',')).map(readValue);
  for (const [index, value] of values.entries()) {
    if (operator === '?' || operator === '&') {
      query.push({ wireName: value.name, name: value.name, isOptional: true });
      continue;
    }
    const isPlain = operator === '' || operator === '+';
    const separator = operator === ';' ? `;${encodeURIComponent(value.name)}=` : (separators[operator] ?? '');
    if (!isPlain || index > 0) tokens.push({ text: separator });
    const hasSlashes = value.hasSlashes || operator === '+';
    const isOptional = value.isOptional || (operator === '/' && !declared.has(value.name));
    tokens.push({ ...value, hasSlashes, isOptional });
  }
}

/**
 * Parses one value of an expression: `id`, `id:int`, `id?`, `path*`, `*path`, `path...`, `proxy+`, `name=shelves/*`.
 */
function readValue(text: string): Parameter {
  const isOptional = text.endsWith('?');
  const [, stars = '', name = '', modifier = ''] =
    /^(\*{0,2}):?([^=:*+?]*?)((?:\.\.\.|[=:*+]).*)?\??$/s.exec(text) ?? [];
  const isWildcard = stars !== '' || /^(?:\*|\+|\.\.\.)$/.test(modifier.replace(/\?$/, ''));
  const pattern = /^[=:](.*)$/s.exec(modifier)?.[1] ?? '';
  const hasSlashes = isWildcard || /\*\*|\.[*+]|^path$|\*\/|\/\*/.test(pattern);
  return { name: name.trim() || text, hasSlashes, isOptional };
}

function readPair(
  pair: string,
  declared: ReadonlySet<string>,
): QueryParameter | { fixed: string } | { problem: string } {
  const equals = pair.indexOf('=');
  const name = equals < 0 ? pair : pair.slice(0, equals);
  if (/[{}<>]/.test(name)) return { problem: pair };
  const { tokens, problem } = tokenize(pair.slice(equals + 1), declared);
  const [firstToken] = tokens;
  const unreadablePart = problem ?? tokens.map(findLeftover).find((leftover) => leftover !== undefined);
  if (unreadablePart !== undefined) return { problem: unreadablePart };
  if (equals >= 0 && firstToken && 'name' in firstToken && tokens.length === 1)
    return { wireName: decodeName(name), name: firstToken.name, isOptional: false };
  return { fixed: pair };
}

function decodeName(text: string): string {
  return [...new URLSearchParams(text).keys()][0] ?? text;
}

/** Returns true if a pair has no value of its own and a declared parameter supplies it. */
function isUnsetPair(pair: string, declared: ReadonlySet<string>): boolean {
  return /^[^=]+=?$/.test(pair) && declared.has(decodeName(pair));
}

/** Maximum number of optional segments in a path. */
const maxOptionalSegments = 3;

/** Returns the tokens of a path, then the tokens without its last optional segment, and so on. */
function getShorterVariants(tokens: readonly Token[]): (readonly Token[])[] {
  const variants: (readonly Token[])[] = [tokens];
  let remaining = tokens;
  while (variants.length <= maxOptionalSegments) {
    const index = remaining.findLastIndex((token) => 'name' in token && token.isOptional);
    if (index < 0) break;
    const previous = remaining[index - 1];
    const textBefore = previous && 'text' in previous ? [{ text: previous.text.replace(/[/.]$/, '') }] : [];
    remaining = [
      ...remaining.slice(0, Math.max(0, index - 1)),
      ...(previous && textBefore.length === 0 ? [previous] : textBefore),
      ...remaining.slice(index + 1),
    ];
    variants.push(remaining);
  }
  return variants;
}

type PathContext = {
  names: ReadonlyMap<string, Parameter>;
  omitted: readonly string[];
  queryParameters: readonly QueryParameter[];
  fixed: readonly string[];
};

/** Returns the inputs, adjusted to the path. A pair with a fixed value in the path is a constant. */
function applyPath(inputs: readonly ApiInput[], { names, omitted, queryParameters, fixed }: PathContext): ApiInput[] {
  const constants = new Set(fixed.map(decodeName));
  const movedNames = new Set(queryParameters.map(({ name }) => name));
  const shouldKeep = ({ location, name }: ApiInput) =>
    location === 'path'
      ? !omitted.includes(name) && (!movedNames.has(name) || names.has(name))
      : location !== 'query' ||
        !(movedNames.has(name) || queryParameters.some((pair) => pair.wireName === name) || constants.has(name));
  const queryInputs = queryParameters.map(({ wireName, name, isOptional }): ApiInput => {
    const queryInput = inputs.find(
      (input) => input.location === 'query' && (input.name === name || input.name === wireName),
    );
    const source = queryInput ?? inputs.find((input) => input.location === 'path' && input.name === name);
    const required = queryInput ? queryInput.required : !isOptional;
    const defaults = { description: '', schema: { type: 'string' } };
    return { ...defaults, ...source, name: wireName, location: 'query', required };
  });
  const remainingInputs = inputs.filter(shouldKeep).map((input) => {
    const hasSlashes = input.location === 'path' && names.get(input.name)?.hasSlashes === true;
    return hasSlashes ? { ...input, allowsSlashes: true } : input;
  });
  const pathNames = new Set(remainingInputs.filter(({ location }) => location === 'path').map(({ name }) => name));
  const undeclared = [...names.values()].filter(({ name, hasSlashes }) => hasSlashes && !pathNames.has(name));
  const addedInputs = undeclared.map(
    ({ name }): ApiInput => ({
      name,
      location: 'path',
      required: true,
      description: '',
      schema: { type: 'string' },
      allowsSlashes: true,
    }),
  );
  return [...addedInputs, ...remainingInputs, ...queryInputs];
}
