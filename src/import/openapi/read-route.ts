import type { ApiInput } from '../model.ts';

/**
 * Path syntax of frameworks and standards. `{id}`, `:id`, `<id>`, `{id?}`, `{path=**}`, and the operators of RFC 6570
 * are all normalized to `{name}` with properties. Later stages know only this form.
 */
export type PathForm = {
  /** Identity of the operation: the path as in the document, minus the optional segments that this form omits. */
  path: string;
  /** Path with each parameter as `{name}`. */
  route: string;
  inputs: readonly ApiInput[];
  /** Names of the optional segments that this form omits. */
  without: readonly string[];
};

type Token = { text: string } | Parameter;
type Parameter = { name: string; hasSlashes: boolean; isOptional: boolean };
/** Query pair whose value is a parameter. */
type QueryParameter = { wireName: string; name: string; isOptional: boolean };

/**
 * Returns the routes of a path, one per number of optional segments, the full one first, or the reason why there is
 * none.
 */
export function readRoutes(path: string, inputs: readonly ApiInput[]): { routes: PathForm[] } | { problem: string } {
  const declared = new Set(inputs.filter(({ location }) => location === 'path').map(({ name }) => name));
  const [before, query] = splitQuery(withoutFragment(withBraces(path)));
  const found = tokensOf(before, declared);
  const pairs = query === undefined ? [] : query.split('&').filter((pair) => pair !== '');
  const parsed = pairs.map((pair) => readPair(pair, declared));
  const unreadable =
    found.problem ?? parsed.find((pair) => 'problem' in pair)?.problem ?? found.tokens.map(leftOver).find((one) => one);
  if (unreadable !== undefined)
    return { problem: `the path segment ${quoted(unreadable)}, whose brackets contain no parameter name` };
  const inQuery = [...found.query, ...parsed.flatMap((pair) => ('name' in pair ? [pair] : []))];
  const queryNames = new Set(inputs.flatMap(({ location, name }) => (location === 'query' ? [name] : [])));
  const fixed = parsed.flatMap((pair) => ('fixed' in pair && !isOpenPair(pair.fixed, queryNames) ? [pair.fixed] : []));
  const forms = shorterForms(found.tokens);
  const routes = forms.map((tokens, index): PathForm => {
    const names = new Map(tokens.flatMap((token) => ('name' in token ? [[token.name, token] as const] : [])));
    const route = tokens.map((token) => ('name' in token ? `{${token.name}}` : token.text)).join('') || '/';
    const search = fixed.length > 0 ? `?${fixed.join('&')}` : '';
    const gone = forms[0]?.flatMap((token) => ('name' in token && !names.has(token.name) ? [token.name] : [])) ?? [];
    return {
      path: index === 0 ? path : route + search,
      route: route + search,
      inputs: placed(inputs, { names, gone, inQuery, fixed }),
      without: gone,
    };
  });
  return { routes };
}

const quoted = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

function leftOver(token: Token): string | undefined {
  return 'text' in token && /[{}<>]/.test(token.text) ? token.text : undefined;
}

function withoutFragment(path: string): string {
  // An expression such as {#part} is also a fragment.
  const at = path.search(/(?<!\{)#/);
  return (at < 0 ? path : path.slice(0, at)).replaceAll(/\{#[^{}]*\}/g, '');
}

/** Rewrites every bracket and colon syntax for parameters to braces. */
function withBraces(path: string): string {
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
      (_, name: string, many = '', mark = '') => `{${name}${many === '' ? '' : '*'}${mark}}`,
    );
}

/** Splits off the query at a question mark outside braces. */
function splitQuery(path: string): [before: string, query: string | undefined] {
  let depth = 0;
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '{') depth++;
    if (path[at] === '}') depth--;
    if (path[at] === '?' && depth === 0) return [path.slice(0, at), path.slice(at + 1)];
  }
  return [path, undefined];
}

type Tokens = { tokens: Token[]; query: QueryParameter[]; problem?: string };

function tokensOf(path: string, declared: ReadonlySet<string>): Tokens {
  const found: Tokens = { tokens: [], query: [] };
  const add = (token: Token) => found.tokens.push(token);
  for (let at = 0; at < path.length; ) {
    const open = path.indexOf('{', at);
    for (const token of literal(open < 0 ? path.slice(at) : path.slice(at, open), declared)) add(token);
    if (open < 0) break;
    const end = closingBrace(path, open);
    if (end < 0) return { ...found, problem: path.slice(open) };
    addExpression(path.slice(open + 1, end), declared, found);
    at = end + 1;
  }
  return found;
}

/**
 * Splits literal text into tokens. A declared name after a colon is a parameter; `/a:id` contains none if `id` is not
 * declared.
 */
function literal(text: string, declared: ReadonlySet<string>): Token[] {
  return text.split(/:([A-Za-z_]\w*)/).flatMap((piece, index): Token[] => {
    if (index % 2 === 0) return piece === '' ? [] : [{ text: piece }];
    return declared.has(piece) ? [{ name: piece, hasSlashes: false, isOptional: false }] : [{ text: `:${piece}` }];
  });
}

/** Returns the index of the matching brace. Patterns inside braces may contain braces. */
function closingBrace(path: string, open: number): number {
  let depth = 0;
  for (let at = open; at < path.length; at++) {
    if (path[at] === '{') depth++;
    if (path[at] === '}' && --depth === 0) return at;
  }
  return -1;
}

/**
 * Separators before each value of an RFC 6570 expression (3.2). Simple and reserved expansion have none before the
 * first value.
 */
const marks: { readonly [operator: string]: string } = { '': ',', '+': ',', '.': '.', '/': '/' };

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
    const mark = operator === ';' ? `;${encodeURIComponent(value.name)}=` : (marks[operator] ?? '');
    if (!isPlain || index > 0) tokens.push({ text: mark });
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
  const [, stars = '', name = '', rest = ''] = /^(\*{0,2}):?([^=:*+?]*?)((?:\.\.\.|[=:*+]).*)?\??$/s.exec(text) ?? [];
  const isMany = stars !== '' || /^(?:\*|\+|\.\.\.)$/.test(rest.replace(/\?$/, ''));
  const pattern = /^[=:](.*)$/s.exec(rest)?.[1] ?? '';
  const hasSlashes = isMany || /\*\*|\.[*+]|^path$|\*\/|\/\*/.test(pattern);
  return { name: name.trim() || text, hasSlashes, isOptional };
}

