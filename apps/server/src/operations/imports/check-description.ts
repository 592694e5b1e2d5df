import { createHash } from 'node:crypto';
import { AppError } from '@toolhost/errors/errors';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import type { ReimportReport } from '@toolhost/openapi-to-tools/plan-outline';
import { getImportIds, type ImportedDescription } from '@toolhost/tool-config/imports';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import {
  type CheckCounts,
  type CheckedDescription,
  type CheckResult,
  findImport,
  type ImportCheck,
  type StoredImport,
} from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Importer } from '../operation.ts';
import { findHeaders } from './stored-imports.ts';

const maxErrorLength = 300;
const noChanges: CheckCounts = { changed: 0, conflicts: 0, new: 0, gone: 0, server: 0 };

export type CheckDeps = { db: Db; keyring: Keyring; importer: Importer; now: () => number };

/** A description of a server, with the import that the configuration is based on, if it is still stored. */
export type Description = ImportedDescription & { lastImport: StoredImport | undefined; url: string | undefined };

export async function findDescription(
  db: Db,
  server: StoredServer,
  imported: ImportedDescription,
): Promise<Description> {
  const lastImport = await findImport(db, server, imported.id);
  return { ...imported, lastImport, url: lastImport?.documentUrl ?? imported.document };
}

/** Returns the descriptions of a server that have a URL. */
export async function findFetchableDescriptions(db: Db, server: StoredServer): Promise<Description[]> {
  const descriptions: Description[] = [];
  for (const imported of server.config.imported ?? []) descriptions.push(await findDescription(db, server, imported));
  return descriptions.filter(({ url }) => url !== undefined);
}

/**
 * Fetches the descriptions of an imported server and compares them with the last imports. A description that cannot be
 * read is also a result, and ends the check.
 * @throws AppError tooMany while the service is busy
 */
export async function checkDescription(
  deps: CheckDeps,
  server: StoredServer,
  previous: ImportCheck,
  signal?: AbortSignal,
): Promise<CheckResult> {
  const { db, now } = deps;
  const importId = getImportIds(server.config.imported);
  const isSameImport = previous.counts !== undefined && previous.importId === importId;
  const before: CheckResult = isSameImport ? previous : { importId, failures: previous.failures };
  const descriptions = await findFetchableDescriptions(db, server);
  if (descriptions.length === 0)
    return toFailedCheck(before, now(), 'the server was imported from text, which has no URL');
  const documents: Record<string, CheckedDescription> = {};
  for (const description of descriptions) {
    try {
      documents[description.id] = await compareDescription(deps, server, description, before, signal);
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === 'tooMany') throw error;
      const reason = error.problems[0]?.message ?? error.message;
      const { prefix } = description;
      return toFailedCheck(before, now(), prefix === undefined ? reason : `${prefix}: ${reason}`);
    }
  }
  const checked = Object.values(documents);
  return {
    importId,
    checkedAt: now(),
    documentHash: checked.map(({ documentHash }) => documentHash).join(' '),
    documents,
    counts: checked.map(({ counts }) => counts).reduce(addCounts, noChanges),
    failures: 0,
  };
}

async function compareDescription(
  { db, keyring, importer }: CheckDeps,
  server: StoredServer,
  { id, url = '', prefix, lastImport }: Description,
  { documents }: CheckResult,
  signal: AbortSignal | undefined,
): Promise<CheckedDescription> {
  const choices = lastImport ? (JSON.parse(lastImport.choices) as ImportChoices) : {};
  const known = documents?.[id];
  const request = {
    url,
    headers: await findHeaders({ db, keyring }, server, { url, prefix }),
    choices: { ...choices, prefix },
    imported: {
      config: JSON.stringify(server.config),
      generated: lastImport?.generated,
      documentHash: lastImport?.documentHash,
    },
    lastKnown: { documentHash: known?.documentHash, validators: known?.validators },
    signal,
  };
  const { documentHash, validators, report } = await importer.check(request, server.workspaceId);
  // Without a report, the document is that of the last import or of the previous check.
  const knownCounts = documentHash === lastImport?.documentHash ? noChanges : (known?.counts ?? noChanges);
  return { documentHash, validators, counts: report ? toCheckCounts(report) : knownCounts };
}

function addCounts(sum: CheckCounts, counts: CheckCounts): CheckCounts {
  return {
    changed: sum.changed + counts.changed,
    conflicts: sum.conflicts + counts.conflicts,
    new: sum.new + counts.new,
    gone: sum.gone + counts.gone,
    server: sum.server + counts.server,
  };
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
