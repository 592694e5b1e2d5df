import { lstatSync } from 'node:fs';
import { AppError } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import { yamlNumberOptions } from '@toolhost/json/yaml-numbers';
import type { PlannedImport } from '@toolhost/openapi-to-tools/import-document';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import { type ImportReportLine, maxDocumentCharacters } from '@toolhost/openapi-to-tools/plan-outline';
import { programName } from '@toolhost/server/command-line';
import { type Input, operations } from '@toolhost/server/operations';
import { getSlugProblem } from '@toolhost/tool-config/slug';
import { type Command, Option } from 'commander';
import { writeFileAtomically } from '../atomic-file.ts';
import { type FieldLabels, withFieldLabels } from '../command-terms.ts';
import { connect, getServiceUrl } from '../connection/connect.ts';
import type { RestClient } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  type ConnectionOptions,
  collectPlanAnswer,
  collectValue,
  type JsonOption,
} from '../options.ts';
import { formatTable, print, printAgentText, printJson, printMessage } from '../print.ts';
import { isAnswering, startWithImport } from './import-and-serve.ts';
import { collectHeader, type ImportSource, readImportSource } from './import-source.ts';

type Options = ConnectionOptions &
  JsonOption &
  Omit<ImportChoices, 'answers' | 'documentUrl' | 'existingKeys' | 'isOnlyCredential'> & {
    header?: Record<string, string>;
    set?: Record<string, string>;
    plan?: true;
    out?: string;
    force?: true;
    list?: 'chosen' | 'all' | 'problems';
    into?: string;
    serve?: true;
  };

export function addImportCommand(program: Command): void {
  addConnectionOptions(program.command('import'))
    .description(
      'create a server from an API description: OpenAPI or Swagger, a Postman, Insomnia, or Bruno collection, an .http file, curl commands, fetch calls, or HAR',
    )
    .argument('<file|url>', 'JSON or YAML; - reads standard input')
    .option(
      '--include <what>',
      'tags, operation IDs, "METHOD /path", or /path, with * as wildcard; \'*\' is all; repeatable',
      collectValue,
    )
    .option('--exclude <what>', 'operations to exclude, in the same form; repeatable', collectValue)
    .option(
      '--for <sentence>',
      'what agents should do with the API; without --include, imports the operations that fit',
    )
    .option('--read-only', 'only operations that read data')
    .option('--deprecated', 'include deprecated operations')
    .option('--fields', 'keep only the fields of large responses that --list suggests')
    .option('--server <url>', 'URL of the API, instead of the one in the description')
    .addOption(
      new Option('--set <name=value>', 'answer to a question of the plan; repeatable').argParser(collectPlanAnswer),
    )
    .option(
      '--header <header>',
      "request header for a description behind a login, as 'Name: value'; repeatable",
      collectHeader,
    )
    .option('--into <slug>', 'add the tools to an existing server instead of creating one; requires --prefix')
    .option('--prefix <prefix>', 'prefix of everything that is added with --into, such as mail')
    .option('--name <name>', 'name of the server')
    .option('--slug <slug>', 'slug of the server')
    .option('--plan', 'print what would be created, and stop')
    .addOption(new Option('--list <which>', 'print operations one by one').choices(['chosen', 'all', 'problems']))
    .option('--out <file>', 'write the configuration to a file instead of creating the server; - is standard output')
    .option('--force', 'overwrite the --out file')
    .addOption(
      new Option(
        '--serve',
        'start the service first if none answers, and allow it to call the host and port of the URL',
      ).conflicts(['plan', 'out', 'into', 'url', 'profile']),
    )
    .addHelpText(
      'after',
      `
Files that the description refers to are read, too, if they are below its folder or at its origin.
The URL may be a web page that shows the description, such as Swagger UI, Redoc, or Scalar.
The service stores --header encrypted, to fetch the description again.
Without --include, the plan's suggestion is imported: the operations that agents use most, within 40 tools and 10,000
tokens.
--plan and --out need no service. --serve needs no key to start a service in local mode, with the database of DATA_DIR or
DATABASE_URL. It stores the host and port in DATA_DIR, so that later starts allow them, too.

Examples:
  toolhost import openapi.json --plan
  toolhost import http://127.0.0.1:8000/openapi.json --serve
  toolhost import openapi.json --for 'triage issues' --plan
  toolhost import https://api.example.com/openapi.yaml --include pets --read-only --out pets.yaml
  cat bruno/*.bru | toolhost import - --plan
  toolhost import openapi.json --include 'GET /pets*' --server https://pets.example.com --set credential=bearer
  toolhost import mail.yaml --into office --prefix mail`,
    )
    .action(runImport);
}

