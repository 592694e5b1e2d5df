import type { InputParts } from './input-arguments.ts';
import type { MadeArgument } from './made-tool.ts';

type ToolUrl = { url: string; inUrl: ReadonlySet<string> } | { problem: string };

/** Converts the route of an operation to the URL of a tool: `/pets/{petId}` → `/pets/:petId`. */
export function toolUrl(route: string, inputs: InputParts, args: readonly MadeArgument[]): ToolUrl {
  const tokens = new Tokens(args);
  const mark = route.indexOf('?');
  const [before, query] = mark < 0 ? [route, ''] : [route.slice(0, mark), route.slice(mark + 1)];
  const filled = tokens.fill(`/${before.replace(/^\/+/, '')}`.replaceAll(/\/{2,}/g, '/'), '');
  const pairs = [
    ...queryPairs(query, tokens),
    ...inputs.query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
  ];
  if (tokens.isUnclear) return { problem: 'a path parameter followed by a letter' };
  if (/(?:^|\/)\.{1,2}(?=\/|$)/.test(filled)) return { problem: 'a path with . or .. segments' };
  return { url: pairs.length > 0 ? `${filled}?${pairs.join('&')}` : filled, inUrl: tokens.used };
}

/** Returns the pairs of the path's query; their values may be path parameters. */
function queryPairs(query: string, tokens: Tokens): string[] {
  return query.split('&').flatMap((text) => {
    const equals = text.indexOf('=');
    const name = equals < 0 ? text : text.slice(0, equals);
    if (name === '' || /[{}]/.test(name)) return [];
    const encoded = encodeURIComponent(decoded(name).toWellFormed());
    return [equals < 0 ? encoded : `${encoded}=${tokens.fill(text.slice(equals + 1), '&')}`];
  });
}

function decoded(text: string): string {
  return /%(?![0-9a-f]{2})/i.test(text) || !isUtf8(text) ? text : decodeURIComponent(text);
}

function isUtf8(text: string): boolean {
  return !Buffer.from(
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
    .toString('utf8')
    .includes('\ufffd');
}

/** Replaces the path parameters of an operation with URL tokens. */
class Tokens {
  readonly used = new Set<string>();
  /** True if a token is followed by a character that would belong to its name. */
  isUnclear = false;
  readonly #byWireName: ReadonlyMap<string, MadeArgument>;
  readonly #names: readonly string[];

  constructor(args: readonly MadeArgument[]) {
    const inPath = args.filter(({ location }) => location === 'path');
    this.#byWireName = new Map(inPath.map((argument) => [argument.wireName, argument]));
    this.#names = args.map(({ name }) => name);
  }

  /** `reserved` holds additional characters that are separators here but not in a path. */
  fill(text: string, reserved: string): string {
    let filled = '';
    let isBehindToken = false;
    for (const [index, piece] of text.split(/(\{[^{}]*\})/).entries()) {
      const argument = index % 2 === 1 ? this.#byWireName.get(piece.slice(1, -1)) : undefined;
      if (argument) {
        this.used.add(argument.name);
        filled += `${argument.prefix ?? ''}:${argument.name}`;
      } else {
        if (isBehindToken && /^\w/.test(piece)) this.isUnclear = true;
        filled += this.#literal(piece, filled, reserved);
      }
      isBehindToken = argument !== undefined;
    }
    return filled;
  }

  /** Encodes characters that a tool URL cannot contain, and colons that would begin an argument. */
  #literal(text: string, before: string, reserved: string): string {
    const encoded = text.replaceAll(/[^\x21-\x7e]|[{}\\"<>^`|?#&]/gu, (character) =>
      character === '&' && reserved === '' ? character : encodeURIComponent(character.toWellFormed()),
    );
    return encoded.replaceAll(/:/g, (colon, at: number) => {
      const last = at > 0 ? encoded[at - 1] : before.at(-1);
      const rest = encoded.slice(at + 1);
      const isWord = /^[A-Za-z_]/.test(rest) && !/[A-Za-z0-9_]/.test(last ?? '');
      return isWord || this.#names.some((name) => rest.startsWith(name)) ? '%3A' : colon;
    });
  }
}
