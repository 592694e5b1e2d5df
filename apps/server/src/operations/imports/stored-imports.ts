import { containsOwnCredential } from '@toolhost/credentials/own-credentials';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import { planLimits } from '@toolhost/openapi-to-tools/plan-outline';
import { getHeaderNameProblem, isHeaderValue } from '@toolhost/tool-config/http/headers';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { getImportIds, type ImportedDescription } from '@toolhost/tool-config/imports';
import { getDescriptionSecret } from '@toolhost/tool-config/server-config';
import { z } from 'zod';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { insertImport, resetCheck } from '../../store/servers/imports.ts';
import { findSecret, saveSecret } from '../../store/servers/secrets.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Context, DescriptionHeaders } from '../operation.ts';
import { storeWithinSecretQuota } from '../quotas/quotas.ts';

/** Parsed document, with the choices that are needed to parse it again. */
type ParsedDocument = { generated: string; documentHash: string; documentUrl: string | undefined; choices: string };

/** Stores an import of a server. `all` are the imports that the server is now based on. */
export async function storeImport(
  context: Context,
  server: StoredServer,
  { imported: { id }, all }: { imported: ImportedDescription; all: readonly ImportedDescription[] },
  document: ParsedDocument,
): Promise<void> {
  const { id: serverId, workspaceId } = server;
  const row = { id, workspaceId, serverId, createdAt: context.now(), ...document };
  const currentIds = all.map((description) => description.id);
  await insertImport(context.db, row, currentIds);
  await resetCheck(context.db, server, { importId: getImportIds(all), failures: 0 });
}

/** Serializes the choices that are needed to parse the document again, as JSON without secrets. */
export function serializeChoices({ server, answers = {}, documentUrl }: ImportChoices): string {
  const withoutSecrets = Object.entries(answers).filter(([name]) => !/secret/i.test(name));
  return JSON.stringify({ server, documentUrl, answers: Object.fromEntries(withoutSecrets) });
}

const maxHeaders = 10;

export const headersInput = z
  .record(z.string().max(100), z.string().min(1).max(8192))
  .superRefine((headers, { addIssue }) => {
    const entries = Object.entries(headers);
    if (entries.length > maxHeaders) addIssue({ code: 'custom', message: `allowed: at most ${maxHeaders} headers` });
    for (const [name, value] of entries) {
      const message = getHeaderNameProblem(name) ?? headerValueProblem(value);
      if (message !== undefined) addIssue({ code: 'custom', path: [name], message });
    }
  })
  .describe(
    'Headers for fetching url, such as {"Authorization": "Bearer …"}. They are sent only to its origin, and are stored sealed with the server for re-imports.',
  );

function headerValueProblem(value: string): string | undefined {
  if (!isHeaderValue(value)) return 'allowed: one line of visible text';
  if (!containsOwnCredential(value)) return undefined;
  return 'contains a Toolhost API key or token, which is never sent to an upstream; use a credential of the upstream';
}

/** Description that was fetched: its URL, and the prefix of its import. */
type DescriptionSource = { url: string | undefined; prefix: string | undefined };

/** Seals the headers that a description of a server was fetched with. They may be sent only to its origin. */
export async function storeHeaders(
  context: Context,
  server: StoredServer,
  { url: documentUrl, prefix }: DescriptionSource,
  headers: DescriptionHeaders | undefined,
): Promise<void> {
  const url = documentUrl === undefined ? undefined : parseUrl(documentUrl);
  if (!url || headers === undefined) return;
  const { db, keyring, actor, now } = context;
  const value = JSON.stringify(headers);
  const secret = {
    name: getDescriptionSecret(prefix),
    value,
    origins: [url.origin],
    createdBy: actor.id,
    updatedAt: now(),
  };
  await storeWithinSecretQuota(context, () => saveSecret(db, keyring, server, secret));
}

/** Returns the sealed headers of a server for a URL, if they may be sent there. */
export async function findHeaders(
  { db, keyring }: { db: Db; keyring: Keyring },
  server: StoredServer,
  { url, prefix }: DescriptionSource,
): Promise<DescriptionHeaders | undefined> {
  const secret = await findSecret(db, keyring, server, getDescriptionSecret(prefix));
  if (secret?.value === undefined || url === undefined) return undefined;
  if (!secret.origins.includes(parseUrl(url)?.origin ?? '')) return undefined;
  return JSON.parse(secret.value) as DescriptionHeaders;
}

export const selectors = z.array(z.string().min(1).max(500)).max(1000);

/** Answers, by the names of their questions. */
export const answersInput = z
  .record(z.string().min(1).max(200), z.string().max(4096))
  .refine(
    (answers) => Object.keys(answers).length <= planLimits.entries,
    `allowed: at most ${planLimits.entries} answers`,
  );
