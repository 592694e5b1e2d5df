import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OperationName } from '../src/operations/index.ts';
import { root } from './processes.ts';
import { type Known, type Request, readingOperations, requestsOf } from './reports-requests.ts';
import { median } from './rounds.ts';

/** Sender of requests. `knowsAll`: everything that requests name exists in the sender's workspace. */
export type Asker = { name: string; headers: Record<string, string>; knowsAll: boolean };

export type Measured = { operation: string; asker: string; input: object; ms: number };

/** Slowest request of an operation. */
export type Slow = Measured & { request: Request };

export type Walk = {
  /** Slowest request of each operation and sender. */
  slowest: Slow[];
  /** Requests that each dashboard page sends when it opens. */
  pages: { page: string; asks: string; ms: number }[];
  requests: number;
  /** Median time of `getMcpServer`, which reads one row by its key. */
  referenceMs: number;
};

/** Time above which a request is repeated because the machine may have been busy. The fastest of three attempts counts. */
const suspiciousMs = 100;
const attempts = 3;
/** Number of requests between two reference requests. */
const referenceEach = 20;

export async function walk(
  url: string,
  askers: readonly Asker[],
  known: Known,
  maxRequestsOfOperation: number,
): Promise<Walk> {
  const references: number[] = [];
  const slowest = new Map<string, Slow>();
  let requests = 0;
  const reference = requestsOf(operationCalled('getMcpServer'), known)[0] as Request;
  for (const asker of askers) {
    for (const op of readingOperations) {
      for (const request of requestsOf(op, known).slice(0, maxRequestsOfOperation)) {
        const ms = await fastest(url, asker, request);
        if (requests++ % referenceEach === 0) references.push(await fastest(url, asker, reference));
        const key = `${op.name} ${asker.name}`;
        if (ms > (slowest.get(key)?.ms ?? 0))
          slowest.set(key, { operation: op.name, asker: asker.name, input: request.input, ms, request });
      }
    }
  }
  const pages = await openPages(url, askers[0] as Asker, known);
  return { slowest: [...slowest.values()], pages, requests, referenceMs: median(references) };
}

function operationCalled(name: string) {
  const op = readingOperations.find((each) => each.name === name);
  if (!op) throw new Error(`There is no read operation ${name}.`);
  return op;
}

async function fastest(url: string, asker: Asker, request: Request): Promise<number> {
  let best = await timed(url, asker, request);
  for (let attempt = 1; attempt < attempts && best > suspiciousMs; attempt++)
    best = Math.min(best, await timed(url, asker, request));
  return best;
}

/** Returns the time from the request to the last byte of the response, on an open connection. */
async function timed(url: string, asker: Asker, request: Request): Promise<number> {
  const startedAt = performance.now();
  const response = await ask(url, asker, request);
  const text = await response.text();
  const ms = performance.now() - startedAt;
  if (response.status === 200 || ((request.mayMiss || !asker.knowsAll) && response.status === 404)) return ms;
  throw new Error(`${request.method} ${request.path}: ${response.status} ${text.slice(0, 500)}`);
}

export function ask(url: string, { headers }: Asker, { method, path, body }: Request): Promise<Response> {
  return fetch(`${url}/api/v1${path}`, {
    method,
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

const pagesFolder = join(root, 'web', 'src');

/** Returns the read operations that the pages in each dashboard folder use. */
function operationsOfPages(): Map<string, Set<string>> {
  const pages = new Map<string, Set<string>>();
  for (const file of readdirSync(pagesFolder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.tsx?$/.test(file)) continue;
    for (const [, name = ''] of readFileSync(join(pagesFolder, file), 'utf8').matchAll(/\bapi\(\s*'(\w+)'/g)) {
      if (!readingOperations.some((op) => op.name === name)) continue;
      const page = file.split('/')[0] ?? '';
      pages.set(page, (pages.get(page) ?? new Set<string>()).add(name));
    }
  }
  return pages;
}

/** Sends all requests of the pages in each folder sequentially, with inputs like those of the pages. */
async function openPages(url: string, asker: Asker, known: Known): Promise<Walk['pages']> {
  const pages: Walk['pages'] = [];
  for (const [page, names] of operationsOfPages()) {
    let ms = 0;
    for (const name of ['getSession', ...names] satisfies (OperationName | string)[])
      ms += await fastest(url, asker, requestsOf(operationCalled(name), known)[0] as Request);
    pages.push({ page, asks: [...names].join(', '), ms });
  }
  return pages;
}
