import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OperationName } from '@toolhost/server/operations';
import { root } from './processes.ts';
import { buildRequests, type KnownInputs, type ReportRequest, readOperations } from './reports-requests.ts';
import { median } from './rounds.ts';

/** Sender of requests. `hasAllNames`: everything that requests name exists in the sender's workspace. */
export type Sender = { name: string; headers: Record<string, string>; hasAllNames: boolean };

export type MeasuredRequest = { operation: string; sender: string; input: object; ms: number };

/** Slowest request of an operation. */
export type SlowRequest = MeasuredRequest & { request: ReportRequest };

export type RequestTimes = {
  /** Slowest request of each operation and sender. */
  slowest: SlowRequest[];
  /** Requests that each dashboard page sends when it opens. */
  pages: { page: string; operations: string; ms: number }[];
  requests: number;
  /** Median time of `getMcpServer`, which reads one row by its key. */
  referenceMs: number;
};

/** Time above which a request is repeated because the machine may have been busy. The fastest of three attempts counts. */
const repeatAboveMs = 100;
const attempts = 3;
/** Number of requests between two reference requests. */
const referenceInterval = 20;

export async function measureRequests(
  url: string,
  senders: readonly Sender[],
  knownInputs: KnownInputs,
  maxRequestsPerOperation: number,
): Promise<RequestTimes> {
  const references: number[] = [];
  const slowest = new Map<string, SlowRequest>();
  let requests = 0;
  const reference = buildRequests(getReadOperation('getMcpServer'), knownInputs)[0] as ReportRequest;
  for (const sender of senders) {
    for (const op of readOperations) {
      for (const request of buildRequests(op, knownInputs).slice(0, maxRequestsPerOperation)) {
        const ms = await measureFastestMs(url, sender, request);
        if (requests++ % referenceInterval === 0) references.push(await measureFastestMs(url, sender, reference));
        const key = `${op.name} ${sender.name}`;
        if (ms > (slowest.get(key)?.ms ?? 0))
          slowest.set(key, { operation: op.name, sender: sender.name, input: request.input, ms, request });
      }
    }
  }
  const pages = await measurePages(url, senders[0] as Sender, knownInputs);
  return { slowest: [...slowest.values()], pages, requests, referenceMs: median(references) };
}

function getReadOperation(name: string) {
  const op = readOperations.find((each) => each.name === name);
  if (!op) throw new Error(`There is no read operation ${name}.`);
  return op;
}

async function measureFastestMs(url: string, sender: Sender, request: ReportRequest): Promise<number> {
  let best = await measureMs(url, sender, request);
  for (let attempt = 1; attempt < attempts && best > repeatAboveMs; attempt++)
    best = Math.min(best, await measureMs(url, sender, request));
  return best;
}

/** Returns the time from the request to the last byte of the response, on an open connection. */
async function measureMs(url: string, sender: Sender, request: ReportRequest): Promise<number> {
  const startedAt = performance.now();
  const response = await sendRequest(url, sender, request);
  const text = await response.text();
  const ms = performance.now() - startedAt;
  if (response.status === 200 || ((request.mayBeNotFound || !sender.hasAllNames) && response.status === 404)) return ms;
  throw new Error(`${request.method} ${request.path}: ${response.status} ${text.slice(0, 500)}`);
}

export function sendRequest(
  url: string,
  { headers }: Sender,
  { method, path, body }: ReportRequest,
): Promise<Response> {
  return fetch(`${url}/api/v1${path}`, {
    method,
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

const pagesFolder = join(root, 'apps', 'dashboard', 'src');

/** Returns the read operations that the pages in each dashboard folder use. */
function findPageOperations(): Map<string, Set<string>> {
  const pages = new Map<string, Set<string>>();
  for (const file of readdirSync(pagesFolder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.tsx?$/.test(file)) continue;
    for (const [, name = ''] of readFileSync(join(pagesFolder, file), 'utf8').matchAll(/\bapi\(\s*'(\w+)'/g)) {
      if (!readOperations.some((op) => op.name === name)) continue;
      const page = file.split('/')[0] ?? '';
      pages.set(page, (pages.get(page) ?? new Set<string>()).add(name));
    }
  }
  return pages;
}

/** Sends all requests of the pages in each folder sequentially, with inputs like those of the pages. */
async function measurePages(url: string, sender: Sender, knownInputs: KnownInputs): Promise<RequestTimes['pages']> {
  const pages: RequestTimes['pages'] = [];
  for (const [page, names] of findPageOperations()) {
    let ms = 0;
    for (const name of ['getSession', ...names] satisfies (OperationName | string)[])
      ms += await measureFastestMs(url, sender, buildRequests(getReadOperation(name), knownInputs)[0] as ReportRequest);
    pages.push({ page, operations: [...names].join(', '), ms });
  }
  return pages;
}
