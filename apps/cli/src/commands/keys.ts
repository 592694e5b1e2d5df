import { hasScope, type KeyScope, keyScopes } from '@toolhost/credentials/credential';
import { keyLimitFieldNames } from '@toolhost/limits/call-limits';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { programName } from '@toolhost/server/command-line';
import { type Input, type Output, operations } from '@toolhost/server/operations';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { withFieldLabels } from '../command-terms.ts';
import { type TargetOptions, withTarget } from '../connection/connect.ts';
import { addTargetOptions, collectValue, type JsonOption } from '../options.ts';
import { formatTable, lastUseColumn, print, printJson } from '../print.ts';
import { addFieldOptions, addOperationCommand, collectFields, getFieldLabels } from './operation-command.ts';

type Options = TargetOptions & JsonOption & { quiet?: true; [attribute: string]: unknown };
type KeyRecord = Output<'listApiKeys'>['keys'][number];
type KeyLimits = Output<'setKeyLimits'>['limits'];

export const onDatabasePhrase = 'directly on the database (DATA_DIR or DATABASE_URL)';
export const onDatabaseOrServicePhrase = `${onDatabasePhrase}, or on the service of --profile, --url, or --key`;

const limitFlags = Object.fromEntries(
  keyLimitFieldNames.map((field) => [field, `--${field.replaceAll('_', '-')} <number>`] as const),
);

export function addKeys(program: Command): void {
  const keys = program.command('keys').description(`create, list, and revoke API keys, ${onDatabaseOrServicePhrase}`);
  addCreateCommand(keys);
  addLimitCommand(keys);
  addOperationCommand(keys, ['list', 'listApiKeys'], {
    isOperator: true,
    list: 'keys',
    formatOutput: async (output, _input, now) =>
      output.keys.length === 0 ? 'This workspace has no API keys yet.' : formatKeyTable(output.keys, await now()),
  });
  addOperationCommand(keys, ['revoke', 'revokeApiKey'], {
    isOperator: true,
    positionals: { id: undefined },
    getConfirmation: ({ id }) => ({
      effect: `permanently revoke the API key ${id} and the keys that were created with it`,
      confirmationWord: 'yes',
    }),
    formatOutput: ({ revoked_key_count: count = 0 }, { id }) => {
      const derivedKeysText =
        count > 0
          ? `, and so ${count === 1 ? 'is 1 key that was' : `are ${count} keys that were`} created with it`
          : '';
      return `The API key ${id} is revoked${derivedKeysText}. This takes effect everywhere within two seconds.`;
    },
  });
}

function addCreateCommand(keys: Command): void {
  const create = addTargetOptions(keys.command('create')).description('create an API key; it is shown only once');
  const attributes = addFieldOptions(create, operations.createApiKey, {
    name: '--name <name>',
    scopes: ['--scopes <list>', `scopes, comma-separated: ${keyScopes.join(', ')}`, parseScopes],
    servers: ['--server <slug>', 'restrict the key to this server; repeatable', collectValue],
    views: ['--view <slug/view>', 'restrict the key to this view of a server; repeatable', collectValue],
    expires_in: [
      '--expires <span>',
      'time until the key expires, such as 12h, 90d, or 4w (default: never)',
      parseTimeSpan,
    ],
    ...limitFlags,
  });
  for (const option of create.options) if (/^--(name|scopes)$/.test(option.long ?? '')) option.makeOptionMandatory();
  create
    .addOption(new Option('--quiet', 'print only the key, for scripts').conflicts('json'))
    .addHelpText(
      'after',
      `
Examples:
  toolhost keys create --name cli --scopes manage,call
  toolhost keys create --name agent --scopes call --server projects --expires 90d
  toolhost keys create --name desk --scopes call --view shop/support
  export TOOLHOST_API_KEY=$(toolhost keys create --name ci --scopes manage --quiet)`,
    )
    .action((options: Options) =>
      withTarget(
        options,
        async (target) => {
          const input = collectFields(options, attributes) as Input<'createApiKey'>;
          const names = getFieldLabels(create, attributes);
          const created = await withFieldLabels(names, () => target.run('createApiKey', input));
          if (options.quiet) print(created.key);
          else if (options.json) printJson({ id: created.id, key: created.key, scopes: created.scopes });
          else print(formatCreatedKey(created, target));
        },
        true,
      ),
    );
}

function addLimitCommand(keys: Command): void {
  const limit = addTargetOptions(keys.command('limit'))
    .description('set the limits of an API key; 0 removes a limit')
    .argument('<id>', 'key ID, key_…');
  const attributes = addFieldOptions(limit, operations.setKeyLimits, limitFlags, 0);
  limit.action((id: string, options: Options) => {
    const values = collectFields(options, attributes);
    rejectEmptyChange(limit, values, attributes);
    const change = Object.fromEntries(
      Object.entries(values).map(([field, value]) => [field, value === 0 ? null : value]),
    );
    return withTarget(options, async (target) => {
      const { limits } = await target.run('setKeyLimits', { id, ...change });
      if (options.json) printJson({ id, limits });
      else print(`The API key ${id} may make ${formatLimits(limits)}.`);
    });
  });
}

