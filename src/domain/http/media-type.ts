/** The media type of a Content-Type header in lower case, without its parameters; empty where there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? '';
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

/** A media type with or without parameters (RFC 9110, 8.3.1), of a length that servers take. */
export const mediaTypePattern =
  /^(?=.{1,200}$)[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(?:[ \t]?;[ \t]?[\w!#$&^.+-]{1,50}=(?:[\w!#$&^.+-]{1,100}|"[ !#-[\]-~]{0,100}"))*$/;
