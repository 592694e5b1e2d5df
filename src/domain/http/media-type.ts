/** The media type of a Content-Type header in lower case, without its parameters; empty where there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? '';
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}