async function runImport(from: string, options: Options): Promise<void> {
  const { slug } = options;
  checkTarget(options);
  // Reading and planning may take a minute, so the slug is checked first.
  const problem = slug === undefined ? undefined : getSlugProblem(slug);
  if (problem !== undefined) throw new AppError('invalid', `--slug ${slug}: ${problem}`);
  await withFieldLabels({ ...importFieldLabels, document: getSourceName(from), url: from }, async () => {
    const source = await readImportSource(from, options.header);
    printMessage(`Reading ${getSourceName(from)} (${formatSize(source.text.length)})`);
    if (options.plan || options.out !== undefined) await planImport(source, from, options);
    else if (options.serve && !(await isAnswering(getServiceUrl())))
      await startWithImport(source, toRequest(source, options) as Input<'importApi'>, options);
    else {
      if (options.serve)
        printMessage(
          `A service is already running at ${getServiceUrl()}, so the import goes there. If it may not call this API, stop it with Ctrl-C and run this command again`,
        );
      await createServer(source, options);
    }
  });
}

const getSourceName = (from: string) => (from === '-' ? 'standard input' : from);

/** Options for the fields of an import. */
const importFieldLabels: FieldLabels = {
  answers: '--set',
  exclude: '--exclude',
  for: '--for',
  headers: '--header',
  include: '--include',
  name: '--name',
  prefix: '--prefix',
  server: '--server',
  slug: '--slug',
};

async function planImport(source: ImportSource, from: string, options: Options): Promise<void> {
  const { importDocument } = await import('@toolhost/openapi-to-tools/import-document');
  const plan = importDocument(source.text, toChoices(source, options), options.list ?? 'none');
  printMessage(`Planned ${plan.operations.operations} operations`);
  if (options.plan) await printPlan(plan, options);
  else await writeConfig(plan, from, options);
}

/** Checks the options that add to an existing server. @throws AppError invalid */
function checkTarget({ into, prefix, slug, name, out }: Options): void {
  if (into === undefined && prefix === undefined) return;
  if (into === undefined || prefix === undefined)
    throw new AppError('invalid', '--into SLUG and --prefix PREFIX belong together. Use both or neither');
  if (slug !== undefined || name !== undefined || out !== undefined)
    throw new AppError('invalid', '--into adds to an existing server. Omit --slug, --name, and --out');
}

function formatSize(characters: number): string {
  return characters < 100_000 ? `${Math.ceil(characters / 1000)} kB` : `${(characters / 1_000_000).toFixed(1)} MB`;
}

function toChoices({ url }: ImportSource, options: Options): ImportChoices {
  const { include, exclude, for: purpose, readOnly, deprecated, fields, server, set, name, slug, prefix } = options;
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
    prefix,
    documentUrl: url,
  };
}

async function printPlan(planned: PlannedImport, options: Options): Promise<void> {
  const { config: _, sizeError: _size, generated: _generated, documentHash: _hash, ...plan } = planned;
  if (options.json) return printJson(plan);
  print(formatPlan(planned));
}

/** Writes the configuration to a file. @throws AppError if a required question is unanswered or the file exists */
async function writeConfig(plan: PlannedImport, from: string, options: Options): Promise<void> {
  if (plan.config === undefined || plan.chosen.tools === 0) {
    const unansweredReason = plan.sizeError ?? 'a required question is not answered';
    const reason = plan.config === undefined ? unansweredReason : 'no operation was selected';
    const required = { ...plan, questions: plan.questions.filter(({ required }) => required) };
    throw new AppError(
      'invalid',
      [`nothing was written: ${reason}`, ...formatQuestions(required), ...formatImportReport(plan)].join('\n  '),
    );
  }
  const config = parseJson(plan.config);
  const { out = '-' } = options;
  if (out !== '-' && !options.force && lstatSync(out, { throwIfNoEntry: false })) {
    throw new AppError('conflict', `${out} already exists. Name another file, or overwrite it with --force`);
  }
  const { stringify } = await import('yaml');
  const headerLines = formatImportHeader(plan, from).map((line) => `# ${line.replaceAll(/[\p{Cc}\s]+/gu, ' ')}`);
  const text = out.endsWith('.json')
    ? `${JSON.stringify(config, undefined, 2)}\n`
    : `${headerLines.join('\n')}\n${stringify(config, { lineWidth: 0, ...yamlNumberOptions })}`;
  if (out === '-') print(text.trimEnd());
  else writeFileAtomically(out, text);
  for (const line of [...formatQuestions(plan), ...formatImportReport(plan)]) printMessage(line);
  const { tools, tokens } = plan.chosen;
  if (out === '-') return;
  if (options.json) printJson({ file: out, tools, tokens });
  else print(`${out}: ${tools} tools, about ${tokens} tokens. Check it with: ${programName} check ${out}`);
}