function readPair(
  pair: string,
  declared: ReadonlySet<string>,
): QueryParameter | { fixed: string } | { problem: string } {
  const equals = pair.indexOf('=');
  const name = equals < 0 ? pair : pair.slice(0, equals);
  if (/[{}<>]/.test(name)) return { problem: pair };
  const { tokens, problem } = tokensOf(pair.slice(equals + 1), declared);
  const [only] = tokens;
  const part = problem ?? tokens.map(leftOver).find((one) => one !== undefined);
  if (part !== undefined) return { problem: part };
  if (equals >= 0 && only && 'name' in only && tokens.length === 1)
    return { wireName: decoded(name), name: only.name, isOptional: false };
  return { fixed: pair };
}

function decoded(text: string): string {
  return [...new URLSearchParams(text).keys()][0] ?? text;
}

/** Returns true if a pair has no value of its own and a declared parameter supplies it. */
function isOpenPair(pair: string, declared: ReadonlySet<string>): boolean {
  return /^[^=]+=?$/.test(pair) && declared.has(decoded(pair));
}

/** Maximum number of optional segments in a path. */
const mostOptional = 3;

/** Returns the tokens of a path, then the tokens without its last optional segment, and so on. */
function shorterForms(tokens: readonly Token[]): (readonly Token[])[] {
  const forms: (readonly Token[])[] = [tokens];
  let left = tokens;
  while (forms.length <= mostOptional) {
    const at = left.findLastIndex((token) => 'name' in token && token.isOptional);
    if (at < 0) break;
    const before = left[at - 1];
    const kept = before && 'text' in before ? [{ text: before.text.replace(/[/.]$/, '') }] : [];
    left = [
      ...left.slice(0, Math.max(0, at - 1)),
      ...(before && kept.length === 0 ? [before] : kept),
      ...left.slice(at + 1),
    ];
    forms.push(left);
  }
  return forms;
}

type Places = {
  names: ReadonlyMap<string, Parameter>;
  gone: readonly string[];
  inQuery: readonly QueryParameter[];
  fixed: readonly string[];
};

/** Returns the inputs, adjusted to the path. A pair with a fixed value in the path is a constant. */
function placed(inputs: readonly ApiInput[], { names, gone, inQuery, fixed }: Places): ApiInput[] {
  const constants = new Set(fixed.map(decoded));
  const moved = new Set(inQuery.map(({ name }) => name));
  const stays = ({ location, name }: ApiInput) =>
    location === 'path'
      ? !gone.includes(name) && (!moved.has(name) || names.has(name))
      : location !== 'query' ||
        !(moved.has(name) || inQuery.some((pair) => pair.wireName === name) || constants.has(name));
  const asked = inQuery.map(({ wireName, name, isOptional }): ApiInput => {
    const own = inputs.find((input) => input.location === 'query' && (input.name === name || input.name === wireName));
    const found = own ?? inputs.find((input) => input.location === 'path' && input.name === name);
    const required = own ? own.required : !isOptional;
    const usual = { description: '', schema: { type: 'string' } };
    return { ...usual, ...found, name: wireName, location: 'query', required };
  });
  const kept = inputs.filter(stays).map((input) => {
    const isLong = input.location === 'path' && names.get(input.name)?.hasSlashes === true;
    return isLong ? { ...input, allowSlashes: true } : input;
  });
  const known = new Set(kept.filter(({ location }) => location === 'path').map(({ name }) => name));
  const undeclared = [...names.values()].filter(({ name, hasSlashes }) => hasSlashes && !known.has(name));
  const added = undeclared.map(
    ({ name }): ApiInput => ({
      name,
      location: 'path',
      required: true,
      description: '',
      schema: { type: 'string' },
      allowSlashes: true,
    }),
  );
  return [...added, ...kept, ...asked];
}
