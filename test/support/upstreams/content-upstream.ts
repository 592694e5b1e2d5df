import { createServer } from 'node:http';
import { listenLocally } from './local-server.ts';

export interface ContentUpstream {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

interface Content {
  status: number;
  type: string;
  body: string | Buffer;
}

/** PNG image of one red pixel. */
export const PNG: Buffer = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
);

/** Eight samples of silence: mono, 8 kHz, 8 bits (128 is the middle). */
export const WAV: Buffer = buildWav(Buffer.alloc(8, 128));

/** Bytes that are not text in any encoding: NUL, and bytes that never occur in UTF-8. */
export const BINARY: Buffer = Buffer.from([0x00, 0x01, 0x02, 0xfe, 0xff, 0x00, 0x7f, 0x80]);

export const TEXT = 'This is a simple text response for testing.';

const BOUNDARY = 'part-of-the-mixed-answer';

function buildWav(samples: Buffer): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + samples.length, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16); // length of the format block
  header.writeUInt16LE(1, 20); // PCM
  header.writeUInt16LE(1, 22); // channels
  header.writeUInt32LE(8000, 24); // samples per second
  header.writeUInt32LE(8000, 28); // bytes per second
  header.writeUInt16LE(1, 32); // bytes per frame
  header.writeUInt16LE(8, 34); // bits per sample
  header.write('data', 36);
  header.writeUInt32LE(samples.length, 40);
  return Buffer.concat([header, samples]);
}

function buildMultipart(parts: readonly Omit<Content, 'status'>[]): Buffer {
  const pieces = parts.flatMap(({ type, body }) => [
    Buffer.from(`--${BOUNDARY}\r\nContent-Type: ${type}\r\n\r\n`),
    Buffer.from(body),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

const contents: Record<string, Content> = {
  '/image': { status: 200, type: 'image/png', body: PNG },
  '/audio': { status: 200, type: 'audio/wav', body: WAV },
  '/resource': { status: 200, type: 'application/octet-stream', body: BINARY },
  '/text': { status: 200, type: 'text/plain; charset=utf-8', body: TEXT },
  '/error': { status: 500, type: 'application/json', body: '{"error":"This answer always fails."}' },
  '/mixed': {
    status: 200,
    type: `multipart/mixed; boundary="${BOUNDARY}"`,
    body: buildMultipart([
      { type: 'text/plain; charset=utf-8', body: 'Multiple content types test:' },
      { type: 'image/png', body: PNG },
      { type: 'application/json', body: '{"test":"data","value":123}' },
    ]),
  },
};
const noContent: Content = { status: 404, type: 'application/json', body: '{"error":"No such content."}' };

/** Serves one response of each kind that the conformance fixtures need. */
export async function startContentUpstream(): Promise<ContentUpstream> {
  const server = createServer((request, response) => {
    const { status, type, body } = contents[request.url?.split('?', 1)[0] ?? ''] ?? noContent;
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
  });
  const { url, port, close } = await listenLocally(server);
  return { url, port, close };
}
