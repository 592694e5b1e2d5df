import { mediaTypeOf } from './media-type.ts';

/** Media types of answers that are named in records; the rest of them is a text that an upstream chose. */
const known: ReadonlySet<string> = new Set([
  ...['json', 'problem+json', 'ld+json', 'hal+json', 'vnd.api+json', 'geo+json', 'xml', 'problem+xml', 'soap+xml'].map(
    (name) => `application/${name}`,
  ),
  ...['x-ndjson', 'yaml', 'octet-stream', 'pdf', 'zip', 'gzip', 'javascript', 'x-www-form-urlencoded', 'msgpack'].map(
    (name) => `application/${name}`,
  ),
  ...['grpc', 'protobuf', 'x-protobuf', 'atom+xml', 'rss+xml', 'xhtml+xml', 'vnd.ms-excel'].map(
    (name) => `application/${name}`,
  ),
  ...['plain', 'html', 'xml', 'csv', 'json', 'markdown', 'css', 'javascript', 'event-stream', 'calendar', 'yaml'].map(
    (name) => `text/${name}`,
  ),
  ...['png', 'jpeg', 'gif', 'webp', 'svg+xml', 'avif', 'tiff', 'bmp'].map((name) => `image/${name}`),
  ...['mpeg', 'wav', 'ogg', 'mp4', 'webm', 'flac', 'aac'].flatMap((name) => [`audio/${name}`, `video/${name}`]),
  ...['mixed', 'form-data', 'related', 'byteranges', 'alternative'].map((name) => `multipart/${name}`),
]);

/** The media type of a Content-Type if it is a common one, otherwise a description that holds nothing of it. */
export function knownMediaType(contentType: string | undefined): string {
  const type = mediaTypeOf(contentType);
  if (type === '') return 'no media type';
  return known.has(type) ? type : 'another media type';
}
