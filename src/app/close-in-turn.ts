import type { HttpClient } from '../outbound/http-client.ts';
import type { Caches } from './caches.ts';
import type { CallRecords } from './call-records.ts';
import type { Logins } from './logins.ts';
import type { Observability } from './observability/observability.ts';
import type { Store } from './open-store.ts';

/** Parts that are stopped with the process, each before the parts that it depends on. */
export type Ending = {
  elected: { stop(): Promise<void> };
  others: { leave(): Promise<void> };
  limited: { stop(): Promise<void> };
  caches: Caches;
  logins: Logins;
  callLog: CallRecords;
  threads: { close(): Promise<void> };
  http: HttpClient;
  documents: HttpClient;
  database: Store;
  observability: Observability;
};

/** Stops the parts in order. False when data that waited to be written was lost. */
export async function closeInTurn(parts: Ending): Promise<boolean> {
  await parts.elected.stop();
  await parts.others.leave();
  const hasAllTokens = await parts.logins.stop();
  await parts.caches.changes.stop();
  const [hasAllRecords] = await Promise.all([parts.callLog.stop(), parts.limited.stop()]);
  await parts.threads.close();
  await Promise.all([parts.http.close(), parts.documents.close()]);
  await parts.database.close();
  await parts.observability.stop();
  return hasAllTokens && hasAllRecords;
}
