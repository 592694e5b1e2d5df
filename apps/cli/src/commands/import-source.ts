import { realpath } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { AppError } from '@toolhost/errors/errors';
import { decodeDocument } from '@toolhost/json/document-text';
import type { DescriptionFile } from '@toolhost/openapi-to-tools/bundle';
import { formatUserAgent } from '@toolhost/server/command-line';
import { getHeaderNameProblem, isHeaderValue } from '@toolhost/tool-config/http/headers';
import { explainNoResponse } from '../connection/rest-client.ts';
import { checkIsText, readTextFile } from '../files/server-files.ts';

/** Document to import, and the URL that it was fetched from. */
export type ImportSource = { text: string; url: string | undefined };

/** Request headers for fetching, by name. */
type HeaderFields = Readonly<Record<string, string>>;

const fetchTimeoutMs = 30_000;
const maxRedirects = 5;
const maxBytes = 32 * 1024 * 1024;

/**
 * Reads a file, standard input (`-`), or a URL that the user chose, including the files it refers to.
 * @throws AppError
 */
export async function readImportSource(from: string, headers?: HeaderFields): Promise<ImportSource> {
  if (/^https?:\/\//i.test(from)) {
    const getHeadersFor = (url: string) => (new URL(url).origin === new URL(from).origin ? headers : undefined);
    const { text, url, documentUrl } = await fetchDocument(from, (address) =>
      fetchText(address, getHeadersFor(address)),
    );
    const readFile = async (file: string) => (await fetchText(file, getHeadersFor(url))).text;
    return { text: await bundleFiles(text, url, readFile), url: documentUrl };
  }
  if (headers) throw new AppError('invalid', `--header only applies to a URL, and ${from} is not one`);
  if (from === '-') {
    const text = decodeDocument(await buffer(process.stdin));
    if (text.trim() === '') throw new AppError('invalid', 'standard input is empty. Pipe an API description into it');
    return { text, url: undefined };
  }
  const text = await readDescription(from);
  checkIsText(from, text);
  const realFile = await realpath(from);
  const read = async (address: string) => readTextFile(await resolveInside(dirname(realFile), address));
  return { text: await bundleFiles(text, pathToFileURL(realFile).href, read), url: undefined };
}

/** Reads a file. @throws AppError that explains how to write a URL if the name looks like one */
async function readDescription(from: string): Promise<string> {
  try {
    return await readTextFile(from);
  } catch (error) {
    const isUrlLike = /^(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?\//.test(from);
    if (!isUrlLike || !(error instanceof AppError) || error.kind !== 'notFound') throw error;
    const scheme = from.startsWith('localhost') ? 'http' : 'https';
    throw new AppError('notFound', `${from}: there is no such file. For a URL, write: ${scheme}://${from}`);
  }
}

/** Fetches a document. If it is a web page that shows an API description, fetches that description. @throws AppError */
async function fetchDocument(from: string, read: (address: string) => Promise<{ text: string; url: string }>) {
  const { canBePage, maxPageSteps, readPageStep } = await import('@toolhost/openapi-to-tools/document/page');
  let page = { ...(await read(from)), documentUrl: from };
  for (let steps = 0; steps < maxPageSteps && canBePage(Buffer.from(page.text.slice(0, 200)), steps); steps++) {
    const step = readPageStep(page.text, page.url);
    if (!step) break;
    if ('document' in step) return { ...page, text: step.document };
    page = { ...(await read(step.address)), documentUrl: step.address };
  }
  return page;
}

/** Collects the values of a repeatable header option, each as `Name: value`, as curl has it. */
export function collectHeader(text: string, previous: HeaderFields = {}): HeaderFields {
  const [, name = '', value = ''] = /^([^:]*):\s*(.*)$/s.exec(text) ?? [];
  const problem =
    getHeaderNameProblem(name.trim()) ??
    (isHeaderValue(value) && value !== '' ? undefined : 'it needs a value on one line');
  // The value may be a credential, so it is not repeated.
  if (problem !== undefined)
    throw new AppError('invalid', `--header ${name.trim() || '…'}: ${problem}; write: --header 'Name: value'`);
  return { ...previous, [name.trim()]: value };
}

/** Bundles a description in several files into one document. A file that cannot be read becomes a finding. */
async function bundleFiles(text: string, baseUrl: string, read: (address: string) => Promise<string>): Promise<string> {
  const { bundle, mayReferenceFiles } = await import('@toolhost/openapi-to-tools/bundle');
  if (!mayReferenceFiles(text)) return text;
  const files = new Map<string, DescriptionFile>();
  for (;;) {
    const bundled = bundle(text, baseUrl, files);
    if ('document' in bundled) return bundled.document ?? text;
    for (const address of bundled.missing) {
      const file = await read(address).then((fileText) => ({ text: fileText }), toFileProblem);
      files.set(address, file);
    }
  }
}

function toFileProblem(error: unknown): DescriptionFile {
  if (error instanceof AppError) return { problem: error.message };
  throw error;
}

/** Returns the path of a file URL inside the folder, with links resolved. @throws AppError if it is outside */
async function resolveInside(folder: string, address: string): Promise<string> {
  const path = fileURLToPath(address);
  const realFilePath = await realpath(path).catch(() => path);
  if (realFilePath.startsWith(folder + sep)) return realFilePath;
  throw new AppError('invalid', `${path}: is outside the folder of the description`);
}

async function fetchText(from: string, headers: HeaderFields = {}): Promise<{ text: string; url: string }> {
  const defaultHeaders = {
    Accept: 'application/json, application/yaml, text/yaml, */*;q=0.5',
    'User-Agent': formatUserAgent(),
  };
  // Redirects are followed here, because fetch would send all of these headers except Authorization to another origin.
  let url = from;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const requestHeaders = new Headers(defaultHeaders);
    if (new URL(url).origin === new URL(from).origin)
      for (const [name, value] of Object.entries(headers)) requestHeaders.set(name, value);
    const response = await fetch(url, {
      headers: requestHeaders,
      redirect: 'manual',
      signal: AbortSignal.timeout(fetchTimeoutMs),
    }).catch((error: unknown) => {
      throw createUnreadableError(url, error);
    });
    const location = response.status >= 300 && response.status <= 399 ? response.headers.get('location') : null;
    const nextUrl = location === null ? null : URL.parse(location, url);
    if (!nextUrl || !/^https?:$/.test(nextUrl.protocol)) return { text: await readText(response, url), url };
    await response.body?.cancel();
    url = nextUrl.href;
  }
  throw new AppError('invalid', `${from} redirects more than five times`);
}

async function readText(response: Response, url: string): Promise<string> {
  if (response.status === 401 || response.status === 403) {
    throw new AppError(
      'invalid',
      `${url} responded with HTTP ${response.status}. Pass a credential with --header 'Authorization: Bearer …'`,
    );
  }
  if (!response.ok || !response.body)
    throw new AppError(
      'invalid',
      `${url} responded with HTTP ${response.status}. Check the URL of the API description`,
    );
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body) {
      size += chunk.length;
      if (size > maxBytes) throw new AppError('tooLarge', `${url} is larger than ${maxBytes / 1024 / 1024} MB`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof AppError ? error : createUnreadableError(url, error);
  }
  return decodeDocument(Buffer.concat(chunks));
}

function createUnreadableError(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be read: ${explainNoResponse(error)}`);
}
