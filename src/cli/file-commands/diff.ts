import type { Command } from 'commander';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { plannedOutcome, type ServerOutcome, strayServers } from '../files/apply-files.ts';
import { type Planning, planFiles } from '../files/plan-files.ts';
import type { FileProblem } from '../files/read-files.ts';
import { differenceText, problemLines } from '../files/report.ts';
import { readSecretFile } from '../files/secret-file.ts';
import { variableOption } from '../input/repeated-options.ts';
import { refusesUsage } from '../input/usage.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true; label?: string; secrets?: string; env?: string[] };

export function addDiff(program: Command): void {
  refusesUsage(addConnectionOptions(program.command('diff')))
    .description('compare files with the hosted servers, field by field; values of secrets are not shown')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--label <name>', 'also name the servers with this label that no file describes')
    .option(...variableOption)
    .option('--secrets <file>', 'JSON or YAML with sources of secrets by slug, beside those in the files')
    .addHelpText(
      'after',
      `
A secret whose value is not at hand, or which the key may not compare, is named and left out.

Exit codes: 0 the same, 1 a problem, 2 different.

Examples:
  toolhost diff servers
  toolhost diff servers/weather.yaml`,
    )
    .action(diff);
}

async function diff(paths: readonly string[], options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const more = options.secrets === undefined ? undefined : await readSecretFile(options.secrets);
  const planning = await planFiles(client, paths, {
    env: process.env,
    named: options.env ?? [],
    more,
    forgivesSecrets: true,
  });
  const slugs = new Set(planning.planned.map(({ server }) => server.slug));
  const stray = options.label === undefined ? [] : await strayServers(client, options.label, slugs);
  const outcomes = [
    ...planning.planned.filter(({ plan }) => plan.problems.length === 0).map(plannedOutcome),
    ...stray.map(({ slug }): ServerOutcome => ({ slug, result: 'pruned', changes: [], warnings: [] })),
  ];
  show(outcomes, planning, options);
  if (planning.problems.length > 0) process.exitCode = 1;
  else if (outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}

function show(outcomes: readonly ServerOutcome[], planning: Planning, { json }: Options): void {
  const { planned, problems } = planning;
  const unknown = notCompared(planning);
  if (json) {
    printJson({ problems, not_compared: unknown, servers: outcomes });
    return;
  }
  const undone = new Map(planned.map(({ server, plan }) => [server.slug, plan.undone]));
  const different = outcomes.filter(({ result }) => result !== 'same');
  if (different.length > 0)
    print(different.map((outcome) => differenceText(outcome, undone.get(outcome.slug) ?? [])).join('\n'));
  const lines = [
    ...problemLines(problems).map((line) => `error: ${line}`),
    ...problemLines(unknown).map((line) => `${line}; not compared`),
  ];
  if (lines.length > 0) note(lines.join('\n'));
}

function notCompared({ planned, unread }: Planning): FileProblem[] {
  const refused = planned.flatMap(({ server: { at }, plan }) =>
    plan.not_compared.map((name) => ({
      at,
      path: name.includes('.') ? name : `secrets.${name}`,
      message: 'the key has no scope manage:write',
    })),
  );
  return [...unread, ...refused];
}
