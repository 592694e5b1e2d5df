import type { ApiInput } from '../model.ts';

/**
 * Paths as frameworks and standards write them. `{id}`, `:id`, `<id>`, `{id?}`, `{path=**}` and the operators of RFC 6570
 * all become `{name}` with a meaning; nothing behind this knows another spelling.
 */
export type PathForm = {
  /** Identity of the operation: the path as written, without the optional segments that this form leaves out. */
  path: string;
  /** With each parameter as `{name}`. */
  route: string;
  inputs: readonly ApiInput[];
  /** Names of the optional segments that it does without. */
  without: readonly string[];
};

type Token = { text: string } | Parameter;
type Parameter = { name: string; hasSlashes: boolean; isOptional: boolean };
/** A pair of the query whose value is a parameter. */
type QueryParameter = { wireName: string; name: string; isOptional: boolean };

/** The routes of a path: one for each number of optional segments, the whole one first; or why there is none. */
export function readRoutes(path: string, inputs: readonly ApiInput[]): { routes: PathForm[] } | { problem: string } {
  const declared = new Set(inputs.filter(({ location }) => location === 'path').map(({ name }) => name));
  const [before, query] = splitQuery(withoutFragment(withBraces(path)));
  const found = tokensOf(before, declared);
  const pairs = query === undefined ? [] : query.split('&').filter((pair) => pair !== '');
  const parsed = pairs.map((pair) => readPair(pair, declared));
  const unreadable =
    found.problem ?? parsed.find((pair) => 'problem' in pair)?.problem ?? found.tokens.map(leftOver).find((one) => one);
  if (unreadable !== undefined)
    return { problem: `the part ${quoted(unreadable)} of the path, whose brackets name no value` };
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
  // An expression such as {#part} is a fragment as well.
  const at = path.search(/(?<!\{)#/);
  return (at < 0 ? path : path.slice(0, at)).replaceAll(/\{#[^{}]*\}/g, '');
}

/** Writes every kind of bracket and colon that names a value with braces. */
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

/** The query behind a question mark that is in no braces. */
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

/** Literal text, in which a declared name behind a colon is a parameter: `/a:id` is none when `id` is not declared. */
function literal(text: string, declared: ReadonlySet<string>): Token[] {
  return text.split(/:([A-Za-z_]\w*)/).flatMap((piece, index): Token[] => {
    if (index % 2 === 0) return piece === '' ? [] : [{ text: piece }];
    return declared.has(piece) ? [{ name: piece, hasSlashes: false, isOptional: false }] : [{ text: `:${piece}` }];
  });
}

/** Patterns inside of braces may have braces of their own. */
function closingBrace(path: string, open: number): number {
  let depth = 0;
  for (let at = open; at < path.length; at++) {
    if (path[at] === '{') depth++;
    if (path[at] === '}' && --depth === 0) return at;
  }
  return -1;
}

/** Separators before each value of an RFC 6570 expression (3.2); simple and reserved expansion have none before the first. */
const marks: { readonly [operator: string]: string } = { '': ',', '+': ',', '.': '.', '/': '/' };

function addExpression(inner: string, declared: ReadonlySet<string>, { tokens, query }: Tokens): void {
  if (declared.has(inner)) {
    tokens.push({ name: inner, hasSlashes: false, isOptional: false });
    return;
  }
  // The end of a path in Go.
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

/** One value of an expression: `id`, `id:int`, `id?`, `path*`, `*path`, `path...`, `proxy+`, `name=shelves/*`. */
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

/** Returns whether a declared parameter gives a pair its value, because it has none. */
function isOpenPair(pair: string, declared: ReadonlySet<string>): boolean {
  return /^[^=]+=?$/.test(pair) && declared.has(decoded(pair));
}

/** The most optional segments of a path. */
const mostOptional = 3;

/** The tokens of a path, then those without its last optional segment, and so on. */
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

/** The inputs with the meaning that the path gives them. A pair that the path writes is a constant. */
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
