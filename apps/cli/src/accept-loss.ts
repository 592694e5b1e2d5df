import { loadLogRecovery } from '@toolhost/server/command-line';
import type { Command } from 'commander';

/** Adds `--accept-loss`, an option of every command that opens the database itself. */
export function addAcceptLossOption(command: Command): Command {
  const option = command
    .createOption('--accept-loss', 'open a SQLite database even though changes in its write-ahead log will be lost')
    .conflicts(['url', 'key', 'profile']);
  return command.addOption(option).hook('preAction', async () => {
    if (!command.opts<{ acceptLoss?: true }>().acceptLoss) return;
    const { acceptLostLog } = await loadLogRecovery();
    await acceptLostLog(process.env);
  });
}
