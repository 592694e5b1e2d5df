import { formatDotPath, parseDotPath } from '@toolhost/errors/dot-path';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { capFields, type FieldStats, mergeStats } from '@toolhost/json/field-selection/field-statistics';
import {
  getKeptBytes,
  getUselessReason,
  proposeFields,
  type UselessReason,
  uselessReasons,
} from '@toolhost/json/field-selection/propose-fields';
import { parseJson } from '@toolhost/json/json';
import { charactersPerToken, estimateTokenCount } from '@toolhost/tool-config/tokens';
import type { Tool } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { type Capture, findToolCaptures, openCapture } from '../../store/calls/captures.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { findToolIndex } from '../servers/tools.ts';
import { slugInput, toolInput } from '../shapes.ts';

/** Maximum number of captured responses that are measured. */
const maxResponses = 50;
const maxFields = 300;
/** Maximum number and maximum length of the paths that `response_fields` accepts. */
const maxPaths = 100;
const pathInput = z.string().min(1).max(200);

const tokens = z.int().describe('Estimated tokens, at four characters per token.');
const fieldShape = z.object({
  path: z.string().describe('Path in the format of response_fields. Items of lists are merged.'),
  bytes: z
    .int()
    .describe('Size of the names and values of the field in all responses, including everything inside it.'),
  times: z.int().describe('Number of occurrences.'),
  objects: z.int().describe('Number of occurrences whose value is an object.'),
  around: z
    .int()
    .describe('Size in bytes of lists and other values that remain if only fields inside this field are selected.'),
  useless: z
    .enum(uselessReasons)
    .optional()
    .describe(
      'Reason why the field is probably useless to a model: always empty, always the same value, an API link, a node ID, or an image.',
    ),
  always: z.string().optional().describe('Value as JSON, if it is short and always the same.'),
});

type FieldOutput = z.input<typeof fieldShape>;

