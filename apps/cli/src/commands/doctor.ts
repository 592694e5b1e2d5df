import { hostname } from 'node:os';
import { AppError } from '@toolhost/errors/errors';
import type { Check, ClientVerdict } from '@toolhost/mcp-doctor/checks';
import type { ExaminedCall, FinishedLogin } from '@toolhost/mcp-doctor/examine';
import type { WebClient } from '@toolhost/mcp-doctor/web';
import type { Command } from 'commander';
import { promptLine } from '../ask.ts';
import { createJsonOption, parseIntegerUpTo } from '../options.ts';
import { print, printJson, printMessage } from '../print.ts';
import { parseJsonArguments } from './call.ts';

type Options = {
  token?: string;
  login?: true;
  browser: boolean;
  register: boolean;
  call?: string;
  args?: { [name: string]: unknown };
  yes?: true;
  timeout: number;
  json?: true;
};

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'check any MCP server the way Claude, ChatGPT, Cursor, and other clients use it; exits with 1 on a problem',
    )
    .argument('<url>', 'URL of the MCP server, as configured in clients')
    .option('--token <token>', 'token or API key for the server (default: TOOLHOST_TOKEN)')
    .option('--login', 'log in with the browser if the server has a login, to check what follows it')
    .option('--no-browser', 'with --login: do not open a browser; paste the URL that the login redirects to')
    .option('--no-register', 'do not register a client; the login is then not checked')
    .option('--call <tool>', 'call this tool once; asks first unless the tool is marked as read-only')
    .option('--args <json>', 'arguments of the call as a JSON object', parseJsonArguments)
    .option('--yes', 'with --call: do not ask, even if the tool may change something')
    .option('--timeout <seconds>', 'timeout of each request', parseIntegerUpTo(300), 10)
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Without --login, no login is completed, and without --call, no tool is called. On some servers, the check leaves a few
registered clients behind. A login made with --login is revoked at the end if the server supports it.

Examples:
  toolhost doctor https://mcp.example.com/mcp
  toolhost doctor https://mcp.example.com/mcp --login
  TOOLHOST_TOKEN=… toolhost doctor https://tools.example.com/mcp/weather --call get_forecast --args '{"city": "Oslo"}'`,
    )
    .action(runDoctor);
}

async function runDoctor(address: string, options: Options): Promise<void> {
  const url = addScheme(address);
  if (options.args && options.call === undefined)
    throw new AppError('invalid', '--args are the arguments of a call. Name the tool with --call');
  const [{ examine }, { getClientVerdicts }, { createWebClient }] = await Promise.all([
    import('@toolhost/mcp-doctor/examine'),
    import('@toolhost/mcp-doctor/checks'),
    import('@toolhost/mcp-doctor/web'),
  ]);
  const web = createWebClient(fetch, options.timeout * 1000);
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const checks = await examine(url, {
    web,
    token: token === '' ? undefined : token,
    canRegister: options.register,
    logIn: options.login && (() => logIn(web, url, options.browser)),
    call: toExaminedCall(options),
  });
  const problems = checks.filter(({ status }) => status === 'problem');
  const clients = getClientVerdicts(checks);
  if (options.json) printJson({ healthy: problems.length === 0, checks, clients });
  else printReport(checks, clients);
  if (problems.length > 0) process.exitCode = 1;
}

/** Adds the scheme to an address without one, such as localhost:8080/mcp/shop. */
function addScheme(address: string): string {
  const [, scheme, host = ''] = /^([a-z][a-z\d+.-]*:\/\/)?([\w.[\]:-]*)/i.exec(address) ?? [];
  if (scheme !== undefined || host === '') return address;
  return `${/^(?:localhost|127\.|\[::1\])/i.test(host) ? 'http' : 'https'}://${address}`;
}

async function logIn(web: WebClient, url: string, shouldOpenBrowser: boolean): Promise<FinishedLogin> {
  const [{ logInAtServer }, { revokeToken }] = await Promise.all([
    import('../login/log-in.ts'),
    import('../login/authorization-server.ts'),
  ]);
  const { clientId, tokens, target } = await logInAtServer(web, url, {
    clientName: `Toolhost doctor on ${hostname()}`,
    shouldOpenBrowser,
  });
  const { tokenEndpoint, revocationEndpoint } = target;
  return {
    clientId,
    tokenEndpoint,
    accessToken: tokens.accessToken,
    refreshToken: tokens.refreshToken,
    revoke:
      revocationEndpoint === undefined
        ? undefined
        : (token) => revokeToken(web, revocationEndpoint, { clientId, token }),
  };
}

function toExaminedCall({ call: tool, args = {}, yes }: Options): ExaminedCall | undefined {
  if (tool === undefined) return undefined;
  const terminal = { input: process.stdin, output: process.stderr };
  const question = `${tool} is not marked as read-only, so it may change something. Call it? [y/N] `;
  const confirmChange = async () =>
    yes === true || (canPrompt() && /^y(es)?$/i.test((await promptLine(question, terminal)).trim()));
  return { tool, arguments: args, confirmChange };
}

/** Returns true if a prompt is possible. A login closes standard input after it waited there for a pasted URL. */
const canPrompt = () => process.stdin.isTTY && !process.stdin.destroyed;

const statusLabels: Record<Check['status'], string> = { ok: 'ok     ', warning: 'warning', problem: 'PROBLEM' };

function printReport(checks: readonly Check[], clients: readonly ClientVerdict[]): void {
  print(checks.map(({ title, status, detail }) => `${statusLabels[status]}  ${title}: ${detail}`).join('\n'));
  const width = Math.max(...clients.map(({ client }) => client.length));
  print('\nWorks with:');
  for (const { client, works, because } of clients) {
    const reason = because.length === 0 ? '' : `: ${because.join(' ')}`;
    print(`  ${client.padEnd(width)}  ${works}${reason}`);
  }
  const hasLogin = checks.some(({ id }) => id === 'challenge');
  const isLoginPassed = checks.some(({ id }) => ['handshake', 'token', 'login'].includes(id));
  if (hasLogin && !isLoginPassed)
    printMessage('\nOnly the steps before the login were checked. Use --login or --token to check the others, too.');
}
