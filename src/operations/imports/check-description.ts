import { createHash } from 'node:crypto';
import { AppError } from '../../errors.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { AgainReport } from '../../import/plan-outline.ts';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { type CheckCounts, type CheckResult, findImport, type ImportCheck } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Importing } from '../operation.ts';
import { storedHeaders } from './stored-imports.ts';

const longestError = 300;
const nothing: CheckCounts = { changed: 0, conflicts: 0, new: 0, gone: 0, server: 0 };

export type CheckParts = { db: Db; keyring: Keyring; importing: Importing; now: () => number };

/** Returns the URL of the description of a server, and the import that its configuration is based on. */
export async function descriptionOf(db: Db, server: StoredServer) {
  const { imported } = server.config;
  const last = imported && (await findImport(db, server, imported.id));
  return { imported, last, url: last?.documentUrl ?? imported?.document };
}

/**
 * Fetches the description of an imported server and compares it with the last import. A description that cannot be read
 * is also a result.
 * @throws AppError tooMany while the service is busy
 */
export async function checkDescription(
  { db, keyring, importing, now }: CheckParts,
  server: StoredServer,
  known: ImportCheck,
  signal?: AbortSignal,
): Promise<CheckResult> {
  const { imported, last, url } = await descriptionOf(db, server);
  const isKnown = known.counts !== undefined && known.importId === imported?.id;
  const before: CheckResult = isKnown ? known : { importId: imported?.id, failures: known.failures };
  if (url === undefined) return failed(before, now(), 'the server was imported from text, which has no URL');
  const config = JSON.stringify(server.config);
  const request = {
    url,
    headers: await storedHeaders({ db, keyring }, server, url),
    choices: last ? (JSON.parse(last.choices) as ImportChoices) : {},
    imported: { config, generated: last?.generated, documentHash: last?.documentHash },
    known: isKnown ? { documentHash: known.documentHash, validators: known.validators } : {},
    signal,
  };
  try {
    const { documentHash, validators, report } = await importing.check(request, server.workspaceId);
    const isImported = documentHash === last?.documentHash;
    const counts = report ? countsOf(report) : isImported ? nothing : known.counts;
    return { importId: imported?.id, checkedAt: now(), documentHash, validators, counts, failures: 0 };
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'tooMany') throw error;
    return failed(before, now(), error.problems[0]?.message ?? error.message);
  }
}

function countsOf({ counts, server }: AgainReport): CheckCounts {
  const { changed, conflicts, new: added, gone } = counts;
  return { changed: changed - gone, conflicts, new: added, gone, server: server.length };
}

function failed(before: CheckResult, now: number, why: string): CheckResult {
  const error = why.length > longestError ? `${why.slice(0, longestError)}…` : why;
  return { ...before, checkedAt: now, failures: before.failures + 1, error };
}

const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;

/**
 * Returns the first check time of a description after a given time, in ms since the epoch. The server ID decides the
 * time of day, so that checks are spread over the day.
 */
export function firstCheckAt(serverId: string, from: number): number {
  const offset = createHash('sha256').update(serverId).digest().readUInt32BE(0) % dayMs;
  return Math.ceil((from - offset) / dayMs) * dayMs + offset;
}

/**
 * Returns the next check time of a description that was just checked: at its time of day, but not soon after a late
 * check.
 */
export function nextCheckAt(serverId: string, now: number): number {
  return firstCheckAt(serverId, now + dayMs / 2);
}

/**
 * Returns the time of the retry after `failures` failures in a row: after 1, 2, 4, 8, and 16 hours, then once a day.
 */
export function retryAt(now: number, failures: number): number {
  return now + Math.min(2 ** (failures - 1) * hourMs, dayMs);
}
