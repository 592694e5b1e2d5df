import type { Header } from '../answers.ts';

/** Headers of an answer that say something about its content, its pages, its limits or its end. */
const telling =
  /^(content-(type|length|language|range|disposition|encoding)|link|location|etag|last-modified|retry-after|allow|warning|deprecation|sunset|www-authenticate|x-(total(-count)?|next-page|page|per-page|request-id)|.*rate-?limit.*|.*request-?id)$/i;

/** The headers that matter when an answer is judged, and the others. */
export function splitHeaders(headers: readonly Header[]): { telling: Header[]; others: Header[] } {
  return {
    telling: headers.filter(([name]) => telling.test(name)),
    others: headers.filter(([name]) => !telling.test(name)),
  };
}

export function headerLines(headers: readonly Header[]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join('\n');
}
