/**
 * API behind the tools, in a separate process. It sends fixed JSON responses whose size is the first segment of the path.
 * Below `/guarded` it accepts callers whose token begins with `token-of-caller-`, and rejects others after two seconds.
 * It shares a core with the load and would be the slowest part of the chain with `node:http`, so it reads plain sockets.
 * It accepts requests without a body, one at a time on each connection.
 * Usage: node bench/upstream.ts
 */
import { type AddressInfo, createServer } from 'node:net';

/** Returns an object or an array of records as JSON text of exactly `bytes` ASCII characters. */
function makeJson(bytes: number, wrap: (records: object[], padding: string) => unknown): string {
  const records: object[] = [];
  let text = JSON.stringify(wrap(records, ''));
  while (text.length < bytes - 250) {
    const id = 1000 + records.length;
    records.push({
      id,
      name: `Project ${id}`,
      status: id % 3 === 0 ? 'archived' : 'active',
      owner: { email: `owner${id}@example.com`, admin: id % 2 === 0 },
      created_at: '2026-03-14T09:26:53Z',
      budget: 12_500.5,
    });
    text = JSON.stringify(wrap(records, ''));
  }
  return JSON.stringify(wrap(records, 'x'.repeat(bytes - text.length)));
}

const asObject = (items: object[], note: string) => ({ items, total: items.length, note });
const asArray = (items: object[], note: string) => [...items, note];

const responses = new Map([
  ['1k', makeResponse(makeJson(1024, asObject))],
  ['20k', makeResponse(makeJson(20 * 1024, asObject))],
  ['20k-array', makeResponse(makeJson(20 * 1024, asArray))],
  ['8m-array', makeResponse(`[${repeatRecords(410)}]`)],
]);
const unauthorized = Buffer.from('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
const refusalMs = 2000;
const notFound = Buffer.from('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');

/** Returns the same 20 KB of records repeatedly, because creating so many different ones takes too long. */
function repeatRecords(times: number): string {
  const records = makeJson(20 * 1024, asArray).slice(1, -1);
  return Array(times).fill(records).join(',');
}

function makeResponse(json: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
  );
}

const server = createServer({ noDelay: true }, (socket) => {
  let head = '';
  socket.on('data', (chunk: Buffer) => {
    head += chunk.toString('latin1');
    if (!head.endsWith('\r\n\r\n')) return;
    const [, first = '', second = ''] = head.slice(0, head.indexOf('\r\n')).split('/');
    const isRefused = first === 'guarded' && !/^authorization: bearer token-of-caller-/im.test(head);
    head = '';
    if (isRefused) setTimeout(() => socket.write(unauthorized), refusalMs);
    else socket.write(responses.get(first === 'guarded' ? second : first) ?? notFound);
  });
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`));
