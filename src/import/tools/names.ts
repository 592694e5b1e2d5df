import { createHash } from 'node:crypto';
import { normalised } from '../../domain/normalised.ts';
import { readMoreName } from '../../domain/pieces/read-more.ts';
import { searchToolNames } from '../../domain/search/own-tools.ts';
import type { ApiOperation } from '../model.ts';
import { isVerb } from './effects.ts';

/** Maximum length of a tool name. Clients prepend the server name and allow 64 characters in total. */
const longest = 48;

/** Names of the built-in tools that a server offers. */
const reserved = [readMoreName, ...Object.values(searchToolNames)];

/** Returns a name for each operation, in order. Names do not depend on which operations are chosen. */
export function toolNames(operations: readonly ApiOperation[]): string[] {
  const taken = new Set(reserved);
  return operations.map((operation) => {
    const words = operation.operationId === undefined ? [] : nameWords(operation.operationId);
    const found = words.length > 0 ? words : derivedWords(operation);
    const hash = shortHash(`${operation.method} ${operation.path}`);
    let name = fitted(found, hash);
    if (taken.has(name)) name = fitted([...found, hash], hash);
    for (let count = 2; taken.has(name); count++)
      name = fitted([...found, hash, String(count)], shortHash(`${hash} ${count}`));
    taken.add(name);
    return name;
  });
}

/** Splits a name into words: `repos/list-forOrg` → repos, list, for, org. */
export function nameWords(text: string): string[] {
  return normalised(text, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

const verbs: ReadonlyMap<string, string> = new Map(
  Object.entries({ POST: 'create', PUT: 'replace', PATCH: 'update', DELETE: 'delete', HEAD: 'check' }),
);

/** Derives words from verb and path: `list_pets`, `get_pet`, `get_pet_toys`. */
function derivedWords({ method, route }: ApiOperation): string[] {
  const segments =
    route
      .split('?')[0]
      ?.split('/')
      .filter((segment) => segment !== '') ?? [];
  const isOne = /^\{[^{}]*\}$/.test(segments.at(-1) ?? '');
  const named = segments.filter((segment) => !/^(?:v\d+(?:\.\d+)?|api|rest)$/i.test(segment));
  const words = named.flatMap((segment, index) => {
    if (segment.startsWith('{')) return [];
    const isOfOne = named[index + 1]?.startsWith('{') === true;
    return isOfOne ? singular(nameWords(segment)) : nameWords(segment);
  });
  const isSingular = isOne || method !== 'POST';
  const verb =
    verbs.get(method) ?? (method === 'GET' ? (isOne || words.length === 0 ? 'get' : 'list') : method.toLowerCase());
  return [verb, ...(isSingular ? words : singular(words))];
}

function singular(words: readonly string[]): string[] {
  const last = words.at(-1) ?? '';
  if (/ies$/.test(last) && last.length > 4) return [...words.slice(0, -1), `${last.slice(0, -3)}y`];
  return /[^aeious]s$|[aeo]s$/.test(last) && last.length > 3 ? [...words.slice(0, -1), last.slice(0, -1)] : [...words];
}

/**
 * Shortens a name that is too long. Drops inner words but keeps the verb, and appends the operation's hash to keep
 * names unique.
 */
function fitted(words: readonly string[], hash: string): string {
  const whole = words.join('_');
  if (whole.length <= longest) return whole;
  const [first = '', ...others] = words;
  const end = lastWords([first], others, hash);
  const verb = isVerb(first) ? undefined : others.find(isVerb);
  if (verb === undefined || end.includes(verb)) return shortName([first], end, hash);
  const behind = others.slice(others.indexOf(verb) + 1);
  return shortName([first, verb], lastWords([first, verb], behind, hash), hash);
}

/** Returns as many of the last words as fit between the first words and the hash. */
function lastWords(start: readonly string[], words: readonly string[], hash: string): string[] {
  let kept: string[] = [];
  for (const word of words.toReversed()) {
    const next = [word, ...kept];
    if ([...start, ...next, hash].join('_').length > longest) break;
    kept = next;
  }
  return kept;
}

function shortName([first = '', ...verb]: readonly string[], end: readonly string[], hash: string): string {
  const rest = [...verb, ...end.filter((word) => word !== hash), hash];
  const room = Math.max(1, longest - [...verb, hash].join('_').length - 1);
  return [first.slice(0, room), ...rest].join('_').slice(0, longest);
}

/** Maximum length of an argument name. */
const longestArgument = 64;

/** Assigns unique argument names for one tool, in a form that every client and the configuration accept. */
export class ArgumentNames {
  readonly #taken = new Set<string>();

  has(wireName: string): boolean {
    return this.#taken.has(plainName(wireName));
  }

  /**
   * Returns a unique name for a wire name: unchanged if possible, otherwise similar, such as `filter_status` for
   * `filter[status]`.
   */
  take(wireName: string): string {
    const plain = plainName(wireName);
    let name = plain;
    for (let count = 2; this.#taken.has(name); count++) name = `${plain.slice(0, longestArgument - 4)}_${count}`;
    this.#taken.add(name);
    return name;
  }
}

/** Letters whose ASCII form Unicode does not define. */
const spellings: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ß: 'ss',
    æ: 'ae',
    Æ: 'AE',
    œ: 'oe',
    Œ: 'OE',
    ø: 'o',
    Ø: 'O',
    ł: 'l',
    Ł: 'L',
    đ: 'd',
    Đ: 'D',
    ı: 'i',
  }),
);

/** Converts a text to ASCII, as far as its letters are Latin letters. */
function inAscii(text: string): string {
  return normalised(text, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[ßæÆœŒøØłŁđĐı]/g, (letter) => spellings.get(letter) ?? letter);
}

/** Returns true for a wire name with letters of another script, which no argument name can contain. */
export function isForeignName(wireName: string): boolean {
  return /[^\p{ASCII}\P{L}]/u.test(inAscii(wireName));
}

function plainName(wireName: string): string {
  const words = inAscii(wireName)
    .replaceAll('>=', '_gte')
    .replaceAll('<=', '_lte')
    .replaceAll('>', '_gt')
    .replaceAll('<', '_lt')
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replaceAll(/^[_.-]+|(?<![_.-])[_.-]+$/g, (edge) =>
      /^_+$/.test(edge) && wireName.includes(edge) && /^\w+$/.test(wireName) ? edge : '',
    );
  const said = isForeignName(wireName) && !/[A-Za-z0-9]/.test(words) ? 'input' : words;
  const started = /^[A-Za-z_]/.test(said) ? said : `_${said}`;
  const safe = started === '__proto__' ? `${started}_` : started;
  return safe.length <= longestArgument ? safe : `${safe.slice(0, longestArgument - 5)}_${shortHash(wireName)}`;
}

/** Returns a stable hash of a text with four characters. */
function shortHash(text: string): string {
  return createHash('sha256').update(text.toWellFormed()).digest('hex').slice(0, 4);
}
