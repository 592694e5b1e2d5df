import { clientsThat, knownClients } from '../domain/clients/clients.ts';

/** One thing that clients need of a server, and whether the server has it. */
export type Check = {
  id: string;
  title: string;
  status: 'ok' | 'warning' | 'problem';
  detail: string;
  /** Names of the affected clients. */
  clients: string[];
  /** What it means for some of them, where that differs from `detail`. */
  reasons?: readonly Reason[];
};

/** What something means for some clients. With `stops` they cannot use the server at all. */
export type Reason = { clients: readonly string[]; text: string; stops?: true };

/** The outcome of a check. It concerns all clients unless it names some. */
export type Verdict = Pick<Check, 'status' | 'detail' | 'reasons'> & { clients?: string[] };

export const ok = (detail: string, clients?: string[]): Verdict => ({
  status: 'ok',
  detail,
  ...(clients && { clients }),
});
export const warning = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'warning' });

/** A warning that is made of what it means for some clients. */
export function warningOf(reasons: readonly Reason[]): Verdict {
  const concerned = new Set(reasons.flatMap(({ clients }) => clients));
  const clients = everyClient.filter((name) => concerned.has(name));
  return { status: 'warning', detail: reasons.map(({ text }) => text).join(' '), clients, reasons };
}
export const problem = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'problem' });

export const everyClient: readonly string[] = knownClients.map((client) => client.name);

/** Clients that can log in; the others use a token that they are given. */
export const loginClients: readonly string[] = clientsThat(({ neverLogsIn }) => !neverLogsIn);

export type Fields = { [key: string]: unknown };

/** Returns an empty object for everything else. */
export function objectOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
