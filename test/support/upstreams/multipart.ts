export type MultipartPart = { name: string; fileName: string | undefined; type: string; content: Buffer };

/** Parses the parts of a multipart body in order (RFC 2046, 5.1). */
export function parseMultipartBody(contentType: string, body: Buffer): MultipartPart[] {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (boundary === undefined) throw new Error(`no boundary in ${contentType}`);
  return `\r\n${body.toString('latin1')}`
    .split(`\r\n--${boundary}`)
    .slice(1, -1)
    .map((text) => {
      const end = text.indexOf('\r\n\r\n');
      const headers = Buffer.from(text.slice(0, end), 'latin1').toString();
      return {
        name: /[; ]name="([^"]*)"/.exec(headers)?.[1] ?? '',
        fileName: /; filename="([^"]*)"/.exec(headers)?.[1],
        type: /^Content-Type: (.*)$/im.exec(headers)?.[1]?.trim() ?? '',
        content: Buffer.from(text.slice(end + 4), 'latin1'),
      };
    });
}
