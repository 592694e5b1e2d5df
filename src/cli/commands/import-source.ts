import { realpath } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { documentText } from '../../domain/document-text.ts';
import { headerNameProblem, isHeaderValue } from '../../domain/http/headers.ts';
import { AppError } from '../../errors.ts';
import type { DescriptionFile } from '../../import/bundle.ts';
import { userAgentOf } from '../../version.ts';
import { whyNoAnswer } from '../connection/rest-client.ts';
import { readTextFile } from '../files/server-files.ts';

/** Document to import, and the URL that it was fetched from. */
export type ImportSource = { text: string; url: string | undefined };

/** Request headers for fetching, by name. */
type Fields = Readonly<Record<string, string>>;

const fetchMs = 30_000;
const mostBytes = 32 * 1024 * 1024;

/**
 * Reads a file, standard input (`-`), or a URL that the user chose, including the files it refers to.
 * @throws AppError
 */
export async function readImportSource(from: string, headers?: Fields): Promise<ImportSource> {
  if (/^https?:\/\//i.test(from)) {
    const ownOf = (url: string) => (new URL(url).origin === new URL(from).origin ? headers : undefined);
    const { text, url, named } = await followPages(from, (address) => fetchText(address, ownOf(address)));
    const read = async (file: string) => (await fetchText(file, ownOf(url))).text;
    return { text: await withFiles(text, url, read), url: named };
  }
  if (headers) throw new AppError('invalid', `--header only applies to a URL, and ${from} is not one`);
  if (from === '-') return { text: documentText(await buffer(process.stdin)), url: undefined };
  const text = await readTextFile(from);
  const base = await realpath(from);
  const read = async (address: string) => readTextFile(await pathBelow(dirname(base), address));
  return { text: await withFiles(text, pathToFileURL(base).href, read), url: undefined };
}

/** Fetches a document. If it is a web page that shows an API description, fetches that description. @throws AppError */
async function followPages(from: string, read: (address: string) => Promise<{ text: string; url: string }>) {
  const { mayBePage, maxPageSteps, readPageStep } = await import('../../import/document/page.ts');
  let main = { ...(await read(from)), named: from };
  for (let steps = 0; steps < maxPageSteps && mayBePage(Buffer.from(main.text.slice(0, 200)), steps); steps++) {
    const step = readPageStep(main.text, main.url);
    if (!step) break;
    if ('document' in step) return { ...main, text: step.document };
    main = { ...(await read(step.address)), named: step.address };
  }
  return main;
}

/** Collects a header in the form that curl accepts: `Name: value`. */
export function collectHeader(text: string, before: Fields = {}): Fields {
  const [, name = '', value = ''] = /^([^:]*):\s*(.*)$/s.exec(text) ?? [];
  const problem =
    headerNameProblem(name.trim()) ??
    (isHeaderValue(value) && value !== '' ? undefined : 'it needs a value on one line');
  // The value may be a credential, so it is not repeated.
  if (problem !== undefined)
    throw new AppError('invalid', `--header ${name.trim() || '…'}: ${problem}; write: --header 'Name: value'`);
  return { ...before, [name.trim()]: value };
}

/** Bundles a description in several files into one document. A file that cannot be read becomes a finding. */
async function withFiles(text: string, base: string, read: (address: string) => Promise<string>): Promise<string> {
  const { bundle, mayHaveFiles } = await import('../../import/bundle.ts');
  if (!mayHaveFiles(text)) return text;
  const files = new Map<string, DescriptionFile>();
  for (;;) {
    const bundled = bundle(text, base, files);
    if ('document' in bundled) return bundled.document ?? text;
    for (const address of bundled.missing) {
      const file = await read(address).then((found) => ({ text: found }), problemOf);
      files.set(address, file);
    }
  }
}

function problemOf(error: unknown): DescriptionFile {
  if (error instanceof AppError) return { problem: error.message };
  throw error;
}

/** Resolves a file inside the folder. Rejects links out of it. @throws AppError */
async function pathBelow(folder: string, address: string): Promise<string> {
  const path = fileURLToPath(address);
  const real = await realpath(path).catch(() => path);
  if (real.startsWith(folder + sep)) return real;
  throw new AppError('invalid', `${path}: is outside the folder of the description`);
}

async function fetchText(from: string, headers: Fields = {}): Promise<{ text: string; url: string }> {
  const usual = { Accept: 'application/json, application/yaml, text/yaml, */*;q=0.5', 'User-Agent': userAgentOf() };
  // Redirects are followed here, because fetch would send all of these headers except Authorization to another origin.
  let url = from;
  for (let redirects = 0; redirects <= 5; redirects++) {
    const sent = new Headers(usual);
    if (new URL(url).origin === new URL(from).origin)
      for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    const response = await fetch(url, {
      headers: sent,
      redirect: 'manual',
      signal: AbortSignal.timeout(fetchMs),
    }).catch((error: unknown) => {
      throw unreadable(url, error);
    });
    const location = response.status >= 300 && response.status <= 399 ? response.headers.get('location') : null;
    const next = location === null ? null : URL.parse(location, url);
    if (!next || !/^https?:$/.test(next.protocol)) return { text: await textOf(response, url), url };
    await response.body?.cancel();
    url = next.href;
  }
  throw new AppError('invalid', `${from} redirects more than five times`);
}

async function textOf(response: Response, url: string): Promise<string> {
  if (response.status === 401 || response.status === 403) {
    throw new AppError(
      'invalid',
      `${url} responded with HTTP ${response.status}. Pass a credential with --header 'Authorization: Bearer …'`,
    );
  }
  if (!response.ok || !response.body) throw new AppError('invalid', `${url} responded with HTTP ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body) {
      size += chunk.length;
      if (size > mostBytes) throw new AppError('tooLarge', `${url} is larger than ${mostBytes / 1024 / 1024} MB`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof AppError ? error : unreadable(url, error);
  }
  return documentText(Buffer.concat(chunks));
}

function unreadable(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be read: ${whyNoAnswer(error)}`);
}
