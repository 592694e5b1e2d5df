/** The media type of a Content-Type header in lower case, without its parameters; empty where there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? '';
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

/** A media type with or without parameters (RFC 9110, 8.3.1), of a length that servers take. */
export const mediaTypePattern =
  /^(?=.{1,200}$)[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(?:[ \t]?;[ \t]?[\w!#$&^.+-]{1,50}=(?:[\w!#$&^.+-]{1,100}|"[ !#-[\]-~]{0,100}"))*$/;

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
