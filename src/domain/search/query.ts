import type { ToolIndex } from './tool-index.ts';
import { termsOf } from './words.ts';

/** Most terms of a query that are searched for. */
export const mostQueryTerms = 24;

/** The terms of a query. Two words also count as one where tools write them so, such as "work log" and "worklog". */
export function queryTerms({ numbers }: ToolIndex, query: string): string[] {
  // All words of this question are left out elsewhere.
  const terms = termsOf(query.replace(/\bwho ?am ?i\b/gi, 'current user'), new Map());
  const joined = terms.slice(1).map((term, index) => `${terms[index]}${term}`);
  return [...new Set([...terms, ...joined.filter((term) => numbers.has(term))])].slice(0, mostQueryTerms);
}
