import { type Command, InvalidArgumentError, Option } from 'commander';
import { claudeCodeCommand } from '../../domain/clients/client.ts';
import { covers, type KeyScope, keyScopes } from '../../domain/credentials/credential.ts';
import { type Input, type Output, operations } from '../../operations/index.ts';
import { keyFieldNames } from '../../operations/limits.ts';
import { programName } from '../../version.ts';
import { atPlace, type PlaceOptions } from '../connection/connect.ts';
import { addPlaceOptions, collectText, type JsonOption } from '../options.ts';
import { print, printJson, tableOf } from '../print.ts';
import { addFieldOptions, givenFields, operationCommand } from './operation-command.ts';

type Options = PlaceOptions & JsonOption & { quiet?: true; [attribute: string]: unknown };
type KeyRecord = Output<'listApiKeys'>['keys'][number];
type KeyLimits = Output<'setKeyLimits'>['limits'];

export const onDatabase = 'directly on the database (DATA_DIR or DATABASE_URL)';
export const onDatabaseOrService = `${onDatabase}, or on the service of --profile, --url, or --key`;

const limitFlags = Object.fromEntries(
  keyFieldNames.map((field) => [field, `--${field.replaceAll('_', '-')} <number>`] as const),
);

export function addKeys(program: Command): void {
  const keys = program.command('keys').description(`create, list, and revoke API keys, ${onDatabaseOrService}`);
  addCreate(keys);
  addLimit(keys);
  operationCommand(keys, ['list', 'listApiKeys'], {
    isOperator: true,
    list: 'keys',
    text: async ({ keys: all }, _input, now) =>
      all.length === 0 ? 'This workspace has no API keys yet.' : keyTable(all, await now()),
  });
  operationCommand(keys, ['revoke', 'revokeApiKey'], {
    isOperator: true,
    args: { id: undefined },
    asks: ({ id }) => ({
      what: `permanently revoke the API key ${id} and the keys that were created with it`,
      word: 'yes',
    }),
    text: ({ revoked_key_count: count = 0 }, { id }) => {
      const also =
        count > 0
          ? `, and so ${count === 1 ? 'is 1 key that was' : `are ${count} keys that were`} created with it`
          : '';
      return `The API key ${id} is revoked${also}. This takes effect everywhere within two seconds.`;
    },
  });
}

function addCreate(keys: Command): void {
  const create = addPlaceOptions(keys.command('create')).description('create an API key; it is shown only once');
  const attributes = addFieldOptions(create, operations.createApiKey, {
    name: '--name <name>',
    scopes: ['--scopes <list>', `scopes, comma-separated: ${keyScopes.join(', ')}`, scopesOf],
    servers: ['--server <slug>', 'restrict the key to this server; repeatable', collectText],
    views: ['--view <slug/view>', 'restrict the key to this view of a server; repeatable', collectText],
    expires_in: ['--expires <span>', 'time until the key expires, such as 12h, 90d, or 4w (default: never)', secondsOf],
    ...limitFlags,
  });
  for (const option of create.options) if (/^--(name|scopes)$/.test(option.long ?? '')) option.makeOptionMandatory();
  create
    .addOption(new Option('--quiet', 'print only the key, for scripts').conflicts('json'))
    .addHelpText(
      'after',
      `
Examples:
  toolhost keys create --name me --scopes manage,call
  toolhost keys create --name agent --scopes call --server projects --expires 90d
  toolhost keys create --name desk --scopes call --view shop/support
  export TOOLHOST_API_KEY=$(toolhost keys create --name ci --scopes manage --quiet)`,
    )
    .action((options: Options) =>
      atPlace(
        options,
        async (place) => {
          const made = await place.run('createApiKey', givenFields(options, attributes) as Input<'createApiKey'>);
          if (options.quiet) print(made.key);
          else if (options.json) printJson({ id: made.id, key: made.key, scopes: made.scopes });
          else print(createdText(made, place));
        },
        true,
      ),
    );
}

function addLimit(keys: Command): void {
  const limit = addPlaceOptions(keys.command('limit'))
    .description('set the limits of an API key; 0 removes a limit')
    .argument('<id>', 'key ID, key_…');
  const attributes = addFieldOptions(limit, operations.setKeyLimits, limitFlags, 0);
  limit.action((id: string, options: Options) => {
    const given = givenFields(options, attributes);
    refuseNothing(limit, given, attributes);
    const change = Object.fromEntries(
      Object.entries(given).map(([field, value]) => [field, value === 0 ? null : value]),
    );
    return atPlace(options, async (place) => {
      const { limits } = await place.run('setKeyLimits', { id, ...change });
      if (options.json) printJson({ id, limits });
      else print(`The API key ${id} may make ${limitText(limits)}.`);
    });
  });
}

/** Rejects a command that sets something if no value was passed. */
export function refuseNothing(command: Command, given: object, attributes: ReadonlyMap<string, string>): void {
  if (Object.keys(given).length > 0) return;
  const flags = command.options.filter((option) => attributes.has(option.attributeName())).map(({ long }) => long);
  command.error(`error: nothing to set; pass one or more of ${flags.join(', ')}`, { exitCode: 2 });
}

