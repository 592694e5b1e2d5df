import { newId } from '@toolhost/credentials/ids';
import type { ContentBlock, JsonText, ProtocolGeneration } from '@toolhost/mcp-protocol/mcp';
import { formatTruncationNote } from '@toolhost/tool-config/read-more';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import {
  findResultChunks,
  insertResultChunks,
  type ResultOwner,
  trimResultChunks,
} from '../../store/calls/result-chunks.ts';
import { type Caller, toCallerDigest } from '../callers/caller.ts';
import type { ResultChunk } from '../chunking/chunks.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import { type ResultRemainder, type TruncatedResult, truncateResult } from '../response/fit-result.ts';
import { createStructuredFromTexts } from '../response/json-response.ts';
import { getUnverifiedCallerId, type ResultStoreOptions } from '../stored-results.ts';

type ContinuationOwner = { server: HostedServer; caller: Caller };
export type ChunkResult = { chunk: ResultChunk; nextCursor: string | undefined };

/** Remainders of truncated results. They are in the database, so every process can return them. */
export type ContinuationStore = {
  /** Stores a remainder. Resolves with the cursor of its first chunk, or with undefined if it could not be stored. */
  save(owner: ContinuationOwner, remainder: ResultRemainder, requestId: string): Promise<string | undefined>;
  /**
   * Reads the chunk of a cursor. Resolves with undefined if the cursor is invalid or has expired, or was issued to
   * another caller or in another view.
   */
  read(owner: ContinuationOwner, cursor: string): Promise<ChunkResult | undefined>;
  /** Returns counts since the start, for metrics. */
  getCounts(): Readonly<Record<ContinuationEvent, number>>;
};

export const continuationEvents = ['kept', 'lost', 'read', 'missing'] as const;
export type ContinuationEvent = (typeof continuationEvents)[number];

/** A cursor: the row id, and the number of a chunk in the result. */
const cursorPattern = /^(ans_[A-Za-z0-9]{22}\.(\d{1,7}))\.(\d{1,7})$/;

export function createContinuationStore({
  db,
  records,
  keyring,
  random,
  now,
  onUnexpected,
}: ResultStoreOptions): ContinuationStore {
  const counts: Record<ContinuationEvent, number> = { kept: 0, lost: 0, read: 0, missing: 0 };

  async function store(owner: ContinuationOwner, remainder: ResultRemainder): Promise<string> {
    const resultId = newId(random, 'ans');
    const ownerKey = toStoredOwner(owner);
    const storedAt = now();
    const unverifiedCallerId = getUnverifiedCallerId(owner.caller, ownerKey.workspaceId, keyring);
    for (const { first, json } of remainder.segments) {
      const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8');
      await insertResultChunks(records, keyring, {
        ...ownerKey,
        id: `${resultId}.${first}`,
        at: storedAt,
        chunkCount: remainder.chunkCount,
        json: text,
        unverifiedCaller: unverifiedCallerId,
      });
    }
    await trimResultChunks(records, ownerKey.workspaceId, storedAt);
    return `${resultId}.1.1`;
  }

  async function find(owner: ContinuationOwner, cursor: string): Promise<ChunkResult | undefined> {
    const [, id, first, number] = cursorPattern.exec(cursor) ?? [];
    if (id === undefined) return undefined;
    const row = await findResultChunks(db, keyring, { ...toStoredOwner(owner), id }, now());
    const chunks = row ? (JSON.parse(row.json) as ResultChunk[]) : [];
    const index = Number(number) - Number(first);
    const chunk = chunks[index];
    if (!row || !chunk) return undefined;
    const nextNumber = Number(number) + 1;
    if (nextNumber > row.chunkCount) return { chunk, nextCursor: undefined };
    const resultId = id.slice(0, id.indexOf('.'));
    return {
      chunk,
      nextCursor: index + 1 < chunks.length ? `${id}.${nextNumber}` : `${resultId}.${nextNumber}.${nextNumber}`,
    };
  }

  return {
    async save(owner, remainder, requestId) {
      try {
        const cursor = await store(owner, remainder);
        counts.kept++;
        return cursor;
      } catch (error) {
        counts.lost++;
        onUnexpected(error, requestId);
        return undefined;
      }
    },
    async read(owner, cursor) {
      const chunkResult = await find(owner, cursor);
      counts[chunkResult ? 'read' : 'missing']++;
      return chunkResult;
    },
    getCounts: () => counts,
  };
}

function toStoredOwner({ server, caller }: ContinuationOwner): ResultOwner {
  const view = server.view ? ` ${server.view.name}` : '';
  return { workspaceId: server.workspaceId, serverId: server.id, caller: toCallerDigest(caller) + view };
}

/** A call whose tool limits its results. */
type LimitedCall = ContinuationOwner & {
  toolCall: { requestId: string; generation: ProtocolGeneration };
  tool: { responseRules: { maxCharacters: number | undefined } };
};

/**
 * Truncates the result of a call to the limit of its tool, stores the remainder, and appends a note on how to continue.
 */
export async function truncateCallResult(
  call: LimitedCall,
  result: TruncatedResult,
  continuations: ContinuationStore,
): Promise<TruncatedResult> {
  const { remainder, ...truncated } = result.remainder
    ? result
    : truncateResult(result, call.tool.responseRules.maxCharacters ?? Number.POSITIVE_INFINITY);
  if (!remainder) return result;
  const note = formatTruncationNote(remainder, await continuations.save(call, remainder, call.toolCall.requestId));
  const content = appendBlock(truncated.content, { type: 'text', text: note });
  const structured = createStructuredFromTexts(JSON.parse(String(content)) as ContentBlock[], call.toolCall.generation);
  return { ...truncated, content, structured, tokens: estimateTokenCount(remainder.characters + note.length) };
}

function appendBlock(content: JsonText, block: object): JsonText {
  const end = `${content.length > 2 ? ',' : ''}${JSON.stringify(block)}]`;
  return typeof content === 'string'
    ? content.slice(0, -1) + end
    : Buffer.concat([content.subarray(0, -1), Buffer.from(end)]);
}
