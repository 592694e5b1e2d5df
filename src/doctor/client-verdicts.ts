import { knownClients } from '../domain/clients/clients.ts';
import type { Check } from './check.ts';

/** Whether a client can use the server, and why not or what is missing. */
export type ClientVerdict = { client: string; works: 'yes' | 'partly' | 'no'; because: string[] };

/** What the checks mean for each client. */
export function clientVerdicts(checks: readonly Check[]): ClientVerdict[] {
  return knownClients.map(({ name }) => {
    const found = checks.filter(({ status, clients }) => status !== 'ok' && clients.includes(name));
    const remarks = found.flatMap((check) => remarksFor(name, check));
    const isStopped = remarks.some(({ stops }) => stops);
    const because = remarks.filter(({ stops }) => stops || !isStopped).map(({ text }) => text);
    return { client: name, works: isStopped ? 'no' : remarks.length > 0 ? 'partly' : 'yes', because };
  });
}

function remarksFor(client: string, { status, detail, reasons }: Check): { text: string; stops: boolean }[] {
  const own = reasons?.filter(({ clients }) => clients.includes(client));
  if (own) return own.map(({ text, stops }) => ({ text, stops: stops === true || status === 'problem' }));
  return [{ text: detail, stops: status === 'problem' }];
}