/** Ends a command that sets something with a usage error if no value was passed. */
export function rejectEmptyChange(command: Command, values: object, attributes: ReadonlyMap<string, string>): void {
  if (Object.keys(values).length > 0) return;
  const flags = command.options.filter((option) => attributes.has(option.attributeName())).map(({ long }) => long);
  command.error(`error: nothing to set; pass one or more of ${flags.join(', ')}`, { exitCode: 2 });
}

function formatLimits({ calls_per_second, calls_per_minute, calls_per_day }: KeyLimits): string {
  const quotas = { second: calls_per_second, minute: calls_per_minute, day: calls_per_day };
  const limitTexts = Object.entries(quotas).flatMap(([span, calls]) =>
    calls === undefined ? [] : [`${calls} calls per ${span}`],
  );
  return limitTexts.length === 0 ? 'any number of calls' : limitTexts.join(', ');
}

function parseScopes(text: string): KeyScope[] {
  const scopes = text
    .split(',')
    .map((scope) => scope.trim())
    .filter((scope) => scope !== '');
  const isKeyScope = (scope: string) => (keyScopes as readonly string[]).includes(scope);
  if (scopes.length === 0 || !scopes.every(isKeyScope))
    throw new InvalidArgumentError(`allowed: one or more of ${keyScopes.join(', ')}, comma-separated`);
  return scopes as KeyScope[];
}

const secondsPerUnit = { h: 3600, d: 86_400, w: 7 * 86_400 } as const;
const maxSpanSeconds = 10 * 365 * secondsPerUnit.d;

/** Parses a time span such as `90d` to seconds. @throws InvalidArgumentError with the allowed form */
function parseTimeSpan(text: string): number {
  const match = /^([1-9]\d{0,5})([hdw])$/.exec(text.trim());
  const span = match ? Number(match[1]) * secondsPerUnit[match[2] as keyof typeof secondsPerUnit] : Number.NaN;
  if (span <= maxSpanSeconds) return span;
  throw new InvalidArgumentError('allowed: hours, days, or weeks, such as 12h, 90d, or 4w, up to 10 years');
}

function formatCreatedKey(
  created: Output<'createApiKey'>,
  { database, url }: { database: string | undefined; url: string },
) {
  return `Created the API key "${created.name}" (${created.id}).

  ${created.key}

It is shown only once. Store it now, where only you can read it.
Scopes: ${created.scopes.join(', ')}. Valid for ${formatAccess(created)}. Expires: ${created.expires_at ?? 'never'}.
It works ${database === undefined ? `at ${url}` : `on the service whose database is ${database}`}.

To use it:
${getFirstCommands(created, url)
  .map((command) => `  ${command}`)
  .join('\n')}`;
}

function formatAccess({ servers, views }: KeyRecord): string {
  if (!servers && !views) return 'every server of the workspace';
  const grantedTargets = [
    ...(servers ? [`the servers ${servers.join(', ')}`] : []),
    ...(views ? [`the views ${views.join(', ')}`] : []),
  ];
  return grantedTargets.join(' and ');
}

/** Formats a table of keys. `now` is in epoch ms, by the clock that set the keys' times. */
function formatKeyTable(keys: readonly KeyRecord[], now: number): string {
  return formatTable(keys, {
    id: 'id',
    name: 'name',
    scopes: ({ scopes }) => scopes.join(','),
    servers: ({ servers = [], views = [] }) => [...servers, ...views].join(',') || 'all',
    state: (key) =>
      formatState(key, now) + (key.creator_left && key.revoked_at === undefined ? ', its creator has left' : ''),
    ...lastUseColumn,
  });
}

function formatState({ revoked_at, expires_at }: KeyRecord, now: number): string {
  if (revoked_at !== undefined) return `revoked ${revoked_at}`;
  if (expires_at === undefined) return 'valid';
  return `${Date.parse(expires_at) <= now ? 'expired' : 'valid until'} ${expires_at}`;
}

const defaultUrl = 'http://127.0.0.1:8080';
const curlAuthorization = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** Returns example commands that the key may run. `url` is the service URL. */
function getFirstCommands(key: KeyRecord, url: string): string[] {
  return [
    'export TOOLHOST_API_KEY=…',
    ...(url === defaultUrl ? [] : [`export TOOLHOST_URL=${url}`]),
    ...getUsageCommands(key, url),
  ];
}

function getUsageCommands({ scopes, servers, views }: KeyRecord, url: string): string[] {
  const [view] = views ?? [];
  if (view !== undefined && !servers) return [buildConnectCommand(view, url)];
  const slug = servers?.[0] ?? 'SLUG';
  if (hasScope(scopes, 'manage:read'))
    return [`${programName} servers list`, `curl ${url}/api/v1/servers ${curlAuthorization}`];
  if (hasScope(scopes, 'call')) {
    return [
      `${programName} call ${slug} TOOL name=value`,
      `curl ${url}/api/v1/servers/${slug}/tools/TOOL/call ${curlAuthorization} -H 'Content-Type: application/json' -d '{"arguments": {}}'`,
      buildConnectCommand(slug, url),
    ];
  }
  return [`${programName} servers ${servers ? 'update' : 'create'} server.yaml`];
}

/** Returns the command that connects Claude Code. `address` is a slug or `slug/view`. */
function buildConnectCommand(address: string, url: string): string {
  const name = address.replace('/', '-');
  return getClaudeCodeCommand({ name, url: `${url}/mcp/${address}`, token: '$TOOLHOST_API_KEY' });
}
