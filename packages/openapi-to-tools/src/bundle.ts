import { invalidInputError } from '@toolhost/errors/errors';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { getField, isFields, type JsonFields, toEntries, toList, toText } from './document/lenient.ts';
import { parseDocument } from './document/parse-document.ts';
import type { Finding } from './model.ts';
import { isOpenApi } from './openapi/read-openapi.ts';

/** Maximum number of files in one description. */
export const maxFiles = 200;
export const maxBundleCharacters = 16 * 1024 * 1024;

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
const maxCheckedReferences = 20_000;
const [colon, hash] = [...':#'].map((sign) => sign.charCodeAt(0));
const separators = new Set([...' \t\r\n"\':'].map((sign) => sign.charCodeAt(0)));

/** Returns true if a document may refer to another file: a reference into the document itself begins with #. */
export function mayReferenceFiles(document: Uint8Array | string): boolean {
  const bytes =
    typeof document === 'string'
      ? Buffer.from(document)
      : Buffer.from(document.buffer, document.byteOffset, document.byteLength);
  let position = bytes.indexOf('$ref');
  for (
    let checkedCount = 0;
    position >= 0 && checkedCount < maxCheckedReferences;
    checkedCount++, position = bytes.indexOf('$ref', position + 4)
  ) {
    if (isFileReference(bytes, position + 4)) return true;
  }
  return position >= 0;
}

/**
 * Returns true if a reference after the key `$ref` does not begin with #. Works on bytes: a regular expression takes
 * four times as long.
 */
function isFileReference(bytes: Buffer, from: number): boolean {
  let position = from;
  let isKey = false;
  for (; position < from + 20 && separators.has(bytes[position] ?? 0); position++) isKey ||= bytes[position] === colon;
  return isKey && bytes[position] !== hash;
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
  const queue: [address: string, value: unknown][] = [[base, value]];
  const seenAddresses = new Set([base]);
  const resolveReference = (reference: string, from: string): string => {
    const target = from === base && reference.startsWith('#') ? undefined : resolveAddress(reference, from, base);
    if (target === undefined) return reference;
    const { address, fragment } = target;
    // An anchor (`#name`) is unique in the whole bundle, so its file is left out of the reference.
    const isAnchor = fragment !== '' && !fragment.startsWith('/');
    if (address === base) return `#${fragment}`;
    const file = files.get(address);
    if (file === undefined) missing.add(address);
    else if ('problem' in file) problems.set(address, file.problem);
    if (file === undefined || 'problem' in file) return reference;
    if (!seenAddresses.has(address)) {
      seenAddresses.add(address);
      queue.push([address, parseFile(address, file.text, base, findings)]);
    }
    return isAnchor ? `#${fragment}` : `#/${bundleField}/files/${escapePointer(getFileName(address, base))}${fragment}`;
  };
  let isSingleDocument = true;
  for (let current = queue.pop(); current; current = queue.pop()) {
    const [address, parsed] = current;
    if (rewriteReferences(parsed, (reference) => resolveReference(reference, address))) isSingleDocument = false;
    if (address !== base) mounted.set(getFileName(address, base), parsed);
  }
  if (seenAddresses.size + missing.size > maxFiles) throw createDocumentError(`refers to more than ${maxFiles} files`);
  if (missing.size > 0) return { missing: [...missing] };
  if (isSingleDocument && problems.size === 0) return { document: undefined };
  for (const [address, problem] of problems) {
    findings.push({ at: getFileName(address, base), message: `could not be read: ${problem}` });
  }
  const bundled = { ...(value as JsonFields), [bundleField]: { files: Object.fromEntries(mounted), findings } };
  if (isTooLarge(bundled))
    throw createDocumentError(`is larger than ${maxBundleCharacters / 1024 / 1024} MB with its files`);
  return { document: JSON.stringify(bundled) };
}

/** Returns true if a value exceeds the size limit as JSON, which repeats a value for each YAML alias of it. */
function isTooLarge(value: unknown): boolean {
  let remainingCharacters = maxBundleCharacters;
  const queue = [value];
  while (queue.length > 0 && remainingCharacters >= 0) {
    const current = queue.pop();
    remainingCharacters -= typeof current === 'string' ? current.length : 4;
    if (typeof current !== 'object' || current === null) continue;
    for (const [name, inner] of Object.entries(current)) {
      remainingCharacters -= name.length;
      queue.push(inner);
    }
  }
  return remainingCharacters < 0;
}

/** Returns the findings made while reading the files of a bundled document. */
export function getBundleFindings(value: unknown): Finding[] {
  return toList(getField(getField(value, bundleField), 'findings')).map((finding) => ({
    at: toText(getField(finding, 'at')),
    message: toText(getField(finding, 'message')),
  }));
}

/** Splits a reference into the address of a file and a fragment. Returns undefined for a file that must not be read. */
function resolveAddress(
  reference: string,
  from: string,
  base: string,
): { address: string; fragment: string } | undefined {
  const url = parseUrl(reference, from);
  if (!url || !isReadable(url, new URL(base))) return undefined;
  const fragment = url.hash.slice(1);
  url.hash = '';
  return { address: url.href, fragment };
}

function isReadable(url: URL, base: URL): boolean {
  if (url.protocol !== 'file:') return url.origin === base.origin && url.username === '' && url.password === '';
  return base.protocol === 'file:' && url.host === base.host && url.pathname.startsWith(new URL('.', base).pathname);
}

function parseFile(address: string, text: string, base: string, findings: Finding[]): unknown {
  const name = getFileName(address, base);
  try {
    const parsed = parseDocument(text);
    findings.push(...parsed.findings.map(({ at, message }) => ({ at: `${name}: ${at}`, message })));
    return parsed.value;
  } catch (error) {
    throw createDocumentError(`${name}: ${getParseProblem(error)}`);
  }
}

function getParseProblem(error: unknown): string {
  const [problem] = toList(getField(error, 'problems'));
  if (problem === undefined) throw error;
  return toText(getField(problem, 'message'));
}

/** Replaces references in place. Returns true if any reference changed. */
function rewriteReferences(value: unknown, resolveReference: (reference: string) => string): boolean {
  let isChanged = false;
  const replace = (fields: Record<string, unknown>, name: string) => {
    const before = fields[name] as string;
    fields[name] = resolveReference(before);
    if (fields[name] !== before) isChanged = true;
  };
  const visited = new Set<unknown>();
  const queue = [value];
  while (queue.length > 0) {
    const current = queue.pop();
    if (typeof current !== 'object' || current === null || visited.has(current)) continue;
    visited.add(current);
    for (const inner of Object.values(current)) queue.push(inner);
    if (!isFields(current)) continue;
    if (typeof current.$ref === 'string') replace(current as Record<string, unknown>, '$ref');
    // Mapping values are references, or names of schemas in the document (OpenAPI 3.1, 4.8.25.4).
    const mapping = getField(current.discriminator, 'mapping');
    for (const [name, target] of toEntries(mapping))
      if (typeof target === 'string' && /[#/.]/.test(target)) replace(mapping as Record<string, unknown>, name);
  }
  return isChanged;
}

/** Returns a file's name for documents and findings: its address relative to the description's folder. */
function getFileName(address: string, base: string): string {
  const { href } = new URL('.', base);
  return address.startsWith(href) ? address.slice(href.length) : address.replace(new URL(base).origin, '');
}

function escapePointer(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('~', '~0').replaceAll('/', '~1');
}

function createDocumentError(message: string): Error {
  return invalidInputError([{ path: 'document', message }]);
}
