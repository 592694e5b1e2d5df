import type { Tool } from '../config/tool.ts';

/** The one HTTP request of a call. `path` has the query; `headers` alternates names and values. */
export type UpstreamRequest = {
  method: Tool['method'];
  origin: string;
  path: string;
  headers: string[];
  body: UpstreamBody | undefined;
};

/** Text, bytes, or the parts of a multipart body: `multipart/form-data` unless the headers have another Content-Type. */
export type UpstreamBody = string | Buffer | { fields: FormPart[] };

/** A part of a multipart body. A part with a media type or a file name says so in its own headers. */
export type FormPart = [name: string, value: string | Buffer, of?: { fileName?: string; mediaType?: string }];

/** A request as people read it: bytes are only counted. */
export type ReadableRequest = Omit<UpstreamRequest, 'body'> & { body: ReadableBody | undefined };
export type ReadableBody = string | { byteCount: number } | { fields: ReadablePart[] };
/** The third entry says that the part is a file, and what it says of itself. */
export type ReadablePart = [name: string, text: string, of?: { fileName?: string; mediaType?: string }];

export function readableBody(body: UpstreamBody | ReadableBody | undefined): ReadableBody | undefined {
  if (body instanceof Uint8Array) return { byteCount: body.length };
  if (typeof body !== 'object' || 'byteCount' in body) return body;
  return { fields: body.fields.map(readablePart) };
}

function readablePart([name, value, of]: FormPart): ReadablePart {
  const text = typeof value === 'string' ? value : `(${value.length} bytes)`;
  return of === undefined ? [name, text] : [name, text, of];
}
