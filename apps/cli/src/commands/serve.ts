import { createRequire, flushCompileCache } from 'node:module';
import type { Command } from 'commander';
import { addAcceptLossOption } from '../accept-loss.ts';

export function addServe(program: Command): void {
  addAcceptLossOption(program.command('serve'))
    .description('run the service until a signal stops it')
    .addHelpText('after', formatSettings)
    .action(runServe);
}

/** Starts the service. Resolves when it accepts requests. @throws ConfigError, AppError conflict */
export async function runServe(): Promise<void> {
  const { serve } = await import('@toolhost/server/process/serve');
  await serve();
  // Saved now, because a killed process could not save its compile cache at exit.
  flushCompileCache();
}

/** Formats the settings for the help. Uses `require`, because Commander builds help synchronously. */
function formatSettings(): string {
  const { variableDescriptions } = createRequire(import.meta.url)(
    '../../../server/src/variables.ts',
  ) as typeof import('@toolhost/server/variables');
  const lines = variableDescriptions.map(({ name, fallback, meaning }) => {
    return `  ${name.padEnd(24)} ${meaning}${fallback === '' ? '' : ` (default: ${fallback})`}`;
  });
  return `
Settings, as environment variables:
${lines.join('\n')}

Examples:
  toolhost serve
  PORT=9000 DATA_DIR=/var/lib/toolhost toolhost serve`;
}
