/**
 * Indents JSON without changing any digit of its numbers. Other text is returned unchanged. `isTruncated` means that the text
 * is truncated, so that it cannot be verified to be JSON.
 */
export function indentJson(text: string, isTruncated = false): string {
  if (text.length > 100_000 || !/^\s*[[{]/.test(text)) return text;
  if (!isTruncated && !isJson(text)) return text;
  let depth = 0;
  return text.replaceAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|\s+/g, (token, at: number) => {
    if (token.startsWith('"')) return token;
    if (/^\s/.test(token)) return '';
    if (token === ':') return ': ';
    const line = () => `\n${'  '.repeat(Math.max(0, depth))}`;
    if (token === ',') return `,${line()}`;
    const isOpening = token === '{' || token === '[';
    if (isOpening && /^\s*[}\]]/.test(text.slice(at + 1, at + 50))) return token;
    if (isOpening) {
      depth++;
      return token + line();
    }
    if (/[{[]\s*$/.test(text.slice(Math.max(0, at - 50), at))) return token;
    depth--;
    return line() + token;
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
