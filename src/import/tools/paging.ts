import type { ApiOperation } from '../model.ts';
import type { MadeArgument } from './made-tool.ts';

const cursors =
  /^(?:page_?)?(?:cursor|token)$|^(?:next|start|continuation)_?(?:cursor|token|page_?token|key)$|^page_?token$/i;
const nextCursors =
  /^next_?(?:page_?)?(?:cursor|token|key|start|marker)$|^(?:end|page)_?cursor$|^continuation_?token$/i;
const offsets = /^(?:offset|start_?at|skip|start_?index)$/i;
const counts = /^(?:limit|count|max_?results|top|per_?page|page_?size|size)$/i;

/**
 * How an agent gets the next page of an answer, as a sentence, and the headers that tell it; empty when the operation
 * does not say.
 */
export function pagingOf(
  { method, answers }: ApiOperation,
  args: readonly MadeArgument[],
): { sentence: string; headers: string[] } {
  const find = (pattern: RegExp) => args.find(({ wireName }) => pattern.test(wireName))?.name;
  const size = find(counts);
  const cursor = find(cursors);
  const next = answers.fields.find((path) => nextCursors.test(path.slice(path.lastIndexOf('.') + 1)));
  if (cursor !== undefined && next !== undefined) return said(`pass ${next} of the answer as ${cursor}`);
  const after = find(/^starting_?after$/i);
  if (after !== undefined && answers.fields.includes('has_more'))
    return said(`pass the id of the last item as ${after}`);
  // With a cursor, nothing is counted, even where the answer does not name the next one.
  if (method !== 'GET' || cursor !== undefined) return nothing;
  const isNumber = (name: string) =>
    args.some((one) => one.name === name && /^(?:integer|number)$/.test(String(one.schema.type)));
  const offset = find(offsets);
  if (offset !== undefined && size !== undefined && isNumber(offset))
    return said(`raise ${offset} by the number of items`);
  const page = find(/^page(?:_?number)?$/i);
  if (page === undefined || size === undefined || !isNumber(page)) return nothing;
  // Many APIs that count pages name the next one in this header, whether they say so or not (RFC 8288).
  return { ...said(`raise ${page} by 1`), headers: ['Link'] };
}

const nothing = { sentence: '', headers: [] };

function said(how: string): { sentence: string; headers: string[] } {
  return { sentence: `For the next page ${how}.`, headers: [] };
}
