import { loadService, variableDescriptions } from '@toolhost/server/command-line';
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
  PORT=9000 DATA_DIR=/var/lib/toolhost toolhost serve`;
}
