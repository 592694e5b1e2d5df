/** Builds the rows for `--reports` in plain SQL: the same statements for both engines, the same rows in every run. */
import { serverConfigSchema } from '@toolhost/tool-config/server-config';
import { durationBuckets } from '../apps/server/src/duration-buckets.ts';
import { minuteCountsRetentionMs } from '../apps/server/src/store/calls/call-statistics.ts';
import {
  countColumns,
  countedWidths,
  dayMs,
  minuteMs,
  recordColumns,
} from '../apps/server/src/store/calls/call-writer.ts';
import { toListColumns } from '../apps/server/src/store/servers/servers.ts';

/** Numbers of rows. Half of them are in one workspace, the others in many small workspaces. */
export type RowCounts = {
  calls: number;
  servers: number;
  keys: number;
  smallWorkspaces: number;
  users: number;
  grants: number;
  auditEvents: number;
  /** Time in epoch ms. The calls started in the thirty days before it. */
  now: number;
};

export function scaleCounts(scale: number, now: number): RowCounts {
  const scaled = (count: number) => Math.max(20, Math.round(count * scale));
  return {
    calls: scaled(1_000_000),
    servers: scaled(200_000),
    keys: scaled(100_000),
    smallWorkspaces: scaled(1000),
    users: scaled(20_000),
    grants: scaled(100_000),
    auditEvents: scaled(300_000),
    now,
  };
}

export const callDays = 29;
export const largeWorkspace = 'large';
/** Workspace whose servers were stored by an older version of the service, with summaries in another format. */
export const olderWorkspace = 'older';
const olderServerCount = 1000;
/** Percentage of the keys in the large workspace that one person created. */
export const creatorPercent = 40;
export const versionsOfFirstServer = 500;

const numberRows = (count: number) =>
  `with recursive n(i) as (select cast(0 as bigint) union all select i + 1 from n where i < ${count - 1})`;
/** Returns SQL for a pseudorandom integer less than `below`, different for each `salt`. */
const pseudorandom = (salt: number, below: number | string) =>
  `(((((i + ${salt}) * 2654435761) % 4294967296) / 256 * 40503 + ${salt}) % 1048573 * ${below} / 1048573)`;
/** Returns SQL for a pseudorandom integer less than `below` that is small much more often than large. */
const skewedRandom = (salt: number, below: number | string) => {
  const u = pseudorandom(salt, 1_048_576);
  return `(${below} * ${u} / 1048576 * ${u} / 1048576 * ${u} / 1048576)`;
};

/** Returns SQL that assigns even rows to the large workspace and odd rows to the small workspaces in rotation. */
const workspaceFor = ({ smallWorkspaces }: RowCounts, index: string) =>
  `case when (${index}) % 2 = 0 then '${largeWorkspace}' else 'small-' || ((${index}) / 2 % ${smallWorkspaces}) end`;
/** Returns SQL for one of `count` rows in the workspace of row `i`, most often one of the first rows. */
const sameWorkspaceRow = ({ smallWorkspaces }: RowCounts, count: number, salt: number) =>
  `case when i % 2 = 0 then 2 * ${skewedRandom(salt, Math.floor(count / 2))}
    else 1 + 2 * (i / 2 % ${smallWorkspaces} + ${smallWorkspaces} * ${skewedRandom(salt, Math.max(1, Math.floor(count / 2 / smallWorkspaces)))}) end`;

const quote = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** Returns the statements that fill a store, in order. */
export async function buildFillStatements(counts: RowCounts, upstream: string): Promise<string[]> {
  return [
    ...buildPeopleRows(counts),
    ...(await buildServerRows(counts, upstream)),
    ...buildRecordRows(counts),
    ...buildCountRows(counts),
  ];
}

