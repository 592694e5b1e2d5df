import type { Json } from './toolhost/toolhost.ts';

/** Builds a tool `get` that sends GET to a URL. */
export function buildToolAt(url: string, more: Json = {}): Json {
  return { name: 'get', description: 'Gets the thing from the upstream.', method: 'GET', url, ...more };
}

/** Builds a valid server with one tool, `get`, which requests `${origin}/thing`. */
export function buildServerAt(slug: string, origin: string, more: Json = {}): Json {
  return { name: slug, slug, tools: [buildToolAt(`${origin}/thing`)], ...more };
}
