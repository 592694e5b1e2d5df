import { createHash } from 'node:crypto';
import { AppError } from '@toolhost/errors/errors';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import type { ReimportReport } from '@toolhost/openapi-to-tools/plan-outline';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { type CheckCounts, type CheckResult, findImport, type ImportCheck } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Importer } from '../operation.ts';
import { findHeaders } from './stored-imports.ts';

const maxErrorLength = 300;
const noChanges: CheckCounts = { changed: 0, conflicts: 0, new: 0, gone: 0, server: 0 };

export type CheckDeps = { db: Db; keyring: Keyring; importer: Importer; now: () => number };

/** Returns the URL of the description of a server, and the import that its configuration is based on. */
export async function findDescription(db: Db, server: StoredServer) {
  const { imported } = server.config;
  const lastImport = imported && (await findImport(db, server, imported.id));
  return { imported, lastImport, url: lastImport?.documentUrl ?? imported?.document };
}

/**
 * Fetches the description of an imported server and compares it with the last import. A description that cannot be read
 * is also a result.
 * @throws AppError tooMany while the service is busy
 */
export async function checkDescription(
  { db, keyring, importer, now }: CheckDeps,
  server: StoredServer,
  previous: ImportCheck,
  signal?: AbortSignal,
): Promise<CheckResult> {
  const { imported, lastImport, url } = await findDescription(db, server);
  const isSameImport = previous.counts !== undefined && previous.importId === imported?.id;
  const before: CheckResult = isSameImport ? previous : { importId: imported?.id, failures: previous.failures };
  if (url === undefined) return toFailedCheck(before, now(), 'the server was imported from text, which has no URL');
  const config = JSON.stringify(server.config);
  const request = {
    url,
    headers: await findHeaders({ db, keyring }, server, url),
    choices: lastImport ? (JSON.parse(lastImport.choices) as ImportChoices) : {},
    imported: { config, generated: lastImport?.generated, documentHash: lastImport?.documentHash },
    lastKnown: isSameImport ? { documentHash: previous.documentHash, validators: previous.validators } : {},
    signal,
  };
  try {
    const { documentHash, validators, report } = await importer.check(request, server.workspaceId);
    // Without a report, the document is that of the last import or of the previous check.
    const knownCounts = documentHash === lastImport?.documentHash ? noChanges : previous.counts;
    const counts = report ? toCheckCounts(report) : knownCounts;
    return { importId: imported?.id, checkedAt: now(), documentHash, validators, counts, failures: 0 };
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'tooMany') throw error;
    return toFailedCheck(before, now(), error.problems[0]?.message ?? error.message);
  }
}

function toCheckCounts({ counts, server }: ReimportReport): CheckCounts {
  const { changed, conflicts, new: added, gone } = counts;
  return { changed: changed - gone, conflicts, new: added, gone, server: server.length };
}

function toFailedCheck(before: CheckResult, now: number, reason: string): CheckResult {
  const error = reason.length > maxErrorLength ? `${reason.slice(0, maxErrorLength)}…` : reason;
  return { ...before, checkedAt: now, failures: before.failures + 1, error };
}

const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;

/**
 * Returns the first check time of a description after a given time, in ms since the epoch. The server ID decides the
 * time of day, so that checks are spread over the day.
 */
export function getFirstCheckTime(serverId: string, from: number): number {
  const offset = createHash('sha256').update(serverId).digest().readUInt32BE(0) % dayMs;
  return Math.ceil((from - offset) / dayMs) * dayMs + offset;
}

/** Returns the next check time after a check: at the time of day of the server, but at least half a day later. */
export function getNextCheckTime(serverId: string, now: number): number {
  return getFirstCheckTime(serverId, now + dayMs / 2);
}

/**
 * Returns the time of the retry after `failures` failures in a row: after 1, 2, 4, 8, and 16 hours, then once a day.
 */
export function getRetryTime(now: number, failures: number): number {
  return now + Math.min(2 ** (failures - 1) * hourMs, dayMs);
}
