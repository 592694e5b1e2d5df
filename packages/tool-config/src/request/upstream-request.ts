import type { Tool } from '../tool.ts';

/** The single HTTP request of a call. `path` includes the query; `headers` alternates names and values. */
export type UpstreamRequest = {
  method: Tool['method'];
  origin: string;
  path: string;
  headers: string[];
  body: UpstreamBody | undefined;
};

/**
 * Text, bytes, or the parts of a multipart body: `multipart/form-data` unless the headers have another Content-Type.
 */
export type UpstreamBody = string | Buffer | { fields: FormPart[] };

/** A part of a multipart body. A media type or file name becomes a header of the part. */
export type FormPart = [name: string, value: string | Buffer, file?: { fileName?: string; mediaType?: string }];

/** A request in readable form; bytes are only counted. */
export type ReadableRequest = Omit<UpstreamRequest, 'body'> & { body: ReadableBody | undefined };
export type ReadableBody = string | { byteCount: number } | { fields: ReadablePart[] };
/** The third entry marks the part as a file, with its name and media type. */
export type ReadablePart = [name: string, text: string, file?: { fileName?: string; mediaType?: string }];

export function toReadableBody(body: UpstreamBody | ReadableBody | undefined): ReadableBody | undefined {
  if (body instanceof Uint8Array) return { byteCount: body.length };
  if (typeof body !== 'object' || 'byteCount' in body) return body;
  return { fields: body.fields.map(toReadablePart) };
}

function toReadablePart([name, value, fileInfo]: FormPart): ReadablePart {
  const text = typeof value === 'string' ? value : `(${value.length} bytes)`;
  return fileInfo === undefined ? [name, text] : [name, text, fileInfo];
}
