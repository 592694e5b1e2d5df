/** Matches strings, which stay unchanged, and comments and trailing commas, which are removed. */
const stringsAndComments = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|,(?=\s*[}\]])/gs;

/** Removes comments and trailing commas from JSON. Editors accept them, RFC 8259 does not. */
export function stripComments(text: string): string {
  return text.replaceAll(stringsAndComments, (token) => (token.startsWith('"') ? token : ''));
}
