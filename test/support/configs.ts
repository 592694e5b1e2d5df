import type { Json } from './toolhost/toolhost.ts';

/** Builds a tool `get` that sends GET to a URL. */
export function toolAt(url: string, more: Json = {}): Json {
  return { name: 'get', description: 'Gets the thing from the upstream.', method: 'GET', url, ...more };
}

/** Builds a valid server with one tool, `get`, which requests `${origin}/thing`. */
export function serverAt(slug: string, origin: string, more: Json = {}): Json {
  return { name: slug, slug, tools: [toolAt(`${origin}/thing`)], ...more };
}
