import { type ServerConfig, splitSecrets } from '../../domain/config/server-config.ts';
import { changesBetween, type FieldChange, undonePaths } from '../../domain/config-changes.ts';
import { covers } from '../../domain/credentials/scopes.ts';
import type { SetLimits } from '../../domain/limits.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import { AppError, type Problem } from '../../errors.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { findVersion } from '../../store/servers/server-versions.ts';
import { isSlugTaken, type StoredServer } from '../../store/servers/servers.ts';
import { fieldsOf, type LimitInputs, limitsFrom } from '../limit-fields.ts';
import type { Context } from '../operation.ts';
import { checkConfig } from '../servers/check-config.ts';
import { isSecretStored, secretNameProblem } from '../servers/store-secret.ts';
import { areStored, checkMasks, takenSentence } from '../servers/store-server.ts';
import { findOwnServer } from '../shapes.ts';

/** State of a server as a file describes it. What is absent stays as it is. */
export type Wanted = {
  slug: string;
  config: unknown;
  secrets?: { [name: string]: string } | undefined;
  limits?: LimitInputs | undefined;
  label?: string | undefined;
};

/** Differences between a server and the wanted state. Values of secrets are in none of them. */
export type ApplyPlan = {
  /** Undefined for a server that does not exist yet. */
  current: StoredServer | undefined;
  /** The configuration with its defaults, secrets included; undefined when it has problems. */
  config: ServerConfig | undefined;
  changes: FieldChange[];
  /** Paths of changes that would undo a change made elsewhere since the last apply. */
  undone: string[];
  /** Names of secrets that were given, but may not be compared by this actor. */
  notCompared: string[];
  problems: readonly Problem[];
  warnings: readonly Warning[];
};

/** Compares a server with its wanted state. @throws AppError tooLarge, tooMany */
export async function planOf(context: Context, wanted: Wanted): Promise<ApplyPlan> {
  const of = await checkOf(context, wanted);
  const { current } = of;
  const { config, problems, warnings } = await checkConfig(context, wanted.config, of);
  const base = { current, config, undone: [], notCompared: [], problems, warnings };
  if (!config) return { ...base, changes: [] };
  const refused = await refusals(context, wanted, { current, config });
  if (refused.length > 0) return { ...base, config: undefined, problems: refused, changes: [] };
  const { masked, secrets } = splitSecrets(config);
  const changes = current ? await changesBetween(current.config, masked) : [];
  const compared = await compareSecrets(context, current, { masked, inConfig: secrets, given: wanted.secrets ?? {} });
  return {
    ...base,
    changes: [
      ...changes,
      ...compared.changes,
      ...(await limitChanges(current?.limits ?? {}, wanted.limits)),
      ...labelChange(current?.label, wanted.label),
    ],
    undone: current ? await undoneBy(context, current, masked) : [],
    notCompared: compared.notCompared,
  };
}

/** The server, and the names of the secrets that will have a value. */
export async function checkOf(
  context: Context,
  { slug, secrets }: Pick<Wanted, 'slug' | 'secrets'>,
): Promise<{ current: StoredServer | undefined; stored: string[] }> {
  const current = await findOwnServer(context, slug);
  const known = current ? await findSecrets(context.db, current) : [];
  return { current, stored: [...known.map(({ name }) => name), ...Object.keys(secrets ?? {})] };
}

async function refusals(
  context: Context,
  { slug, secrets = {} }: Wanted,
  { current, config }: { current: StoredServer | undefined; config: ServerConfig },
): Promise<readonly Problem[]> {
  if (config.slug !== slug) return [{ path: 'slug', message: `is "${config.slug}", and the request names "${slug}"` }];
  if (!current && (await isSlugTaken(context.db, slug)))
    return [{ path: 'slug', message: await takenSentence(context, slug) }];
  const names = Object.keys(secrets).flatMap((name) => {
    const message = secretNameProblem(config, name);
    return message === undefined ? [] : [{ path: `secrets.${name}`, message }];
  });
  if (names.length > 0) return names;
  try {
    checkMasks(config, current ? await findSecrets(context.db, current) : []);
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.problems;
  }
}

/** Only those who may store secrets learn whether a value is the stored one. */
async function compareSecrets(
  context: Context,
  current: StoredServer | undefined,
  given: { masked: ServerConfig; inConfig: ReadonlyMap<string, string>; given: { [name: string]: string } },
): Promise<{ changes: FieldChange[]; notCompared: string[] }> {
  const values = [...given.inConfig, ...Object.entries(given.given)];
  if (!covers(context.actor.scopes, 'manage:write')) return { changes: [], notCompared: values.map(([name]) => name) };
  const changes: FieldChange[] = [];
  const known = new Set(current ? (await findSecrets(context.db, current)).map(({ name }) => name) : []);
  const server = current && { ...current, config: given.masked };
  for (const [name, value] of values) {
    const isInConfig = given.inConfig.has(name);
    const isSame = isInConfig
      ? server && (await areStored(context, server, new Map([[name, value]])))
      : server && (await isSecretStored(context, server, name, value));
    if (!isSame) changes.push({ path: isInConfig ? name : `secrets.${name}`, ...maskedChange(known.has(name)) });
  }
  return { changes, notCompared: [] };
}

const hidden = '(a secret)';
const maskedChange = (isKnown: boolean) => ({ ...(isKnown && { before: hidden }), after: hidden });

async function limitChanges(before: SetLimits, wanted: LimitInputs | undefined): Promise<FieldChange[]> {
  if (!wanted) return [];
  const after = fieldsOf(limitsFrom(wanted));
  return (await changesBetween(fieldsOf(before), after)).map((change) => ({
    ...change,
    path: `limits.${change.path}`,
  }));
}

function labelChange(before: string | undefined, wanted: string | undefined): FieldChange[] {
  if (wanted === undefined || wanted === before) return [];
  return [{ path: 'label', ...(before !== undefined && { before }), after: wanted }];
}

async function undoneBy(context: Context, current: StoredServer, masked: ServerConfig): Promise<string[]> {
  const { appliedVersion } = current;
  if (appliedVersion === undefined || appliedVersion === current.version) return [];
  const base = await findVersion(context.db, current, appliedVersion);
  return undonePaths(base?.config, current.config, masked);
}
