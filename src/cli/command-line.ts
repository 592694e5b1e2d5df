import { Command } from 'commander';
import { version } from '../version.ts';
import { addCall } from './commands/call.ts';
import { addCheck } from './commands/check.ts';
import { addKeys } from './commands/keys.ts';
import { addLimits } from './commands/limits.ts';
import { addMasterKey } from './commands/master-key.ts';
import { addQuotas } from './commands/quotas.ts';
import { addSecrets } from './commands/secrets.ts';
import { addServe } from './commands/serve.ts';
import { addServers } from './commands/servers.ts';
import { addTools } from './commands/tools.ts';
import { reportFailure } from './failure.ts';

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
    .version(version)
    .exitOverride()
    .showHelpAfterError('Add --help to see what is possible.')
    .addHelpText(
      'after',
      `
Examples:
  toolhost serve
  toolhost keys create --name me --scopes manage,call
  toolhost check server.yaml && toolhost servers create server.yaml
  toolhost call projects list_projects --arg status=eq.active

Exit codes: 0 done, 1 failed or refused, 2 not understood.`,
    );
  const groups = [
    ...[addServe, addKeys, addLimits, addQuotas, addMasterKey],
    ...[addServers, addTools, addSecrets, addCall, addCheck],
  ];
  for (const add of groups) add(program);
  return program;
}

/** A closed pipe, as in `toolhost … | head`, is no failure. */
function stopOnClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
}
