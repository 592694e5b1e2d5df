import { createHash } from 'node:crypto';
import { searchToolNames } from '@toolhost/tool-config/built-in-tools';
import { normalizeText } from '@toolhost/tool-config/normalized-text';
import { readMoreToolName } from '@toolhost/tool-config/read-more';
import type { ApiOperation } from '../model.ts';
import { getFastApiSuffix } from '../openapi/fast-api.ts';
import { isVerb } from './effects.ts';

/** Maximum length of a tool name in characters. Clients prepend the server name and allow 64 in total. */
const maxLength = 48;

/** Names of the built-in tools that a server offers. */
const reservedNames = [readMoreToolName, ...Object.values(searchToolNames)];

/** Returns a name for each operation, in order. Names do not depend on which operations are chosen. */
export function assignToolNames(operations: readonly ApiOperation[]): string[] {
  const usedNames = new Set(reservedNames);
  return operations.map((operation) => {
    const words = splitOperationId(operation);
    const nameParts = words.length > 0 ? words : deriveWords(operation);
    const hash = createShortHash(`${operation.method} ${operation.path}`);
    let name = fitName(nameParts, hash);
    if (usedNames.has(name)) name = fitName([...nameParts, hash], hash);
    for (let count = 2; usedNames.has(name); count++)
      name = fitName([...nameParts, hash, String(count)], createShortHash(`${hash} ${count}`));
    usedNames.add(name);
    return name;
  });
}

/** Returns the words of the operation ID, without the path and the method that FastAPI appends to the function's name. */
function splitOperationId(operation: ApiOperation): string[] {
  const { operationId = '' } = operation;
  const suffix = getFastApiSuffix(operation);
  const nameWords = operationId.endsWith(suffix) ? splitNameWords(operationId.slice(0, -suffix.length)) : [];
  return nameWords.length > 0 ? nameWords : splitNameWords(operationId);
}