async function createServer(source: ImportSource, options: Options): Promise<void> {
  if (source.text.length > maxDocumentCharacters) {
    const maxSize = formatSize(maxDocumentCharacters);
    throw new AppError(
      'tooLarge',
      `the document has ${formatSize(source.text.length)}; the service accepts at most ${maxSize}. Plan the import on this machine instead: add --out server.yaml (and --include to select operations), then run: ${programName} apply server.yaml`,
    );
  }
  const client = await connect(options);
  if (options.into !== undefined) {
    const { name: _, slug: __, ...request } = toRequest(source, options);
    const addition = { ...request, mode: 'apply' as const, slug: options.into, prefix: options.prefix };
    const added = await client.run('addImport', addition as Input<'addImport'>);
    if (options.json) return printJson(added);
    return printAgentText(operations.addImport.toAgentText?.(added));
  }
  const result = await client.run('importApi', toRequest(source, options) as Input<'importApi'>);
  if (options.json) return printJson(result);
  printAgentText(operations.importApi.toAgentText?.(result));
}

/** Converts the options to the input of the operation that creates a server. */
function toRequest(source: ImportSource, options: Options) {
  const { documentUrl, readOnly, prefix: _, ...choices } = toChoices(source, options);
  return {
    ...choices,
    mode: 'create' as const,
    document: source.text,
    url: documentUrl,
    headers: options.header,
    read_only: readOnly,
    report: options.list,
  };
}

type ReimportOptions = ConnectionOptions & {
  add?: string[];
  take?: string[];
  server?: string;
  header?: Record<string, string>;
  set?: Record<string, string>;
  apply?: true;
  check?: true;
  watch?: 'daily' | 'never';
  prefix?: string;
  json?: true;
};

export function addReimport(program: Command): void {
  addConnectionOptions(program.command('reimport'))
    .description('re-import the API description of a server: your edits stay, other fields follow the description')
    .argument('<slug>', 'slug of the server')
    .argument('[file|url]', 'API description (default: that of the last import); - reads standard input')
    .option('--apply', 'store the result as a new version; without it, only the changes are printed')
    .option('--add <what>', 'operations to add, in the form of import --include; repeatable', collectValue)
    .option('--take <key>', "resolve a conflict with the description's value; '*' is all; repeatable", collectValue)
    .option('--prefix <prefix>', "prefix of the import to repeat, if the server has several; '' for the one without")
    .option('--server <url>', 'URL of the API, instead of the one in the description')
    .option(
      '--header <header>',
      "request header for a description behind a login, as 'Name: value' (default: that of the last import)",
      collectHeader,
    )
    .option(
      '--set <name=value>',
      'answer to a question, in addition to those of the last import; repeatable',
      collectPlanAnswer,
    )
    .addOption(
      new Option('--check', 'only check whether the description has changed, and show it in server lists').conflicts([
        'apply',
        'add',
        'take',
      ]),
    )
    .addOption(
      new Option('--watch <how>', 'let the service run that check every day, or never').choices(['daily', 'never']),
    )
    .addHelpText(
      'after',
      `
Exits with 2 if something would change and --apply is not set.

Examples:
  toolhost reimport shop
  toolhost reimport shop --watch daily
  toolhost reimport shop openapi.json --take get_pet.description --add 'GET /owners' --apply`,
    )
    .action(runReimport);
}

