import type { Command } from 'commander';
import type { Operator } from '../app/operator.ts';
import { jsonOption } from './connection.ts';
import { note } from './print.ts';

export type OperatorOptions = { workspace?: string; json?: true };

/** For a command that works straight on the database. */
export function addOperatorOptions(command: Command): Command {
  return command.option('--workspace <id>', 'workspace it is about (default: the local one)').addOption(jsonOption());
}

/** `makesDatabase` where a database may not be there yet, for the command that may come before the first start. */
export async function asOperator(
  options: OperatorOptions & { makesDatabase?: boolean },
  work: (operator: Operator) => Promise<void>,
): Promise<void> {
  const { openOperator } = await import('../app/operator.ts');
  const operator = await openOperator(process.env, options);
  if (operator.isNew) note(`made a new database ${operator.database}; start the service with the same DATA_DIR`);
  try {
    await work(operator);
  } finally {
    await operator.close();
  }
}