const proposeResponseFields = operation({
  name: 'proposeResponseFields',
  summary: 'Propose response_fields for a tool from its captured responses, with the tokens they would save',
  description: `Measures the newest ${maxResponses} captured responses, after response_transform and before max_response_tokens. updateTool sets the fields.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    tool: toolInput,
    fields: z.array(pathInput).min(1).max(maxPaths).optional().describe('Additional paths to measure.'),
  }),
  output: z.object({
    slug: z.string(),
    tool: z.string(),
    answers: z.int().describe('Number of captured responses that were measured; 0 if there are none yet.'),
    fields: z.array(fieldShape).max(maxFields).describe('Fields in the order of the responses, each after its parent.'),
    current: z.array(z.string()).max(maxPaths).optional().describe('Current response_fields of the tool.'),
    proposed: z
      .array(z.string())
      .max(maxPaths)
      .optional()
      .describe('All fields except those that are probably useless; absent if no field is.'),
    tokens: z
      .object({
        whole: tokens.describe('Estimated tokens without response_fields.'),
        now: tokens.describe('Estimated tokens with the current response_fields.'),
        proposed: tokens.optional().describe('Estimated tokens with the proposed fields.'),
        asked: tokens.optional().describe('Estimated tokens with the paths from the input.'),
      })
      .describe('Tokens of all measured responses together.'),
  }),
  async run(context, { slug, tool: name, fields: requestedFields }) {
    await context.serving?.flushCalls();
    const server = await getServer(context, slug);
    const tool = server.config.tools[findToolIndex(server, name)] as Tool;
    const { count, merged } = await measureResponses(context, server, tool);
    const responseStats = merged && capFields(merged);
    const current = tool.response_fields;
    const summary = { slug, tool: name, answers: count, ...(current && { current }) };
    if (!responseStats) return { ...summary, fields: [], tokens: { whole: 0, now: 0 } };
    const proposed = proposeFields(responseStats, maxPaths);
    const getTokensWith = (paths: readonly string[]) => estimateTokenCount(getKeptBytes(responseStats, paths));
    const allTokens = estimateTokenCount(responseStats.bytes);
    return {
      ...summary,
      fields: formatFields(responseStats),
      ...(proposed && { proposed }),
      tokens: {
        whole: allTokens,
        now: current ? getTokensWith(current) : allTokens,
        ...(proposed && { proposed: getTokensWith(proposed) }),
        ...(requestedFields && { asked: getTokensWith(requestedFields) }),
      },
    };
  },
  toAgentText,
});

/**
 * Reads and merges the fields of the captured responses, as the tool would return them now. Yields to the event loop
 * after each response.
 */
async function measureResponses(
  context: Context,
  server: StoredServer,
  tool: Tool,
): Promise<{ count: number; merged: FieldStats | undefined }> {
  const { db, keyring, now } = context;
  const { workspaceId, id: serverId } = server;
  const rows = await findToolCaptures(db, { workspaceId, serverId, tool: tool.name }, now(), maxResponses);
  const transform = formatDotPath(parseDotPath(tool.response_transform));
  let count = 0;
  let merged: FieldStats | undefined;
  for (const row of rows) {
    await yieldToEventLoop();
    const { fields } = parseJson(openCapture(keyring, workspaceId, row)) as Capture;
    if (fields?.transform !== transform) continue;
    count++;
    merged = merged ? mergeStats([merged, fields.answer]) : fields.answer;
  }
  return { count, merged };
}

/** Lists all fields in the order of the responses, each after its parent. */
function formatFields(responseStats: FieldStats): FieldOutput[] {
  const output: FieldOutput[] = [];
  const add = (parentStats: FieldStats, parent: string) => {
    if (parentStats.isPartial) return;
    for (const stats of parentStats.fields) {
      if (output.length === maxFields) return;
      const name = parent === '' ? stats.name : `${parent}.${stats.name}`;
      output.push(formatField(name, stats, getUselessReason(stats, parentStats)));
      add(stats, name);
    }
  };
  add(responseStats, '');
  return output;
}

function formatField(name: string, stats: FieldStats, useless: UselessReason | undefined): FieldOutput {
  const { bytes, times, objects, around, always } = stats;
  return {
    path: name,
    bytes,
    times,
    objects,
    around,
    ...(useless && { useless }),
    ...(always !== undefined && { always }),
  };
}

/** Maximum number of fields in a text for an agent. */
const maxListedFields = 30;

function toAgentText(output: {
  slug: string;
  tool: string;
  answers: number;
  fields: readonly FieldOutput[];
  proposed?: readonly string[] | undefined;
  tokens: { whole: number; now: number; proposed?: number | undefined; asked?: number | undefined };
}): string {
  const { slug, tool, answers, fields, proposed, tokens: tokenCounts } = output;
  if (answers === 0) {
    return `No JSON response of the tool "${tool}" was captured. Turn on captures with captureCalls, call the tool, and retry.`;
  }
  const formatShare = (bytes: number) =>
    `${Math.round((bytes / charactersPerToken / Math.max(1, tokenCounts.whole)) * 100)}%`;
  const formatSavings = (tokenCount: number) =>
    `${tokenCount} tokens, ${Math.max(0, Math.round((1 - tokenCount / Math.max(1, tokenCounts.now)) * 100))}% less than now`;
  const largest = fields.toSorted((a, b) => b.bytes - a.bytes).slice(0, maxListedFields);
  return [
    `${answers} captured responses of the tool "${tool}" have ${tokenCounts.whole} tokens in total, ${tokenCounts.now} with the current fields. Largest fields:`,
    ...largest.map(
      (field) =>
        `- ${field.path}: ${formatShare(field.bytes)}${field.useless ? `, probably useless (${field.useless})` : ''}`,
    ),
    ...(tokenCounts.asked === undefined ? [] : [`With the requested fields: ${formatSavings(tokenCounts.asked)}.`]),
    proposed && tokenCounts.proposed !== undefined
      ? `Without the probably useless fields: ${formatSavings(tokenCounts.proposed)}. To apply: updateTool ${JSON.stringify({ slug, tool, response_fields: proposed })}`
      : 'No field looks useless.',
  ].join('\n');
}

export const responseFieldOperations = { proposeResponseFields };
