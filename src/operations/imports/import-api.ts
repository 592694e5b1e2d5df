import { z } from 'zod';
import { invalid } from '../../errors.ts';
import type { PlannedImport } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import { type Context, operation } from '../operation.ts';
import { foresee } from '../servers/judge-config.ts';
import { createServer } from '../servers/store-server.ts';
import { stored, storedAnswer } from '../servers/stored-answer.ts';
import { importInput, mostDocumentCharacters, planOutput } from './import-shapes.ts';
import { saidOfImport } from './said-of-import.ts';

type Input = z.output<typeof importInput>;

const importApi = operation({
  name: 'importApi',
  summary: 'Make a server from an API description',
  description:
    'Takes OpenAPI or Swagger by address or as text. First plan: it says how many operations there are by tag, what their tools cost in tokens, and which questions must be answered. Then create, with include for the operations that are wanted and answers for the questions. The description itself never has to be in the conversation.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: importInput,
  largestBody: mostDocumentCharacters + 1024 * 1024,
  output: z.object({
    ...planOutput,
    created: z.object(stored.shape).optional().describe('The new server, for create.'),
  }),
  prepare: planOf,
  async foresee(context, { mode }) {
    return mode === 'create' ? foresee(context, configOf(context.prepared as PlannedImport)) : undefined;
  },
  async run(context, input) {
    const plan = context.prepared as PlannedImport;
    const output = { mode: input.mode, ...shownPlan(plan) };
    if (input.mode === 'plan') return output;
    const server = await createServer(context, configOf(plan));
    return { ...output, created: await storedAnswer(context, { server, isUnchanged: false }) };
  },
  isUnchanged: ({ created }) => created === undefined,
  audit: (_input, { created, title }) => ({
    target: created?.server.slug ?? '',
    detail: { title, tools: created?.server.tool_count, version: created?.server.version },
  }),
  say: saidOfImport,
});

/** Reads the document and plans, before the transaction. @throws AppError */
async function planOf({ importing, actor }: Context, input: Input): Promise<PlannedImport> {
  const { document, url, include, exclude, answers, server, name, slug } = input;
  if (document === undefined && url === undefined) {
    throw invalid([
      { path: 'url', message: 'required, unless document is given; allowed: the address of a description' },
    ]);
  }
  const choices: ImportChoices = {
    include,
    exclude,
    readOnly: input.read_only,
    deprecated: input.deprecated,
    server,
    answers,
    name,
    slug,
    documentUrl: url,
  };
  return importing({ text: document, url, choices, report: input.report }, actor.workspaceId);
}

/** @throws AppError invalid while a question must be answered, and when nothing was chosen */
function configOf({ config, questions, chosen, unmatched }: PlannedImport): unknown {
  const open = questions.filter(({ required }) => required);
  if (config === undefined) {
    const problems = open.map(({ name, question }) => ({ path: `answers.${name}`, message: `required: ${question}` }));
    throw invalid(problems, 'The server was not created');
  }
  if (chosen.tools === 0) {
    const message = `no operation fits${unmatched.length > 0 ? ` ${unmatched.join(', ')}` : ''}; plan lists the tags and, with report "all", the operations`;
    throw invalid([{ path: 'include', message }], 'The server was not created');
  }
  return JSON.parse(config) as unknown;
}

function shownPlan({ config: _, proposal, ...plan }: PlannedImport) {
  const { readOnly, ...rest } = proposal;
  return { ...plan, proposal: { ...rest, read_only: readOnly } };
}

export const importOperations = { importApi };
