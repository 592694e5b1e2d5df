import type { Command } from 'commander';
import type { Check } from '../../doctor/check.ts';
import { jsonOption } from '../connection/connection.ts';
import { wholeUpTo } from '../input/whole-number.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = { token?: string; register: boolean; timeout: number; json?: true };

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'examine any MCP server as Claude, ChatGPT, Cursor and others use it; exits with 1 when one would fail',
    )
    .argument('<url>', 'address of the server, as people give it to their client')
    .option('--token <token>', 'token or API key of the server (default: TOOLHOST_TOKEN)')
    .option('--no-register', 'register no client; without that a login is not examined')
    .option('--timeout <seconds>', 'for each answer', wholeUpTo(300), 10)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
No tool is called and no login is finished. Registering leaves a few clients behind at some servers.

Examples:
  toolhost doctor https://mcp.example.com/mcp
  TOOLHOST_TOKEN=… toolhost doctor https://tools.example.com/mcp/weather`,
    )
    .action(doctor);
}

async function doctor(url: string, options: Options): Promise<void> {
  const [{ examine }, { createWebClient }] = await Promise.all([
    import('../../doctor/examine.ts'),
    import('../../doctor/web.ts'),
  ]);
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const checks = await examine(url, {
    web: createWebClient(fetch, options.timeout * 1000),
    token: token === '' ? undefined : token,
    registers: options.register,
  });
  const problems = checks.filter(({ status }) => status === 'problem');
  if (options.json) printJson({ healthy: problems.length === 0, checks });
  else report(checks, token !== undefined);
  if (problems.length > 0) process.exitCode = 1;
}

const marks: Record<Check['status'], string> = { ok: 'ok     ', warning: 'warning', problem: 'PROBLEM' };

function report(checks: readonly Check[], hasToken: boolean): void {
  print(checks.map(({ title, status, detail }) => `${marks[status]}  ${title}: ${detail}`).join('\n'));
  for (const line of summaryOf(checks)) print(line);
  const isRefused = checks.some(({ id }) => id === 'challenge');
  if (isRefused && !hasToken) note('Only what comes before a login was examined; with --token the rest is, too.');
}

/** Which clients will fail, and which have something to complain about. */
function summaryOf(checks: readonly Check[]): string[] {
  const affected = (status: Check['status']) => [
    ...new Set(checks.filter((check) => check.status === status).flatMap(({ clients }) => clients)),
  ];
  const failing = affected('problem');
  const warned = affected('warning').filter((client) => !failing.includes(client));
  const hasProblem = checks.some(({ status }) => status === 'problem');
  return [
    '',
    ...(failing.length > 0 ? [`Will fail: ${failing.join(', ')}.`] : []),
    ...(warned.length > 0 ? [`With warnings: ${warned.join(', ')}.`] : []),
    ...(hasProblem ? [] : ['Nothing was found that would stop a client.']),
  ];
}
