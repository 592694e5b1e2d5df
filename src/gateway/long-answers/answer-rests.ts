import { newId } from '../../domain/ids.ts';
import type { ContentBlock, Era, JsonText } from '../../domain/mcp.ts';
import type { Piece } from '../../domain/pieces/pieces.ts';
import { cutNote } from '../../domain/pieces/read-more.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import {
  type AnswerOf,
  findAnswerPieces,
  insertAnswerPieces,
  trimAnswerPieces,
} from '../../store/calls/answer-pieces.ts';
import { type AnswerRest, type CutResult, fitResult } from '../answer/fit-answer.ts';
import { structuredOfTexts } from '../answer/json-answer.ts';
import { type Caller, callerDigest } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import { type KeptAnswersOptions, strangerOf } from '../kept-answers.ts';

type AnswerOwner = { server: HostedServer; caller: Caller };
export type ReadPiece = { piece: Piece; next: string | undefined };

/** Remainders of truncated results. They are in the database, so every process can return them. */
export type AnswerRests = {
  /** Stores a remainder. Resolves with the cursor of its first chunk, or with undefined if it could not be stored. */
  keep(owner: AnswerOwner, rest: AnswerRest, requestId: string): Promise<string | undefined>;
  /**
   * Reads the chunk of a cursor. Resolves with undefined if the cursor is invalid or has expired, or was issued to
   * another caller or in another view.
   */
  read(owner: AnswerOwner, cursor: string): Promise<ReadPiece | undefined>;
  /** Returns counts since the start, for metrics. */
  counts(): Readonly<Record<RestEvent, number>>;
};

export const restEvents = ['kept', 'lost', 'read', 'missing'] as const;
export type RestEvent = (typeof restEvents)[number];

/** A cursor: the row id, and the number of a chunk in the result. */
const cursorPattern = /^(ans_[A-Za-z0-9]{22}\.(\d{1,7}))\.(\d{1,7})$/;

export function createAnswerRests({
  db,
  records,
  keyring,
  random,
  now,
  onUnexpected,
}: KeptAnswersOptions): AnswerRests {
  const counts: Record<RestEvent, number> = { kept: 0, lost: 0, read: 0, missing: 0 };

  async function store(owner: AnswerOwner, rest: AnswerRest): Promise<string> {
    const answer = newId(random, 'ans');
    const of = ownerOf(owner);
    const at = now();
    const stranger = strangerOf(owner.caller, of.workspaceId, keyring);
    for (const { first, json } of rest.segments) {
      const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8');
      await insertAnswerPieces(records, keyring, {
        ...of,
        id: `${answer}.${first}`,
        at,
        pieces: rest.pieces,
        json: text,
        stranger,
      });
    }
    await trimAnswerPieces(records, of.workspaceId, at);
    return `${answer}.1.1`;
  }

  async function find(owner: AnswerOwner, cursor: string): Promise<ReadPiece | undefined> {
    const [, id, first, number] = cursorPattern.exec(cursor) ?? [];
    if (id === undefined) return undefined;
    const row = await findAnswerPieces(db, keyring, { ...ownerOf(owner), id }, now());
    const held = row ? (JSON.parse(row.json) as Piece[]) : [];
    const index = Number(number) - Number(first);
    const piece = held[index];
    if (!row || !piece) return undefined;
    const following = Number(number) + 1;
    if (following > row.pieces) return { piece, next: undefined };
    const answer = id.slice(0, id.indexOf('.'));
    return { piece, next: index + 1 < held.length ? `${id}.${following}` : `${answer}.${following}.${following}` };
  }

  return {
    async keep(owner, rest, requestId) {
      try {
        const cursor = await store(owner, rest);
        counts.kept++;
        return cursor;
      } catch (error) {
        counts.lost++;
        onUnexpected(error, requestId);
        return undefined;
      }
    },
    async read(owner, cursor) {
      const found = await find(owner, cursor);
      counts[found ? 'read' : 'missing']++;
      return found;
    },
    counts: () => counts,
  };
}

function ownerOf({ server, caller }: AnswerOwner): AnswerOf {
  const view = server.view ? ` ${server.view.name}` : '';
  return { workspaceId: server.workspaceId, serverId: server.id, caller: callerDigest(caller) + view };
}

/** A call whose tool limits its results. */
type LimitedCall = AnswerOwner & {
  asked: { requestId: string; era: Era };
  tool: { reading: { mostCharacters: number | undefined } };
};

/**
 * Truncates the result of a call to the limit of its tool, stores the remainder, and appends a note on how to continue.
 */
export async function fitCall(call: LimitedCall, result: CutResult, rests: AnswerRests): Promise<CutResult> {
  const { rest, ...cut } = result.rest
    ? result
    : fitResult(result, call.tool.reading.mostCharacters ?? Number.POSITIVE_INFINITY);
  if (!rest) return result;
  const note = cutNote(rest, await rests.keep(call, rest, call.asked.requestId));
  const content = withLast(cut.content, { type: 'text', text: note });
  const structured = structuredOfTexts(JSON.parse(String(content)) as ContentBlock[], call.asked.era);
  return { ...cut, content, structured, tokens: tokensOfLength(rest.characters + note.length) };
}

function withLast(content: JsonText, block: object): JsonText {
  const end = `${content.length > 2 ? ',' : ''}${JSON.stringify(block)}]`;
  return typeof content === 'string'
    ? content.slice(0, -1) + end
    : Buffer.concat([content.subarray(0, -1), Buffer.from(end)]);
}
