import { type Command, CommanderError } from 'commander';

/** Code of a wrong use of a command whose exit code 2 has another meaning. */
export const refusedUsage = 'toolhost.refusedUsage';

/** Makes a command end with 1 instead of 2 when it is used wrongly, because its 2 means that something differs. */
export function refusesUsage(command: Command): Command {
  return command.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    throw new CommanderError(1, refusedUsage, error.message);
  });
}
