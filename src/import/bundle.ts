import { readUrl } from '../domain/http/read-url.ts';
import { invalid } from '../errors.ts';
import { asText, entriesOf, field, isFields, type JsonFields, listOf } from './document/lenient.ts';
import { parseDocument } from './document/parse-document.ts';
import type { Finding } from './model.ts';
import { isOpenApi } from './openapi/read-openapi.ts';

/** Maximum number of files in one description, and maximum size of the bundled document in characters. */
export const mostFiles = 200;
export const mostFileCharacters = 16 * 1024 * 1024;

/** File of a description: its text, or the reason why it could not be read. */
export type DescriptionFile = { text: string } | { problem: string };

/** Files that must still be read, or the description as one document; undefined if it already is one document. */
export type Bundle = { missing: string[] } | { document: string | undefined };

/** Field of a bundled document that holds the other files and the findings made while reading them. */
const bundleField = 'x-toolhost-files';

/**
 * Maximum number of references that are checked before parsing. A document with more references is parsed, which takes
 * longer.
 */
const mostLooked = 20_000;
const [colon, hash] = [...':#'].map((sign) => sign.charCodeAt(0));
const between = new Set([...' \t\r\n"\':'].map((sign) => sign.charCodeAt(0)));

/** Returns true if a document may contain a reference that does not begin with #. */
export function mayHaveFiles(document: Uint8Array | string): boolean {
  const bytes =
    typeof document === 'string'
      ? Buffer.from(document)
      : Buffer.from(document.buffer, document.byteOffset, document.byteLength);
  let at = bytes.indexOf('$ref');
  for (let looked = 0; at >= 0 && looked < mostLooked; looked++, at = bytes.indexOf('$ref', at + 4)) {
    if (isOfFile(bytes, at + 4)) return true;
  }
  return at >= 0;
}

/**
 * Returns true if a value other than #… follows. Works on bytes: a regular expression blocks the event loop four times
 * as long.
 */
function isOfFile(bytes: Buffer, from: number): boolean {
  let at = from;
  let isKey = false;
  for (; at < from + 20 && between.has(bytes[at] ?? 0); at++) isKey ||= bytes[at] === colon;
  return isKey && bytes[at] !== hash;
}

/**
 * Bundles a description in several files into one document. A reference to a file becomes a reference into
 * `x-toolhost-files`, which holds that file. Only files from the description's origin are read, or from its folder if
 * `base` is a file: URL. Other references are left unchanged.
 * @param base address of the description
 * @param files files read so far, by address
 * @throws AppError invalid if the description or one of its files cannot be parsed, or if there are too many files
 */
export function bundle(text: string, base: string, files: ReadonlyMap<string, DescriptionFile>): Bundle {
  const { value, findings } = parseDocument(text);
  if (!isOpenApi(value)) return { document: undefined };
  const mounted = new Map<string, unknown>();
  const missing = new Set<string>();
  const problems = new Map<string, string>();
  const waiting: [address: string, value: unknown][] = [[base, value]];
  const known = new Set([base]);
  const targetOf = (reference: string, from: string): string => {
    const target = from === base && reference.startsWith('#') ? undefined : addressOf(reference, from, base);
    if (target === undefined) return reference;
    const { address, fragment } = target;
    // An anchor is searched for in the whole document.
    const isAnchor = fragment !== '' && !fragment.startsWith('/');
    if (address === base) return `#${fragment}`;
    const file = files.get(address);
    if (file === undefined) missing.add(address);
    else if ('problem' in file) problems.set(address, file.problem);
    if (file === undefined || 'problem' in file) return reference;
    if (!known.has(address)) {
      known.add(address);
      waiting.push([address, parsedFile(address, file.text, base, findings)]);
    }
    return isAnchor ? `#${fragment}` : `#/${bundleField}/files/${escaped(nameOf(address, base))}${fragment}`;
  };
  let isOne = true;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [address, parsed] = next;
    if (rewrite(parsed, (reference) => targetOf(reference, address))) isOne = false;
    if (address !== base) mounted.set(nameOf(address, base), parsed);
  }
  if (known.size + missing.size > mostFiles) throw refused(`refers to more than ${mostFiles} files`);
  if (missing.size > 0) return { missing: [...missing] };
  if (isOne && problems.size === 0) return { document: undefined };
  for (const [address, problem] of problems) {
    findings.push({ at: nameOf(address, base), message: `could not be read: ${problem}` });
  }
  const whole = { ...(value as JsonFields), [bundleField]: { files: Object.fromEntries(mounted), findings } };
  if (isTooLong(whole)) throw refused(`is larger than ${mostFileCharacters / 1024 / 1024} MB with its files`);
  return { document: JSON.stringify(whole) };
}