function buildPeopleRows(counts: RowCounts): string[] {
  const { users, smallWorkspaces, keys, now } = counts;
  return [
    `insert into workspaces (id, name, created_at) values ('${largeWorkspace}', 'Large', 1), ('${olderWorkspace}', 'Older', 1)`,
    `${numberRows(smallWorkspaces)} insert into workspaces (id, name, created_at) select 'small-' || i, 'Small ' || i, i from n`,
    `${numberRows(users)} insert into users (id, issuer, subject, email, name, created_at, last_seen_at)
      select 'usr_' || i, 'https://id.example', 's' || i, 'person-' || i || '@mail.example', 'Person ' || i, ${now} - i, ${now} from n`,
    `${numberRows(users)} insert into members (workspace_id, user_id, role, created_at)
      select ${workspaceFor(counts, 'i')}, 'usr_' || i, 'editor', ${now} - i from n where i > 0`,
    // The person who sends the requests is a member of every workspace.
    `insert into members (workspace_id, user_id, role, created_at) select id, 'usr_0', 'owner', created_at from workspaces`,
    `${numberRows(Math.floor(users / 4))} insert into invitations (workspace_id, email, role, invited_by, created_at)
      select ${workspaceFor(counts, 'i')}, 'guest-' || i || '@mail.example', 'viewer', 'usr_0', ${now} - i from n`,
    `${numberRows(keys)} insert into api_keys (id, workspace_id, name, secret_hash, scopes, servers, created_by, created_at, expires_at, revoked_at, last_used_at)
      select 'key_' || i, ${workspaceFor(counts, 'i')}, 'Key ' || i, 'none', '["call"]',
        case when i % 10 = 3 then '["server-' || i || '"]' end,
        case when i % 100 < ${creatorPercent} then 'usr_0' when i % 100 < 60 then 'key_' || (i / 4 * 2 + i % 2) else 'usr_' || ${pseudorandom(1, users)} end,
        ${now} - (${keys} - i) * 60000, null, case when i % 10 = 7 then ${now} - i end, ${now} - i from n`,
  ];
}

async function buildServerRows(counts: RowCounts, upstream: string): Promise<string[]> {
  const { servers, grants, now } = counts;
  const config = makeConfig(upstream);
  const values = (id: string, workspace: string, at: string, summary: string) =>
    `'srv_' || ${id}, ${workspace}, 'server-' || ${id}, 'Server ' || ${id}, ${quote(JSON.stringify(config))}, 1, 'usr_0', ${at}, ${at}, 0, ${summary}`;
  const columns = 'id, workspace_id, slug, name, config, version, created_by, created_at, updated_at, stored_bytes';
  const age = (count: number) => `${now} - (${count} - i) * 100000`;
  const { summary: listSummary } = await toListColumns(config);
  const [summary, deletedAt] = [quote(listSummary), `case when i / 2 % 20 = 19 then ${now} end`];
  return [
    `${numberRows(servers)} insert into servers (${columns}, summary, deleted_at)
      select ${values('i', workspaceFor(counts, 'i'), age(servers), `${summary}, ${deletedAt}`)} from n`,
    `${numberRows(olderServerCount)} insert into servers (${columns}, summary) select ${values("('older-' || i)", `'${olderWorkspace}'`, age(olderServerCount), quote('{}'))} from n`,
    `insert into server_versions (server_id, workspace_id, version, config, created_by, created_at)
      select id, workspace_id, version, config, created_by, created_at from servers`,
    `${numberRows(versionsOfFirstServer)} insert into server_versions (server_id, workspace_id, version, config, created_by, created_at)
      select 'srv_0', '${largeWorkspace}', i + 2, ${quote(JSON.stringify(config))}, 'usr_' || i, ${now} - 1000 + i from n`,
    `update servers set version = ${versionsOfFirstServer + 1} where id = 'srv_0'`,
    `${numberRows(grants)} insert into grants (id, workspace_id, server_id, slug, client_id, client_name, user_id, scope, agreement, sealed_tokens, tokens_version, generation, rotated_at, created_at)
      select 'grt_' || i, ${workspaceFor(counts, 'i')}, 'srv_' || server, 'server-' || server, 'client', 'Client', null, 'openid', 'none', '', 1, 1, at, at
      from (select i, ${sameWorkspaceRow(counts, servers, 2)} as server, ${now} - (${grants} - i) * 25000 as at from n) as made`,
  ];
}

