import type { Json } from './toolhost/toolhost.ts';

/** A tool `get` that GETs a URL. */
export function toolAt(url: string, more: Json = {}): Json {
  return { name: 'get', description: 'Gets the thing from the upstream.', method: 'GET', url, ...more };
}

/** A valid server of one tool, `get`, which asks `${origin}/thing`. */
export function serverAt(slug: string, origin: string, more: Json = {}): Json {
  return { name: slug, slug, tools: [toolAt(`${origin}/thing`)], ...more };
}
