import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { FieldValues, ProviderTokens } from './oauth-deps.ts';
import { isPersonAllowed, type ServerLogin } from './people.ts';
import { areValuesUsable, getValuesState, type PersonValuesStore } from './person-values.ts';

/** Server at which a person is logged in. */
type PersonServer = { id: string; workspaceId: string; provider?: unknown; login: ServerLogin };

/** Login of a person at a server. */
export type PersonLogin = { tokens: ProviderTokens; agreedView: string | undefined };

/** Returns the reason why a login can no longer be used, for the log. Undefined if it can. */
export async function findPersonProblem(
  server: PersonServer,
  { tokens, agreedView }: PersonLogin,
  personValues: PersonValuesStore,
): Promise<string | undefined> {
  const { login } = server;
  if (!isPersonAllowed(login, tokens.identity, agreedView)) return 'the person may no longer use the server';
  const values = await findLoginValues(server, tokens, personValues);
  return values ? undefined : 'values of the person are missing, were refused, or are for other hosts';
}

/**
 * Returns the values that the calls of a login may send. With a provider, they belong to the login, because its token
 * does. Returns undefined if the person must enter values again.
 */
export async function findLoginValues(
  server: PersonServer,
  { identity, values = {} }: ProviderTokens,
  personValues: PersonValuesStore,
): Promise<FieldValues | undefined> {
  const { login } = server;
  if (server.provider !== undefined) {
    const { missing } = getValuesState(login, { values, agreement: login.valuesAgreement, refused: [] });
    return missing.length === 0 ? values : undefined;
  }
  if (login.fields.length === 0 || !identity) return {};
  return findUsableValues(server, identity.userId, personValues);
}

/** Returns the stored values of a person, or undefined if the person must enter values again. */
export async function findUsableValues(
  server: PersonServer,
  userId: string,
  personValues: PersonValuesStore,
  chargeQuery?: QueryCharge,
): Promise<FieldValues | undefined> {
  const stored = await personValues.find(server, userId, chargeQuery);
  const state = getValuesState(server.login, stored);
  return areValuesUsable(state) ? state.values : undefined;
}
