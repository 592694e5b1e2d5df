import { type CorpusCase, ok, sized } from './corpus-case.ts';

const proceed = 'HTTP/1.1 100 Continue\r\n\r\n';
const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nx-a: 1\r\n\r\n';
const switching = 'HTTP/1.1 101 Switching Protocols\r\n';
const final = `${ok}${sized}`;

/** Responses with interim responses, upgrades, and closed connections. */
export const connectionCases: readonly CorpusCase[] = [
  { name: '100 before the response', bytes: `${proceed}${final}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  {
    name: '100 with headers',
    bytes: `HTTP/1.1 100 Continue\r\nx-a: 1\r\ndate: now\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '100 without a reason',
    bytes: `HTTP/1.1 100\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '100 with a content-length',
    bytes: `HTTP/1.1 100 Continue\r\ncontent-length: 0\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '100 in HTTP/1.0',
    bytes: `HTTP/1.0 100 Continue\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '100 with bare LF',
    bytes: `HTTP/1.1 100 Continue\n\n${final}`,
    expected: 'malformed',
  },
  {
    name: '100 before a response to POST',
    method: 'POST',
    bytes: `${proceed}${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  { name: '100 twice', bytes: `${proceed}${proceed}${final}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  { name: '102', bytes: `HTTP/1.1 102 Processing\r\n\r\n${final}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  { name: '103 with headers', bytes: `${hints}${final}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  { name: '103 twice', bytes: `${hints}${hints}${final}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  {
    name: '100, 102, 103, and 100',
    bytes: `${proceed}HTTP/1.1 102 P\r\n\r\n${hints}${proceed}${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '103 with a content-length',
    bytes: `HTTP/1.1 103 X\r\ncontent-length: 5\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '103 with chunked',
    bytes: `HTTP/1.1 103 X\r\ntransfer-encoding: chunked\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '103 with connection: close',
    bytes: `HTTP/1.1 103 X\r\nconnection: close\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: '103 before HEAD',
    method: 'HEAD',
    bytes: `${hints}${ok}content-length: 2\r\n\r\n`,
    expected: '200 "OK" {"content-length":"2"} ""',
  },
  { name: '103 before 204', bytes: `${hints}HTTP/1.1 204 No Content\r\n\r\n`, expected: '204 "No Content" {} ""' },
  { name: 'only 103', bytes: hints, expected: 'truncated', ending: 'close' },
  { name: 'only 100', bytes: proceed, expected: 'truncated', ending: 'close' },
  {
    name: 'a 100 of 5 KB',
    bytes: `HTTP/1.1 100 C\r\nx-a: ${'a'.repeat(5000)}\r\n\r\n${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: 'a malformed 100',
    bytes: `HTTP/1.1 100 Continue\r\nx a\r\n\r\n${final}`,
    expected: 'malformed',
  },
  {
    name: '100 interim responses',
    bytes: `${hints.repeat(100)}${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  { name: '101 interim responses', bytes: `${hints.repeat(101)}${final}`, expected: 'malformed' },
  { name: '150 times 100', bytes: `${proceed.repeat(150)}${final}`, expected: 'malformed' },
  { name: '101 without an upgrade', bytes: `${switching}\r\n${final}`, expected: 'malformed' },
  {
    name: '101 to websocket',
    bytes: `${switching}upgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
    expected: 'malformed',
  },
  {
    name: '101 after 103',
    bytes: `${hints}${switching}upgrade: x\r\nconnection: upgrade\r\n\r\n`,
    expected: 'malformed',
  },
  {
    name: '200 with an upgrade',
    bytes: `${ok}upgrade: h2c\r\nconnection: upgrade\r\n${sized}`,
    expected: '200 "OK" {"upgrade":"h2c","connection":"upgrade","content-length":"2"} "ok"',
  },
  {
    name: '426 with an upgrade',
    bytes: `HTTP/1.1 426 U\r\nupgrade: h2c\r\nconnection: upgrade\r\n${sized}`,
    expected: '426 "U" {"upgrade":"h2c","connection":"upgrade","content-length":"2"} "ok"',
  },
  {
    name: 'upgrade without connection',
    bytes: `${ok}upgrade: h2,h2c\r\n${sized}`,
    expected: '200 "OK" {"upgrade":"h2,h2c","content-length":"2"} "ok"',
  },
  {
    name: 'connection: close',
    bytes: `${ok}connection: close\r\n${sized}`,
    expected: '200 "OK" {"connection":"close","content-length":"2"} "ok"',
  },
  {
    name: 'connection: close up to the end',
    bytes: `${ok}connection: close\r\n\r\nok`,
    expected: '200 "OK" {"connection":"close"} "ok"',
    ending: 'close',
  },
  {
    name: 'connection: close and bytes after the end',
    bytes: `${ok}connection: close\r\n${sized}more`,
    expected: '200 "OK" {"connection":"close","content-length":"2"} "ok"',
    ending: 'close',
  },
  {
    name: 'connection: keep-alive, close',
    bytes: `${ok}connection: keep-alive, close\r\n${sized}`,
    expected: '200 "OK" {"connection":"keep-alive, close","content-length":"2"} "ok"',
  },
  {
    name: 'keep-alive',
    bytes: `${ok}connection: keep-alive\r\nkeep-alive: timeout=1\r\n${sized}`,
    expected: '200 "OK" {"connection":"keep-alive","keep-alive":"timeout=1","content-length":"2"} "ok"',
  },
  { name: 'HTTP/1.0', bytes: `HTTP/1.0 200 OK\r\n${sized}`, expected: '200 "OK" {"content-length":"2"} "ok"' },
  {
    name: 'HTTP/1.0 with keep-alive',
    bytes: `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${sized}`,
    expected: '200 "OK" {"connection":"keep-alive","content-length":"2"} "ok"',
  },
  { name: 'HTTP/1.0 up to the end', bytes: 'HTTP/1.0 200 OK\r\n\r\nok', expected: '200 "OK" {} "ok"', ending: 'close' },
  {
    name: 'HTTP/1.0 with keep-alive up to the end',
    bytes: 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\nok',
    expected: '200 "OK" {"connection":"keep-alive"} "ok"',
    ending: 'close',
  },
  {
    name: 'a response before the end of the request',
    method: 'POST',
    requestBytes: 5_000_000,
    bytes: `HTTP/1.1 413 Content Too Large\r\n${sized}`,
    expected: '413 "Content Too Large" {"content-length":"2"} "ok"',
  },
  {
    name: '100 before the end of the request',
    method: 'POST',
    requestBytes: 5_000_000,
    bytes: `${proceed}${final}`,
    expected: '200 "OK" {"content-length":"2"} "ok"',
  },
  {
    name: 'a close before the end of the request',
    method: 'POST',
    requestBytes: 5_000_000,
    bytes: `HTTP/1.1 413 Content Too Large\r\nconnection: close\r\n${sized}`,
    expected: '413 "Content Too Large" {"connection":"close","content-length":"2"} "ok"',
    ending: 'close',
  },
  { name: 'nothing', bytes: '', expected: 'reset', ending: 'close' },
  { name: 'nothing but a reset', bytes: '', expected: 'reset', ending: 'reset' },
  { name: 'a close in the status line', bytes: 'HTTP/1.1 20', expected: 'truncated', ending: 'close' },
  { name: 'a close after the status line', bytes: ok, expected: 'truncated', ending: 'close' },
  { name: 'a close in a header line', bytes: `${ok}x-a: 1`, expected: 'truncated', ending: 'close' },
  {
    name: 'a close before the empty line',
    bytes: `${ok}content-length: 0\r\n`,
    expected: 'truncated',
    ending: 'close',
  },
  { name: 'a close in the empty line', bytes: `${ok}content-length: 0\r\n\r`, expected: 'truncated', ending: 'close' },
  { name: 'a reset in the head', bytes: `${ok}x-a: 1`, expected: 'truncated', ending: 'reset' },
  { name: 'only an empty line', bytes: '\r\n', expected: 'truncated', ending: 'close' },
];
