/**
 * Decodes a document. A byte order mark, or zero bytes in the first two characters, show that it is UTF-16, because an
 * API description begins with ASCII. Everything else is UTF-8.
 */
export function decodeDocument(bytes: Uint8Array): string {
  const encoding = detectEncoding(bytes);
  return new TextDecoder(encoding, { ignoreBOM: encoding === 'utf-8' }).decode(bytes);
}

function detectEncoding([first, second, third, fourth]: Uint8Array): string {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0 && third !== 0 && fourth === 0))
    return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0 && third === 0 && fourth !== 0))
    return 'utf-16be';
  return 'utf-8';
}
