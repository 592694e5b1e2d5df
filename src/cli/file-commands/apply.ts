import type { Command } from 'commander';
import { AppError } from '../../errors.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import type { RestClient } from '../connection/rest-client.ts';
import {
  type Applying,
  applyServer,
  conflictsOf,
  plannedOutcome,
  pruneServer,
  type ServerOutcome,
  strayServers,
} from '../files/apply-files.ts';
import { type PlannedServer, planFiles } from '../files/plan-files.ts';
import type { FileProblem } from '../files/read-files.ts';
import { problemLines, reportText } from '../files/report.ts';
import { readSecretFile } from '../files/secret-file.ts';
import { ask } from '../input/ask.ts';
import { variableOption } from '../input/repeated-options.ts';
import { refusesUsage } from '../input/usage.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = ConnectionOptions &
  Applying & { json?: true; dryRun?: true; prune?: true; yes?: true; secrets?: string; env?: string[] };
type Stray = Awaited<ReturnType<typeof strayServers>>;

export function addApply(program: Command): void {
  refusesUsage(addConnectionOptions(program.command('apply')))
    .description('make the hosted servers match files: creates and changes what differs, and nothing else')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--dry-run', 'say what would be done, and change nothing')
    .option('--label <name>', 'set of files that the servers belong to; it is stored with them')
    .option('--prune', 'delete servers with the label that no file describes any more')
    .option('--yes', 'delete without asking')
    .option(...variableOption)
    .option('--secrets <file>', 'JSON or YAML with sources of secrets by slug, beside those in the files')
    .option('--overwrite', 'undo changes that were made elsewhere, and take servers from another label')
    .addHelpText(
      'after',
      `
Every file is checked first; with a problem in any of them nothing is changed.
Values of secrets come from the variables that --env names, or from files below the folder, as the section "secrets"
says, never from a configuration, and are never printed. --dry-run lists each source and the hosts that its value may
reach.

Exit codes: 0 done or nothing to do, 1 a problem or a failure, 2 with --dry-run: something would change.

Examples:
  toolhost apply servers
  toolhost apply servers --dry-run --env WEATHER_KEY
  toolhost apply servers --label team-a --prune --yes`,
    )
    .action(apply);
}

async function apply(paths: readonly string[], options: Options): Promise<void> {
  if (options.prune && options.label === undefined)
    throw new AppError('invalid', '--prune deletes only servers of a label; name it with --label');
  const client = await connect(options, process.env);
  const more = options.secrets === undefined ? undefined : await readSecretFile(options.secrets);
  const { label } = options;
  const { planned, problems } = await planFiles(client, paths, {
    env: process.env,
    named: options.env ?? [],
    more,
    label,
  });
  const all = [...problems, ...conflictsOf(planned, options)];
  if (all.length > 0) {
    refuse(all, options);
    return;
  }
  const slugs = new Set(planned.map(({ server }) => server.slug));
  const stray = options.prune && label !== undefined ? await strayServers(client, label, slugs) : [];
  if (!options.dryRun && stray.length > 0) await confirm(stray, options);
  const outcomes = options.dryRun
    ? plannedOutcomes(planned, stray)
    : await applyAll(client, planned, { stray, options });
  report(outcomes, options);
}

function refuse(problems: readonly FileProblem[], options: Options): void {
  process.exitCode = 1;
  if (options.json) {
    printJson({ applied: false, problems, servers: [] });
    return;
  }
  const found = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  note([`error: ${found}; nothing was changed`, ...problemLines(problems).map((line) => `  ${line}`)].join('\n'));
}

async function confirm(stray: Stray, options: Options): Promise<void> {
  if (options.yes) return;
  const names = stray.map(({ slug }) => slug).join(', ');
  if (!process.stdin.isTTY)
    throw new AppError('invalid', `this would delete ${names} for good; nothing was changed; add --yes to allow it`);
  note(`No file describes ${names}. They are deleted with their secrets, and their slugs cannot be used again.`);
  const typed = await ask('Type yes to delete them: ', { input: process.stdin, output: process.stderr });
  if (typed.trim() !== 'yes') throw new AppError('invalid', 'not confirmed; nothing was changed');
}

function plannedOutcomes(planned: readonly PlannedServer[], stray: Stray): ServerOutcome[] {
  const pruned = stray.map(({ slug }) => ({ slug, result: 'pruned' as const, changes: [], warnings: [] }));
  const known = planned.map((one) => ({ ...plannedOutcome(one), secrets: one.server.sources }));
  return [...known, ...pruned];
}

async function applyAll(
  client: RestClient,
  planned: readonly PlannedServer[],
  { stray, options }: { stray: Stray; options: Options },
): Promise<ServerOutcome[]> {
  const outcomes: ServerOutcome[] = [];
  for (const one of planned) outcomes.push(await applyServer(client, one, options));
  if (outcomes.some(({ result }) => result === 'failed')) {
    if (stray.length > 0) note('Nothing is deleted, because not all servers could be applied.');
    return outcomes;
  }
  for (const server of stray) outcomes.push(await pruneServer(client, server));
  return outcomes;
}

function report(outcomes: readonly ServerOutcome[], { json, dryRun }: Options): void {
  if (json) printJson({ applied: !dryRun, problems: [], servers: outcomes });
  else print(reportText(outcomes, dryRun === true));
  if (outcomes.some(({ result }) => result === 'failed')) process.exitCode = 1;
  else if (dryRun && outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}
