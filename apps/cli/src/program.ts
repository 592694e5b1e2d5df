import { execFileSync } from 'node:child_process';
import { AppError } from '@toolhost/errors/errors';
import { commit, version } from '@toolhost/server/command-line';
import { Command, CommanderError, type Option } from 'commander';
import { addCall, addPreview } from './commands/call.ts';
import { addBackup, addMasterKey } from './commands/database.ts';
import { addDoctor } from './commands/doctor.ts';
import { addImportCommand, addReimport } from './commands/import.ts';
import { addKeys } from './commands/keys.ts';
import { addLimits, addQuotas } from './commands/limits.ts';
import { addLogin, addLogout, addProfiles } from './commands/login-commands.ts';
import { addOpen } from './commands/open.ts';
import { addAudit, addCalls } from './commands/records.ts';
import { addServe } from './commands/serve.ts';
import { addLogins, addSecrets, addServers, addTools } from './commands/servers.ts';
import { addVersions } from './commands/versions.ts';
import { addCompletion } from './completion/completion.ts';
import { addApply, addCheck, addDev, addDiff, addExport, addSchema } from './files/commands.ts';
import { connectionOptionsHeading } from './options.ts';
import { formatUsageError, getErrorPrefix, reportFailure } from './print.ts';

const commandGroups: { [heading: string]: readonly ((program: Command) => void)[] } = {
  'The service:': [addServe, addOpen, addDev],
  'Login and shell:': [addLogin, addLogout, addProfiles, addCompletion],
  'Servers (running service):': [addServers, addTools, addSecrets, addVersions, addLogins],
  'Calls (running service):': [addCall, addPreview, addCalls, addAudit],
  'Configuration files:': [addCheck, addApply, addDiff, addExport, addSchema],
  'API descriptions:': [addImportCommand, addReimport],
  'Any MCP server:': [addDoctor],
  'Database (DATA_DIR or DATABASE_URL):': [addKeys, addLimits, addQuotas, addMasterKey, addBackup],
};

/** Destination and width of the help. `isQuiet` leaves usage errors to the caller. */
export type ProgramOutput = { isQuiet?: boolean; width?: number; write?: (text: string) => void };

export function createProgram({ isQuiet = false, width = getHelpWidth(), write }: ProgramOutput = {}): Command {
  const program = new Command('toolhost')
    .description('Turns HTTP APIs into hosted MCP servers.')
    .option('-V, --version', 'print the version and the commit')
    .on('option:version', printVersionAndExit)
    .exitOverride()
    .configureHelp({
      groupItems: groupWithConnectionLast,
      // Arguments are shown in the help of each command, so that the list stays readable.
      subcommandTerm: (command) => command.name(),
      subcommandDescription: shortenDescription,
    })
    .configureOutput({
      getOutHelpWidth: () => width,
      writeOut: (text) => (write ?? writeOut)(wrapProse(text, width)),
      writeErr: (text) => void (isQuiet || process.stderr.write(text)),
      outputError: (message, writeErr) =>
        writeErr(`${formatUsageError(message.trimEnd()).replace(/^error:/, getErrorPrefix())}\n`),
    })
    .showHelpAfterError('Add --help for usage.')
    .addHelpText(
      'after',
      `
Examples:
  toolhost serve
  toolhost keys create --name cli --scopes manage,call
  toolhost check server.yaml && toolhost servers create server.yaml
  toolhost apply servers --dry-run
  toolhost import https://api.example.com/openapi.json --plan
  toolhost call projects list_projects status=eq.active

Exit codes: 0 success, 1 failure, 2 usage error. Commands that compare
exit with 2 if they find differences, as their --help says.`,
    );
  for (const [heading, commandAdders] of Object.entries(commandGroups)) {
    for (const addCommand of commandAdders) {
      const commandCount = program.commands.length;
      addCommand(program);
      for (const command of program.commands.slice(commandCount)) command.helpGroup(heading);
    }
  }
  return program;
}

const minHelpWidth = 40;
const maxHelpWidth = 100;

function getHelpWidth(): number {
  return Math.min(Math.max(process.stdout.columns ?? 80, minHelpWidth), maxHelpWidth);
}

function writeOut(text: string): void {
  process.stdout.write(text);
}

/** Wraps the prose that commands add to their help. Examples are indented and stay as they are. */
function wrapProse(text: string, width: number): string {
  // Matches consecutive lines that are not indented.
  const paragraph = /(?<=^|\n)(?:\S[^\n]*(?:\n(?=\S))?)+/g;
  const line = new RegExp(`(.{1,${width}})(?: +|$)`, 'g');
  return text.replaceAll(paragraph, (prose) =>
    prose.split('\n').every(({ length }) => length <= width)
      ? prose
      : prose.replaceAll('\n', ' ').replaceAll(line, '$1\n').trimEnd(),
  );
}

/** Shortens a description to its first part. Removes "directly on the database", which the group heading says, too. */
function shortenDescription(command: Command): string {
  return command.description().replace(/, directly on the database .*|;.*/, '');
}

/** Groups the items of the help. The connection options, which most commands share, come last. */
function groupWithConnectionLast<Item extends Command | Option>(
  _all: Item[],
  visible: Item[],
  getGroup: (item: Item) => string,
): Map<string, Item[]> {
  const groups = Map.groupBy(visible, getGroup);
  const connectionItems = groups.get(connectionOptionsHeading);
  groups.delete(connectionOptionsHeading);
  return connectionItems ? groups.set(connectionOptionsHeading, connectionItems) : groups;
}

function printVersionAndExit(): never {
  process.stdout.write(`${version} (commit ${commit ?? readCheckoutCommit()})\n`);
  throw new CommanderError(0, 'commander.version', version);
}

function readCheckoutCommit(): string {
  try {
    const cwd = import.meta.dirname;
    return execFileSync('git', ['rev-parse', 'HEAD'], { cwd, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    // The sources were copied without their repository, or git is not installed.
    return 'unknown';
  }
}

/**
 * Runs one command and sets the exit code: 0 success, 1 failure, 2 usage error. With `--json`, a failure is printed as
 * one JSON object to standard error.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  const isJson = hasJsonOption(args);
  process.stdout.on('error', (error) => exitOnOutputError(error, isJson));
  // A command continues even if its messages cannot be written.
  process.stderr.on('error', () => undefined);
  try {
    await createProgram({ isQuiet: isJson }).parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = reportFailure(error, isJson);
  }
}

function hasJsonOption(args: readonly string[]): boolean {
  const separatorIndex = args.indexOf('--');
  return args.slice(0, separatorIndex < 0 ? undefined : separatorIndex).includes('--json');
}

/** Exits after standard output failed. A closed pipe, as in `toolhost … | head`, is not a failure. */
function exitOnOutputError(error: NodeJS.ErrnoException, isJson: boolean): never {
  if (error.code === 'EPIPE') process.exit();
  const outputError = new AppError('unavailable', `cannot write to standard output: ${error.message}`);
  process.exit(reportFailure(outputError, isJson));
}
