/**
 * Reference for the measurements: the minimum that a Node process does to turn a POST into one upstream request and
 * return the response. It has no credentials, checks, records, or deadlines. `POST /fixed/{bytes}` responds without an
 * upstream request.
 * Usage: node bench/relay.ts <upstream origin>
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

const origin = process.argv[2] ?? '';
const pool = new Pool(origin, { connections: 128, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false });
const requestHeaders = ['Accept', 'application/json', 'User-Agent', 'bench-relay', 'Authorization', 'Bearer x'];
const fixedResponses = new Map<string, Buffer>();

/** Relays a response as Latin-1 text, which preserves the bytes and allows one write with the head. */
function relay(path: string, response: ServerResponse): void {
  let body = '';
  let status = 502;
  pool.dispatch(
    { path, method: 'GET', headers: requestHeaders, body: null },
    {
      onRequestStart() {},
      onResponseStart(_controller, code) {
        status = code;
      },
      onResponseData(_controller, chunk) {
        body += chunk.toString('latin1');
      },
      onResponseEnd() {
        response.writeHead(status, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]);
        response.end(body, 'latin1');
      },
      onResponseError() {
        response.writeHead(502, ['Content-Length', '0']).end();
      },
    },
  );
}

function sendFixed(size: string, response: ServerResponse): void {
  let bytes = fixedResponses.get(size);
  if (!bytes) {
    bytes = Buffer.alloc(Number(size), 'x');
    fixedResponses.set(size, bytes);
  }
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(bytes.length)]);
  response.end(bytes);
}

const timeouts = {
  headersTimeout: 0,
  requestTimeout: 0,
  keepAliveTimeout: 0,
  connectionsCheckingInterval: 60_000,
};
const server = createServer({ ...timeouts, noDelay: true }, (request, response) => {
  const path = request.url ?? '/';
  request.on('data', () => {});
  request.on('end', () => {
    if (path.startsWith('/fixed/')) sendFixed(path.slice('/fixed/'.length), response);
    else relay(path, response);
  });
});
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`));
