import { type Command, InvalidArgumentError } from 'commander';
import { claudeCodeCommand } from '../../domain/clients/client.ts';
import { covers, type KeyScope, keyScopes } from '../../domain/credentials/scopes.ts';
import { type KeyLimits, mostCallQuota, mostLimit } from '../../domain/limits.ts';
import { messageOf } from '../../errors.ts';
import { fieldsOf } from '../../operations/limit-fields.ts';
import { programName } from '../../version.ts';
import { environmentUrl } from '../connection/environment-url.ts';
import { readList } from '../connection/pages.ts';
import { wholeOrNone, wholeUpTo } from '../input/whole-number.ts';
import { print, printJson, table } from '../print/print.ts';
import { addOperatorOptions, asOperator, type OperatorOptions } from './as-operator.ts';

const unitsS = { h: 3600, d: 86_400, w: 7 * 86_400 } as const;
const longestS = 10 * 365 * unitsS.d;

/** The seconds in a span such as `90d`. @throws Error that says what is allowed */
function secondsOf(text: string): number {
  const match = /^([1-9]\d{0,5})([hdw])$/.exec(text.trim());
  const span = match ? Number(match[1]) * unitsS[match[2] as keyof typeof unitsS] : Number.NaN;
  if (!(span <= longestS)) throw new Error('allowed: hours, days or weeks, such as 12h, 90d or 4w, up to 10 years');
  return span;
}

type CreateOptions = OperatorOptions &
  KeyLimits & { name: string; scopes: KeyScope[]; server?: string[]; view?: string[]; expires?: number };

type KeyRecord = {
  id: string;
  name: string;
  scopes: KeyScope[];
  servers?: string[];
  views?: string[];
  created_at: string;
  expires_at?: string;
  last_used_at?: string;
  revoked_at?: string;
  creator_left?: true;
};

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('make, list and revoke API keys, directly on the database (DATA_DIR or DATABASE_URL)');
  addOperatorOptions(keys.command('create'))
    .description('make an API key; it is shown once')
    .requiredOption('--name <name>', 'what the key is for')
    .requiredOption('--scopes <list>', `what it may do, comma-separated: ${keyScopes.join(', ')}`, scopesOf)
    .option('--server <slug>', 'limit it to this server; may be repeated', (slug, before: string[] = []) => [
      ...before,
      slug,
    ])
    .option(
      '--view <slug/view>',
      'limit it to this view of a server; may be repeated',
      (view, before: string[] = []) => [...before, view],
    )
    .option('--expires <span>', 'when it stops working, such as 12h, 90d or 4w (default: never)', expires)
    .option('--calls-per-second <number>', 'how many calls a second it may make', wholeUpTo(mostLimit))
    .option('--calls-per-minute <number>', 'how many calls a minute (UTC)', wholeUpTo(mostCallQuota))
    .option('--calls-per-day <number>', 'how many calls a day (UTC)', wholeUpTo(mostCallQuota))
    .addHelpText(
      'after',
      `
Examples:
  toolhost keys create --name me --scopes manage,call
  toolhost keys create --name agent --scopes call --server projects --expires 90d
  toolhost keys create --name desk --scopes call --view shop/support
  export TOOLHOST_API_KEY=$(toolhost keys create --name ci --scopes manage --json | jq -r .key)`,
    )
    .action(create);
  addOperatorOptions(keys.command('limit'))
    .description('set what an API key is limited to; 0 removes a limit')
    .argument('<id>', 'id of the key, key_…')
    .option('--calls-per-second <number>', 'calls a second', wholeOrNone(mostLimit))
    .option('--calls-per-minute <number>', 'calls a minute (UTC)', wholeOrNone(mostCallQuota))
    .option('--calls-per-day <number>', 'calls a day (UTC)', wholeOrNone(mostCallQuota))
    .action(limit);
  addOperatorOptions(keys.command('list'))
    .description('list the API keys of a workspace, without the keys themselves')
    .action(list);
  addOperatorOptions(keys.command('revoke'))
    .description('revoke an API key; it stops working everywhere within two seconds')
    .argument('<id>', 'id of the key, key_…')
    .action(revoke);
}

function limitText(limits: { calls_per_second?: number; calls_per_minute?: number; calls_per_day?: number }): string {
  const { calls_per_second, calls_per_minute, calls_per_day } = limits;
  const quotas = { second: calls_per_second, minute: calls_per_minute, day: calls_per_day };
  const parts = Object.entries(quotas).flatMap(([span, calls]) =>
    calls === undefined ? [] : [`${calls} calls a ${span}`],
  );
  return parts.length === 0 ? 'any number of calls' : parts.join(', ');
}

