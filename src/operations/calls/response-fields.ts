import { z } from 'zod';
import { boundFields, type FieldUse, mergeUses } from '../../domain/answer-fields/field-use.ts';
import {
  keptBytes,
  proposeFields,
  type UselessReason,
  uselessReason,
  uselessReasons,
} from '../../domain/answer-fields/propose-fields.ts';
import type { Tool } from '../../domain/config/tool.ts';
import { dotPathText, parseDotPath } from '../../domain/json/dot-path.ts';
import { parseJson } from '../../domain/json/json.ts';
import { charactersOfToken, tokensOfLength } from '../../domain/pieces/tokens.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { type Capture, findToolCaptures, openCapture } from '../../store/calls/captures.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import { indexOfTool } from '../servers/tools.ts';
import { getServer, slugInput, toolInput } from '../shapes.ts';

/** Maximum number of captured responses that are measured. */
const mostAnswers = 50;
const mostFields = 300;
/** Maximum number and maximum length of the paths that `response_fields` accepts. */
const mostPaths = 100;
const path = z.string().min(1).max(200);

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

type ShownField = z.input<typeof fieldShape>;

const proposeResponseFields = operation({
  name: 'proposeResponseFields',
  summary: 'Propose response_fields for a tool from its captured responses, with the tokens they would save',
  description: `Measures the newest ${mostAnswers} captured responses, after response_transform and before max_answer_tokens. updateTool sets the fields.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    tool: toolInput,
    fields: z.array(path).min(1).max(mostPaths).optional().describe('Additional paths to measure.'),
  }),
  output: z.object({
    slug: z.string(),
    tool: z.string(),
    answers: z.int().describe('Number of captured responses that were measured; 0 if there are none yet.'),
    fields: z
      .array(fieldShape)
      .max(mostFields)
      .describe('Fields in the order of the responses, each after its parent.'),
    current: z.array(z.string()).max(mostPaths).optional().describe('Current response_fields of the tool.'),
    proposed: z
      .array(z.string())
      .max(mostPaths)
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
  async run(context, { slug, tool: name, fields: asked }) {
    await context.serving?.flushCalls();
    const server = await getServer(context, slug);
    const tool = server.config.tools[indexOfTool(server, name)] as Tool;
    const { count, merged } = await measuredAnswers(context, server, tool);
    const answers = merged && boundFields(merged);
    const current = tool.response_fields;
    const sum = { slug, tool: name, answers: count, ...(current && { current }) };
    if (!answers) return { ...sum, fields: [], tokens: { whole: 0, now: 0 } };
    const proposed = proposeFields(answers, mostPaths);
    const left = (paths: readonly string[]) => tokensOfLength(keptBytes(answers, paths));
    const whole = tokensOfLength(answers.bytes);
    return {
      ...sum,
      fields: shownFields(answers),
      ...(proposed && { proposed }),
      tokens: {
        whole,
        now: current ? left(current) : whole,
        ...(proposed && { proposed: left(proposed) }),
        ...(asked && { asked: left(asked) }),
      },
    };
  },
  say,
});

/**
 * Reads and merges the fields of the captured responses, as the tool would return them now. Yields to the event loop
 * after each response.
 */
async function measuredAnswers(
  context: Context,
  server: StoredServer,
  tool: Tool,
): Promise<{ count: number; merged: FieldUse | undefined }> {
  const { db, keyring, now } = context;
  const { workspaceId, id: serverId } = server;
  const rows = await findToolCaptures(db, { workspaceId, serverId, tool: tool.name }, now(), mostAnswers);
  const transform = dotPathText(parseDotPath(tool.response_transform));
  let count = 0;
  let merged: FieldUse | undefined;
  for (const row of rows) {
    await nextTurn();
    const { fields } = parseJson(openCapture(keyring, workspaceId, row)) as Capture;
    if (fields?.transform !== transform) continue;
    count++;
    merged = merged ? mergeUses([merged, fields.answer]) : fields.answer;
  }
  return { count, merged };
}

/** Lists all fields in the order of the responses, each after its parent. */
function shownFields(answers: FieldUse): ShownField[] {
  const shown: ShownField[] = [];
  const add = (around: FieldUse, parent: string) => {
    if (around.isPartial) return;
    for (const use of around.fields) {
      if (shown.length === mostFields) return;
      const name = parent === '' ? use.name : `${parent}.${use.name}`;
      shown.push(shownField(name, use, uselessReason(use, around)));
      add(use, name);
    }
  };
  add(answers, '');
  return shown;
}

function shownField(name: string, use: FieldUse, useless: UselessReason | undefined): ShownField {
  const { bytes, times, objects, around, always } = use;
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

const mostSaid = 30;

function say(answer: {
  slug: string;
  tool: string;
  answers: number;
  fields: readonly ShownField[];
  proposed?: readonly string[] | undefined;
  tokens: { whole: number; now: number; proposed?: number | undefined; asked?: number | undefined };
}): string {
  const { slug, tool, answers, fields, proposed, tokens: cost } = answer;
  if (answers === 0) {
    return `No JSON response of the tool "${tool}" was captured. Turn on captures with captureCalls, call the tool, and retry.`;
  }
  const share = (bytes: number) => `${Math.round((bytes / charactersOfToken / Math.max(1, cost.whole)) * 100)}%`;
  const saved = (left: number) =>
    `${left} tokens, ${Math.max(0, Math.round((1 - left / Math.max(1, cost.now)) * 100))}% less than now`;
  const largest = fields.toSorted((a, b) => b.bytes - a.bytes).slice(0, mostSaid);
  return [
    `${answers} captured responses of the tool "${tool}" have ${cost.whole} tokens in total, ${cost.now} with the current fields. Largest fields:`,
    ...largest.map(
      (field) =>
        `- ${field.path}: ${share(field.bytes)}${field.useless ? `, probably useless (${field.useless})` : ''}`,
    ),
    ...(cost.asked === undefined ? [] : [`With the requested fields: ${saved(cost.asked)}.`]),
    proposed && cost.proposed !== undefined
      ? `Without the probably useless fields: ${saved(cost.proposed)}. To apply: updateTool ${JSON.stringify({ slug, tool, response_fields: proposed })}`
      : 'No field looks useless.',
  ].join('\n');
}

export const responseFieldOperations = { proposeResponseFields };
