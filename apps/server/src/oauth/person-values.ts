import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { Random } from '@toolhost/credentials/ids';
import { getErrorMessage } from '@toolhost/errors/errors';
import { isSecretField } from '@toolhost/tool-config/login';
import { createReadThroughCache, type Freshness } from '../store/changes/cache.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  deletePersonValues,
  findPersonValues,
  markValuesRefused,
  type PersonKey,
  type StoredValues,
  savePersonValues,
} from '../store/logins/person-values.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ServerLogin } from './people.ts';

const maxCachedPeople = 10_000;
/** Maximum total characters of the cached values. */
const maxCachedCharacters = 20_000_000;

/** Values that people brought to servers. */
export type PersonValuesStore = ReturnType<typeof createPersonValues>;

type PersonValuesDeps = {
  random: Random;
  /** Returns epoch ms. */
  now: () => number;
  db: Db;
  keyring: Keyring;
  onCommitted: () => Promise<void>;
  log: (message: string, fields: { [key: string]: unknown }) => void;
};

/** Server at which a person has values. */
type ValuesServer = { id: string; workspaceId: string; login: ServerLogin };

type Entry = { userId: string; workspaceId: string; stored: StoredValues | undefined };

export function createPersonValues(deps: PersonValuesDeps, freshness: Freshness) {
  const { db, keyring } = deps;
  const cache = createReadThroughCache<Entry>({
    max: maxCachedPeople,
    maxSize: maxCachedCharacters,
    getSize: ({ stored }) => 200 + (stored ? JSON.stringify(stored.values).length : 0),
    freshness,
    getIds: ({ userId }) => [userId],
    getOwner: ({ workspaceId }) => workspaceId,
  });

  async function change(key: PersonKey, apply: (transaction: Db) => Promise<boolean>): Promise<boolean> {
    const isChanged = await transact(db, async (transaction) => {
      if (!(await apply(transaction))) return false;
      await recordChange(transaction, deps, 'grant', toCacheKey(key));
      return true;
    });
    cache.invalidate(toCacheKey(key));
    await deps.onCommitted();
    return isChanged;
  }

  /** Finds the values of a person, whether or not they can still be used. `chargeQuery` charges the query. */
  async function find({ id, workspaceId }: ValuesServer, userId: string, chargeQuery?: QueryCharge) {
    const key = { serverId: id, userId };
    const read = async () => {
      chargeQuery?.();
      return { value: { userId, workspaceId, stored: await findPersonValues(db, keyring, key) } };
    };
    const entry = cache.get(toCacheKey(key)) ?? (await cache.load(toCacheKey(key), read));
    return entry?.stored;
  }

  return {
    find,
    /** Stores the values that a person entered. Returns false if the server has values of too many people. */
    save: (server: ValuesServer, userId: string, values: Readonly<Record<string, string>>, at: number) =>
      change({ serverId: server.id, userId }, (transaction) =>
        savePersonValues(transaction, keyring, {
          serverId: server.id,
          userId,
          workspaceId: server.workspaceId,
          values,
          agreement: server.login.valuesAgreement,
          at,
        }),
      ),
    delete: (key: PersonKey) => change(key, (transaction) => deletePersonValues(transaction, key)),
    /**
     * Marks values that the API refused, unless the person has replaced them since. The call has its own result, so a
     * failure is only logged.
     */
    async markRefused(server: ValuesServer, userId: string, values: Readonly<Record<string, string>>): Promise<void> {
      const key = { serverId: server.id, userId };
      try {
        const stored = await find(server, userId);
        const names = Object.keys(values).filter((name) => stored?.values[name] === values[name]);
        if (!stored || names.length === 0) return;
        const refused = { names, version: stored.version };
        await change(key, (transaction) => markValuesRefused(transaction, key, refused));
      } catch (error) {
        deps.log('refused values of a person could not be marked', {
          server: server.id,
          reason: getErrorMessage(error),
        });
      }
    },
    invalidate: cache.invalidate,
    clear: cache.clear,
  };
}

function toCacheKey({ serverId, userId }: PersonKey): string {
  return `${serverId} ${userId}`;
}

/** State of a person's values at a server: those that can be sent, and the fields that must be asked. */
export type ValuesState = {
  /** True if the person has never entered values. */
  isNew: boolean;
  values: Readonly<Record<string, string>>;
  /** Required fields without a usable value. */
  missing: readonly string[];
  /** Fields whose value the API refused. */
  refused: readonly string[];
  /** True if the hosts or fields have changed since the person agreed. */
  isOutdated: boolean;
};

/** Compares the stored values of a person with the fields of a server. */
export function getValuesState(
  { fields, valuesAgreement }: ServerLogin,
  stored: Pick<StoredValues, 'values' | 'agreement' | 'refused'> | undefined,
): ValuesState {
  const refused = (stored?.refused ?? []).filter((name) => fields.some((field) => field.name === name));
  const known = fields.filter(({ name }) => stored && Object.hasOwn(stored.values, name));
  const values = Object.fromEntries(known.map(({ name }) => [name, stored?.values[name] as string]));
  return {
    isNew: stored === undefined,
    values,
    missing: fields
      .filter(
        (field) => field.optional !== true && (refused.includes(field.name) || !Object.hasOwn(values, field.name)),
      )
      .map(({ name }) => name),
    refused,
    isOutdated: stored !== undefined && stored.agreement !== valuesAgreement,
  };
}

/** Returns true if a call may send the values. */
export function areValuesUsable({ missing, refused, isOutdated }: ValuesState): boolean {
  return missing.length === 0 && refused.length === 0 && !isOutdated;
}

/** Returns the values that a refusal by the API probably concerns: the secret ones, if any were sent. */
export function selectRefused({ fields }: ServerLogin, sent: readonly string[]): string[] {
  const sentFields = fields.filter(({ name }) => sent.includes(name));
  const secretFields = sentFields.filter(isSecretField);
  return (secretFields.length > 0 ? secretFields : sentFields).map(({ name }) => name);
}