function scopesOf(text: string): KeyScope[] {
  const scopes = text
    .split(',')
    .map((scope) => scope.trim())
    .filter((scope) => scope !== '');
  const wrong = scopes.find((scope) => !(keyScopes as readonly string[]).includes(scope));
  if (wrong !== undefined || scopes.length === 0) {
    throw new InvalidArgumentError(`allowed: one or more of ${keyScopes.join(', ')}, comma-separated`);
  }
  return scopes as KeyScope[];
}

function expires(text: string): number {
  try {
    return secondsOf(text);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}

async function create(options: CreateOptions): Promise<void> {
  // Read before the key is created, so that no error can prevent a new key from being shown.
  const url = environmentUrl(process.env);
  await asOperator({ ...options, makesDatabase: true }, async (operator) => {
    const made = await operator.run('createApiKey', {
      name: options.name,
      scopes: options.scopes,
      ...(options.server && { servers: options.server }),
      ...(options.view && { views: options.view }),
      ...(options.expires !== undefined && { expires_in: options.expires }),
      ...fieldsOf(options),
    });
    if (options.json) printJson({ id: made.id, key: made.key, scopes: made.scopes });
    else print(createdText(made, operator.database, url));
  });
}

function createdText(made: KeyRecord & { key: string }, database: string, url: string): string {
  const servers = goodFor(made);
  return `The API key "${made.name}" (${made.id}) is made.

  ${made.key}

It is shown this once: keep it now, where only you can read it.
Scopes: ${made.scopes.join(', ')}. Good for ${servers}. Expires: ${made.expires_at ?? 'never'}.
It works on the service whose database is ${database}.

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

async function list(options: OperatorOptions): Promise<void> {
  await asOperator(options, async (operator) => {
    const keys = await readList(async (wanted) => {
      const page = await operator.run('listApiKeys', wanted);
      const { keys: entries, next_cursor: next } = page as { keys: KeyRecord[]; next_cursor?: string };
      return { entries, next };
    });
    if (options.json) printJson({ keys });
    else if (keys.length === 0) print('There are no API keys in this workspace yet.');
    else
      print(
        table(
          ['ID', 'NAME', 'SCOPES', 'SERVERS', 'STATE', 'LAST USED'],
          keys.map((key) => rowOf(key, operator.now())),
        ),
      );
  });
}

/** `now` is the database's time in epoch ms, like the times of the key. */
function rowOf(key: KeyRecord, now: number): string[] {
  return [
    key.id,
    key.name,
    key.scopes.join(','),
    [...(key.servers ?? []), ...(key.views ?? [])].join(',') || 'all',
    key.creator_left && key.revoked_at === undefined ? `${stateOf(key, now)}, its maker has left` : stateOf(key, now),
    key.last_used_at ?? 'never',
  ];
}

function stateOf({ revoked_at, expires_at }: KeyRecord, now: number): string {
  if (revoked_at !== undefined) return `revoked ${revoked_at}`;
  if (expires_at === undefined) return 'good';
  return `${Date.parse(expires_at) <= now ? 'expired' : 'good until'} ${expires_at}`;
}

async function limit(id: string, options: OperatorOptions & KeyLimits, command: Command): Promise<void> {
  const given = Object.entries(fieldsOf(options)).map(([field, value]) => [field, value === 0 ? null : value]);
  if (given.length === 0)
    command.error('error: nothing to set; give --calls-per-second, --calls-per-minute or --calls-per-day', {
      exitCode: 2,
    });
  await asOperator(options, async (operator) => {
    const { limits } = await operator.run('setKeyLimits', { id, ...Object.fromEntries(given) });
    if (options.json) printJson({ id, limits });
    else print(`The API key ${id} may make ${limitText(limits)}.`);
  });
}

async function revoke(id: string, options: OperatorOptions): Promise<void> {
  await asOperator(options, async (operator) => {
    const revoked = await operator.run('revokeApiKey', { id });
    if (options.json) printJson(revoked);
    else {
      const { revoked_key_count: count = 0 } = revoked;
      const also = count > 0 ? `, and ${count} that ${count === 1 ? 'was' : 'were'} made with it` : '';
      print(`The API key ${id} is revoked${also}; it stops working everywhere within two seconds.`);
    }
  });
}

type Key = {
  scopes: readonly KeyScope[];
  servers?: readonly string[] | undefined;
  views?: readonly string[] | undefined;
};

/** The default address of the service for commands. */
const usualUrl = 'http://127.0.0.1:8080';
const bearer = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** First commands that the key may use. `url` is the address of the service. */
function firstCommands(key: Key, url: string): string[] {
  return ['export TOOLHOST_API_KEY=…', ...(url === usualUrl ? [] : [`export TOOLHOST_URL=${url}`]), ...uses(key, url)];
}

function uses({ scopes, servers, views }: Key, url: string): string[] {
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

/** The address is a slug, or `slug/view`. */
function connectCommand(address: string, url: string): string {
  const name = address.replace('/', '-');
  return claudeCodeCommand({ name, url: `${url}/mcp/${address}`, token: '$TOOLHOST_API_KEY' });
}