function limitText({ calls_per_second, calls_per_minute, calls_per_day }: KeyLimits): string {
  const quotas = { second: calls_per_second, minute: calls_per_minute, day: calls_per_day };
  const parts = Object.entries(quotas).flatMap(([span, calls]) =>
    calls === undefined ? [] : [`${calls} calls per ${span}`],
  );
  return parts.length === 0 ? 'any number of calls' : parts.join(', ');
}

function scopesOf(text: string): KeyScope[] {
  const scopes = text
    .split(',')
    .map((scope) => scope.trim())
    .filter((scope) => scope !== '');
  const isKnown = (scope: string) => (keyScopes as readonly string[]).includes(scope);
  if (scopes.length === 0 || !scopes.every(isKnown))
    throw new InvalidArgumentError(`allowed: one or more of ${keyScopes.join(', ')}, comma-separated`);
  return scopes as KeyScope[];
}

const unitsS = { h: 3600, d: 86_400, w: 7 * 86_400 } as const;
const longestS = 10 * 365 * unitsS.d;

/** Parses a time span such as `90d` to seconds. @throws InvalidArgumentError with the allowed form */
function secondsOf(text: string): number {
  const match = /^([1-9]\d{0,5})([hdw])$/.exec(text.trim());
  const span = match ? Number(match[1]) * unitsS[match[2] as keyof typeof unitsS] : Number.NaN;
  if (span <= longestS) return span;
  throw new InvalidArgumentError('allowed: hours, days, or weeks, such as 12h, 90d, or 4w, up to 10 years');
}

function createdText(made: Output<'createApiKey'>, { database, url }: { database: string | undefined; url: string }) {
  return `Created the API key "${made.name}" (${made.id}).

  ${made.key}

It is shown only once. Store it now, where only you can read it.
Scopes: ${made.scopes.join(', ')}. Valid for ${goodFor(made)}. Expires: ${made.expires_at ?? 'never'}.
It works ${database === undefined ? `at ${url}` : `on the service whose database is ${database}`}.

To use it:
${firstCommands(made, url)
  .map((command) => `  ${command}`)
  .join('\n')}`;
}

function goodFor({ servers, views }: KeyRecord): string {
  if (!servers && !views) return 'every server of the workspace';
  const named = [
    ...(servers ? [`the servers ${servers.join(', ')}`] : []),
    ...(views ? [`the views ${views.join(', ')}`] : []),
  ];
  return named.join(' and ');
}

/** Formats a table of keys. `now` is in epoch ms, by the clock that set the keys' times. */
function keyTable(keys: readonly KeyRecord[], now: number): string {
  return tableOf(keys, {
    id: 'id',
    name: 'name',
    scopes: ({ scopes }) => scopes.join(','),
    servers: ({ servers = [], views = [] }) => [...servers, ...views].join(',') || 'all',
    state: (key) =>
      key.creator_left && key.revoked_at === undefined
        ? `${stateOf(key, now)}, its creator has left`
        : stateOf(key, now),
    'last used': ({ last_used_at }) => last_used_at ?? 'never',
  });
}

function stateOf({ revoked_at, expires_at }: KeyRecord, now: number): string {
  if (revoked_at !== undefined) return `revoked ${revoked_at}`;
  if (expires_at === undefined) return 'valid';
  return `${Date.parse(expires_at) <= now ? 'expired' : 'valid until'} ${expires_at}`;
}

/** Service URL that commands use by default. */
const usualUrl = 'http://127.0.0.1:8080';
const bearer = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** Returns example commands that the key may run. `url` is the service URL. */
function firstCommands(key: KeyRecord, url: string): string[] {
  return ['export TOOLHOST_API_KEY=…', ...(url === usualUrl ? [] : [`export TOOLHOST_URL=${url}`]), ...uses(key, url)];
}

function uses({ scopes, servers, views }: KeyRecord, url: string): string[] {
  const [view] = views ?? [];
  if (view !== undefined && !servers) return [connectCommand(view, url)];
  const slug = servers?.[0] ?? 'SLUG';
  if (covers(scopes, 'manage:read')) return [`${programName} servers list`, `curl ${url}/api/v1/servers ${bearer}`];
  if (covers(scopes, 'call')) {
    return [
      `${programName} call ${slug} TOOL --arg name=value`,
      `curl ${url}/api/v1/servers/${slug}/tools/TOOL/call ${bearer} -H 'Content-Type: application/json' -d '{"arguments": {}}'`,
      connectCommand(slug, url),
    ];
  }
  return [`${programName} servers ${servers ? 'update' : 'create'} server.yaml`];
}

/** Returns the command that connects Claude Code. `address` is a slug or `slug/view`. */
function connectCommand(address: string, url: string): string {
  const name = address.replace('/', '-');
  return claudeCodeCommand({ name, url: `${url}/mcp/${address}`, token: '$TOOLHOST_API_KEY' });
}
