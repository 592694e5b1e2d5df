import { isHeaderName } from '../http/headers.ts';
import { type ProblemList, shown } from '../problems/problems.ts';
import { toolSchema } from './tool.ts';

/** Headers that no agent gets: credentials, and those that are about the connection and not about the answer. */
const withheld = /^(set-cookie2?|connection|keep-alive|transfer-encoding|trailer|upgrade|te|proxy-.*)$/;

/** Adds problems of the fields that say what a tool reads of an answer beside its body; paths are relative to the tool. */
export function checkAnswerFields(raw: { [field: string]: unknown }, problems: ProblemList): void {
  const names = toolSchema.shape.response_headers.safeParse(raw.response_headers).data ?? [];
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    const message = headerFault(name, seen);
    if (message) problems.add(() => ({ path: `response_headers[${index}]`, message }));
    seen.add(name.toLowerCase());
  }
  const method = String(raw.method).toUpperCase();
  if (raw.redirects === 'follow' && method !== 'GET' && method !== 'HEAD') {
    const message = `found ${shown(raw.method)} as the method; only redirects of GET and HEAD are followed, because another request must not be sent twice; leave it out`;
    problems.add(() => ({ path: 'redirects', message }));
  }
}

function headerFault(name: string, seen: ReadonlySet<string>): string | undefined {
  if (!isHeaderName(name)) return `found ${shown(name)}; allowed: the name of a header, such as Link`;
  if (seen.has(name.toLowerCase())) return 'this header is named twice';
  return withheld.test(name.toLowerCase())
    ? 'agents never get this header: it holds a cookie or is about the connection; leave it out'
    : undefined;
}
