const stringsAndComments = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|,(?=\s*[}\]])/gs;

/** JSON without comments and without commas before a closing bracket, which editors take and RFC 8259 does not. */
export function stripComments(text: string): string {
  return text.replaceAll(stringsAndComments, (found) => (found.startsWith('"') ? found : ''));
}
