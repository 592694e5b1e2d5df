import { buffer } from 'node:stream/consumers';
import { documentText } from '../../domain/document-text.ts';
import { AppError } from '../../errors.ts';
import { userAgentOf } from '../../version.ts';
import { whyNoAnswer } from '../connection/answer.ts';
import { readTextFile } from '../input/config-file.ts';

/** A document to import, and the address that it came from. */
export type ImportSource = { text: string; url: string | undefined };

const fetchMs = 30_000;
const mostBytes = 32 * 1024 * 1024;

/** Reads a file, standard input (`-`), or an address that the person at this machine chose. @throws AppError */
export async function readImportSource(from: string): Promise<ImportSource> {
  if (/^https?:\/\//i.test(from)) return { text: await fetchText(from), url: from };
  return { text: from === '-' ? documentText(await buffer(process.stdin)) : await readTextFile(from), url: undefined };
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { Accept: 'application/json, application/yaml, text/yaml, */*;q=0.5', 'User-Agent': userAgentOf() },
    signal: AbortSignal.timeout(fetchMs),
  }).catch((error: unknown) => {
    throw unreadable(url, error);
  });
  if (!response.ok || !response.body) throw new AppError('invalid', `${url} answered HTTP ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body) {
      size += chunk.length;
      if (size > mostBytes) throw new AppError('tooLarge', `${url} has more than ${mostBytes / 1024 / 1024} MB`);
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
