import { AppError } from '@toolhost/errors/errors';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { loadDocumentHosts, loadService, programName } from '@toolhost/server/command-line';
import { type Input, type Output, operations } from '@toolhost/server/operations';
import { toCommandTerms } from '../command-terms.ts';
import type { JsonOption } from '../options.ts';
import { print, printJson, printMessage } from '../print.ts';
import type { ImportSource } from './import-source.ts';

const answerTimeoutMs = 5000;

/** Returns true if a program answers at the URL of the service. */
export async function isAnswering(url: string): Promise<boolean> {
  try {
    const { body } = await fetch(`${url}/livez`, { redirect: 'manual', signal: AbortSignal.timeout(answerTimeoutMs) });
    await body?.cancel();
    return true;
  } catch {
    // The start reports a port that is in use.
    return false;
  }
}

/**
 * Starts the service, creates a server as the operator, and prints how to connect an agent to it. Resolves when the
 * service accepts requests. Only the host and port of the document's URL are allowed, not other ones that the document
 * names.
 */
export async function startWithImport(
  { url }: ImportSource,
  input: Input<'importApi'>,
  { json }: JsonOption,
): Promise<void> {
  const { allowDocumentHost } = await loadDocumentHosts();
  const allowed = url === undefined ? undefined : await allowDocumentHost(process.env, url);
  if (allowed) printMessage(`The service may call ${allowed.entry} (stored in ${allowed.file})`);
  const { serve } = await loadService();
  await serve(async ({ run, settings }) => {
    const result = await run('importApi', input).catch((error: unknown) => {
      throw explainTakenSlug(error);
    });
    const { created } = result;
    if (!created) throw new Error('the import created no server');
    if (json) printJson(result);
    else print(toCommandTerms(formatCreated(result, created)));
    return formatConnection(created, settings);
  });
}

type Created = NonNullable<Output<'importApi'>['created']>;

const missingSecretPattern = /^\{\{(\w+)\}\} has no value/;

/** Formats the result without the next steps and missing secrets, for which `formatConnection` has complete commands. */
function formatCreated(result: Output<'importApi'>, created: Created): string {
  const warnings = created.warnings.filter(({ message }) => !missingSecretPattern.test(message));
  const text = operations.importApi.toAgentText?.({ ...result, created: { ...created, warnings } }) ?? '';
  return text.replaceAll(/^Next: .*\n?/gm, '').trimEnd();
}

/** Formats the commands that set the missing secrets and connect an agent. */
function formatConnection(
  { server: { slug, access }, url, warnings }: Created,
  settings: { database: string; service: string },
): string {
  const createKey = (name: string, scopes: string) =>
    `$(${settings.database}${programName} keys create --name ${name} --scopes ${scopes} --quiet)`;
  const secrets = new Set(warnings.flatMap(({ message }) => missingSecretPattern.exec(message)?.[1] ?? []));
  const secretLines = [...secrets].map(
    (secret) =>
      `TOOLHOST_API_KEY=${createKey('setup', `manage --server ${slug} --expires 1h`)} ${settings.service}${programName} secrets set ${slug} ${secret}`,
  );
  const usesLogin = access !== 'api_key' && access !== 'caller_token';
  const token = usesLogin ? undefined : '$TOOLHOST_API_KEY';
  const connect = getClaudeCodeCommand({ name: slug, url, token }, 'user');
  const key = createKey(slug, `call --server ${slug}`);
  return [
    '  In a second terminal, in this folder:',
    '',
    ...(secretLines.length > 0 ? ['  Set the secrets of the API:', '', ...secretLines, ''] : []),
    '  Connect Claude Code, for all of your projects:',
    '',
    connect.replace('$TOOLHOST_API_KEY', () => key),
  ].join('\n');
}

/** Explains a slug that is taken to someone who runs the command again. */
function explainTakenSlug(error: unknown): unknown {
  if (!(error instanceof AppError) || error.kind !== 'conflict') return error;
  const message = `${error.problems[0]?.message ?? error.message}. If you imported this API before, start the service with "${programName} serve", and update the server with "${programName} reimport SLUG"`;
  return new AppError(error.kind, message, { cause: error });
}
