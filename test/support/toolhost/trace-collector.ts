import { createServer, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenLocally } from '../upstreams/local-server.ts';

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
  respondWith(status: number): void;
  close(): Promise<void>;
};

export async function startTraceCollector(port = 0): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const requests: TraceCollector['requests'] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    if (status === 200) spans.push(...parseSpans(body));
    response.writeHead(status, { 'Content-Type': 'application/x-protobuf' }).end();
  });
  const local = await listenLocally(server, port);
  return {
    url: local.url,
    port: local.port,
    spans,
    requests,
    respondWith(nextStatus) {
      status = nextStatus;
    },
    close: local.close,
  };
}

/**
 * Fields of a protobuf message by number. Varints and fixed64 values are bigints, and every length-delimited value is
 * bytes.
 */
type Fields = Map<number, (bigint | Buffer)[]>;

function decode(bytes: Buffer): Fields {
  const fields: Fields = new Map();
  let offset = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[offset++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    offset += length;
    return bytes.subarray(offset - length, offset);
  };
  while (offset < bytes.length) {
    const tag = Number(varint());
    const type = tag & 7;
    const value =
      type === 0 ? varint() : type === 1 ? take(8).readBigUInt64LE() : take(type === 5 ? 4 : Number(varint()));
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

const getMessages = (fields: Fields, field: number) =>
  (fields.get(field) ?? []).map((value) => decode(value as Buffer));
const getBytes = (fields: Fields, field: number) => (fields.get(field)?.[0] as Buffer | undefined) ?? Buffer.alloc(0);
const getText = (fields: Fields, field: number) => getBytes(fields, field).toString('utf8');
const getNumber = (fields: Fields, field: number) => Number(fields.get(field)?.[0] ?? 0);

/** Converts attributes. KeyValue is 1 key, 2 value; AnyValue is 1 string, 2 bool, 3 int. */
function toAttributes(list: readonly Fields[]): Record<string, string | number> {
  return Object.fromEntries(
    list.map((pair) => {
      const value = decode(getBytes(pair, 2));
      return [getText(pair, 1), value.has(1) ? getText(value, 1) : getNumber(value, value.has(3) ? 3 : 2)];
    }),
  );
}

function parseSpans(body: Buffer): CollectedSpan[] {
  return getMessages(decode(body), 1).flatMap((resourceSpans) => {
    const resource = toAttributes(getMessages(decode(getBytes(resourceSpans, 1)), 1));
    return getMessages(resourceSpans, 2).flatMap((scope) =>
      getMessages(scope, 2).map((span) => toSpan(span, resource)),
    );
  });
}

function toSpan(span: Fields, resource: CollectedSpan['resource']): CollectedSpan {
  const status = decode(getBytes(span, 15));
  return {
    traceId: getBytes(span, 1).toString('hex'),
    spanId: getBytes(span, 2).toString('hex'),
    traceState: getText(span, 3),
    parentSpanId: getBytes(span, 4).toString('hex'),
    name: getText(span, 5),
    kind: getNumber(span, 6),
    durationMs: (getNumber(span, 8) - getNumber(span, 7)) / 1e6,
    attributes: toAttributes(getMessages(span, 9)),
    status: getNumber(status, 3),
    statusMessage: getText(status, 2),
    resource,
  };
}
