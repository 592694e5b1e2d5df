import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { times } from '../support/long-values.ts';
import { type CpuBudgetToolhost, getResult, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const start = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const chunked = `${start}transfer-encoding: chunked\r\n\r\n`;
const end = 'content-length: 2\r\n\r\n{}';
const earlyHints = (lines: string) => `HTTP/1.1 103 Early Hints\r\n${lines}\r\n`;
const makeHeaderLines = (count: number) => times(count, (i) => `a${i.toString(36)}:\r\n`).join('');

/** Raw upstream responses with little content and a large number of headers, chunks, or extensions. */
const rejectedResponses: Record<string, string> = {
  trailers: `${chunked}2\r\n{}\r\n0\r\n${'a: b\r\n'.repeat(500_000)}\r\n`,
  'empty-trailers': `${chunked}2\r\n{}\r\n0\r\n${'a:\r\n'.repeat(500_000)}\r\n`,
  headers: `${start}${'a: b\r\n'.repeat(500_000)}${end}`,
  'empty-headers': `${start}${'a:\r\n'.repeat(500_000)}${end}`,
  'distinct-headers': start + makeHeaderLines(100_000) + end,
  interim: earlyHints('link: a\r\n').repeat(100_000) + start + end,
  'wide-interim': earlyHints('a:\r\n'.repeat(10_000)).repeat(90) + start + end,
  'one-extension': `${chunked}2;${'x'.repeat(8_000_000)}\r\n{}\r\n0\r\n\r\n`,
  extensions: `${chunked}2${';a=b'.repeat(1_000_000)}\r\n{}\r\n0\r\n\r\n`,
  chunks: `${chunked}${'1\r\n1\r\n'.repeat(500_000)}0\r\n\r\n`,
  'zeros-before-a-length': `${chunked}${'0'.repeat(3_000_000)}2\r\n{}\r\n0\r\n\r\n`,
  'long-headers': `${start}x: ${'y'.repeat(70_000)}\r\n${end}`,
};
const acceptedResponses: Record<string, string> = {
  'headers-of-60-kb': start + 'x-row: 0123456789\r\n'.repeat(3000) + end,
  'empty-headers-of-60-kb': start + 'a:\r\n'.repeat(15_000) + end,
  hints: earlyHints(`link: <${'x'.repeat(500)}>\r\n`).repeat(99) + start + end,
  'rows-in-chunks': `${chunked}1\r\n[\r\n${`6;x=y\r\n"row",\r\n`.repeat(5000)}2\r\n1]\r\n0\r\nx-sum: 1\r\n\r\n`,
};

describe('CPU budget of upstream transfers', () => {
  let toolhost: CpuBudgetToolhost;
  const upstream = createServer((socket) => {
    // The service disconnects in the middle of most responses.
    socket.on('error', () => undefined);
    socket.on('data', (request) => {
      const name = /^GET \/(\S+)/.exec(request.toString())?.[1] ?? '';
      socket.write(rejectedResponses[name] ?? acceptedResponses[name] ?? start + end);
    });
  });
  before(async () => {
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    const { port } = upstream.address() as AddressInfo;
    toolhost = await startCpuBudgetToolhost({ EGRESS_ALLOW: `127.0.0.1:${port}` });
    const names = Object.keys({ ...rejectedResponses, ...acceptedResponses });
    const tools = names.map((name) => buildToolAt(`http://127.0.0.1:${port}/${name}`, { name }));
    await toolhost.createServer({ slug: 'raw', tools });
  });
  after(async () => {
    await toolhost.stop();
    upstream.close();
  });

  const call = async (name: string) => getResult(await toolhost.measure(name).call('raw', name));
  const tooMany =
    /^the (?:upstream responded with too many (?:bytes|header bytes|body chunks|interim)|response of the upstream is not plain HTTP\/1; found a chunk line that is too long)/;

  it('[find A2] rejects hundreds of thousands of headers, trailers, interim responses, and extensions within the CPU budget', async () => {
    for (const name of Object.keys(rejectedResponses)) {
      const { isError, content } = await call(name);
      assert.equal(isError, true, name);
      assert.match(content[0]?.text ?? '', tooMany, name);
    }
  });

  it('[find A2] reads headers of 60 KB, interim responses, and small chunks within the CPU budget', async () => {
    for (const name of Object.keys(acceptedResponses)) {
      const { isError, content } = await call(name);
      assert.notEqual(isError, true, `${name}: ${content[0]?.text}`);
    }
  });
});
