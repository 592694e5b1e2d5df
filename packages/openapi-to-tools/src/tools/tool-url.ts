import type { InputArguments } from './input-arguments.ts';
import type { ArgumentDraft } from './tool-candidate.ts';

type ToolUrl = { url: string; usedNames: ReadonlySet<string> } | { problem: string };

/** Converts the route of an operation to the URL of a tool: `/pets/{petId}` → `/pets/:petId`. */
export function buildToolUrl(route: string, inputs: InputArguments, args: readonly ArgumentDraft[]): ToolUrl {
  const tokens = new PathTokens(args);
  const queryStart = route.indexOf('?');
  const [pathname, query] = queryStart < 0 ? [route, ''] : [route.slice(0, queryStart), route.slice(queryStart + 1)];
  const path = tokens.replaceParameters(`/${pathname.replace(/^\/+/, '')}`.replaceAll(/\/{2,}/g, '/'), '');
  const pairs = [
    ...readQueryPairs(query, tokens),
    ...inputs.query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
  ];
  if (tokens.isAmbiguous) return { problem: 'a path parameter followed by a letter' };
  if (/(?:^|\/)\.{1,2}(?=\/|$)/.test(path)) return { problem: 'a path with . or .. segments' };
  return { url: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path, usedNames: tokens.usedNames };
}

/** Returns the pairs of the path's query. Their values may be path parameters. */
function readQueryPairs(query: string, tokens: PathTokens): string[] {
  return query.split('&').flatMap((text) => {
    const equals = text.indexOf('=');
    const name = equals < 0 ? text : text.slice(0, equals);
    if (name === '' || /[{}]/.test(name)) return [];
    const encoded = encodeURIComponent(decode(name).toWellFormed());
    return [equals < 0 ? encoded : `${encoded}=${tokens.replaceParameters(text.slice(equals + 1), '&')}`];
  });
}

function decode(text: string): string {
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
class PathTokens {
  readonly usedNames = new Set<string>();
  /** True if a token is followed by a character that would belong to its name. */
  isAmbiguous = false;
  readonly #byWireName: ReadonlyMap<string, ArgumentDraft>;
  readonly #names: readonly string[];

  constructor(args: readonly ArgumentDraft[]) {
    const pathArguments = args.filter(({ location }) => location === 'path');
    this.#byWireName = new Map(pathArguments.map((argument) => [argument.wireName, argument]));
    this.#names = args.map(({ name }) => name);
  }

  /** Replaces the path parameters of a text. `reserved` holds characters that are separators here but not in a path. */
  replaceParameters(text: string, reserved: string): string {
    let result = '';
    let followsToken = false;
    for (const [index, part] of text.split(/(\{[^{}]*\})/).entries()) {
      const argument = index % 2 === 1 ? this.#byWireName.get(part.slice(1, -1)) : undefined;
      if (argument) {
        this.usedNames.add(argument.name);
        result += `${argument.prefix ?? ''}:${argument.name}`;
      } else {
        if (followsToken && /^\w/.test(part)) this.isAmbiguous = true;
        result += this.#encodeLiteral(part, result, reserved);
      }
      followsToken = argument !== undefined;
    }
    return result;
  }

  /** Encodes characters that a tool URL cannot contain, and colons that would begin an argument. */
  #encodeLiteral(text: string, textBefore: string, reserved: string): string {
    const encoded = text.replaceAll(/[^\x21-\x7e]|[{}\\"<>^`|?#&]/gu, (character) =>
      character === '&' && reserved === '' ? character : encodeURIComponent(character.toWellFormed()),
    );
    return encoded.replaceAll(/:/g, (colon, index: number) => {
      const previousCharacter = index > 0 ? encoded[index - 1] : textBefore.at(-1);
      const textAfter = encoded.slice(index + 1);
      const startsName = /^[A-Za-z_]/.test(textAfter) && !/[A-Za-z0-9_]/.test(previousCharacter ?? '');
      return startsName || this.#names.some((name) => textAfter.startsWith(name)) ? '%3A' : colon;
    });
  }
}
