import type { Command } from 'commander';
import type { Operator } from '../../app/operator.ts';
import { jsonOption } from '../connection/connection.ts';
import { note } from '../print/print.ts';

export type OperatorOptions = { workspace?: string; json?: true };

/** Adds the options of commands that work directly on the database. */
export function addOperatorOptions(command: Command): Command {
  return command.option('--workspace <id>', 'workspace it is about (default: the local one)').addOption(jsonOption());
}

/** `makesDatabase` creates a missing database, for a command that may run before the first start of the service. */
export async function asOperator(
  options: OperatorOptions & { makesDatabase?: boolean },
  work: (operator: Operator) => Promise<void>,
): Promise<void> {
  const { openOperator } = await import('../../app/operator.ts');
  const operator = await openOperator(process.env, options);
  if (operator.isNew) note(`made a new database ${operator.database}; start the service with the same DATA_DIR`);
  try {
    await work(operator);
  } finally {
    await operator.close();
  }
}