/** Returns true if a value exceeds the size limit as JSON. Content shared by YAML aliases is written each time. */
function isTooLong(value: unknown): boolean {
  let left = mostFileCharacters;
  const waiting = [value];
  while (waiting.length > 0 && left >= 0) {
    const next = waiting.pop();
    left -= typeof next === 'string' ? next.length : 4;
    if (typeof next !== 'object' || next === null) continue;
    for (const [name, inner] of Object.entries(next)) {
      left -= name.length;
      waiting.push(inner);
    }
  }
  return left < 0;
}

/** Returns the findings made while reading the files of a bundled document. */
export function bundleFindings(value: unknown): Finding[] {
  return listOf(field(field(value, bundleField), 'findings')).map((finding) => ({
    at: asText(field(finding, 'at')),
    message: asText(field(finding, 'message')),
  }));
}

/** Resolves a reference to a file and a fragment in it. Returns undefined for a file that is not read. */
function addressOf(reference: string, from: string, base: string): { address: string; fragment: string } | undefined {
  const url = readUrl(reference, from);
  if (!url || !mayRead(url, new URL(base))) return undefined;
  const fragment = url.hash.slice(1);
  url.hash = '';
  return { address: url.href, fragment };
}

function mayRead(url: URL, base: URL): boolean {
  if (url.protocol !== 'file:') return url.origin === base.origin && url.username === '' && url.password === '';
  return base.protocol === 'file:' && url.host === base.host && url.pathname.startsWith(new URL('.', base).pathname);
}

function parsedFile(address: string, text: string, base: string, findings: Finding[]): unknown {
  const name = nameOf(address, base);
  try {
    const parsed = parseDocument(text);
    findings.push(...parsed.findings.map(({ at, message }) => ({ at: `${name}: ${at}`, message })));
    return parsed.value;
  } catch (error) {
    throw refused(`${name}: ${whyUnread(error)}`);
  }
}

function whyUnread(error: unknown): string {
  const [problem] = listOf(field(error, 'problems'));
  if (problem === undefined) throw error;
  return asText(field(problem, 'message'));
}

/** Replaces references in place. Returns true if any reference changed. */
function rewrite(value: unknown, targetOf: (reference: string) => string): boolean {
  let isChanged = false;
  const replace = (fields: Record<string, unknown>, name: string) => {
    const before = fields[name] as string;
    fields[name] = targetOf(before);
    if (fields[name] !== before) isChanged = true;
  };
  const seen = new Set<unknown>();
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    seen.add(next);
    for (const inner of Object.values(next)) waiting.push(inner);
    if (!isFields(next)) continue;
    if (typeof next.$ref === 'string') replace(next as Record<string, unknown>, '$ref');
    // Mapping values are references, or names of schemas in the document (OpenAPI 3.1, 4.8.25.4).
    const mapping = field(next.discriminator, 'mapping');
    for (const [name, target] of entriesOf(mapping))
      if (typeof target === 'string' && /[#/.]/.test(target)) replace(mapping as Record<string, unknown>, name);
  }
  return isChanged;
}

/** Returns a file's name for documents and findings: its address relative to the description's folder. */
function nameOf(address: string, base: string): string {
  const { href } = new URL('.', base);
  return address.startsWith(href) ? address.slice(href.length) : address.replace(new URL(base).origin, '');
}

function escaped(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('~', '~0').replaceAll('/', '~1');
}

function refused(message: string): Error {
  return invalid([{ path: 'document', message }]);
}
