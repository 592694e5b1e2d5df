import { lstatSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { parseJson } from '../../domain/json/json.ts';
import { yamlNumbers } from '../../domain/json/yaml-numbers.ts';
import { slugProblem } from '../../domain/slug.ts';
import { AppError } from '../../errors.ts';
import type { PlannedImport } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { ImportLine } from '../../import/plan-outline.ts';
import { mostDocumentCharacters } from '../../import/plan-outline.ts';
import { type Input, operations } from '../../operations/index.ts';
import { programName } from '../../version.ts';
import { connect } from '../connection/connect.ts';
import type { RestClient } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  type ConnectionOptions,
  collectAnswer,
  collectText,
  type JsonOption,
} from '../options.ts';
import { note, print, printJson, tableOf } from '../print.ts';
import { writeWholeFile } from '../whole-file.ts';
import { collectHeader, type ImportSource, readImportSource } from './import-source.ts';

type Options = ConnectionOptions &
  JsonOption &
  Omit<ImportChoices, 'answers' | 'documentUrl' | 'present' | 'isAlone'> & {
    header?: Record<string, string>;
    set?: Record<string, string>;
    plan?: true;
    out?: string;
    force?: true;
    list?: 'chosen' | 'all' | 'problems';
  };

export function addImport(program: Command): void {
  addConnectionOptions(program.command('import'))
    .description(
      'create a server from an API description: OpenAPI or Swagger, a Postman, Insomnia or Bruno collection, an .http file, curl commands, fetch calls or HAR',
    )
    .argument('<file|url>', 'JSON or YAML; - reads standard input')
    .option(
      '--include <what>',
      'tags, operation ids, "METHOD /path" or /path, with * for any text; \'*\' is all',
      collectText,
    )
    .option('--exclude <what>', 'the same, to leave out; both may be given several times', collectText)
    .option('--for <sentence>', 'what agents should do with it; without --include what fits that is imported')
    .option('--read-only', 'only operations that read')
    .option('--deprecated', 'deprecated operations too')
    .option('--fields', 'keep only the fields of large answers that --list proposes')
    .option('--server <url>', 'address of the API, instead of the one in the description')
    .addOption(new Option('--set <name=value>', 'answers to the questions of the plan').argParser(collectAnswer))
    .option(
      '--header <header>',
      "for a description behind a login: 'Name: value'; may be given several times",
      collectHeader,
    )
    .option('--name <name>', 'name of the server')
    .option('--slug <slug>', 'slug of the server')
    .option('--plan', 'print what would be made, and stop')
    .addOption(new Option('--list <which>', 'print operations one by one').choices(['chosen', 'all', 'problems']))
    .option('--out <file>', 'write the configuration to a file instead of creating the server; - is standard output')
    .option('--force', 'overwrite that file')
    .addHelpText(
      'after',
      `
Files that the description refers to are read too, below its folder or at its origin.
The address may be that of a page that shows the description, such as Swagger UI, Redoc or Scalar.
The service keeps --header sealed, to read the description again.
Without --include the proposal of the plan is imported: what agents use most, in 40 tools and 10,000 tokens.
With --plan or --out no service is needed.

Examples:
  toolhost import openapi.json --plan
  toolhost import openapi.json --for 'triage issues' --plan
  toolhost import https://api.example.com/openapi.yaml --include pets --read-only --out pets.yaml
  cat bruno/*.bru | toolhost import - --plan
  toolhost import openapi.json --include 'GET /pets*' --server https://pets.example.com --set credential=bearer`,
    )
    .action(runImport);
}

async function runImport(from: string, options: Options): Promise<void> {
  const { slug } = options;
  // Reading and planning may take a minute.
  const problem = slug === undefined ? undefined : slugProblem(slug);
  if (problem !== undefined) throw new AppError('invalid', `--slug ${slug}: ${problem}`);
  const source = await readImportSource(from, options.header);
  note(`Reading ${from} (${megabytes(source.text.length)})`);
  if (!options.plan && options.out === undefined) return create(source, options);
  const { importDocument } = await import('../../import/import-document.ts');
  const plan = importDocument(source.text, choicesOf(source, options), options.list ?? 'none');
  note(`Planned ${plan.operations.operations} operations`);
  if (options.plan) await printPlan(plan, options);
  else await write(plan, from, options);
}

function megabytes(characters: number): string {
  return characters < 100_000 ? `${Math.ceil(characters / 1000)} kB` : `${(characters / 1_000_000).toFixed(1)} MB`;
}

