const maxIndentedLength = 100_000;

/**
 * Indents JSON without changing any digit of its numbers. Returns other text unchanged. `isTruncated` skips the check
 * that the text is JSON, which truncated JSON would fail.
 */
export function indentJson(text: string, isTruncated = false): string {
  if (text.length > maxIndentedLength || !/^\s*[[{]/.test(text)) return text;
  if (!isTruncated && !isJson(text)) return text;
  let depth = 0;
  // Matches a string, which may be unterminated, a punctuator, or white space.
  return text.replaceAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|\s+/g, (token, start: number) => {
    if (token.startsWith('"')) return token;
    if (/^\s/.test(token)) return '';
    if (token === ':') return ': ';
    const breakLine = () => `\n${'  '.repeat(Math.max(0, depth))}`;
    if (token === ',') return `,${breakLine()}`;
    // An empty list or object stays on one line.
    const isOpening = token === '{' || token === '[';
    if (isOpening && /^\s*[}\]]/.test(text.slice(start + 1, start + 50))) return token;
    if (isOpening) {
      depth++;
      return token + breakLine();
    }
    if (/[{[]\s*$/.test(text.slice(Math.max(0, start - 50), start))) return token;
    depth--;
    return breakLine() + token;
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
