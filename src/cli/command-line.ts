import { execFileSync } from 'node:child_process';
import { Command, CommanderError } from 'commander';
import { commit, version } from '../version.ts';
import { addCall } from './calls/call.ts';
import { addDoctor } from './commands/doctor.ts';
import { addLogin } from './commands/login.ts';
import { addLogout } from './commands/logout.ts';
import { addProfiles } from './commands/profiles.ts';
import { addServe } from './commands/serve.ts';
import { addApply } from './file-commands/apply.ts';
import { addCheck } from './file-commands/check.ts';
import { addDev } from './file-commands/dev.ts';
import { addDiff } from './file-commands/diff.ts';
import { addExport } from './file-commands/export.ts';
import { addSchema } from './file-commands/schema.ts';
import { addImport } from './imports/import.ts';
import { addImportAgain } from './imports/import-again.ts';
import { addBackup } from './operator/backup.ts';
import { addKeys } from './operator/keys.ts';
import { addLimits } from './operator/limits.ts';
import { addMasterKey } from './operator/master-key.ts';
import { addQuotas } from './operator/quotas.ts';
import { reportFailure } from './print/failure.ts';
import { addSecrets } from './servers/secrets.ts';
import { addServers } from './servers/servers.ts';
import { addTools } from './servers/tools.ts';

/** Runs one command and sets the exit code: 0 success, 1 failure or refusal, 2 wrong usage. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  process.stdout.on('error', stopOnClosedPipe);
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
}

function createProgram(): Command {
  const program = new Command('toolhost')
    .description('Turns HTTP APIs into hosted MCP servers.')
    .option('-V, --version', 'print the version and the commit')
    .on('option:version', printVersion)
    .exitOverride()
    .showHelpAfterError('Add --help to see what is possible.')
    .addHelpText(
      'after',
      `
Examples:
  toolhost serve
  toolhost keys create --name me --scopes manage,call
  toolhost check server.yaml && toolhost servers create server.yaml
  toolhost apply servers --dry-run
  toolhost import https://api.example.com/openapi.json --plan
  toolhost call projects list_projects --arg status=eq.active

Exit codes: 0 done, 1 failed or refused, 2 not understood (of apply and diff: something differs).`,
    );
  const groups = [
    ...[addServe, addLogin, addLogout, addProfiles],
    ...[addKeys, addLimits, addQuotas, addMasterKey, addBackup],
    ...[addServers, addTools, addSecrets, addCall, addCheck, addImport, addImportAgain, addDoctor],
    ...[addApply, addDiff, addExport, addSchema, addDev],
  ];
  for (const add of groups) add(program);
  return program;
}

function printVersion(): never {
  process.stdout.write(`${version} (commit ${commit ?? commitOfCheckout()})\n`);
  throw new CommanderError(0, 'commander.version', version);
}

function commitOfCheckout(): string {
  try {
    const cwd = import.meta.dirname;
    return execFileSync('git', ['rev-parse', 'HEAD'], { cwd, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    // The sources were copied without their repository, or git is not installed.
    return 'unknown';
  }
}

/** A closed pipe, as in `toolhost … | head`, is no failure. */
function stopOnClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
}
