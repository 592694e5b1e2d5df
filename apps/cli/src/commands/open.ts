import { AppError } from '@toolhost/errors/errors';
import { loadOperator } from '@toolhost/server/command-line';
import { type Command, Option } from 'commander';
import { getOwnServiceUrl, getServiceUrl } from '../connection/connect.ts';
import { toUnreachableError } from '../connection/rest-client.ts';
import { openBrowser } from '../open-browser.ts';
import { createJsonOption, type JsonOption, parseServiceUrlOption } from '../options.ts';
import { print, printJson } from '../print.ts';
import { onDatabasePhrase } from './keys.ts';

type Options = JsonOption & { url?: string; browser: boolean };

export function addOpen(program: Command): void {
  program
    .command('open')
    .description(`print a link that signs in to the dashboard of a local service, ${onDatabasePhrase}`)
    .addOption(
      new Option('--url <url>', 'service URL (default: TOOLHOST_URL, BASE_URL, or http://127.0.0.1:PORT)').argParser(
        parseServiceUrlOption,
      ),
    )
    .addOption(createJsonOption())
    .option('--no-browser', 'only print the link; by default, a terminal also opens it in a browser')
    .addHelpText(
      'after',
      `
The link works once, for 15 minutes. A service with an identity provider has no such links.

Examples:
  toolhost open
  toolhost open --url http://127.0.0.1:9000 --no-browser`,
    )
    .action(runOpen);
}

async function runOpen({ url = getServiceUrl(), browser, json }: Options): Promise<void> {
  const { openOperator } = await loadOperator();
  const operator = await openOperator(process.env, {});
  try {
    const link = await operator.createSignInLink(url);
    await checkLink(url, link, operator.database);
    if (json) printJson({ url: link });
    else print(link);
    if (browser && process.stdout.isTTY) openBrowser(link);
  } finally {
    await operator.close();
  }
}

const checkTimeoutMs = 10_000;

/** Returns a link with the port that a service in this container listens on. It may be published on another one. */
function toReachableLink(link: string): string {
  if (process.env.LOCAL_MODE?.trim() !== 'container') return link;
  return new URL(new URL(link).pathname, getOwnServiceUrl()).href;
}

/** Checks that the service accepts a link, which a HEAD request does not use up. @throws AppError */
async function checkLink(url: string, link: string, database: string): Promise<void> {
  const { status } = await fetch(toReachableLink(link), {
    method: 'HEAD',
    redirect: 'manual',
    signal: AbortSignal.timeout(checkTimeoutMs),
  }).catch((error: unknown) => {
    throw toUnreachableError(url, error);
  });
  if (status === 204) return;
  if (status === 410)
    throw new AppError(
      'conflict',
      `the service at ${url} does not use the database ${database}. Set DATA_DIR or DATABASE_URL as for the service`,
    );
  throw new AppError(
    'invalid',
    `${url} has no sign-in links: it has an identity provider, or is not a Toolhost service. Sign in at ${url}`,
  );
}
