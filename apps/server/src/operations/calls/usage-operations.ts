import { z } from 'zod';
import { dayMs, startOfPeriod } from '../../store/calls/call-writer.ts';
import { findUsageByCaller, findUsageByDay, listUsage, type UsageScope } from '../../store/calls/usage.ts';
import { findActorNames } from '../actor-names.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { slugInput, time, toIsoTime } from '../shapes.ts';
import { formatCsvLine, formatCsvLines } from './csv.ts';

const maxDays = 366;
const maxRows = 500;
export const maxExportedUsage = 10_000;

const usageInputs = {
  slug: slugInput.optional(),
  days: z.int().min(1).max(maxDays).default(30).describe('Number of days (UTC), ending today.'),
};
type UsageInput = { slug?: string | undefined; days: number };

/** @throws AppError notFound */
async function getUsageScope(context: Context, { slug, days }: UsageInput): Promise<UsageScope> {
  const { actor } = context;
  await context.serving?.flushCalls();
  const until = startOfPeriod(context.now(), dayMs) + dayMs;
  const slugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
  return { workspaceId: actor.workspaceId, from: until - days * dayMs, until, slugs };
}

const countFields = { calls: z.int(), errors: z.int().describe('Number of calls with an outcome other than ok.') };
const callerField = z
  .string()
  .describe('ID of the API key. For any other caller its kind: caller_token, oauth, or try_out.');
const nameField = z.string().optional().describe('Current name of the API key; absent if it was deleted.');

const getUsage = operation({
  name: 'getUsage',
  summary: 'Count calls by API key and server, and by day',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject(usageInputs),
  output: z.object({
    from: time,
    to: time,
    by_day: z
      .array(z.object({ day: z.string(), ...countFields }))
      .max(maxDays)
      .describe('Days that have calls.'),
    by_caller: z
      .array(z.object({ server: z.string(), caller: callerField, caller_name: nameField, ...countFields }))
      .max(maxRows)
      .describe(`Callers, most calls first; at most ${maxRows}.`),
  }),
  async run(context, input) {
    const scope = await getUsageScope(context, input);
    const { db } = context;
    const days = await findUsageByDay(db, scope);
    const callers = await findUsageByCaller(db, scope, maxRows);
    const names = await findActorNames(
      context,
      callers.map(({ caller }) => caller),
    );
    return {
      from: toIsoTime(scope.from),
      to: toIsoTime(scope.until),
      by_day: days.map(({ at, ...counts }) => ({ day: formatDay(at), ...counts })),
      by_caller: callers.map(({ slug, caller, ...counts }) => ({
        server: slug,
        caller,
        caller_name: names.get(caller),
        ...counts,
      })),
    };
  },
});

const formatDay = (at: number) => toIsoTime(at).slice(0, 10);

const csvColumns = ['day', 'server', 'caller', 'caller_name', 'calls', 'errors'] as const;
/** Number of names that are read with one statement. */
const namesPerQuery = 500;

const exportUsage = operation({
  name: 'exportUsage',
  summary: 'Export the number of calls by day, API key, and server as a CSV file, newest first',
  description: `The file contains at most ${maxExportedUsage} rows. Use slug and days to select others.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject(usageInputs),
  output: z.object({
    csv: z.string().describe('Content of the file. The REST API returns only the file, as text/csv.'),
  }),
  file: { mediaType: 'text/csv; charset=utf-8', name: 'usage.csv', toText: ({ csv }) => csv },
  async run(context, input) {
    const scope = await getUsageScope(context, input);
    const rows = await listUsage(context.db, scope, maxExportedUsage);
    const callers = [...new Set(rows.map(({ caller }) => caller))];
    const names = new Map<string, string>();
    for (let start = 0; start < callers.length; start += namesPerQuery)
      for (const [id, name] of await findActorNames(context, callers.slice(start, start + namesPerQuery)))
        names.set(id, name);
    const csvRows = rows.map(({ at, slug: server, caller, calls, errors }) => {
      return { day: formatDay(at), server, caller, caller_name: names.get(caller), calls, errors };
    });
    return { csv: formatCsvLine(csvColumns) + formatCsvLines(csvColumns, csvRows) };
  },
});

export const usageOperations = { getUsage, exportUsage };