function choicesOf({ url }: ImportSource, options: Options): ImportChoices {
  const { include, exclude, for: purpose, readOnly, deprecated, fields, server, set, name, slug } = options;
  return {
    include,
    exclude,
    for: purpose,
    readOnly,
    deprecated,
    fields,
    server,
    answers: set,
    name,
    slug,
    documentUrl: url,
  };
}

async function printPlan(planned: PlannedImport, options: Options): Promise<void> {
  const { config: _, tooLarge: _size, generated: _generated, documentHash: _hash, ...plan } = planned;
  if (options.json) return printJson(plan);
  print(planText(planned));
}

/** @throws AppError while a question must be answered, and when the file exists */
async function write(plan: PlannedImport, from: string, options: Options): Promise<void> {
  if (plan.config === undefined || plan.chosen.tools === 0) {
    const open = plan.tooLarge ?? 'a question must be answered';
    const why = plan.config === undefined ? open : 'no operation was chosen';
    const required = { ...plan, questions: plan.questions.filter(({ required }) => required) };
    throw new AppError(
      'invalid',
      [`nothing was written: ${why}`, ...questionLines(required), ...importReportLines(plan)].join('\n  '),
    );
  }
  const config = parseJson(plan.config);
  const { out = '-' } = options;
  if (out !== '-' && !options.force && lstatSync(out, { throwIfNoEntry: false })) {
    throw new AppError('conflict', `${out} exists; name another file, or overwrite it with --force`);
  }
  const { stringify } = await import('yaml');
  const head = importHead(plan, from).map((line) => `# ${line.replaceAll(/[\p{Cc}\s]+/gu, ' ')}`);
  const text = out.endsWith('.json')
    ? `${JSON.stringify(config, undefined, 2)}\n`
    : `${head.join('\n')}\n${stringify(config, { lineWidth: 0, ...yamlNumbers })}`;
  if (out === '-') print(text.trimEnd());
  else writeWholeFile(out, text);
  for (const line of [...questionLines(plan), ...importReportLines(plan)]) note(line);
  const { tools, tokens } = plan.chosen;
  if (out === '-') return;
  if (options.json) printJson({ file: out, tools, tokens });
  else print(`${out}: ${tools} tools, about ${tokens} tokens; check it with: ${programName} check ${out}`);
}

async function create(source: ImportSource, options: Options): Promise<void> {
  if (source.text.length > mostDocumentCharacters) {
    const most = megabytes(mostDocumentCharacters);
    throw new AppError(
      'tooLarge',
      `found ${megabytes(source.text.length)}; the service takes at most ${most} of text. Plan here instead: give --out server.yaml, with --include for a part, and then run: ${programName} apply server.yaml`,
    );
  }
  const client = await connect(options);
  const { documentUrl, readOnly, ...choices } = choicesOf(source, options);
  const input = {
    ...choices,
    mode: 'create' as const,
    document: source.text,
    url: documentUrl,
    headers: options.header,
    read_only: readOnly,
    report: options.list,
  };
  const made = await client.run('importApi', input as Input<'importApi'>);
  if (options.json) return printJson(made);
  print(operations.importApi.say?.(made) ?? '');
}

type AgainOptions = ConnectionOptions & {
  add?: string[];
  take?: string[];
  server?: string;
  header?: Record<string, string>;
  set?: Record<string, string>;
  apply?: true;
  check?: true;
  watch?: 'daily' | 'never';
  json?: true;
};

export function addImportAgain(program: Command): void {
  addConnectionOptions(program.command('import-again'))
    .description('import the API description of a server again: edits stay, other fields follow the description')
    .argument('<slug>', 'slug of the server')
    .argument('[file|url]', 'the description; that of the last import when left out; - reads standard input')
    .option('--apply', 'store the result as one new version; without it only what would change is printed')
    .option('--add <what>', 'operations to add, as for import --include; may be given several times', collectText)
    .option(
      '--take <key>',
      "a conflict in which the description is right; '*' is all; may be given several times",
      collectText,
    )
    .option('--server <url>', 'address of the API, instead of the one in the description')
    .option(
      '--header <header>',
      "for a description behind a login: 'Name: value'; that of the last import when left out",
      collectHeader,
    )
    .option('--set <name=value>', 'answers to questions, besides those of the last import', collectAnswer)
    .addOption(
      new Option('--check', 'only note for lists of servers what has changed').conflicts(['apply', 'add', 'take']),
    )
    .addOption(new Option('--watch <how>', 'whether the service does that every day').choices(['daily', 'never']))
    .addHelpText(
      'after',
      `
Exits with 2 when something would change and --apply is not given.

Examples:
  toolhost import-again shop
  toolhost import-again shop --watch daily
  toolhost import-again shop openapi.json --take get_pet.description --add 'GET /owners' --apply`,
    )
    .action(runImportAgain);
}

