import { z } from 'zod';
import { dayMs, startOf } from '../../store/calls/call-writer.ts';
import { listUsage, type UsageScope, usageByCaller, usageByDay } from '../../store/calls/usage.ts';
import { namesFor } from '../names.ts';
import { type Context, operation } from '../operation.ts';
import { getServer, isoTime, slugInput, time } from '../shapes.ts';
import { csvLine, csvLines } from './csv.ts';

const mostDays = 366;
const mostRows = 500;
export const mostUsageExported = 10_000;

const inputs = {
  slug: slugInput.optional(),
  days: z.int().min(1).max(mostDays).default(30).describe('Number of days (UTC), ending today.'),
};
type Asked = { slug?: string | undefined; days: number };

/** @throws AppError notFound */
async function scopeOf(context: Context, { slug, days }: Asked): Promise<UsageScope> {
  const { actor } = context;
  await context.serving?.flushCalls();
  const until = startOf(context.now(), dayMs) + dayMs;
  const slugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
  return { workspaceId: actor.workspaceId, from: until - days * dayMs, until, slugs };
}

const numbers = { calls: z.int(), errors: z.int().describe('Number of calls with an outcome other than ok.') };
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
  input: z.strictObject(inputs),
  output: z.object({
    from: time,
    to: time,
    by_day: z
      .array(z.object({ day: z.string(), ...numbers }))
      .max(mostDays)
      .describe('Days that have calls.'),
    by_caller: z
      .array(z.object({ server: z.string(), caller: callerField, caller_name: nameField, ...numbers }))
      .max(mostRows)
      .describe(`Callers, most calls first; at most ${mostRows}.`),
  }),
  async run(context, input) {
    const scope = await scopeOf(context, input);
    const { db } = context;
    const days = await usageByDay(db, scope);
    const callers = await usageByCaller(db, scope, mostRows);
    const names = await namesFor(
      context,
      callers.map(({ caller }) => caller),
    );
    return {
      from: isoTime(scope.from),
      to: isoTime(scope.until),
      by_day: days.map(({ at, ...sum }) => ({ day: dayText(at), ...sum })),
      by_caller: callers.map(({ slug, caller, ...sum }) => ({
        server: slug,
        caller,
        caller_name: names.get(caller),
        ...sum,
      })),
    };
  },
});

const dayText = (at: number) => isoTime(at).slice(0, 10);

const csvColumns = ['day', 'server', 'caller', 'caller_name', 'calls', 'errors'] as const;
/** Number of names that are read with one statement. */
const namesAtOnce = 500;

const exportUsage = operation({
  name: 'exportUsage',
  summary: 'Export the number of calls by day, API key, and server as a CSV file, newest first',
  description: `The file contains at most ${mostUsageExported} rows. Use slug and days to select others.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject(inputs),
  output: z.object({
    csv: z.string().describe('Content of the file. The REST API returns only the file, as text/csv.'),
  }),
  file: { mediaType: 'text/csv; charset=utf-8', name: 'usage.csv', text: ({ csv }) => csv },
  async run(context, input) {
    const scope = await scopeOf(context, input);
    const rows = await listUsage(context.db, scope, mostUsageExported);
    const callers = [...new Set(rows.map(({ caller }) => caller))];
    const names = new Map<string, string>();
    for (let at = 0; at < callers.length; at += namesAtOnce)
      for (const [id, name] of await namesFor(context, callers.slice(at, at + namesAtOnce))) names.set(id, name);
    const shown = rows.map(({ at, slug: server, caller, calls, errors }) => {
      return { day: dayText(at), server, caller, caller_name: names.get(caller), calls, errors };
    });
    return { csv: csvLine(csvColumns) + csvLines(csvColumns, shown) };
  },
});

export const usageOperations = { getUsage, exportUsage };