async function runReimport(slug: string, from: string | undefined, options: ReimportOptions): Promise<void> {
  const client = await connect(options);
  if (options.check || options.watch !== undefined) return runCheckOrWatch(client, slug, from, options);
  const source = from === undefined ? undefined : await readImportSource(from, options.header);
  const input = {
    slug,
    prefix: options.prefix,
    mode: options.apply ? ('apply' as const) : ('plan' as const),
    document: source?.text,
    url: source?.url,
    headers: options.header,
    add: options.add,
    take: options.take,
    server: options.server,
    answers: options.set,
  };
  const names = {
    ...importFieldLabels,
    add: '--add',
    take: '--take',
    slug: '<slug>',
    ...(from !== undefined && { document: getSourceName(from), url: from }),
  };
  const result = await withFieldLabels(names, () => client.run('reimportApi', input as Input<'reimportApi'>));
  const { changed, added } = result.counts;
  if (!options.apply && changed + added + result.server.length > 0) process.exitCode = 2;
  if (options.json) return printJson(result);
  printAgentText(operations.reimportApi.toAgentText?.(result));
}

/** Compares the description at its URL with the last import, or turns the daily comparison on or off. */
async function runCheckOrWatch(
  client: RestClient,
  slug: string,
  from: string | undefined,
  options: ReimportOptions,
): Promise<void> {
  if (from !== undefined) {
    throw new AppError('invalid', `${from}: --check and --watch use the URL of the last import. Omit this argument`);
  }
  const { watch } = options;
  const watched = watch && (await client.run('watchImport', { slug, watch }));
  const checked = options.check && (await client.run('compareImport', { slug }));
  const { imported } = checked ?? watched ?? {};
  if (checked && imported?.error !== undefined) process.exitCode = 1;
  else if (checked && imported?.changed) process.exitCode = 2;
  if (options.json) return printJson({ slug, imported });
  if (watched) printAgentText(operations.watchImport.toAgentText?.(watched));
  if (checked) printAgentText(operations.compareImport.toAgentText?.(checked));
}

function formatPlan(plan: PlannedImport): string {
  const { title, format, operations: counts, groups, chosen, proposal } = plan;
  return [
    `${title || 'An API'} (${format})`,
    `${counts.operations} operations: ${counts.whole} whole, ${counts.loosened} with a loosened schema, ${counts.partial} without an optional input, ${counts.skipped} skipped`,
    '',
    formatTable(groups, { operations: 'operations', read: 'reads', skipped: 'skipped', tokens: 'tokens', tag: 'name' }),
    '',
    `Selected: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation`,
    `Suggestion: ${proposal.reason} (${proposal.tools} tools, ${proposal.tokens} tokens)`,
    ...proposal.include.map((text) => `    --include ${quoteForShell(text)}`),
    ...formatQuestions(plan),
    ...plan.secrets.map(({ name, description }) => `Secret to set afterwards: ${name} (${description})`),
    ...plan.notes,
    ...formatImportReport(plan),
  ].join('\n');
}

function formatQuestions({ questions }: PlannedImport): string[] {
  return questions.flatMap(({ name, question, required, options, assumed }) => [
    `${required ? 'Required' : 'Optional'}: --set ${name}=…: ${question}`,
    ...(options ?? []).map(({ value, meaning }) => `    ${[value, meaning].filter((text) => text !== '').join(': ')}`),
    ...(assumed === undefined ? [] : [`    default: ${assumed}`]),
  ]);
}

/** Formats patterns without a match, findings, and the listed operations. */
function formatImportReport({ unmatched, findings, report }: PlannedImport): string[] {
  return [
    ...unmatched.map((text) => `No operation matches --include ${quoteForShell(text)}`),
    ...findings.map(({ at, message }) => (at === '' ? message : `Not read: ${at}: ${message}`)),
    ...report.map(({ operation, tool, outcome, notes, answer }) =>
      [`${operation} → ${tool}: ${outcome}`, ...notes, ...formatResponseSize(answer)].join('; '),
    ),
  ];
}

function formatResponseSize(answer: ImportReportLine['answer']): string[] {
  if (!answer) return [];
  const { paths, tokens, kept } = answer;
  return [`response of about ${tokens} tokens, or ${kept} with --fields, which keeps ${paths.join(', ')}`];
}

function formatImportHeader({ title, format, secrets, notes }: PlannedImport, from: string): string[] {
  return [
    `Imported from ${from}: ${title} (${format}).`,
    ...secrets.map(({ name, description }) => `Secret to set: ${name} (${description})`),
    ...notes,
  ];
}

function quoteForShell(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
