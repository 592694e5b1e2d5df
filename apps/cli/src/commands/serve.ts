import { loadService, variableDescriptions } from '@toolhost/server/command-line';
import type { Command } from 'commander';
import { addAcceptLossOption } from '../accept-loss.ts';
import { parseIntegerUpTo } from '../options.ts';

export function addServe(program: Command): void {
  addAcceptLossOption(program.command('serve'))
    .description('run the service until a signal stops it')
    .option('--port <number>', 'port to listen on, instead of PORT', parseIntegerUpTo(65_535, 0))
    .option('--data-dir <folder>', 'folder of the database, instead of DATA_DIR')
    .addHelpText('after', formatSettings)
    .action(runServe);
}

type ServeOptions = { port?: number; dataDir?: string };

/** Starts the service. Resolves when it accepts requests. @throws ConfigError, AppError conflict */
export async function runServe({ port, dataDir }: ServeOptions = {}): Promise<void> {
  if (port !== undefined) process.env.PORT = String(port);
  if (dataDir !== undefined) process.env.DATA_DIR = dataDir;
  const { serve } = await loadService();
  await serve();
}

function formatSettings(): string {
  const lines = variableDescriptions.map(({ name, fallback, meaning }) => {
    return `  ${name.padEnd(24)} ${meaning}${fallback === '' ? '' : ` (default: ${fallback})`}`;
  });
  return `
Settings, as environment variables:
${lines.join('\n')}

Examples:
  toolhost serve
  toolhost serve --port 9000 --data-dir /var/lib/toolhost`;
}