/** Splits a name into words: `repos/list-forOrg` → repos, list, for, org. */
export function splitNameWords(text: string): string[] {
  return normalizeText(text, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

const verbByMethod: ReadonlyMap<string, string> = new Map(
  Object.entries({ POST: 'create', PUT: 'replace', PATCH: 'update', DELETE: 'delete', HEAD: 'check' }),
);

/** Derives words from verb and path: `list_pets`, `get_pet`, `get_pet_toys`. */
function deriveWords({ method, route }: ApiOperation): string[] {
  const segments =
    route
      .split('?')[0]
      ?.split('/')
      .filter((segment) => segment !== '') ?? [];
  const isItem = /^\{[^{}]*\}$/.test(segments.at(-1) ?? '');
  const named = segments.filter((segment) => !/^(?:v\d+(?:\.\d+)?|api|rest)$/i.test(segment));
  const words = named.flatMap((segment, index) => {
    if (segment.startsWith('{')) return [];
    const isFollowedByParameter = named[index + 1]?.startsWith('{') === true;
    return isFollowedByParameter ? toSingular(splitNameWords(segment)) : splitNameWords(segment);
  });
  const isSingular = isItem || method !== 'POST';
  const verb =
    verbByMethod.get(method) ??
    (method === 'GET' ? (isItem || words.length === 0 ? 'get' : 'list') : method.toLowerCase());
  return [verb, ...(isSingular ? words : toSingular(words))];
}

function toSingular(words: readonly string[]): string[] {
  const lastWord = words.at(-1) ?? '';
  if (/ies$/.test(lastWord) && lastWord.length > 4) return [...words.slice(0, -1), `${lastWord.slice(0, -3)}y`];
  return /[^aeious]s$|[aeo]s$/.test(lastWord) && lastWord.length > 3
    ? [...words.slice(0, -1), lastWord.slice(0, -1)]
    : [...words];
}

/**
 * Shortens a name that is too long. Drops inner words except for the verb, and appends the operation's hash, so that
 * names stay unique.
 */
function fitName(words: readonly string[], hash: string): string {
  const fullName = words.join('_');
  if (fullName.length <= maxLength) return fullName;
  const [firstWord = '', ...otherWords] = words;
  const lastFittingWords = takeLastWords([firstWord], otherWords, hash);
  const verb = isVerb(firstWord) ? undefined : otherWords.find(isVerb);
  if (verb === undefined || lastFittingWords.includes(verb)) return joinShortName([firstWord], lastFittingWords, hash);
  const wordsAfterVerb = otherWords.slice(otherWords.indexOf(verb) + 1);
  return joinShortName([firstWord, verb], takeLastWords([firstWord, verb], wordsAfterVerb, hash), hash);
}

/** Returns as many of the last words as fit between the first words and the hash. */
function takeLastWords(prefix: readonly string[], words: readonly string[], hash: string): string[] {
  let fitting: string[] = [];
  for (const word of words.toReversed()) {
    const longer = [word, ...fitting];
    if ([...prefix, ...longer, hash].join('_').length > maxLength) break;
    fitting = longer;
  }
  return fitting;
}

function joinShortName(
  [firstWord = '', ...verb]: readonly string[],
  lastFittingWords: readonly string[],
  hash: string,
): string {
  const suffix = [...verb, ...lastFittingWords.filter((word) => word !== hash), hash];
  const maxFirstLength = Math.max(1, maxLength - [...verb, hash].join('_').length - 1);
  return [firstWord.slice(0, maxFirstLength), ...suffix].join('_').slice(0, maxLength);
}

/** Maximum length of an argument name. */
const maxArgumentLength = 64;

/** Assigns unique argument names for one tool, in a form that every client and the configuration accept. */
export class ArgumentNames {
  readonly #usedNames = new Set<string>();

  has(wireName: string): boolean {
    return this.#usedNames.has(toArgumentName(wireName));
  }

  /**
   * Returns a unique name for a wire name: unchanged if possible, otherwise similar, such as `filter_status` for
   * `filter[status]`.
   */
  assign(wireName: string): string {
    const base = toArgumentName(wireName);
    let name = base;
    for (let count = 2; this.#usedNames.has(name); count++) name = `${base.slice(0, maxArgumentLength - 4)}_${count}`;
    this.#usedNames.add(name);
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
function toAscii(text: string): string {
  return normalizeText(text, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[ßæÆœŒøØłŁđĐı]/g, (letter) => spellings.get(letter) ?? letter);
}

/** Returns true for a wire name with letters of another script, which no argument name can contain. */
export function hasForeignLetters(wireName: string): boolean {
  return /[^\p{ASCII}\P{L}]/u.test(toAscii(wireName));
}

function toArgumentName(wireName: string): string {
  const words = toAscii(wireName)
    .replaceAll('>=', '_gte')
    .replaceAll('<=', '_lte')
    .replaceAll('>', '_gt')
    .replaceAll('<', '_lt')
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replaceAll(/^[_.-]+|(?<![_.-])[_.-]+$/g, (edge) =>
      /^_+$/.test(edge) && wireName.includes(edge) && /^\w+$/.test(wireName) ? edge : '',
    );
  const nonEmpty = hasForeignLetters(wireName) && !/[A-Za-z0-9]/.test(words) ? 'input' : words;
  const withValidStart = /^[A-Za-z_]/.test(nonEmpty) ? nonEmpty : `_${nonEmpty}`;
  const safeName = withValidStart === '__proto__' ? `${withValidStart}_` : withValidStart;
  return safeName.length <= maxArgumentLength
    ? safeName
    : `${safeName.slice(0, maxArgumentLength - 5)}_${createShortHash(wireName)}`;
}

/** Returns a stable hash of a text with four characters. */
function createShortHash(text: string): string {
  return createHash('sha256').update(text.toWellFormed()).digest('hex').slice(0, 4);
}
