import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export type CollectedSpan = {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  traceState: string;
  name: string;
  /** Span kind: 2 for a server span, 3 for a client span. */
  kind: number;
  attributes: Record<string, string | number>;
  /** Status code: 2 for an error. */
  status: number;
  statusMessage: string;
  durationMs: number;
  resource: Record<string, string | number>;
};

/** An OTLP collector over HTTP (opentelemetry-proto, collector/trace/v1) that stores the spans that it receives. */
export type TraceCollector = {
  url: string;
  port: number;
  spans: CollectedSpan[];
  requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[];
  /** Responds with this status from now on. */
  answerWith(status: number): void;
  close(): Promise<void>;
};

export async function startTraceCollector(port = 0): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const requests: TraceCollector['requests'] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    if (status === 200) spans.push(...spansIn(body));
    response.writeHead(status, { 'Content-Type': 'application/x-protobuf' }).end();
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    spans,
    requests,
    answerWith(next) {
      status = next;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Fields of a protobuf message by number. Varints and fixed64 values are bigints, and every length-delimited value is
 * bytes.
 */
type Fields = Map<number, (bigint | Buffer)[]>;

function decode(bytes: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const type = tag & 7;
    const value =
      type === 0 ? varint() : type === 1 ? take(8).readBigUInt64LE() : take(type === 5 ? 4 : Number(varint()));
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

const messages = (fields: Fields, field: number) => (fields.get(field) ?? []).map((value) => decode(value as Buffer));
const bytesOf = (fields: Fields, field: number) => (fields.get(field)?.[0] as Buffer | undefined) ?? Buffer.alloc(0);
const text = (fields: Fields, field: number) => bytesOf(fields, field).toString('utf8');
const number = (fields: Fields, field: number) => Number(fields.get(field)?.[0] ?? 0);

/** Converts attributes. KeyValue is 1 key, 2 value; AnyValue is 1 string, 2 bool, 3 int. */
function attributesOf(list: readonly Fields[]): Record<string, string | number> {
  return Object.fromEntries(
    list.map((pair) => {
      const value = decode(bytesOf(pair, 2));
      return [text(pair, 1), value.has(1) ? text(value, 1) : number(value, value.has(3) ? 3 : 2)];
    }),
  );
}

function spansIn(body: Buffer): CollectedSpan[] {
  return messages(decode(body), 1).flatMap((resourceSpans) => {
    const resource = attributesOf(messages(decode(bytesOf(resourceSpans, 1)), 1));
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2).map((span) => spanOf(span, resource)));
  });
}

function spanOf(span: Fields, resource: CollectedSpan['resource']): CollectedSpan {
  const status = decode(bytesOf(span, 15));
  return {
    traceId: bytesOf(span, 1).toString('hex'),
    spanId: bytesOf(span, 2).toString('hex'),
    traceState: text(span, 3),
    parentSpanId: bytesOf(span, 4).toString('hex'),
    name: text(span, 5),
    kind: number(span, 6),
    durationMs: (number(span, 8) - number(span, 7)) / 1e6,
    attributes: attributesOf(messages(span, 9)),
    status: number(status, 3),
    statusMessage: text(status, 2),
    resource,
  };
}