async function runImportAgain(slug: string, from: string | undefined, options: AgainOptions): Promise<void> {
  const client = await connect(options);
  if (options.check || options.watch !== undefined) return checkOrWatch(client, slug, from, options);
  const source = from === undefined ? undefined : await readImportSource(from, options.header);
  const input = {
    slug,
    mode: options.apply ? ('apply' as const) : ('plan' as const),
    document: source?.text,
    url: source?.url,
    headers: options.header,
    add: options.add,
    take: options.take,
    server: options.server,
    answers: options.set,
  };
  const result = await client.run('importAgain', input as Input<'importAgain'>);
  const { changed, added } = result.counts;
  if (!options.apply && changed + added + result.server.length > 0) process.exitCode = 2;
  if (options.json) return printJson(result);
  print(operations.importAgain.say?.(result) ?? '');
}

/** Compares the description at its address with the last import, and sets whether that is done every day. */
async function checkOrWatch(
  client: RestClient,
  slug: string,
  from: string | undefined,
  options: AgainOptions,
): Promise<void> {
  if (from !== undefined) {
    throw new AppError(
      'invalid',
      `${from}: --check and --watch read the description at the address of the last import; leave it out`,
    );
  }
  const { watch } = options;
  const watched = watch && (await client.run('watchImport', { slug, watch }));
  const checked = options.check && (await client.run('compareImport', { slug }));
  const { imported } = checked ?? watched ?? {};
  if (checked) process.exitCode = imported?.error === undefined ? (imported?.changed ? 2 : 0) : 1;
  if (options.json) return printJson({ slug, imported });
  if (watched) print(operations.watchImport.say?.(watched) ?? '');
  if (checked) print(operations.compareImport.say?.(checked) ?? '');
}

/** A plan for a person at a terminal. */
function planText(plan: PlannedImport): string {
  const { title, format, operations: counts, groups, chosen, proposal } = plan;
  return [
    `${title || 'An API'} (${format})`,
    `${counts.operations} operations: ${counts.whole} whole, ${counts.loosened} with a loosened schema, ${counts.partial} without an optional input, ${counts.skipped} skipped`,
    '',
    tableOf(groups, { operations: 'operations', read: 'reads', skipped: 'skipped', tokens: 'tokens', tag: 'name' }),
    '',
    `Chosen: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation`,
    `Proposal: ${proposal.reason} (${proposal.tools} tools, ${proposal.tokens} tokens)`,
    ...proposal.include.map((text) => `    --include ${quoted(text)}`),
    ...questionLines(plan),
    ...plan.secrets.map(({ name, description }) => `Secret to set afterwards: ${name} (${description})`),
    ...plan.notes,
    ...importReportLines(plan),
  ].join('\n');
}

function questionLines({ questions }: PlannedImport): string[] {
  return questions.flatMap(({ name, question, required, options, assumed }) => [
    `${required ? 'Must be answered' : 'May be answered'} with --set ${name}=…: ${question}`,
    ...(options ?? []).map(({ value, meaning }) => `    ${[value, meaning].filter((text) => text !== '').join(': ')}`),
    ...(assumed === undefined ? [] : [`    without an answer: ${assumed}`]),
  ]);
}

/** What did not fit, what could not be read, and the operations that were listed. */
function importReportLines({ unmatched, findings, report }: PlannedImport): string[] {
  return [
    ...unmatched.map((text) => `Nothing fits --include ${quoted(text)}`),
    ...findings.map(({ at, message }) => (at === '' ? message : `Not read: ${at}: ${message}`)),
    ...report.map(({ operation, tool, outcome, notes, answer }) =>
      [`${operation} → ${tool}: ${outcome}`, ...notes, ...answerTexts(answer)].join('; '),
    ),
  ];
}

function answerTexts(answer: ImportLine['answer']): string[] {
  if (!answer) return [];
  const { paths, tokens, kept } = answer;
  return [`an answer of about ${tokens} tokens, ${kept} with --fields, which keeps ${paths.join(', ')}`];
}

/** The lines at the head of a file with the configuration. */
function importHead({ title, format, secrets, notes }: PlannedImport, from: string): string[] {
  return [
    `Imported from ${from}: ${title} (${format}).`,
    ...secrets.map(({ name, description }) => `Secret to set: ${name} (${description})`),
    ...notes,
  ];
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
