import type { Command } from 'commander';
import { messageOf } from '../../errors.ts';
import { routes, urlOf } from '../../routes.ts';
import type { FileReading } from '../files/serve-files.ts';
import { variableOption } from '../input/repeated-options.ts';
import { wholeUpTo } from '../input/whole-number.ts';
import { note, print } from '../print/print.ts';

type Options = { port?: number; env?: string[] };

export function addDev(program: Command): void {
  program
    .command('dev')
    .description('serve files on this machine and follow their changes; what is stored ends with the command')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--port <number>', 'port on 127.0.0.1 (default: PORT or 8080)', wholeUpTo(65_535))
    .option(...variableOption)
    .addHelpText(
      'after',
      `
A file with a problem keeps its servers as they were, and the problem is printed. A server whose file is gone is
removed. Values of secrets come from the variables that --env names, or from files of the folder, as the section
"secrets" says.

Examples:
  toolhost dev servers
  EGRESS_ALLOW=127.0.0.1:9000 toolhost dev server.yaml`,
    )
    .action(dev);
}

async function dev(paths: readonly string[], options: Options): Promise<void> {
  const [{ startDevService, stopDevOnSignals }, { createFileServing }, { followFiles, oneAfterAnother }] =
    await Promise.all([
      import('../../process/dev.ts'),
      import('../files/serve-files.ts'),
      import('../files/follow-files.ts'),
    ]);
  const port = options.port === undefined ? {} : { PORT: String(options.port) };
  const service = await startDevService({ ...process.env, ...port });
  const read = createFileServing(service.servers, paths, { env: process.env, named: options.env ?? [] });
  const update = oneAfterAnother(async () => show(await read(), service.baseUrl));
  // Watched before the first reading, so that no change in between is missed.
  const stopFollowing = followFiles(paths, () => void update.run().catch((error) => note(messageOf(error))));
  stopDevOnSignals(service, async () => {
    stopFollowing();
    // What it still applies needs the service.
    await update.stop();
  });
  const { key } = await service.servers.run('createApiKey', { name: 'dev', scopes: ['manage', 'call'] });
  note(`Dashboard  ${service.baseUrl}\nAPI key    ${key} (until this command ends)`);
  await update.run();
  print(`toolhost ready ${service.baseUrl}`);
}

function show({ outcomes, problems }: FileReading, baseUrl: string): void {
  for (const { slug, result, message, changes, warnings } of outcomes) {
    if (result === 'same') continue;
    const detail = result === 'changed' ? changes.map(({ path }) => path).join(', ') : (message ?? '');
    const at = result === 'pruned' ? '' : `  ${urlOf(baseUrl, routes.mcp, slug)}`;
    print(`${result === 'pruned' ? 'removed' : result}  ${slug}${at}  ${detail}`.trimEnd());
    for (const warning of warnings) note(`  warning: ${warning.path}: ${warning.message}`);
  }
  for (const { at, path, message } of problems)
    note(`problem  ${at}: ${path === '' ? '' : `${path}: `}${message}; it stays as it was`);
}