export function makeConfig(upstream: string) {
  const properties = { id: { type: 'string', description: 'Id of the item' } };
  return serverConfigSchema.parse({
    name: 'Filled',
    slug: 'filled',
    description: 'Reads the items of a project and says who changed them last.',
    authentication: { type: 'Bearer' },
    tools: [
      {
        name: 'tool_0',
        description: 'Get an item of a project by its id.',
        method: 'GET',
        url: `${upstream}/1k/items/:id`,
        input_schema: properties,
      },
    ],
  });
}

/** Columns that receive values. Later columns stay null. */
const insertedColumns = recordColumns.slice(0, recordColumns.indexOf('view') + 1);

/** Returns SQL for the outcome of a call: frequent failures per thousand calls, and a very rare one. */
const outcome = (i: string) =>
  `case when ${i} % 1000 < 30 then 'upstream_status' when ${i} % 1000 < 32 then 'timeout' when ${i} % 100003 = 50 then 'redirect' else 'ok' end`;

function buildRecordRows(counts: RowCounts): string[] {
  const { calls, servers, keys, auditEvents, users, now } = counts;
  const intervalMs = Math.floor((callDays * dayMs) / calls);
  return [
    `${numberRows(calls)} insert into calls (${insertedColumns.join(', ')})
      select 'call_' || ((i * 2654435761) % 4294967296), ${workspaceFor(counts, 'i')}, 'server-' || server, tool, at, kind,
        case kind when 'caller_token' then null else key end, 'api.example.com', 200, ${outcome('i')}, took, took - took / 8, 200, 1000, case when ${outcome('i')} = 'ok' then null else 'HTTP 500 Internal Server Error, application/json' end, 250, case when i % 3 = 0 then 'reading' else null end
      from (select i, ${sameWorkspaceRow(counts, servers, 3)} as server, 'tool_' || ${skewedRandom(4, 12)} as tool, ${now} - (${calls} - i) * ${intervalMs} as at,
        case when i % 7 < 3 then 'caller_token' when i % 5000 < 2 then 'try_out' else 'api_key' end as kind,
        'key_' || (${sameWorkspaceRow(counts, keys, 5)}) as key, 1 + ${skewedRandom(6, 4000)} as took from n) as made`,
    `${numberRows(auditEvents)} insert into audit_events (id, workspace_id, at, actor_kind, actor_id, operation, target, detail, request_id)
      select 'aud_' || i, ${workspaceFor(counts, 'i')}, ${now} - (${auditEvents} - i) * 8000, 'user', 'usr_' || ${pseudorandom(7, users)}, 'updateMcpServer', 'server-' || i, '{"version":2}', 'req_' || i from n`,
  ];
}

/** Returns statements for the counts per tool and per workspace that the service maintains while it writes records. */
function buildCountRows({ now }: RowCounts): string[] {
  const cases = durationBuckets.map((lower, index) => `when duration_ms >= ${lower} then ${index}`);
  const bucketCase = `case ${cases.toReversed().join(' ')} end`;
  return countedWidths.flatMap((width) =>
    ['slug, tool', "'' as slug, '' as tool"].map((names) => {
      const from = width === minuteMs ? now - minuteCountsRetentionMs : 0;
      const classes = `select workspace_id, slug, tool, at, class, count(*) as calls, sum(failed) as errors
        from (select workspace_id, ${names}, started_at - started_at % ${width} as at, ${bucketCase} as class,
          case when outcome <> 'ok' then 1 else 0 end as failed from calls where started_at >= ${from}) as each_call
        group by workspace_id, slug, tool, at, class`;
      return `insert into call_counts (${countColumns.join(', ')})
        select workspace_id, ${width}, slug, tool, at, sum(calls), sum(errors), '{' || string_agg('"' || class || '":' || calls, ',') || '}'
        from (${classes}) as classes group by workspace_id, slug, tool, at`;
    }),
  );
}

/** Returns the call ID that `buildRecordRows` assigns to a row. */
export function callId(index: number): string {
  return `call_${(BigInt(index) * 2654435761n) % 4294967296n}`;
}
