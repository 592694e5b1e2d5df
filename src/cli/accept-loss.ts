import type { Command } from 'commander';

/** Adds the option of every command that opens the database. */
export function addAcceptLoss(command: Command): Command {
  const option = command
    .createOption('--accept-loss', 'open a SQLite database although changes in its write-ahead log are lost')
    .conflicts(['url', 'key', 'profile']);
  return command.addOption(option).hook('preAction', async () => {
    if (!command.opts<{ acceptLoss?: true }>().acceptLoss) return;
    const { acceptLostLog } = await import('../app/accept-loss.ts');
    await acceptLostLog(process.env);
  });
}
