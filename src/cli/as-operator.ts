import type { Command } from 'commander';
import type { Operator } from '../app/operator.ts';
import { jsonOption } from './connection.ts';

export type OperatorOptions = { workspace?: string; json?: true };

/** For a command that works straight on the database. */
export function addOperatorOptions(command: Command): Command {
  return command.option('--workspace <id>', 'workspace it is about (default: the local one)').addOption(jsonOption());
}

export async function asOperator(options: OperatorOptions, work: (operator: Operator) => Promise<void>): Promise<void> {
  const { openOperator } = await import('../app/operator.ts');
  const operator = await openOperator(process.env, options.workspace);
  try {
    await work(operator);
  } finally {
    await operator.close();
  }
}
