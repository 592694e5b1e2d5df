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

/** Most captured answers that are looked at. */
const mostAnswers = 50;
const mostFields = 300;
/** Most paths that `response_fields` takes, and the longest. */
const mostPaths = 100;
const path = z.string().min(1).max(200);

const tokens = z.int().describe('Estimated tokens, at four characters each.');
const fieldShape = z.object({
  path: z.string().describe('As response_fields takes it; items of lists are merged.'),
  bytes: z.int().describe('Size of its names and values in all answers, with everything inside it.'),
  times: z.int().describe('How often it occurs.'),
  objects: z.int().describe('How many objects it has as values.'),
  around: z.int().describe('Bytes of lists and of other values, which stay when only fields inside it are kept.'),
  useless: z
    .enum(uselessReasons)
    .optional()
    .describe(
      'Why it is probably of no use to a model: always empty, always the same, a link of the API, an id of a node, a picture.',
    ),
  always: z.string().optional().describe('Its value as JSON, where that is always the same and short.'),
});

type ShownField = z.input<typeof fieldShape>;

const proposeResponseFields = operation({
  name: 'proposeResponseFields',
  summary: 'Propose response_fields for a tool from its captured answers, with the tokens they would save',
  description: `Measures the newest ${mostAnswers} answers that were captured, behind response_transform and before max_answer_tokens. updateTool sets the fields.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    tool: toolInput,
    fields: z.array(path).min(1).max(mostPaths).optional().describe('Paths to measure instead of the proposed ones.'),
  }),
  output: z.object({
    slug: z.string(),
    tool: z.string(),
    answers: z.int().describe('Captured answers that were measured; 0 where there are none yet.'),
    fields: z
      .array(fieldShape)
      .max(mostFields)
      .describe('Each after the one that it is in, in the order of the answers.'),
    current: z.array(z.string()).max(mostPaths).optional().describe('The response_fields that the tool has.'),
    proposed: z
      .array(z.string())
      .max(mostPaths)
      .optional()
      .describe('All fields but those that are probably useless; absent where none is.'),
    tokens: z
      .object({
        whole: tokens.describe('Estimated tokens of the answers without response_fields.'),
        now: tokens.describe('With the response_fields that the tool has.'),
        proposed: tokens.optional().describe('With the proposed ones.'),
        asked: tokens.optional().describe('With the paths that the input names.'),
      })
      .describe('Of all measured answers together.'),
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

/** The fields of the captured answers, as the tool reads them now. Each turn of the event loop opens and merges one. */
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

/** All fields, each after the one that it is in, in the order of the answers. */
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
    return `No JSON answer of the tool "${tool}" was captured. Turn captures on with captureCalls, let the tool be called, and ask again.`;
  }
  const share = (bytes: number) => `${Math.round((bytes / charactersOfToken / Math.max(1, cost.whole)) * 100)} %`;
  const saved = (left: number) =>
    `${left} tokens, ${Math.max(0, Math.round((1 - left / Math.max(1, cost.now)) * 100))} % less than now`;
  const largest = fields.toSorted((a, b) => b.bytes - a.bytes).slice(0, mostSaid);
  return [
    `${answers} captured answers of the tool "${tool}" have ${cost.whole} tokens, ${cost.now} with the fields that agents get now. The largest fields:`,
    ...largest.map(
      (field) =>
        `- ${field.path}: ${share(field.bytes)}${field.useless ? `, probably useless (${field.useless})` : ''}`,
    ),
    ...(cost.asked === undefined ? [] : [`With the fields that you named: ${saved(cost.asked)}.`]),
    proposed && cost.proposed !== undefined
      ? `Without those that are probably useless: ${saved(cost.proposed)}. To set them: updateTool ${JSON.stringify({ slug, tool, response_fields: proposed })}`
      : 'No field looks useless.',
  ].join('\n');
}

export const responseFieldOperations = { proposeResponseFields };
