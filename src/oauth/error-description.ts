/** A message as `error_description`: printable ASCII without quotes and backslashes (RFC 6749, 4.1.2.1 and 5.2). */
export function errorDescription(text: string): string {
  return text.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
}
